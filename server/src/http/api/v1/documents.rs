//! How records and evidence look outside: masked unless revealed, exact where shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use domain::actions::{Action, Permit, recommended};
use domain::cache::{Held, Standing};
use domain::compensation::Compensation;
use domain::evidence::{CheckRows, Comparison, Evidence, Finding, Reason, Verdict};
use domain::record::{Body, RecordDetail, RecordRow, State};
use domain::redact;
use domain::services::records::{Event, Happened, Offer, RecordView};
use serde::Serialize;
use utoipa::ToSchema;

/// The most characters of a body that one answer carries.
const CONTENT_MAX: usize = 256 * 1024;

/// One record in full.
#[derive(Serialize, ToSchema)]
pub struct RecordDocument {
    #[serde(flatten)]
    row: RecordRow,
    request: BodyDocument,
    response: BodyDocument,
    /// The cache entry beside the record; null when the source has no cache attached.
    cache: Option<CacheDocument>,
    /// Further mapped columns, in the mapping's order.
    facts: Vec<Fact>,
    /// The newest evidence about this version, fresh or not.
    evidence: Option<EvidenceDocument>,
    evidence_is_fresh: bool,
    actions: Vec<ActionDocument>,
    /// The unfinished compensation, if somebody is settling the record.
    running: Option<RunningDocument>,
    /// Oldest first.
    history: Vec<HappenedDocument>,
    /// The source's clock when the record was read.
    read_at: DateTime<Utc>,
}

/// A stored body.
#[derive(Serialize, ToSchema)]
pub struct BodyDocument {
    /// Whether there is one.
    stored: bool,
    /// Its size as stored.
    bytes: Option<usize>,
    /// Masked or as stored; null when there is none, or when it is hidden whole.
    content: Option<String>,
    /// `utf-8`, or `base64` for bytes that are no text.
    encoding: Option<&'static str>,
    /// Whether sensitive values are hidden.
    masked: bool,
    /// Whether the content ends before the body does.
    truncated: bool,
    /// Why there is no content.
    detail: Option<String>,
}

/// What the source's cache holds for the record.
#[derive(Serialize, ToSchema)]
struct CacheDocument {
    /// The key there; null when this record has none.
    key: Option<String>,
    /// Whether something is there; null when nobody could look.
    found: Option<bool>,
    standing: Standing,
    /// The states that the entry can mean.
    states: Vec<State>,
    /// The cache's own spelling of the state.
    native_state: Option<String>,
    /// Null = no entry, or one without end.
    ttl_seconds: Option<u64>,
    value: BodyDocument,
    /// Why the entry was not read.
    detail: Option<String>,
    /// The change that still has to be confirmed, if any.
    pending: Option<PendingCacheChange>,
}

#[derive(Serialize, ToSchema)]
struct PendingCacheChange {
    compensation_id: String,
    since: DateTime<Utc>,
    attempts: u32,
    detail: String,
}

#[derive(Serialize, ToSchema)]
struct Fact {
    name: String,
    value: String,
}

/// One action beside the record: offered, or not and why.
#[derive(Serialize, ToSchema)]
struct ActionDocument {
    action: Action,
    allowed: bool,
    reason: Option<String>,
    /// A stable word for the reason.
    code: Option<&'static str>,
    /// Not for one person alone, but with another's approval.
    second_person: bool,
}

#[derive(Serialize, ToSchema)]
struct RunningDocument {
    compensation_id: String,
    action: Action,
    by: String,
    started_at: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
struct HappenedDocument {
    at: DateTime<Utc>,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    what: Event,
}

/// What a reverse check saw.
#[derive(Serialize, ToSchema)]
pub struct EvidenceDocument {
    evidence_id: String,
    verdict: Verdict,
    rows: Vec<CheckRows>,
    comparisons: Vec<Comparison>,
    /// The reasons, for programs.
    #[schema(value_type = Vec<Object>)]
    reasons: Vec<Reason>,
    /// The reasons as one sentence.
    explanation: String,
    /// What is clearly right to do, if anything is.
    recommended: Option<Action>,
    read_from: String,
    checked_by: String,
    checked_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

impl RecordDocument {
    /// As everybody who may read sees it.
    pub fn masked(view: RecordView) -> Self {
        let (request, response) =
            (BodyDocument::masked(&view.detail.request), BodyDocument::masked(&view.detail.response));
        let evidence = view.evidence.clone().map(EvidenceDocument::masked);
        let cache = CacheDocument::of(&view, BodyDocument::masked);
        Self::of(view, request, response, cache, evidence)
    }

    /// With the bodies of `detail`, whose reading was audited.
    pub fn revealed(view: RecordView, detail: &RecordDetail) -> Self {
        let (request, response) =
            (BodyDocument::revealed(&detail.request), BodyDocument::revealed(&detail.response));
        let evidence = view.evidence.clone().map(EvidenceDocument::revealed);
        let cache = CacheDocument::of(&view, BodyDocument::revealed);
        Self::of(view, request, response, cache, evidence)
    }

