//! The cache beside the table: whether it answers, and whether its entries can be read as configured.

use super::Report;
use crate::attached::Attached;
use domain::cache::{Cached, Held, Standing};
use domain::ports::{Cache, Source};
use domain::record::RecordFilter;
use futures::future::join_all;

/// How many of the newest records have their entries read.
const LOOKED_AT: usize = 20;

pub(super) async fn look(source: &Attached, report: &mut Report) {
    let Some(cache) = source.cache() else { return };
    let about = cache.about();
    if let Err(why) = cache.ping().await {
        let advice = "check the server, the URL and the user's rights";
        return report.warn("cache", format!("{} is not usable: {why}", about.address), advice);
    }
    report.ok("cache", format!("{} answers", about.address));
    entries(source, cache, report).await;
}

async fn entries(source: &Attached, cache: &dyn Cache, report: &mut Report) {
    // A table that cannot be listed has said so already.
    let Ok(rows) = source.list(&RecordFilter::default(), None, LOOKED_AT).await else { return };
    let entries = join_all(rows.iter().map(|row| cache.read(row))).await;
    let count = |wanted: Standing| {
        rows.iter().zip(&entries).filter(|(row, entry)| entry.standing(row.state) == wanted).count()
    };
    let (agree, differ) = (count(Standing::Agrees), count(Standing::Disagrees));
    let summary = format!(
        "of the newest {} records {agree} have an entry that agrees, {differ} one that does not, {} none",
        rows.len(),
        count(Standing::Empty)
    );
    match entries.iter().find_map(unclear) {
        Some(why) => report.warn("cache_entries", format!("{summary}; {why}"), "correct [source.cache]"),
        None if !rows.is_empty() && agree + differ == 0 => report.warn(
            "cache_entries",
            format!("{summary}; the first key asked for is {:?}", entries[0].key),
            "compare it with the keys your services write, and correct key under [source.cache]",
        ),
        None => report.ok("cache_entries", summary),
    }
}

/// Why an entry cannot be understood.
fn unclear(cached: &Cached) -> Option<String> {
    match &cached.held {
        Held::Unreadable(why) | Held::Unknown(why) => Some(format!("{:?}: {why}", cached.key)),
        Held::Entry(entry) if entry.means.is_empty() => {
            let value =
                entry.native.as_deref().map_or("its value".to_owned(), |native| format!("{native:?}"));
            Some(format!("{:?}: {value} is mapped to no state", cached.key))
        }
        Held::Nothing | Held::Entry(_) => None,
    }
}
