//! Settling one record.

use super::{actor, say};
use crate::context::{Flash, Visit, console};
use crate::words;
use domain::compensation::{Command, Ending};
use leptos::prelude::*;

/// Carries out one action on one record, once per `command_key`, and returns to the page that shows what became of it.
#[server(prefix = "/api/fn", endpoint = "settle")]
#[allow(clippy::too_many_arguments, reason = "one argument a form field")]
pub async fn settle(
    id: String,
    action: String,
    reason: String,
    if_version: String,
    command_key: String,
    #[server(default)] evidence_id: String,
    #[server(default)] response_body: String,
    #[server(default)] back: String,
) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    let command = command(&id, &action, reason, &if_version, command_key, evidence_id, response_body);
    let outcome = match command {
        Ok(command) => carry_out(&visit, command).await,
        Err(refusal) => Err(refusal),
    };
    say(&visit, &back, outcome);
    Ok(())
}

fn command(
    id: &str,
    action: &str,
    reason: String,
    if_version: &str,
    key: String,
    evidence_id: String,
    response_body: String,
) -> domain::Result<Command> {
    Ok(Command {
        key,
        record: id.parse()?,
        action: action.parse()?,
        reason,
        if_version: if_version.parse()?,
        evidence_id: Some(evidence_id).filter(|id| !id.is_empty()),
        response_body: Some(response_body).filter(|body| !body.trim().is_empty()),
    })
}

async fn carry_out(visit: &Visit, command: Command) -> domain::Result<Flash> {
    let (actor, console) = (actor()?, console()?);
    let settled = console.compensations.settle(&actor, command).await;
    // Whatever came of it, the next page counts what is stuck now; if this fails the background task does it.
    let _ = console.stuck.refresh().await;
    let settled = settled?;
    let text = words::settled(visit.texts(), &settled);
    let done = matches!(settled.outcome, Ending::Succeeded | Ending::CachePending);
    Ok(if done { Flash::done(text) } else { Flash::failed(text) })
}
