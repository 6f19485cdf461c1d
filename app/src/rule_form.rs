//! An alert rule as people type it: rates in per cent, ages in minutes. One translation for page and server function.

use crate::context::Visit;
use domain::alert::{Metric, RuleSpec, Side};
use domain::invalid::{Invalid, RuleField};
use domain::{Error, Result};

/// The editor's fields as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleForm {
    pub name: String,
    pub metric: String,
    pub biz_type: String,
    pub side: String,
    pub warn: String,
    pub critical: String,
    pub clear: String,
    pub window: String,
    pub lasting: String,
    pub min_requests: String,
    /// Present when on, as a checkbox sends it.
    pub enabled: String,
}

impl RuleForm {
    /// What a new rule starts from: callbacks repeat at about 5 %; 30 % means a storm.
    pub fn blank() -> Self {
        Self {
            metric: Metric::HitRate.as_str().into(),
            side: "above".into(),
            warn: "15".into(),
            critical: "30".into(),
            window: "5".into(),
            lasting: "5".into(),
            min_requests: "50".into(),
            enabled: "on".into(),
            ..Self::default()
        }
    }

    pub fn of(spec: &RuleSpec) -> Self {
        let level = |level: Option<f64>| level.map_or_else(String::new, |level| shown(spec.metric, level));
        Self {
            name: spec.name.clone(),
            metric: spec.metric.as_str().into(),
            biz_type: spec.biz_type.clone().unwrap_or_default(),
            side: if spec.side == Side::Above { "above" } else { "below" }.into(),
            warn: level(spec.warn),
            critical: level(spec.critical),
            clear: level(spec.clear),
            window: spec.window_minutes.to_string(),
            lasting: spec.for_minutes.to_string(),
            min_requests: spec.min_requests.to_string(),
            enabled: if spec.enabled { "on" } else { "" }.into(),
        }
    }

    /// What was typed, from the URL; `None` when the URL holds no form.
    pub fn read(visit: &Visit) -> Option<Self> {
        let text = |name| visit.param(name).unwrap_or_default().to_owned();
        visit.param("metric")?;
        Some(Self {
            name: text("name"),
            metric: text("metric"),
            biz_type: text("biz_type"),
            side: text("side"),
            warn: text("warn"),
            critical: text("critical"),
            clear: text("clear"),
            window: text("window"),
            lasting: text("lasting"),
            min_requests: text("min_requests"),
            enabled: text("enabled"),
        })
    }

    /// The fields as a query string.
    pub fn query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let pairs = [
            ("name", &self.name),
            ("metric", &self.metric),
            ("biz_type", &self.biz_type),
            ("side", &self.side),
            ("warn", &self.warn),
            ("critical", &self.critical),
            ("clear", &self.clear),
            ("window", &self.window),
            ("lasting", &self.lasting),
            ("min_requests", &self.min_requests),
            ("enabled", &self.enabled),
        ];
        query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }

    pub fn metric(&self) -> Option<Metric> {
        Metric::parse(&self.metric)
    }

    /// The rule in the domain's units; the domain checks what it means.
    pub fn spec(&self) -> Result<RuleSpec> {
        let metric = self.metric().ok_or_else(|| Error::invalid(Invalid::RuleMetric))?;
        let side = if self.side == "below" { Side::Below } else { Side::Above };
        Ok(RuleSpec {
            name: self.name.trim().to_owned(),
            metric,
            source: None,
            biz_type: Some(self.biz_type.trim().to_owned()).filter(|name| !name.is_empty()),
            side,
            warn: level(metric, RuleField::Warn, &self.warn)?,
            critical: level(metric, RuleField::Critical, &self.critical)?,
            clear: level(metric, RuleField::Clear, &self.clear)?,
            window_minutes: whole(RuleField::Window, &self.window)?,
            for_minutes: whole(RuleField::For, &self.lasting)?,
            min_requests: whole(RuleField::MinRequests, &self.min_requests)?,
            enabled: !self.enabled.is_empty(),
        })
    }
}

/// How many of the typed unit make one of the domain's.
fn per_unit(metric: Metric) -> f64 {
    match metric {
        Metric::HitRate | Metric::ExecuteRate | Metric::AnomalyRate => 0.01,
        Metric::StuckCount => 1.0,
        Metric::OldestStuckAge => 60.0,
    }
}

/// A level as typed: two decimals at most, no trailing zeros.
fn shown(metric: Metric, level: f64) -> String {
    let text = format!("{:.2}", level / per_unit(metric));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn level(metric: Metric, field: RuleField, text: &str) -> Result<Option<f64>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value * per_unit(metric))),
        _ => Err(Error::invalid(Invalid::NoNumber { field, text: text.to_owned() })),
    }
}

fn whole<T: std::str::FromStr + Default>(field: RuleField, text: &str) -> Result<T> {
    match text.trim() {
        "" => Ok(T::default()),
        text => {
            text.parse().map_err(|_| Error::invalid(Invalid::NoWholeNumber { field, text: text.to_owned() }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_survives_the_editor() {
        let mut form = RuleForm { name: "storm".into(), clear: "7.25".into(), ..RuleForm::blank() };
        assert_eq!(RuleForm::of(&form.spec().unwrap()), form);
        assert_eq!(form.spec().unwrap().critical, Some(0.3));
        form.metric = "oldest_stuck_age".into();
        assert_eq!(form.spec().unwrap().critical, Some(1_800.0));
        assert_eq!(RuleForm::of(&form.spec().unwrap()), form);
    }

    #[test]
    fn what_is_no_number_is_named() {
        for typed in ["NaN", "abc", "1e999", "30%"] {
            let form = RuleForm { warn: typed.into(), ..RuleForm::blank() };
            assert!(form.spec().unwrap_err().to_string().contains("warn"), "{typed}");
        }
        let form = RuleForm { window: "-1".into(), ..RuleForm::blank() };
        assert!(form.spec().is_err());
    }
}
