//! CSV as spreadsheets read it: a byte-order mark so that Chinese stays Chinese, CRLF lines, and no cell that a
//! spreadsheet would run as a formula. Numbers stay as they are.

/// What a spreadsheet needs to see first to read UTF-8.
pub const BOM: &str = "\u{feff}";
/// What makes spreadsheets take a cell for a formula, in its ASCII and its full-width form.
const FORMULA_STARTS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Appends one line.
pub fn push_line<'a>(csv: &mut String, cells: impl IntoIterator<Item = &'a str>) {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            csv.push(',');
        }
        push_cell(csv, cell);
    }
    csv.push_str("\r\n");
}

fn push_cell(csv: &mut String, cell: &str) {
    let guard = if is_formula(cell) { "'" } else { "" };
    if cell.contains([',', '"', '\r', '\n']) || cell.starts_with(' ') || cell.ends_with(' ') {
        csv.push('"');
        csv.push_str(guard);
        csv.push_str(&cell.replace('"', "\"\""));
        csv.push('"');
    } else {
        csv.push_str(guard);
        csv.push_str(cell);
    }
}

/// Whether a spreadsheet would evaluate the cell; white space in front does not stop it.
fn is_formula(cell: &str) -> bool {
    let starts_odd = cell.starts_with(['\t', '\r', '\n']);
    let text = cell.trim_start();
    (starts_odd || text.starts_with(FORMULA_STARTS)) && !is_number(text)
}

/// A plain decimal such as `-5.00`.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(whole) && all_digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(cell: &str) -> String {
        let mut csv = String::new();
        push_line(&mut csv, [cell]);
        csv
    }

    #[test]
    fn c82_numbers_stay_exact_and_formulas_stay_text() {
        for exact in ["-5.00", "0.10", "00123456789012345678", "ORDER", "", "中文", "a-b", "-5"] {
            assert_eq!(line(exact), format!("{exact}\r\n"));
        }
        for formula in ["=1+1", "@SUM(A1)", "+8613800138000", "-5.00-2", "-", "＝1", "-1.", "-.5"] {
            assert_eq!(line(formula), format!("'{formula}\r\n"));
        }
        assert_eq!(line("=HYPERLINK(\"x\",\"y\")"), "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\"\r\n");
        assert_eq!(line("\t=cmd|' /C calc'!A0"), "'\t=cmd|' /C calc'!A0\r\n");
        assert_eq!(line(" =1+1"), "\"' =1+1\"\r\n");
        assert_eq!(line("a,b\nc"), "\"a,b\nc\"\r\n");
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_cell_or_becomes_a_formula(text in ".*") {
            let written = line(&text);
            let body = written.strip_suffix("\r\n").unwrap();
            let read = match body.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"').unwrap().replace("\"\"", "\""),
                None => {
                    prop_assert!(!body.contains([',', '"', '\r', '\n']));
                    body.to_owned()
                }
            };
            let marked = format!("'{text}");
            prop_assert!(read == text || read == marked);
            prop_assert!(!read.trim_start().starts_with(FORMULA_STARTS) || is_number(read.trim_start()));
        }
    }
}
