//! Tables: a caption for screen readers, scoped headings, cards on a phone (each cell repeats its heading).
//!
//! ```ignore
//! let rows = records.iter().map(|record| {
//!     Row::new(vec![
//!         Cell::new(link(visit.href(&format!("/records/{}", record.id)), record.biz_no.clone())),
//!         Cell::new(number(record.attempts)).quiet(),
//!     ])
//!     .id(record.id.to_string())
//! });
//! table("Stuck records", vec![Column::text(t.biz_no), Column::number(t.attempts)], rows.collect())
//! ```

use leptos::prelude::*;

/// A column: its heading and how its cells stand.
pub struct Column {
    heading: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// Buttons at the row's end; the heading is for screen readers only.
    Actions,
}

impl Column {
    pub fn text(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), kind: Kind::Text }
    }

    /// Right-aligned, so that digits stand under digits.
    pub fn number(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), kind: Kind::Number }
    }

    /// The row's buttons.
    pub fn actions(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), kind: Kind::Actions }
    }

    fn class(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Text => None,
            Kind::Number => Some("num"),
            Kind::Actions => Some("acts"),
        }
    }
}

/// One cell.
pub struct Cell {
    content: AnyView,
    classes: Vec<&'static str>,
}

impl Cell {
    pub fn new(content: impl IntoView + 'static) -> Self {
        Self { content: content.into_any(), classes: Vec::new() }
    }

    /// A cell that may hold nothing: a faint dash in a table, left out of a card.
    pub fn or_none(content: Option<impl IntoView + 'static>) -> Self {
        content.map_or_else(|| Self { content: "–".into_any(), classes: vec!["none"] }, Self::new)
    }

    /// Keys, numbers and codes in the fixed-width face.
    pub fn mono(self) -> Self {
        self.classed("mono")
    }

    /// Secondary text.
    pub fn quiet(self) -> Self {
        self.classed("quiet")
    }

    /// Prose that may take several lines.
    pub fn wraps(self) -> Self {
        self.classed("wrap")
    }

    /// One more class; an empty cell needs no other than that it is empty.
    fn classed(self, class: &'static str) -> Self {
        if self.classes.first() == Some(&"none") {
            return self;
        }
        let Self { content, mut classes } = self;
        classes.push(class);
        Self { content, classes }
    }
}

/// One row. With an id it takes part in keyboard movement and in live lists.
pub struct Row {
    id: Option<String>,
    cells: Vec<Cell>,
}

impl Row {
    pub fn new(cells: Vec<Cell>) -> Self {
        Self { id: None, cells }
    }

    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }
}

/// The table. It needs as many cells in each row as there are columns.
pub fn table(caption: impl Into<String>, columns: Vec<Column>, rows: Vec<Row>) -> AnyView {
    let headings = columns.iter().map(heading).collect_view();
    let body = rows.into_iter().map(|row| body_row(&columns, row)).collect_view();
    view! {
        <div class="scroll">
            <table>
                <caption class="hidden">{caption.into()}</caption>
                <thead><tr>{headings}</tr></thead>
                <tbody>{body}</tbody>
            </table>
        </div>
    }
    .into_any()
}

fn heading(column: &Column) -> impl IntoView + use<> {
    let hidden = (column.kind == Kind::Actions).then_some("hidden");
    view! { <th scope="col" class=column.class()><span class=hidden>{column.heading.clone()}</span></th> }
}

fn body_row(columns: &[Column], row: Row) -> impl IntoView + use<> {
    let cells = row.cells.into_iter().zip(columns).map(|(cell, column)| {
        let class = column.class().into_iter().chain(cell.classes).collect::<Vec<_>>().join(" ");
        let label = (column.kind != Kind::Actions).then(|| column.heading.clone());
        view! { <td class=(!class.is_empty()).then_some(class) data-label=label>{cell.content}</td> }
    });
    let cells = cells.collect_view();
    let focusable = row.id.is_some().then_some("-1");
    view! { <tr data-row=row.id tabindex=focusable>{cells}</tr> }
}
