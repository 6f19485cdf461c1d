//! Checking records against the business tables, and showing their bodies.

use super::{actor, answer, redirect};
use crate::context::{Visit, console};
use crate::cookies;
use crate::words;
use domain::roles::Permission;
use domain::services::stuck::BoardScope;
use domain::stuck::Lane;
use leptos::prelude::*;

/// Runs the reverse check of one record and returns.
#[server(prefix = "/api/fn", endpoint = "reverse_check")]
pub async fn reverse_check(id: String, #[server(default)] back: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let outcome = check_one(&visit, &id).await;
    answer(&visit, &back, outcome);
    Ok(())
}

async fn check_one(visit: &Visit, id: &str) -> domain::Result<String> {
    let (actor, console) = (actor()?, console()?);
    let checked = console.stuck.check(&actor, &id.parse()?).await?;
    let t = visit.texts();
    Ok(t.record.checked_as(words::verdict(t, checked.evidence.finding.verdict)))
}

/// Starts the checks of every stuck record in scope, or joins those that run; empty fields do not narrow.
#[server(prefix = "/api/fn", endpoint = "check_all")]
pub async fn check_all(
    #[server(default)] source: String,
    #[server(default)] biz_type: String,
    #[server(default)] lane: String,
    #[server(default)] back: String,
) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let scope = BoardScope { source: given(source), biz_type: given(biz_type), lane: Lane::parse(&lane) };
    let outcome = check_scope(&visit, &scope).await;
    answer(&visit, &back, outcome);
    Ok(())
}

async fn check_scope(visit: &Visit, scope: &BoardScope) -> domain::Result<String> {
    let (actor, console) = (actor()?, console()?);
    let run = console.stuck.check_all(&actor, scope).await?;
    Ok(visit.texts().stuck.checks_began(run.total))
}

/// Lets the next page of this record show its bodies once. The page asks the service, which audits what it shows.
#[server(prefix = "/api/fn", endpoint = "reveal")]
pub async fn reveal(id: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let back = match id.parse::<domain::record::RecordId>() {
        Ok(id) => format!("/records/{id}"),
        Err(_) => "/records".to_owned(),
    };
    match actor().and_then(|actor| actor.require(Permission::RevealBodies)) {
        Ok(()) => {
            cookies::leave_reveal(&visit.settings().base_path, &id);
            redirect(&visit, &format!("{back}#request"));
        }
        Err(refusal) => answer(&visit, &back, Err(refusal)),
    }
    Ok(())
}

fn given(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
