//! Databases take a text for another: `'12abc'` for 12, `'ABC'` for `'abc'`, a BIGINT for its neighbour. A row found so
//! is somebody else's.

use crate::config::{ReverseCheck, Steps};
use crate::judge::Rows;
use crate::named::Param;
use domain::evidence::Reason;

/// Leaves out rows of other numbers where the record's own are there too; when only others are there, nothing is proved.
/// A result that does not show the number it was found by is taken as it is.
pub(super) fn own_rows(
    mut rows: Rows,
    check: &ReverseCheck,
    label: &str,
    params: &[Param],
    value: impl Fn(&Param) -> Option<String>,
) -> Result<Rows, Reason> {
    let plain = Steps::default();
    for param in params.iter().filter(|param| matches!(param, Param::BizNo | Param::Key | Param::Id)) {
        let Some(wanted) = value(param) else { continue };
        let steps = check.params.get(param).unwrap_or(&plain);
        let sight = Sight { wanted: &steps.written(&wanted), steps };
        if rows.rows.iter().flatten().flatten().any(|cell| sight.is_own(cell)) {
            sight.drop_others(&mut rows);
        } else if let Some((column, value)) = sight.other(&rows) {
            return Err(Reason::NumberDiffers {
                check: label.to_owned(),
                field: column.to_owned(),
                value: Some(value.to_owned()),
                wanted: Some(wanted),
            });
        }
    }
    Ok(rows)
}

/// One value, and how the business side may write it.
struct Sight<'a> {
    wanted: &'a str,
    steps: &'a Steps,
}

impl Sight<'_> {
    fn is_own(&self, cell: &str) -> bool {
        cell == self.wanted || self.steps.written(cell) == self.wanted
    }

    /// Not the value, but what a database may take it for.
    fn is_other(&self, cell: &str) -> bool {
        !self.is_own(cell) && (folded(cell) == folded(self.wanted) || is_coerced(cell, self.wanted))
    }

    /// Rows that show another value in a column where a row shows the own one.
    fn drop_others(&self, rows: &mut Rows) {
        let Rows { columns, rows: all, places } = rows;
        let cell = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten();
        let own: Vec<usize> = (0..columns.len())
            .filter(|at| all.iter().any(|row| cell(row, *at).is_some_and(|cell| self.is_own(&cell))))
            .collect();
        let keep: Vec<bool> = all
            .iter()
            .map(|row| !own.iter().any(|at| cell(row, *at).is_some_and(|cell| self.is_other(&cell))))
            .collect();
        let mut kept = keep.iter();
        all.retain(|_| kept.next().copied().unwrap_or(true));
        let mut kept = keep.iter();
        places.retain(|_| kept.next().copied().unwrap_or(true));
    }

    fn other<'r>(&self, rows: &'r Rows) -> Option<(&'r str, &'r str)> {
        let cells = rows.rows.iter().flat_map(|row| rows.columns.iter().zip(row));
        let mut cells = cells.filter_map(|(column, cell)| Some((column.as_str(), cell.as_deref()?)));
        cells.find(|(_, cell)| self.is_other(cell))
    }
}

/// What collations that ignore case and trailing blanks make of a text.
fn folded(text: &str) -> String {
    text.trim().to_lowercase()
}

/// Whether a database that compares as floating numbers takes `wanted` for the whole number in `cell`.
fn is_coerced(cell: &str, wanted: &str) -> bool {
    let Ok(number) = cell.parse::<i64>() else { return false };
    let wanted = wanted.trim_start();
    let digits = wanted.strip_prefix(['-', '+']).unwrap_or(wanted);
    let length =
        wanted.len() - digits.len() + digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    // The nearest doubles are exactly what such a database compares.
    wanted[..length].parse::<f64>().is_ok_and(|taken| taken == number as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(numbers: &[&str]) -> Rows {
        Rows {
            columns: vec!["order_no".into(), "status".into()],
            rows: numbers
                .iter()
                .map(|number| vec![Some((*number).to_owned()), Some("PAID".into())])
                .collect(),
            places: vec![],
        }
    }

    fn left(wanted: &str, params: &str, numbers: &[&str]) -> Result<Vec<String>, Reason> {
        let check: ReverseCheck = toml::from_str(&format!("sql = \"SELECT 1\"\n{params}")).unwrap();
        let own = own_rows(rows(numbers), &check, "order", &[Param::BizNo], |_| Some(wanted.to_owned()))?;
        Ok(own.rows.into_iter().filter_map(|mut row| row.swap_remove(0)).collect())
    }

    #[test]
    fn c67_a_row_that_the_database_took_for_the_number_is_not_its_row() {
        for (wanted, number) in [
            ("0012", "12"),
            ("12abc", "12"),
            ("abc", "ABC"),
            ("abc", "abc "),
            ("9007199254740993", "9007199254740992"),
            (" 7", "7"),
        ] {
            assert!(
                matches!(left(wanted, "", &[number]), Err(Reason::NumberDiffers { .. })),
                "{wanted} {number}"
            );
        }
        assert_eq!(left("abc", "", &["ABC", "abc"]).unwrap(), ["abc"]);
        assert_eq!(left("12", "", &["12"]).unwrap(), ["12"]);
        assert_eq!(left("N1", "", &[]).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn declared_folding_makes_it_the_same_number() {
        assert_eq!(left("abc", "params = { biz_no = \"upper\" }", &["ABC"]).unwrap(), ["ABC"]);
        assert_eq!(
            left("0012", "params = { biz_no = [\"strip_zeros\", \"integer\"] }", &["12"]).unwrap(),
            ["12"]
        );
    }

    #[test]
    fn a_result_that_does_not_show_the_number_is_taken_as_it_is() {
        assert_eq!(left("N1", "", &["other"]).unwrap(), ["other"]);
    }
}
