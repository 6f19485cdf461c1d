//! The domain's own words in the reader's language: one match per enum, so that a new variant stops the build here.

use crate::context::Theme;
use crate::format;
use crate::i18n::{Locale, Texts};
use domain::Error;
use domain::actions::{Action, Why};
use domain::alert::{Alert, Metric, Severity, Side, first_rules};
use domain::audit::Draft;
use domain::compensation::{Ending, ReplayAnswer, Settled};
use domain::evidence::{Reason, Verdict};
use domain::invalid::{Invalid, RuleField};
use domain::record::State;
use domain::roles::{Permission, Role};
use domain::stuck::Lane;
use domain::unable::Unable;

pub fn state(t: &Texts, state: State) -> &'static str {
    match state {
        State::Processing => t.state.processing,
        State::Success => t.state.success,
        State::Failed => t.state.failed,
        State::Timeout => t.state.timeout,
        State::Ignored => t.state.ignored,
        State::Unknown => t.state.unknown,
    }
}

pub fn verdict(t: &Texts, verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Found => t.verdict.found,
        Verdict::Mismatch => t.verdict.mismatch,
        Verdict::Partial => t.verdict.partial,
        Verdict::Absent => t.verdict.absent,
        Verdict::Unavailable => t.verdict.unavailable,
    }
}

pub fn action(t: &Texts, action: Action) -> &'static str {
    match action {
        Action::MarkSucceeded => t.action.mark_succeeded,
        Action::MarkTimedOut => t.action.mark_timed_out,
        Action::Replay => t.action.replay,
    }
}

pub fn ending(t: &Texts, ending: Ending) -> &'static str {
    match ending {
        Ending::Succeeded => t.ending.succeeded,
        Ending::CachePending => t.ending.cache_pending,
        Ending::Refused => t.ending.refused,
        Ending::Failed => t.ending.failed,
        Ending::InDoubt => t.ending.in_doubt,
    }
}

/// What a compensation came to, as one sentence.
pub fn settled(t: &Texts, settled: &Settled) -> String {
    let did = action(t, settled.action);
    let reads = settled.record.as_ref().map_or(t.settled.unreadable, |row| state(t, row.state));
    match (settled.outcome, &settled.replay) {
        (Ending::Succeeded, _) => t.settled.succeeded(did, reads),
        (Ending::CachePending, _) => t.settled.cache_pending(did, reads),
        (Ending::Refused, _) => t.settled.refused(did),
        (Ending::Failed, Some(ReplayAnswer::NotSent { message })) => t.settled.not_sent(message, reads),
        (Ending::Failed, Some(ReplayAnswer::Answered { status })) => t.settled.answered(reads, status),
        (Ending::Failed, _) => t.settled.failed(did, reads),
        (Ending::InDoubt, Some(ReplayAnswer::Unanswered { message })) => t.settled.unanswered(message, reads),
        (Ending::InDoubt, Some(ReplayAnswer::Answered { status })) => {
            t.settled.doubtful_answer(reads, status)
        }
        (Ending::InDoubt, _) => t.settled.in_doubt(did, reads),
    }
}

pub fn role(t: &Texts, role: Role) -> &'static str {
    match role {
        Role::Viewer => t.role.viewer,
        Role::Operator => t.role.operator,
        Role::Approver => t.role.approver,
        Role::Admin => t.role.admin,
    }
}

pub fn permission(t: &Texts, permission: Permission) -> &'static str {
    match permission {
        Permission::Read => t.permission.read,
        Permission::ReverseCheck => t.permission.reverse_check,
        Permission::Compensate => t.permission.compensate,
        Permission::AcknowledgeAlert => t.permission.acknowledge_alert,
        Permission::RevealBodies => t.permission.reveal_bodies,
        Permission::EditAlertRules => t.permission.edit_alert_rules,
        Permission::DriveDemo => t.permission.drive_demo,
        Permission::ReportEvents => t.permission.report_events,
    }
}

pub fn theme(t: &Texts, theme: Theme) -> &'static str {
    match theme {
        Theme::System => t.theme.system,
        Theme::Light => t.theme.light,
        Theme::Dark => t.theme.dark,
    }
}

