//! The cache beside a source, on the Sources page: whether it answers, what is still to be confirmed, what disagrees.

use crate::components::icon::Icon;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::state_tag;
use crate::components::time;
use crate::context::Visit;
use crate::words;
use domain::Result;
use domain::cache::{CacheStatus, Disagreement};
use domain::console::Console;
use domain::roles::Actor;
use domain::source::Health;
use leptos::prelude::*;

/// Disagreements that the page lists.
const LISTED: usize = 20;

/// What is known about the caches of all sources.
pub struct Caches(Result<Vec<(CacheStatus, Vec<Disagreement>)>>);

impl Caches {
    pub async fn read(console: &Console, actor: &Actor) -> Self {
        Self(Self::try_read(console, actor).await)
    }

    async fn try_read(console: &Console, actor: &Actor) -> Result<Vec<(CacheStatus, Vec<Disagreement>)>> {
        let mut known = Vec::new();
        for status in console.caches.statuses(actor).await? {
            let listed = match status.disagreements {
                0 => Vec::new(),
                _ => console.caches.disagreements(actor, &status.source).await?,
            };
            known.push((status, listed));
        }
        Ok(known)
    }

    /// The section of one source; nothing for a source without a cache.
    pub fn section(&self, visit: &Visit, source: &str) -> Option<AnyView> {
        match &self.0 {
            Ok(known) => {
                let (status, listed) = known.iter().find(|(status, _)| status.source == source)?;
                Some(section(visit, status, listed))
            }
            Err(error) => {
                let text = visit.texts().cache.unknown_status(words::error(visit.locale(), error));
                Some(view! { <p class="note bad" role="status">{Icon::Warning.view()}{text}</p> }.into_any())
            }
        }
    }
}

fn section(visit: &Visit, status: &CacheStatus, listed: &[Disagreement]) -> AnyView {
    let t = &visit.texts().cache;
    let answers = match status.status {
        Health::Up => view! { <span class="good">{t.up}</span> }.into_any(),
        Health::Down | Health::Degraded => {
            view! { <span class="bad">{t.down(&status.detail)}</span> }.into_any()
        }
    };
    let pending = match status.oldest_pending {
        Some(oldest) => {
            view! { <span class="bad">{t.pending_since(status.pending)}</span>" "{time::moment(visit, oldest)} }.into_any()
        }
        None => t.pending_none.into_any(),
    };
    let compared = if status.compared { t.compared_yes } else { t.compared_no };
    view! {
        <div class="pad source-facts">
            <dl class="kv">
                <dt>{t.address}</dt><dd><code>{status.address.clone()}</code></dd>
                <dt>{t.key}</dt><dd><code>{status.key.clone()}</code></dd>
                <dt>{t.status}</dt><dd>{answers}</dd>
                <dt>{t.pending}</dt><dd>{pending}</dd>
                <dt>{t.compared}</dt><dd>{compared}</dd>
                <dt>{t.disagreements}</dt><dd>{status.disagreements}</dd>
            </dl>
        </div>
        {(!listed.is_empty()).then(|| disagreeing(visit, listed))}
    }
    .into_any()
}

fn disagreeing(visit: &Visit, listed: &[Disagreement]) -> AnyView {
    let texts = visit.texts();
    let t = &texts.cache;
    let columns = vec![
        Column::text(texts.record.title),
        Column::text(t.table_says),
        Column::text(t.cache_says),
        Column::text(t.seen),
    ];
    let rows = listed.iter().take(LISTED).map(|found| {
        let name = found.biz_no.clone().unwrap_or_else(|| found.key.clone());
        let address = visit.href(&format!("/records/{}", found.record));
        Row::new(vec![
            Cell::new(view! { <a href=address>{name}</a> }).mono(),
            Cell::new(state_tag(texts, found.record_state)),
            Cell::new(state_tag(texts, found.cached_state)),
            Cell::new(time::moment(visit, found.seen_at)).quiet(),
        ])
    });
    let cut =
        (listed.len() > LISTED).then(|| view! { <p class="pad quiet">{t.disagreements_more(LISTED)}</p> });
    view! { {table(t.disagreements, columns, rows.collect())}{cut} }.into_any()
}
