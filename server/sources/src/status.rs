//! What a source says about itself.

use crate::attached::Attached;
use domain::error::Error;
use domain::source::{BizType, Health, SourceStatus};

impl Attached {
    /// Asks clock and catalogue; never an error.
    pub(crate) async fn ask_status(&self) -> SourceStatus {
        let asked = self.clock.now();
        let answer = self.db.now().await;
        let answered = self.clock.now();
        let (status, detail, clock_offset_ms) = match answer {
            Err(error) => (Health::Down, error.to_string(), None),
            Ok(theirs) => {
                self.outage.is_over();
                let ours = asked + (answered - asked) / 2;
                let offset = (theirs - ours).num_milliseconds();
                let (status, detail) = match self.read_layouts().await {
                    Ok(()) => (Health::Up, self.words_of_health(offset)),
                    Err(Error::Unavailable { message, .. }) => (Health::Degraded, message),
                    Err(other) => (Health::Degraded, other.to_string()),
                };
                (status, detail, Some(offset))
            }
        };
        SourceStatus {
            name: self.config.name.clone(),
            kind: self.db.dialect().to_string(),
            status,
            detail,
            table: self.parts.first().map(|part| part.table.to_string()).unwrap_or_default(),
            checked_at: answered,
            clock_offset_ms,
            biz_types: self.biz_types(),
            mapping: self.mapping(),
        }
    }

    /// Every table is there with what the mapping names.
    async fn read_layouts(&self) -> domain::error::Result<()> {
        for part in &self.parts {
            self.read_layout_of(part).await?;
        }
        Ok(())
    }

    fn words_of_health(&self, offset_ms: i64) -> String {
        let clock = format!("Answers; its clock differs from the console's by {offset_ms} ms");
        match self.config.sees_processing() {
            true => clock,
            false => format!("{clock}. In-flight requests leave no row here, so nothing can be seen stuck"),
        }
    }

    fn biz_types(&self) -> Vec<BizType> {
        let each = self.config.biz.iter().map(|biz| BizType {
            name: biz.name.clone(),
            stuck_after_seconds: self.config.stuck_after(Some(&biz.name)).as_secs(),
            on_unknown: biz.on_unknown.as_str().to_owned(),
            reverse_check: !biz.reverse_check.is_empty(),
            replay: biz.replay.is_some(),
        });
        each.collect()
    }

    /// The mapping in words: part and column, then native values and the zone.
    fn mapping(&self) -> Vec<(String, String)> {
        let config = &self.config;
        let columns = config.columns.mapped();
        let mut words: Vec<(String, String)> =
            columns.into_iter().map(|(part, column)| (part.to_owned(), column.to_owned())).collect();
        words.extend(config.state.iter().map(|rule| (rule.is.state().to_string(), rule.in_words())));
        words.push(("zone".into(), config.zone.0.to_string()));
        if let Some(predicate) = &config.predicate {
            words.push(("where".into(), predicate.sql().to_owned()));
        }
        words
    }
}