/// Why an action is not offered, as one sentence.
pub fn why(t: &Texts, why: &Why) -> String {
    let texts = &t.why;
    match why {
        Why::Role { role: held } => texts.role(role(t, *held)),
        Why::Settled { state: settled } => texts.settled(state(t, *settled)),
        Why::UnknownState => texts.unknown_state.into(),
        Why::StillRunning => texts.still_running.into(),
        Why::NotExpressible { unable: reason } => unable(t, reason),
        Why::BeingSettled => texts.being_settled.into(),
        Why::NoEvidence => texts.no_evidence.into(),
        Why::EvidenceExpired => texts.evidence_expired.into(),
        Why::EffectExists { action: Action::Replay } => texts.effect_exists_replay.into(),
        Why::EffectExists { .. } => texts.effect_exists.into(),
        Why::NoEffect => texts.no_effect.into(),
        Why::SecondPerson { verdict: found } => texts.second_person(verdict(t, *found)),
    }
}

/// What a table lacks for an action, as one sentence.
pub fn unable(t: &Texts, unable: &Unable) -> String {
    let texts = &t.unable;
    match unable {
        Unable::NeedsApproval => texts.needs_approval.into(),
        Unable::OnlyWhenDone => texts.only_when_done.into(),
        Unable::StateNotMapped { state, action } => texts.state_not_mapped(action, state),
        Unable::NoStatusColumn { state, action } => texts.no_status_column(action, state),
        Unable::NotRecognised { action } => texts.not_recognised(action),
        Unable::NotConfigured => texts.not_configured.into(),
        Unable::NoReplayTarget { biz_type } => texts.no_replay_target(biz_type),
        Unable::NoRequest => texts.no_request.into(),
        Unable::RequestInColumns => texts.request_in_columns.into(),
        Unable::RequestUnreadable { reason } => texts.request_unreadable(reason),
        Unable::Other { message } => texts.misconfigured(message),
    }
}

/// What is malformed about a request, as one sentence.
pub fn invalid(t: &Texts, what: &Invalid) -> String {
    let texts = &t.invalid;
    match what {
        Invalid::Cursor => texts.cursor.into(),
        Invalid::ReasonEmpty => texts.reason_empty.into(),
        Invalid::ReasonTooLong { max } => texts.reason_too_long(max),
        Invalid::SilenceHours { max } => texts.silence_hours(max),
        Invalid::RuleName { max } => texts.rule_name(max),
        Invalid::RuleMetric => texts.rule_metric.into(),
        Invalid::RuleWithoutThreshold => texts.rule_without_threshold.into(),
        Invalid::RuleThresholdRange => texts.rule_threshold_range.into(),
        Invalid::RuleCriticalWithinWarn => texts.rule_critical_within_warn.into(),
        Invalid::RuleClearBeyond => texts.rule_clear_beyond.into(),
        Invalid::RuleWindow { max } => texts.rule_window(max),
        Invalid::RuleFor { max } => texts.rule_for(max),
        Invalid::NoNumber { field, text } => texts.no_number(rule_field(t, *field), text),
        Invalid::NoWholeNumber { field, text } => texts.no_whole_number(rule_field(t, *field), text),
        Invalid::Other { message } => message.clone(),
    }
}

fn rule_field(t: &Texts, field: RuleField) -> &'static str {
    match field {
        RuleField::Warn => t.alerts.warn,
        RuleField::Critical => t.alerts.critical,
        RuleField::Clear => t.alerts.clear,
        RuleField::Window => t.invalid.field_window,
        RuleField::For => t.invalid.field_for,
        RuleField::MinRequests => t.invalid.field_min_requests,
    }
}

