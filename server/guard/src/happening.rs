//! What became of a request, for counters.

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// The business ran.
    Executed,
    /// A duplicate was answered from the record.
    Hit,
    /// Met a record that was PROCESSING past its time.
    StaleProcessing,
    /// Same key, other body.
    PayloadMismatch,
    /// The record is settled, but the response to give is gone.
    MissingResponse,
    /// A worker finished after its record had been settled.
    LateCompletion,
    /// Nobody knows whether the effect happened.
    InDoubt,
}

impl Happening {
    /// The word used by producers and the console.
    pub fn as_str(self) -> &'static str {
        match self {
            Happening::Executed => "executed",
            Happening::Hit => "hit",
            Happening::StaleProcessing => "stale_processing",
            Happening::PayloadMismatch => "payload_mismatch",
            Happening::MissingResponse => "missing_response",
            Happening::LateCompletion => "late_completion",
            Happening::InDoubt => "in_doubt",
        }
    }
}

/// Where counts go. Called on the request path: it must neither block nor fail.
pub trait Meter: Send + Sync {
    fn count(&self, biz_type: &str, happening: Happening);

    /// One key was asked for five times within a second.
    fn burst(&self, biz_type: &str) {
        let _ = biz_type;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn count(&self, _biz_type: &str, _happening: Happening) {}
}
