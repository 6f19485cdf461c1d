//! The outbox beside a source, on the Sources page: messages that have not arrived, and why.

use crate::components::icon::Icon;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::{Tone, tag};
use crate::components::time;
use crate::context::Visit;
use crate::words;
use domain::Result;
use domain::console::Console;
use domain::outbox::{Delivery, Undelivered};
use domain::page::Limit;
use domain::roles::Actor;
use domain::services::outbox::UndeliveredPage;
use leptos::prelude::*;

/// What the outboxes of all sources have not delivered, the first page of it.
pub struct Outboxes(Result<UndeliveredPage>);

impl Outboxes {
    pub async fn read(console: &Console, actor: &Actor) -> Self {
        Self(console.records.undelivered(actor, None, None, Limit::default()).await)
    }

    /// The section of one source; nothing when everything has arrived.
    pub fn section(&self, visit: &Visit, source: &str) -> Option<AnyView> {
        match &self.0 {
            Ok(page) => {
                let here: Vec<&Undelivered> =
                    page.items.iter().filter(|message| message.source == source).collect();
                (!here.is_empty()).then(|| undelivered(visit, &here, page.next_cursor.is_some()))
            }
            Err(error) => {
                let text = words::error(visit.locale(), error);
                Some(view! { <p class="note bad" role="status">{Icon::Warning.view()}{text}</p> }.into_any())
            }
        }
    }
}

fn undelivered(visit: &Visit, messages: &[&Undelivered], more: bool) -> AnyView {
    let t = &visit.texts().outbox;
    let columns = vec![
        Column::text(t.message),
        Column::text(t.biz_no),
        Column::text(t.receiver),
        Column::text(t.delivery),
        Column::number(t.attempts),
        Column::text(t.staged),
        Column::text(t.last_error),
    ];
    let rows = messages.iter().map(|message| {
        Row::new(vec![
            Cell::new(message.key.clone()).mono(),
            Cell::new(message.biz_no.clone().unwrap_or_default()).mono(),
            Cell::new(message.target.clone()),
            Cell::new(delivery(visit, message.delivery)),
            Cell::new(message.attempts),
            Cell::new(time::moment(visit, message.staged_at)).quiet(),
            Cell::new(message.last_error.clone().unwrap_or_default()).wraps(),
        ])
    });
    view! {
        <p class="note processing">{Icon::Warning.view()}{t.title}</p>
        {table(t.title, columns, rows.collect())}
        {more.then(|| view! { <p class="note">{Icon::Warning.view()}<span>{t.more}<code>"GET /api/v1/outbox"</code></span></p> })}
    }
    .into_any()
}

fn delivery(visit: &Visit, delivery: Delivery) -> AnyView {
    let t = &visit.texts().outbox;
    match delivery {
        Delivery::Waiting => tag(Tone::Unknown, t.waiting),
        Delivery::Failing => tag(Tone::Processing, t.failing),
        Delivery::GivenUp => tag(Tone::Bad, t.given_up),
    }
}
