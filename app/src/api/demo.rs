//! The demo shop's switches.

use super::{actor, answer};
use crate::context::{Visit, console};
use domain::Error;
use domain::roles::Permission;
use leptos::prelude::*;

/// Starts or stops the retry storm of the demo's payment callbacks.
#[server(prefix = "/api/fn", endpoint = "storm")]
pub async fn storm(on: bool, #[server(default)] back: String) -> Result<(), ServerFnError> {
    let visit = Visit::of_call();
    answer(&visit, &back, switch(&visit, on).await);
    Ok(())
}

async fn switch(visit: &Visit, on: bool) -> domain::Result<String> {
    actor()?.require(Permission::DriveDemo)?;
    let demo = console()?.demo.ok_or_else(|| Error::not_found("The demo"))?;
    demo.set_storm(on).await;
    let t = &visit.texts().overview;
    Ok(if on { t.storm_started } else { t.storm_stopped }.to_owned())
}
