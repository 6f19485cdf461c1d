//! The rule editor: a sentence with fields, and what the rule would have done over the last seven days.
//! Without scripts "Preview" reloads the page with the values in the URL; with scripts the preview follows the fields.

use crate::components::chart::{Chart, Level, Line, Unit};
use crate::components::empty;
use crate::components::field::choices;
use crate::components::icon::Icon;
use crate::components::panel::Panel;
use crate::context::Visit;
use crate::format;
use crate::i18n::{Locale, Texts};
use crate::rule_form::RuleForm;
use crate::words;
use domain::alert::{Metric, Preview, Rule, RuleSpec};
use domain::console::Console;
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

/// What is being edited: a stored rule, or a new one.
struct Edited<'a> {
    rule: Option<&'a Rule>,
    form: RuleForm,
}

pub async fn editor(visit: &Visit, actor: &Actor, console: &Console, rules: &[Rule]) -> Option<AnyView> {
    let t = &visit.texts().alerts;
    let asked = visit.param("rule")?;
    let rule = rules.iter().find(|rule| rule.id == asked);
    if rule.is_none() && asked != "new" {
        let gone = view! { <p class="note bad" role="alert">{Icon::Warning.view()}{t.rule_gone}</p> };
        return Some(gone.into_any());
    }
    let stored = || rule.map_or_else(RuleForm::blank, |rule| RuleForm::of(&rule.spec));
    let form = RuleForm::read(visit).unwrap_or_else(stored);
    let edited = Edited { rule, form };
    let types = console.rates.biz_types(actor).await.unwrap_or_default();
    let preview = preview(visit, actor, console, &edited.form).await;
    let title = rule.map_or_else(|| t.new_rule.to_owned(), |rule| t.edit_rule(&rule.spec.name));
    let close = view! { <a class="btn sm" href=visit.href("/alerts")>{visit.texts().common.close}</a> };
    let content = view! {
        {fields(visit, actor, &edited, &types)}
        <div id="rule-preview" class="preview">{preview}</div>
    };
    Some(Panel::new(title).id("editor").actions(close).view(content))
}

fn fields(visit: &Visit, actor: &Actor, edited: &Edited<'_>, types: &[(String, String)]) -> AnyView {
    let texts = visit.texts();
    let t = &texts.alerts;
    let form = &edited.form;
    let id = edited.rule.map_or_else(|| "new".to_owned(), |rule| rule.id.clone());
    let seen = visit.param("version").map(str::to_owned);
    let version = seen.unwrap_or_else(|| edited.rule.map_or(0, |rule| rule.version).to_string());
    let may = actor.role.may(Permission::EditAlertRules);
    let enabled = !form.enabled.is_empty();
    view! {
        <form class="pad rule" method="get" action=visit.href("/alerts") data-preview="rule-preview">
            <input type="hidden" name="rule" value=id.clone()/>
            <input type="hidden" name="version" value=version/>
            <div class="field">
                <label for="rule-name">{t.name}</label>
                <input id="rule-name" name="name" type="text" required maxlength="100" autocomplete="off" value=form.name.clone()/>
            </div>
            <p class="sentence">
                <span>{t.alert_when}</span>
                {subject(visit, form, types)}
                <select name="side" aria-label=t.side>{choices(&sides(texts), &form.side)}</select>
            </p>
            <div class="levels">
                {threshold(visit, "warn", t.warn, form.metric(), &form.warn)}
                {threshold(visit, "critical", t.critical, form.metric(), &form.critical)}
                {threshold(visit, "clear", t.clear, form.metric(), &form.clear)}
            </div>
            <p class="sentence">
                {number("lasting", t.for_label, &form.lasting, "0")}<span>{t.minutes}</span>
                {number("window", t.window_label, &form.window, "1")}<span>{t.minutes}</span>
                {number("min_requests", t.min_label, &form.min_requests, "0")}<span>{t.requests_unit}</span>
            </p>
            <label class="check"><input type="checkbox" name="enabled" value="on" checked=enabled/>{t.enabled_label}</label>
            <div class="buttons">
                <button class="btn" type="submit">{t.preview}</button>
                <button class="btn primary" type="submit" formmethod="post" formaction=visit.href("/api/fn/save_rule") disabled=!may
                    title=(!may).then_some(t.edit_denied)>{texts.common.save}</button>
            </div>
        </form>
        {edited.rule.map(|rule| delete(visit, rule, may))}
    }
    .into_any()
}

/// "Hit rate of ORDER" or "ORDER 的命中率": each language has its own order.
fn subject(visit: &Visit, form: &RuleForm, types: &[(String, String)]) -> AnyView {
    let texts = visit.texts();
    let t = &texts.alerts;
    let (metrics, types) = (metrics(texts), type_options(texts, types, &form.biz_type));
    let metric = view! { <select name="metric" aria-label=t.metric data-autosubmit="">{choices(&metrics, &form.metric)}</select> };
    let kind = view! { <select name="biz_type" aria-label=texts.overview.biz_type>{choices(&types, &form.biz_type)}</select> };
    let of = view! { <span>{t.of}</span> };
    match visit.locale() {
        Locale::En => view! { {metric}{of}{kind} }.into_any(),
        Locale::ZhCn => view! { {kind}{of}{metric} }.into_any(),
    }
}

