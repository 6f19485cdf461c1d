//! The rules as sentences.

use super::denied;
use crate::components::empty;
use crate::components::panel::Panel;
use crate::components::table::{Cell, Column, Row, table};
use crate::components::tag::{Tone, tag};
use crate::context::Visit;
use crate::words;
use domain::Result;
use domain::alert::{Rule, RuleSpec, Side};
use domain::roles::{Actor, Permission};
use leptos::prelude::*;

pub fn panel(visit: &Visit, actor: &Actor, rules: Result<Vec<Rule>>) -> AnyView {
    let t = &visit.texts().alerts;
    let panel = Panel::new(t.rules).id("rules");
    let rules = match rules {
        Err(error) => return panel.view(empty::failed(visit, &error)),
        Ok(rules) if rules.is_empty() => return panel.view(empty::notice(t.no_rules, t.no_rules_hint, ())),
        Ok(rules) => rules,
    };
    let columns = vec![
        Column::text(t.name),
        Column::text(t.when),
        Column::text(t.warn),
        Column::text(t.critical),
        Column::text(t.enabled),
        Column::actions(t.actions),
    ];
    let rows = rules.iter().map(|rule| {
        let on = if rule.spec.enabled { tag(Tone::Good, t.on) } else { tag(Tone::Unknown, t.off) };
        Row::new(vec![
            Cell::new(words::rule_name(visit.texts(), &rule.spec.name)).wraps(),
            Cell::new(sentence(visit, &rule.spec)).quiet().wraps(),
            Cell::or_none(level(visit, &rule.spec, rule.spec.warn)),
            Cell::or_none(level(visit, &rule.spec, rule.spec.critical)),
            Cell::new(on),
            Cell::new(edit(visit, actor, rule)),
        ])
        .id(rule.id.clone())
    });
    panel.view(table(t.rules, columns, rows.collect()))
}

fn sentence(visit: &Visit, spec: &RuleSpec) -> String {
    let texts = visit.texts();
    let t = &texts.alerts;
    let metric = words::metric(texts, spec.metric);
    let scope = spec.biz_type.as_deref().unwrap_or(texts.alert.all_types);
    let side = match spec.side {
        Side::Above => t.above,
        Side::Below => t.below,
    };
    let lasting = t.lasting(u64::from(spec.for_minutes));
    if spec.metric.is_rate() {
        t.rule_of_rate(lasting, metric, spec.min_requests, scope, side, spec.window_minutes)
    } else {
        t.rule_of_stuck(lasting, metric, scope, side)
    }
}

fn level(visit: &Visit, spec: &RuleSpec, level: Option<f64>) -> Option<String> {
    level.map(|level| words::level(visit.locale(), spec.metric, level))
}

fn edit(visit: &Visit, actor: &Actor, rule: &Rule) -> AnyView {
    let t = &visit.texts().alerts;
    if actor.role.may(Permission::EditAlertRules) {
        let href = visit.href(&format!("/alerts?rule={}#editor", rule.id));
        view! { <a class="btn sm" href=href>{t.edit}</a> }.into_any()
    } else {
        denied(t.edit, t.edit_denied)
    }
}