/// One reason behind a verdict.
pub fn reason(t: &Texts, reason: &Reason) -> String {
    let texts = &t.reason;
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| texts.nothing.to_owned());
    match reason {
        Reason::RowAgrees { check } => texts.row_agrees(check),
        Reason::NoRow { check } => texts.no_row(check),
        Reason::SoftDeleted { check } => texts.soft_deleted(check),
        Reason::SeveralRows { check, rows } => texts.several_rows(check, rows),
        Reason::FieldDiffers { check, field, request, business } => {
            texts.field_differs(shown(business), check, field, shown(request))
        }
        Reason::OutsideExpected { check, field, value, expected } => {
            texts.outside_expected(check, expected.join(texts.or), field, shown(value))
        }
        Reason::RequestLacks { pointer } => texts.request_lacks(pointer),
        Reason::NotConfigured { biz_type: Some(biz_type) } => texts.not_configured(biz_type),
        Reason::NotConfigured { biz_type: None } => texts.no_biz_type.into(),
        Reason::NoBizNo => texts.no_biz_no.into(),
        Reason::NotPrimary { server } => texts.not_primary(server),
        Reason::QueryFailed { check, message } => texts.query_failed(check, message),
        Reason::TimedOut { check } => texts.timed_out(check),
        Reason::SourceDown { message } => texts.source_down(message),
        Reason::ShardsMissing { check, missed, total, shards, message } => {
            texts.shards_missing(check, message, missed, shards, total)
        }
        Reason::NumberDiffers { check, field, value, wanted } => {
            texts.number_differs(check, field, shown(value), shown(wanted))
        }
        Reason::NotANumber { check, param } => texts.not_a_number(check, param),
        Reason::RecordLacks { what } => texts.record_lacks(what),
        Reason::SaysAbsent { check, status } => texts.says_absent(check, status),
        Reason::Unclear { check, status, excerpt } => texts.unclear(check, excerpt, status),
        Reason::EndpointDown { check, message } => texts.endpoint_down(check, message),
        Reason::Throttled { check, rate } => texts.throttled(check, rate),
    }
}

/// A service's refusal for a person: translated where it has a word of its own, else the service's sentence.
pub fn error(locale: Locale, error: &Error) -> String {
    let t = locale.texts();
    let texts = &t.error;
    match error {
        Error::Unauthenticated => texts.unauthenticated.into(),
        Error::Moved { current } => texts.record_moved(state(t, current.state)),
        Error::StaleVersion { current } => texts.stale_version(state(t, current.state)),
        Error::Busy { .. } => texts.in_progress.into(),
        Error::KeyReused => texts.key_reused.into(),
        Error::TooMany { .. } => texts.too_many_attempts.into(),
        Error::Unavailable { what, message } => texts.unavailable(message, what),
        Error::Refused { code, message } => refused(t, code).unwrap_or(message).to_owned(),
        Error::Invalid(what) => invalid(t, what),
        Error::Forbidden { role: held, least } => texts.forbidden(role(t, *least), role(t, *held)),
        Error::NotFound { .. } => texts.not_found.into(),
        Error::Internal { .. } => texts.internal.into(),
    }
}

/// Refusals of a command whose words do not depend on the record.
fn refused<'t>(t: &'t Texts, code: &str) -> Option<&'t str> {
    Some(match code {
        "unknown_state" => t.why.unknown_state,
        "still_running" => t.why.still_running,
        "being_settled" => t.why.being_settled,
        "no_evidence" => t.why.no_evidence,
        "evidence_expired" => t.why.evidence_expired,
        "effect_exists" => t.why.effect_exists,
        "no_effect" => t.why.no_effect,
        "evidence_changed" => t.why.evidence_changed,
        "response_needed" => t.why.response_needed,
        _ => return None,
    })
}

/// What a rule watches.
pub fn metric(t: &Texts, metric: Metric) -> &'static str {
    match metric {
        Metric::HitRate => t.alert.hit_rate,
        Metric::ExecuteRate => t.alert.execute_rate,
        Metric::AnomalyRate => t.alert.anomaly_rate,
        Metric::StuckCount => t.alert.stuck_count,
        Metric::OldestStuckAge => t.alert.oldest_stuck_age,
    }
}

/// A threshold of a metric in its unit; a share keeps only the decimals that say something.
pub fn level(locale: Locale, metric: Metric, level: f64) -> String {
    if metric.is_rate() { format::short_percent(locale, level) } else { metric_value(locale, metric, level) }
}

/// A metric's value in its unit: per cent, records, or an age.
pub fn metric_value(locale: Locale, metric: Metric, value: f64) -> String {
    match metric {
        Metric::HitRate | Metric::ExecuteRate | Metric::AnomalyRate => format::percent(locale, value),
        Metric::StuckCount => format::number(value.max(0.0) as u64),
        Metric::OldestStuckAge => format::age(locale, value as i64),
    }
}

