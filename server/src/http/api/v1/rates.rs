//! Hits, executions and anomalies over time.

use super::Answer;
use crate::http::extract::{ApiQuery, Instant, SignedIn};
use crate::http::problem::Problem;
use crate::http::web::Web;
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Duration, DurationRound, Utc};
use domain::rates::{Point, RateScope, Span};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What is shown when no beginning is given.
const DEFAULT_HOURS: i64 = 24;

pub fn routes() -> OpenApiRouter<Web> {
    OpenApiRouter::new().routes(routes!(series))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SeriesQuery {
    source: Option<String>,
    biz_type: Option<String>,
    /// 24 hours before `to` if absent.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Instant>,
    /// Now if absent.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Instant>,
    /// Whole minutes, as a number or as `5m`, `1h`, `1d`; chosen to give about 150 points if absent.
    #[param(value_type = Option<String>, example = "5m")]
    step: Option<Minutes>,
}

/// A length of time in whole minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Minutes(u32);

impl<'de> Deserialize<'de> for Minutes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        minutes(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is no step; write whole minutes such as 5, 5m, 1h or 1d"))
        })
    }
}

fn minutes(text: &str) -> Option<u32> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u32 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" | "m" => Some(number),
        "s" if number.is_multiple_of(60) => Some(number / 60),
        "h" => number.checked_mul(60),
        "d" => number.checked_mul(24 * 60),
        _ => None,
    }
}

/// A series; steps without traffic are missing, never zero.
#[derive(Serialize, ToSchema)]
struct Series {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    step_seconds: u64,
    series: Vec<Point>,
}

/// Counts and shares per step.
#[utoipa::path(
    get, path = "/rates", tag = "rates", params(SeriesQuery),
    responses(
        (status = 200, body = Series),
        (status = "4XX", description = "a span that cannot be read, or nobody signed in", body = Problem, content_type = "application/problem+json"),
    )
)]
async fn series(
    State(web): State<Web>,
    SignedIn(actor): SignedIn,
    ApiQuery(query): ApiQuery<SeriesQuery>,
) -> Answer<Series> {
    let span = span(&query, web.app.clock.now())?;
    let scope = RateScope { source: query.source, biz_type: query.biz_type };
    let series = web.app.console.rates.series(&actor, &scope, span).await?;
    let step_seconds = u64::from(span.step_minutes) * 60;
    Ok(Json(Series { from: span.from, to: span.to, step_seconds, series }))
}

/// The span asked for, widened to whole minutes.
fn span(query: &SeriesQuery, now: DateTime<Utc>) -> Result<Span, Problem> {
    let to = query.to.map_or(now, |to| to.0);
    let from = query.from.map_or(to - Duration::hours(DEFAULT_HOURS), |from| from.0);
    let minute = Duration::minutes(1);
    let unusable = |_| Problem::invalid("from or to is no time that counts can be from.");
    let (from, to) =
        (from.duration_trunc(minute).map_err(unusable)?, to.duration_round_up(minute).map_err(unusable)?);
    Ok(Span::new(from, to, query.step.map(|step| step.0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_whole_minutes() {
        assert_eq!(["5", "5m", "300s", "2h", "1d"].map(minutes), [5, 5, 5, 120, 1_440].map(Some));
        assert_eq!(["", "m", "-1", "61s", "5x", "99999999999", "4294967295d", "五"].map(minutes), [None; 8]);
    }

    #[test]
    fn the_last_day_is_shown_unless_told_otherwise() {
        let query = SeriesQuery { source: None, biz_type: None, from: None, to: None, step: None };
        let now = DateTime::from_timestamp(1_796_000_030, 0).unwrap();
        let span = span(&query, now).unwrap();
        assert!(span.to > now && span.to - now < Duration::minutes(1));
        assert_eq!(
            span.from,
            DateTime::from_timestamp(1_796_000_030 - 86_400, 0)
                .unwrap()
                .duration_trunc(Duration::minutes(1))
                .unwrap()
        );
    }
}