    fn of(
        view: RecordView,
        request: BodyDocument,
        response: BodyDocument,
        cache: Option<CacheDocument>,
        evidence: Option<EvidenceDocument>,
    ) -> Self {
        let RecordDetail { row, facts, read_at, .. } = view.detail;
        Self {
            row,
            request,
            response,
            cache,
            facts: facts.into_iter().map(|(name, value)| Fact { name, value }).collect(),
            evidence,
            evidence_is_fresh: view.evidence_is_fresh,
            actions: view.offers.into_iter().map(ActionDocument::from).collect(),
            running: view.running.map(RunningDocument::from),
            history: view.history.into_iter().map(HappenedDocument::from).collect(),
            read_at,
        }
    }
}

impl CacheDocument {
    fn of(view: &RecordView, shown: fn(&Body) -> BodyDocument) -> Option<Self> {
        let cached = view.cached.as_ref()?;
        let (entry, detail) = match &cached.held {
            Held::Nothing => (None, None),
            Held::Entry(entry) => (Some(entry), None),
            Held::Unreadable(why) | Held::Unknown(why) => (None, Some(why.clone())),
        };
        let value = entry.map_or(Body::Empty, |entry| Body::Stored(entry.value.clone()));
        Some(Self {
            key: Some(cached.key.clone()).filter(|key| !key.is_empty()),
            found: match &cached.held {
                Held::Nothing => Some(false),
                Held::Entry(_) | Held::Unreadable(_) => Some(true),
                Held::Unknown(_) => None,
            },
            standing: cached.standing(view.detail.row.state),
            states: entry.map(|entry| entry.means.clone()).unwrap_or_default(),
            native_state: entry.and_then(|entry| entry.native.clone()),
            ttl_seconds: entry.and_then(|entry| entry.ttl).map(|ttl| ttl.as_secs()),
            value: shown(&value),
            detail,
            pending: view.cache_pending.as_ref().map(|change| PendingCacheChange {
                compensation_id: change.compensation_id.clone(),
                since: change.since,
                attempts: change.attempts,
                detail: change.why.clone(),
            }),
        })
    }
}

impl BodyDocument {
    fn masked(body: &Body) -> Self {
        let text = body.readable().map(|bytes| std::str::from_utf8(bytes).ok().and_then(redact::masked));
        match text {
            Some(Some(text)) => Self::content(body, text, "utf-8", true),
            Some(None) => {
                let detail = "hidden whole: only JSON and forms can be masked value by value";
                Self { masked: true, stored: true, detail: Some(detail.into()), ..Self::without(body) }
            }
            None => Self::without(body),
        }
    }

    fn revealed(body: &Body) -> Self {
        match body.readable().map(|bytes| (bytes, std::str::from_utf8(bytes))) {
            Some((_, Ok(text))) => Self::content(body, text.to_owned(), "utf-8", false),
            Some((bytes, Err(_))) => Self::content(body, STANDARD.encode(bytes), "base64", false),
            None => Self::without(body),
        }
    }

    fn content(body: &Body, mut text: String, encoding: &'static str, masked: bool) -> Self {
        let end = text.floor_char_boundary(CONTENT_MAX);
        let cut_off = matches!(body, Body::Decoded(decoded) if decoded.truncated_at.is_some());
        let truncated = cut_off || end < text.len();
        text.truncate(end);
        Self {
            stored: true,
            content: Some(text),
            encoding: Some(encoding),
            masked,
            truncated,
            ..Self::without(body)
        }
    }

    fn without(body: &Body) -> Self {
        let detail = match body {
            Body::Stored(_) => None,
            Body::Decoded(decoded) => decoded.note(),
            Body::Empty => Some("empty".to_owned()),
            Body::NotStored => Some("this table keeps no such body".to_owned()),
            Body::Unreadable(reason) => Some(reason.clone()),
        };
        let bytes = body.bytes().map(<[u8]>::len);
        Self { stored: false, bytes, content: None, encoding: None, masked: false, truncated: false, detail }
    }
}

impl From<Offer> for ActionDocument {
    fn from(offer: Offer) -> Self {
        let why = offer.permit.why();
        Self {
            action: offer.action,
            allowed: offer.permit.is_allowed(),
            reason: why.map(ToString::to_string),
            code: why.map(|why| why.code()),
            second_person: matches!(offer.permit, Permit::SecondPerson(_)),
        }
    }
}

impl From<Compensation> for RunningDocument {
    fn from(running: Compensation) -> Self {
        Self {
            compensation_id: running.id,
            action: running.command.action,
            by: running.actor,
            started_at: running.started_at,
        }
    }
}

impl From<Happened> for HappenedDocument {
    fn from(happened: Happened) -> Self {
        Self { at: happened.at, what: happened.what }
    }
}

impl EvidenceDocument {
    /// With sensitive columns masked, also where a reason quotes them.
    pub fn masked(mut evidence: Evidence) -> Self {
        redact::mask_finding(&mut evidence.finding);
        Self::revealed(evidence)
    }

    fn revealed(evidence: Evidence) -> Self {
        let explanation = evidence.finding.explanation();
        let Finding { verdict, rows, comparisons, reasons, read_from } = evidence.finding;
        Self {
            evidence_id: evidence.id,
            verdict,
            rows,
            comparisons,
            reasons,
            explanation,
            recommended: recommended(verdict),
            read_from,
            checked_by: evidence.checked_by,
            checked_at: evidence.checked_at,
            expires_at: evidence.expires_at,
        }
    }
}
