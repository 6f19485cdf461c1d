//! Alerts and their rules.

use super::{actor, answer};
use crate::context::{Visit, console};
use crate::rule_form::RuleForm;
use leptos::prelude::*;

/// Records that somebody takes care of an open alert.
#[server(prefix = "/api/fn", endpoint = "acknowledge_alert")]
pub async fn acknowledge_alert(id: String, #[server(default)] back: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let done = async {
        let alert = console()?.alerts.acknowledge(&actor()?, &id).await?;
        Ok(visit.texts().alerts.acknowledged(&alert.rule.name))
    };
    answer(&visit, &back, done.await);
    Ok(())
}

/// Keeps an open alert quiet for some hours.
#[server(prefix = "/api/fn", endpoint = "silence_alert")]
pub async fn silence_alert(
    id: String,
    hours: u32,
    #[server(default)] back: String,
) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let done = async {
        let alert = console()?.alerts.silence(&actor()?, &id, hours).await?;
        Ok(visit.texts().alerts.silenced(hours, &alert.rule.name))
    };
    answer(&visit, &back, done.await);
    Ok(())
}

/// Creates a rule (`rule` = `new`) or changes the one named, if it is still at `version`.
/// A refusal returns to the editor with everything that was typed.
#[server(prefix = "/api/fn", endpoint = "save_rule")]
#[allow(clippy::too_many_arguments, reason = "one argument a form field")]
pub async fn save_rule(
    rule: String,
    #[server(default)] version: i64,
    #[server(default)] name: String,
    #[server(default)] metric: String,
    #[server(default)] biz_type: String,
    #[server(default)] side: String,
    #[server(default)] warn: String,
    #[server(default)] critical: String,
    #[server(default)] clear: String,
    #[server(default)] window: String,
    #[server(default)] lasting: String,
    #[server(default)] min_requests: String,
    #[server(default)] enabled: String,
) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let form = RuleForm {
        name,
        metric,
        biz_type,
        side,
        warn,
        critical,
        clear,
        window,
        lasting,
        min_requests,
        enabled,
    };
    let saved = save(&rule, version, &form).await;
    let back = match &saved {
        Ok(_) => "/alerts".to_owned(),
        Err(_) => format!("/alerts?rule={rule}&version={version}&{}", form.query()),
    };
    answer(&visit, &back, saved.map(|name| visit.texts().alerts.rule_saved(name)));
    Ok(())
}

async fn save(rule: &str, version: i64, form: &RuleForm) -> domain::Result<String> {
    let (actor, console) = (actor()?, console()?);
    let spec = form.spec()?;
    let saved = match rule {
        "new" => console.alerts.create_rule(&actor, spec).await?,
        id => console.alerts.update_rule(&actor, id, version, spec).await?,
    };
    Ok(saved.spec.name)
}

/// Deletes a rule; its open alert is resolved with it.
#[server(prefix = "/api/fn", endpoint = "delete_rule")]
pub async fn delete_rule(rule: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let done = async {
        console()?.alerts.delete_rule(&actor()?, &rule).await?;
        Ok(visit.texts().alerts.rule_deleted.to_owned())
    };
    answer(&visit, "/alerts", done.await);
    Ok(())
}
