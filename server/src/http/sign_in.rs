//! Signing in and out, the same for the API and for the pages.

use super::password;
use super::throttle::Throttle;
use super::visitor::{self, Visitor};
use super::web::Web;
use domain::audit::Draft;
use domain::ports::{Topic, User};
use domain::roles::Actor;
use domain::{Error, Result};
use std::net::IpAddr;
use tokio::sync::Semaphore;
use tower_sessions::cookie::SameSite;
use tower_sessions::cookie::time::Duration;
use tower_sessions::{Expiry, SessionManagerLayer};

/// The name of the session's cookie.
pub const COOKIE: &str = "amends_session";
/// A session that nobody uses ends after this long.
const IDLE_HOURS: i64 = 4;
/// Passwords checked at once: each check takes 19 MiB and a core.
const CHECKS_AT_ONCE: usize = 4;
/// Compared with when there is no such user, so that a wrong name costs as much as a wrong password.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$YW1lbmRzLW5vYm9keS0x$OKG9x1LvhvxJEbPBxVVyxcVK7vgpcGd8jq1Cs3sGhBo";

/// What stands between a guesser and the passwords.
pub struct Gate {
    throttle: Throttle,
    checks: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { throttle: Throttle::default(), checks: Semaphore::new(CHECKS_AT_ONCE) }
    }
}

/// The layer that carries sessions between cookie and store.
pub fn session_layer(web: &Web) -> SessionManagerLayer<store::sessions::Sessions> {
    let settings = &web.app.settings;
    let store = store::Store::new(web.app.store.clone(), rand::random());
    let base_path = match web.base_path() {
        "" => "/",
        base_path => base_path,
    };
    let idle = Duration::hours(IDLE_HOURS.min(settings.session_hours.into()));
    SessionManagerLayer::new(store::sessions::Sessions::new(store, web.app.clock.clone()))
        .with_name(COOKIE)
        .with_path(base_path.to_owned())
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(settings.secure_cookies)
        .with_expiry(Expiry::OnInactivity(idle))
}

/// Opens a session when name and password are right. `Unauthenticated` for a wrong name as for a wrong password,
/// `TooMany` while the name or the address has tried too often.
pub async fn sign_in(web: &Web, visitor: &Visitor, name: &str, password: &str) -> Result<Actor> {
    web.gate.throttle.take(name, visitor.address, web.app.clock.now())?;
    let known = web.app.users.user(name).await?;
    let Some(user) = proved(web, known.clone(), password).await? else {
        record_refusal(web, known, visitor.address).await?;
        return Err(Error::Unauthenticated);
    };
    web.gate.throttle.forgive(name, visitor.address);
    visitor::open(web, &visitor.session, &user).await?;
    let draft = Draft::new(web.app.clock.now(), &user.name, "session.signed_in");
    record(web, Draft { result: Some(format!("from {}", visitor.address)), ..draft }).await?;
    tracing::info!(actor = user.name, role = %user.role, "signed in");
    Ok(Actor::new(user.name, user.role))
}

/// Ends the session, with an entry when somebody was signed in.
pub async fn sign_out(web: &Web, visitor: &Visitor) -> Result<()> {
    visitor::close(&visitor.session).await?;
    if let Ok(Some(actor)) = &visitor.actor {
        record(web, Draft::new(web.app.clock.now(), &actor.name, "session.signed_out")).await?;
    }
    Ok(())
}

/// The user, if the password is theirs. Takes the same time for nobody.
async fn proved(web: &Web, known: Option<User>, password: &str) -> Result<Option<User>> {
    let interrupted = || Error::internal("The password could not be checked; try again.");
    let _turn = web.gate.checks.acquire().await.map_err(|_| interrupted())?;
    let phc = known.as_ref().map_or(NOBODY, |user| user.password_hash.as_str()).to_owned();
    let password = password.to_owned();
    let right = tokio::task::spawn_blocking(move || password::verify(&password, &phc))
        .await
        .map_err(|_| interrupted())?;
    Ok(known.filter(|_| right))
}

/// Only names that exist are written down: people type passwords into the name field.
async fn record_refusal(web: &Web, known: Option<User>, address: IpAddr) -> Result<()> {
    let (actor, what) = match known {
        Some(user) => (user.name, "wrong password"),
        None => ("anonymous".to_owned(), "unknown name"),
    };
    tracing::warn!(actor, %address, "sign-in refused: {what}");
    let draft = Draft::new(web.app.clock.now(), actor, "session.refused");
    record(web, Draft { result: Some(format!("{what}, from {address}")), ..draft }).await
}

async fn record(web: &Web, draft: Draft) -> Result<()> {
    web.app.audit.append(&draft).await?;
    domain::ports::Events::changed(&web.app.hub, Topic::Audit);
    Ok(())
}

/// The pages' port onto the sessions, bound to one request.
pub struct PageSession {
    pub web: Web,
    pub visitor: Visitor,
}

#[async_trait::async_trait]
impl app::context::Session for PageSession {
    async fn sign_in(&self, username: &str, password: &str) -> Result<Actor> {
        sign_in(&self.web, &self.visitor, username, password).await
    }

    async fn sign_out(&self) -> Result<()> {
        sign_out(&self.web, &self.visitor).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_as_costly_to_check_as_somebody_and_is_never_let_in() {
        use argon2::password_hash::phc::PasswordHash;
        let parameters = |phc: &str| PasswordHash::new(phc).unwrap().params.to_string();
        assert_eq!(parameters(NOBODY), parameters(&password::hash("x").unwrap()));
        assert!(!password::verify("", NOBODY) && !password::verify("nobody", NOBODY));
    }
}