/// One alert as a sentence: what it watches, what it reads, which threshold that crosses, over how many requests.
pub fn alert_sentence(locale: Locale, alert: &Alert) -> String {
    let t = &locale.texts().alert;
    let rule = &alert.rule;
    let threshold = match alert.severity {
        Severity::Critical => rule.critical.or(rule.warn),
        Severity::Warn => rule.warn.or(rule.critical),
    };
    let value = metric_value(locale, rule.metric, alert.value);
    let threshold = threshold.map(|at| level(locale, rule.metric, at)).unwrap_or_default();
    let scope = rule.biz_type.as_deref().unwrap_or(t.all_types);
    let name = metric(locale.texts(), rule.metric);
    let sentence = match rule.side {
        Side::Above => t.sentence_above(name, scope, threshold, value),
        Side::Below => t.sentence_below(name, scope, threshold, value),
    };
    if rule.metric.is_rate() { format!("{sentence} · {}", t.requests(alert.requests)) } else { sentence }
}

/// What a lane recommends.
pub fn recommendation(t: &Texts, lane: Lane) -> &'static str {
    match lane {
        Lane::EffectExists => t.stuck.do_effect_exists,
        Lane::NoEffect => t.stuck.do_no_effect,
        Lane::LookCloser => t.stuck.do_look_closer,
        Lane::CouldNotCheck => t.stuck.do_could_not_check,
        Lane::NotChecked => t.stuck.do_not_checked,
    }
}

/// How an audited action ended. Sentences of the services stay as they were sealed; an address has words around it.
pub fn audit_result(t: &Texts, draft: &Draft) -> Option<String> {
    let result = draft.result.as_deref()?;
    let address = result.strip_prefix("from ").filter(|_| draft.action.starts_with("session."));
    Some(address.map_or_else(|| result.to_owned(), |address| t.audit.from_address(address)))
}

/// A rule's name. The rules that every store begins with were named by nobody, so they follow the reader's language.
pub fn rule_name(t: &Texts, name: &str) -> String {
    let texts = &t.alerts;
    let known = match name {
        first_rules::STUCK => texts.default_stuck,
        first_rules::OLDEST => texts.default_oldest,
        first_rules::ANOMALY => texts.default_anomaly,
        first_rules::CALLBACKS => texts.default_callbacks,
        chosen => chosen,
    };
    known.to_owned()
}

/// An audit verb such as `mark_succeeded.in_doubt`; one that has no word of its own shows as it is.
pub fn audit_action(t: &Texts, verb: &str) -> String {
    let audit = &t.audit;
    let fixed = match verb {
        "mark_succeeded.intended" => audit.mark_succeeded_intended,
        "mark_timed_out.intended" => audit.mark_timed_out_intended,
        "replay.intended" => audit.replay_intended,
        "late_effect.found" => audit.late_effect,
        "cache.confirmed" => audit.cache_confirmed,
        "bodies.revealed" => audit.revealed,
        "alert_rule.created" => audit.rule_created,
        "alert_rule.changed" => audit.rule_changed,
        "alert_rule.deleted" => audit.rule_deleted,
        "alert.acknowledged" => audit.alert_acknowledged,
        "alert.silenced" => audit.alert_silenced,
        "session.signed_in" => audit.signed_in,
        "session.refused" => audit.sign_in_refused,
        "session.signed_out" => audit.signed_out,
        "user.added" => audit.user_added,
        "user.changed" => audit.user_changed,
        "token.created" => audit.token_created,
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    let Some((name, ending)) = verb.split_once('.') else { return verb.to_owned() };
    let Ok(known) = name.parse::<Action>() else { return verb.to_owned() };
    let name = action(t, known);
    match ending {
        "succeeded" => audit.succeeded(name),
        "cache_pending" => audit.cache_pending(name),
        "refused" => audit.refused(name),
        "failed" => audit.failed(name),
        "in_doubt" => audit.in_doubt(name),
        "late_outcome" => audit.late_outcome(name),
        _ => verb.to_owned(),
    }
}
