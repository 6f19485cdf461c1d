//! Sources: whether each attached database answers, what is mapped, what its business types allow. Bad news first.

use super::source_cache::Caches;
use super::source_outbox::Outboxes;
use super::{Sheet, page};
use crate::components::empty;
use crate::components::icon::Icon;
use crate::components::live::{Refresh, live, live_inline};
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::{Tone, tag};
use crate::components::time;
use crate::context::Visit;
use crate::format;
use crate::routes;
use domain::ports::Topic;
use domain::source::{BizType, Health, SourceStatus};
use leptos::prelude::*;

/// A clock this far off is worth a word.
const CLOCK_TOLERANCE_MS: i64 = 2_000;

#[component]
pub fn Sources() -> impl IntoView {
    page(&routes::SOURCES, |signed| async move {
        let (visit, actor, console) = (signed.visit, signed.actor, signed.console);
        let t = &visit.texts().sources;
        let mut statuses = console.records.source_statuses(&actor).await?;
        statuses.sort_by_key(|status| (rank(status.status), status.name.clone()));
        let lead = live_inline("sources-lead", &[Topic::Sources], lead(&visit, &statuses));
        if statuses.is_empty() {
            return Ok(Sheet::new(t.title, empty::notice(t.none, t.none_hint, ())).lead(lead));
        }
        let caches = Caches::read(&console, &actor).await;
        let outboxes = Outboxes::read(&console, &actor).await;
        let cards = statuses.iter().map(|status| source(&visit, status, &caches, &outboxes)).collect_view();
        let body = view! {
            {live("sources-list", &[Topic::Sources], Refresh::Swap, view! { <div class="stack">{cards}</div> })}
            <p class="note"><span>{t.doctor}<code>"amends check"</code></span></p>
        };
        Ok(Sheet::new(t.title, body).lead(lead))
    })
}

fn rank(health: Health) -> u8 {
    match health {
        Health::Down => 0,
        Health::Degraded => 1,
        Health::Up => 2,
    }
}

fn lead(visit: &Visit, statuses: &[SourceStatus]) -> String {
    let t = &visit.texts().sources;
    match statuses.iter().filter(|status| status.status != Health::Up).count() {
        0 => t.all_up(statuses.len() as u64),
        troubled => t.some_troubled(troubled as u64),
    }
}

fn source(visit: &Visit, status: &SourceStatus, caches: &Caches, outboxes: &Outboxes) -> AnyView {
    let t = &visit.texts().sources;
    let health = match status.status {
        Health::Up => tag(Tone::Good, t.up),
        Health::Degraded => tag(Tone::Processing, t.degraded),
        Health::Down => tag(Tone::Bad, t.down),
    };
    let trouble = (status.status != Health::Up).then(|| {
        view! { <p class="note bad" role="status">{Icon::Warning.view()}{status.detail.clone()}</p> }
    });
    let open = view! {
        <a class="btn sm" href=visit.href(&format!("/records?{}", query(&status.name)))>{t.records}</a>
        <a class="btn sm" href=visit.href(&format!("/stuck?{}", query(&status.name)))>{t.stuck}</a>
    };
    let content = view! {
        {trouble}
        <div class="pad source-facts">{facts(visit, status)}</div>
        {types(visit, &status.biz_types)}
        {caches.section(visit, &status.name)}
        {outboxes.section(visit, &status.name)}
        {mapping(visit, status)}
    };
    Panel::new(status.name.clone()).hint(kind(&status.kind)).aside(health).actions(open).view(content)
}

fn query(source: &str) -> String {
    url::form_urlencoded::Serializer::new(String::new()).append_pair("source", source).finish()
}

/// The database's own spelling.
fn kind(kind: &str) -> &'static str {
    match kind {
        "sqlite" => "SQLite",
        "postgres" => "PostgreSQL",
        _ => "MySQL / MariaDB",
    }
}

fn facts(visit: &Visit, status: &SourceStatus) -> AnyView {
    let t = &visit.texts().sources;
    let clock = match status.clock_offset_ms {
        None => view! { <span class="quiet">"–"</span> }.into_any(),
        Some(offset) if offset.abs() <= CLOCK_TOLERANCE_MS => t.clock_same.into_any(),
        Some(offset) => {
            let by = format::age(visit.locale(), (offset.abs() + 500) / 1_000);
            if offset > 0 { t.clock_ahead(by) } else { t.clock_behind(by) }.into_any()
        }
    };
    // A source that is slow to answer is asked after the page began.
    let asked = status.checked_at.min(visit.now());
    view! {
        <dl class="kv">
            <dt>{t.table}</dt><dd><code>{status.table.clone()}</code></dd>
            <dt>{t.clock}</dt><dd>{clock}</dd>
            <dt>{t.asked}</dt><dd>{time::moment(visit, asked)}</dd>
        </dl>
    }
    .into_any()
}

fn types(visit: &Visit, types: &[BizType]) -> AnyView {
    let t = &visit.texts().sources;
    if types.is_empty() {
        return view! { <p class="note processing">{Icon::Warning.view()}{t.no_types}</p> }.into_any();
    }
    let columns = vec![
        Column::text(t.biz_type),
        Column::text(t.stuck_after),
        Column::text(t.on_unknown),
        Column::text(t.reverse_check),
        Column::text(t.replay),
    ];
    let rows = types.iter().map(|kind| {
        let limit = i64::try_from(kind.stuck_after_seconds).unwrap_or(i64::MAX);
        let unknown = if kind.on_unknown == "re_execute" { t.re_execute } else { t.hold };
        Row::new(vec![
            Cell::new(kind.name.clone()),
            Cell::new(format::age(visit.locale(), limit)),
            Cell::new(unknown).quiet(),
            Cell::new(configured(visit, kind.reverse_check)),
            Cell::new(configured(visit, kind.replay)),
        ])
    });
    table(t.types, columns, rows.collect())
}

fn configured(visit: &Visit, is: bool) -> AnyView {
    let t = &visit.texts().sources;
    if is {
        view! { <span class="granted">{Icon::Check.view()}{t.configured}</span> }.into_any()
    } else {
        view! { <span class="quiet">{Icon::Cross.view()}{t.not_configured}</span> }.into_any()
    }
}

fn mapping(visit: &Visit, status: &SourceStatus) -> AnyView {
    let t = &visit.texts().sources;
    let pairs = status.mapping.iter().map(|(role, rule)| {
        view! { <dt>{role.clone()}</dt><dd><code>{rule.clone()}</code></dd> }
    });
    view! {
        <details class="pad mapping">
            <summary>{t.mapping}</summary>
            <dl class="kv">{pairs.collect_view()}</dl>
        </details>
    }
    .into_any()
}
