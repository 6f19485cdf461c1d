//! The records of the chosen lane, oldest first.

use super::lanes;
use super::queue::{FILTERS, Queue};
use crate::components::empty;
use crate::components::filter_bar::{Filter, filter_bar};
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live};
use crate::components::pager::pager;
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::pages::record_row::{self, denied};
use domain::ports::Topic;
use domain::record::RecordRow;
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

/// Errors: `Invalid` when the cursor is none of ours.
pub fn list(visit: &Visit, actor: &Actor, queue: &Queue) -> domain::Result<AnyView> {
    let t = visit.texts();
    let (rows, next) = queue.page(visit.param("cursor"))?;
    let title = queue.scope.lane.map_or(t.stuck.all, |lane| lanes::name(t, lane));
    let total = format::number(queue.shown().len() as u64);
    let content = if rows.is_empty() {
        empty::no_match(visit, &FILTERS)
    } else {
        let columns = columns(visit);
        let lines = rows.iter().map(|row| line(visit, actor, row)).collect();
        let table = table(title, columns, lines);
        view! { {table}{pager(visit, rows.len(), next.as_deref())} }.into_any()
    };
    let panel = Panel::new(title).hint(total).actions(filters(visit, queue)).view(content);
    Ok(live("stuck-rows", &[Topic::Records], Refresh::Announce, panel))
}

/// The source has its switch in the top bar.
fn filters(visit: &Visit, queue: &Queue) -> AnyView {
    let types = queue.biz_types().into_iter().map(|name| (name.to_owned(), name.to_owned()));
    let by_type = Filter::choice("biz_type", visit.texts().stuck.biz_type, types.collect());
    filter_bar(visit, &[by_type], &["lane", "source"])
}

fn columns(visit: &Visit) -> Vec<Column> {
    let t = &visit.texts().stuck;
    vec![
        Column::text(t.age),
        Column::text(t.biz_type),
        Column::text(t.biz_no),
        Column::text(t.key),
        Column::text(t.source),
        Column::text(t.verdict),
        Column::number(t.attempts),
        Column::actions(visit.texts().table.actions),
    ]
}

fn line(visit: &Visit, actor: &Actor, row: &RecordRow) -> Row {
    let age = match row.age_seconds {
        Some(seconds) => time::age(visit, seconds),
        None => visit.texts().records.no_time.into_any(),
    };
    Row::new(vec![
        Cell::new(age),
        Cell::new(row.biz_type.clone().unwrap_or_else(|| "–".to_owned())),
        Cell::new(record_row::biz_no(visit, row)),
        Cell::new(record_row::key(visit, row)),
        Cell::new(row.source.clone()),
        Cell::new(record_row::verdict(visit, row)),
        Cell::new(record_row::attempts(row)),
        Cell::new(buttons(visit, actor, row)),
    ])
    .id(row.id.to_string())
}

fn buttons(visit: &Visit, actor: &Actor, row: &RecordRow) -> AnyView {
    let t = &visit.texts().stuck;
    let check = if actor.role.may(Permission::ReverseCheck) {
        view! {
            <form method="post" action=visit.href("/api/fn/reverse_check")>
                <input type="hidden" name="id" value=row.id.to_string()/>
                <input type="hidden" name="back" value=visit.address()/>
                <button class="btn sm" type="submit" data-check="">{Icon::Refresh.view()}{t.check}</button>
            </form>
        }
        .into_any()
    } else {
        denied(visit, actor, Permission::ReverseCheck, t.check, "btn sm")
    };
    view! { <span class="row-acts">{check}<a class="btn sm" href=record_row::href(visit, &row.id)>{t.view}</a></span> }
        .into_any()
}