/// Deleting asks once: the details hold the button that does it.
fn delete(visit: &Visit, rule: &Rule, may: bool) -> AnyView {
    let t = &visit.texts().alerts;
    view! {
        <details class="pad delete">
            <summary>{t.delete}</summary>
            <form method="post" action=visit.href("/api/fn/delete_rule")>
                <input type="hidden" name="rule" value=rule.id.clone()/>
                <p>{t.delete_hint}</p>
                <button class="btn danger" type="submit" disabled=!may title=(!may).then_some(t.edit_denied)>{t.delete_confirm(&rule.spec.name)}</button>
            </form>
        </details>
    }
    .into_any()
}

/// A number with a slider that mirrors it; the slider shows once scripts run.
fn threshold(
    visit: &Visit,
    name: &'static str,
    label: &'static str,
    metric: Option<Metric>,
    value: &str,
) -> AnyView {
    let t = &visit.texts().alerts;
    let (unit, top) = match metric {
        Some(Metric::StuckCount) => (t.unit_records, "500"),
        Some(Metric::OldestStuckAge) => (t.minutes, "720"),
        _ => (t.unit_percent, "100"),
    };
    let id = format!("level-{name}");
    // A slider without a value would stand in the middle.
    let at = if value.is_empty() { "0" } else { value }.to_owned();
    view! {
        <div class="level">
            <label for=id.clone()>{label}</label>
            <span><input id=id.clone() name=name type="number" min="0" step="any" inputmode="decimal" value=value.to_owned()/>{unit}</span>
            <input type="range" min="0" max=top step="1" value=at aria-label=label data-mirrors=id tabindex="-1"/>
        </div>
    }
    .into_any()
}

fn number(name: &'static str, label: &'static str, value: &str, least: &'static str) -> AnyView {
    view! {
        <label><span>{label}</span>" "<input name=name type="number" min=least max="1000000" step="1" inputmode="numeric" value=value.to_owned()/></label>
    }
    .into_any()
}

fn metrics(texts: &Texts) -> Vec<(String, String)> {
    Metric::ALL.map(|metric| (metric.as_str().to_owned(), words::metric(texts, metric).to_owned())).to_vec()
}

fn sides(texts: &Texts) -> Vec<(String, String)> {
    [("above", texts.alerts.is_above), ("below", texts.alerts.is_below)]
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .to_vec()
}

/// All types, those that ever reported, and the one that the rule names even if it never did.
fn type_options(texts: &Texts, types: &[(String, String)], chosen: &str) -> Vec<(String, String)> {
    let mut names: Vec<&str> = types.iter().map(|(_, name)| name.as_str()).collect();
    if !chosen.is_empty() {
        names.push(chosen);
    }
    names.sort_unstable();
    names.dedup();
    let all = (String::new(), texts.alert.all_types.to_owned());
    [all].into_iter().chain(names.into_iter().map(|name| (name.to_owned(), name.to_owned()))).collect()
}

/// The last seven days under this rule, or what is wrong with it.
async fn preview(visit: &Visit, actor: &Actor, console: &Console, form: &RuleForm) -> AnyView {
    let named = RuleForm {
        name: if form.name.trim().is_empty() { "–".into() } else { form.name.clone() },
        ..form.clone()
    };
    let spec = match named.spec() {
        Ok(spec) => spec,
        Err(error) => return refused(visit, &error),
    };
    match console.alerts.preview(actor, spec.clone()).await {
        Ok(preview) if preview.points.iter().all(|(_, value)| value.is_none()) => {
            let t = &visit.texts().alerts;
            empty::notice(t.no_past, t.no_past_hint, ())
        }
        Ok(preview) => drawn(visit, &spec, &preview),
        Err(error @ domain::Error::Invalid(_)) => refused(visit, &error),
        Err(error) => empty::failed(visit, &error),
    }
}

fn refused(visit: &Visit, error: &domain::Error) -> AnyView {
    let words = words::error(visit.locale(), error);
    view! { <p class="note bad" role="status">{Icon::Warning.view()}{words}</p> }.into_any()
}

fn drawn(visit: &Visit, spec: &RuleSpec, preview: &Preview) -> AnyView {
    let t = &visit.texts().alerts;
    let unit = match spec.metric {
        Metric::StuckCount => Unit::Count,
        Metric::OldestStuckAge => Unit::Seconds,
        _ => Unit::Share,
    };
    let points: Vec<_> = preview.points.iter().map(|(at, value)| (at.timestamp_millis(), *value)).collect();
    let (from, to) = (points.first().map_or(0, |(at, _)| *at), points.last().map_or(1, |(at, _)| *at));
    let name = words::metric(visit.texts(), spec.metric);
    let mut chart = Chart::new(name, from, to, unit).series(Line::Accent, name, points);
    let level = |value| words::level(visit.locale(), spec.metric, value);
    if let Some(warn) = spec.warn {
        chart = chart.threshold(Level::Warn, warn, level(warn));
    }
    if let Some(critical) = spec.critical {
        chart = chart.threshold(Level::Critical, critical, level(critical));
    }
    for at in &preview.fired_at {
        chart = chart.marker(at.timestamp_millis(), format::date_time(visit.zone(), *at));
    }
    let verdict = t.would_have_fired(u64::from(preview.would_have_fired));
    view! { <p class="verdict" role="status"><b>{verdict}</b></p>{chart.view(visit)} }.into_any()
}
