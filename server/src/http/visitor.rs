//! Who is asking: a bearer token or a session, resolved once a request, before any handler.

use super::web::Web;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use chrono::Duration;
use domain::clock::{from_millis, millis};
use domain::ports::User;
use domain::roles::Actor;
use domain::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tower_sessions::Session;

/// Where the login lies in a session.
const LOGIN: &str = "login";
/// An active session's end is pushed back this often, not with every request.
const TOUCH_MINUTES: i64 = 5;

/// What came with the request, and whom it stands for.
#[derive(Clone)]
pub struct Visitor {
    /// `Ok(None)` is a stranger; an error means that it could not be found out, or that the token is wrong.
    pub actor: Result<Option<Actor>>,
    pub credential: Credential,
    pub session: Session,
    pub address: IpAddr,
}

/// What a request brought to prove who it is from.
#[derive(Clone)]
pub enum Credential {
    /// The SHA-256 of a bearer token, in hex.
    Token(String),
    /// The session, which may be empty.
    Session,
}

impl Visitor {
    /// The signed-in person or token; `Unauthenticated` for strangers.
    pub fn actor(&self) -> Result<Actor> {
        self.actor.clone()?.ok_or(Error::Unauthenticated)
    }

    /// Looks again: the session may have ended, the token or the person may be gone.
    pub async fn still_signed_in(&self, web: &Web) -> bool {
        if matches!(self.credential, Credential::Session) && self.session.load().await.is_err() {
            return false;
        }
        matches!(whom(web, &self.credential, &self.session).await, Ok(Some(_)))
    }
}

/// What a session remembers of its sign-in.
#[derive(Serialize, Deserialize)]
struct Login {
    name: String,
    /// Ties the session to the password it was opened with: a new password ends it.
    password: String,
    since: i64,
    seen: i64,
}

/// Finds out who is asking and leaves the [`Visitor`] in the request.
pub async fn identify(
    State(web): State<Web>,
    session: Session,
    mut request: Request,
    next: Next,
) -> Response {
    let credential = credential(request.headers());
    let actor = whom(&web, &credential, &session).await;
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    request.extensions_mut().insert(Visitor { actor, credential, session, address });
    next.run(request).await
}

/// Opens the session for a person who just proved to be `user`. The id is new: one planted before is worthless.
pub async fn open(web: &Web, session: &Session, user: &User) -> Result<()> {
    let now = millis(web.app.clock.now());
    let login =
        Login { name: user.name.clone(), password: fingerprint(&user.password_hash), since: now, seen: now };
    session.cycle_id().await.map_err(unavailable)?;
    session.insert(LOGIN, &login).await.map_err(unavailable)
}

/// Ends the session; none is no error.
pub async fn close(session: &Session) -> Result<()> {
    session.flush().await.map_err(unavailable)
}

fn credential(headers: &HeaderMap) -> Credential {
    let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token {
        Some(token) => Credential::Token(hex::encode(Sha256::digest(token))),
        None => Credential::Session,
    }
}

async fn whom(web: &Web, credential: &Credential, session: &Session) -> Result<Option<Actor>> {
    match credential {
        Credential::Token(digest) => {
            let (name, role) = web.app.users.token(digest).await?.ok_or(Error::Unauthenticated)?;
            Ok(Some(Actor::new(name, role)))
        }
        Credential::Session => of_session(web, session).await,
    }
}

/// The person of a session, with the role they have now; a session that counts no more is emptied.
async fn of_session(web: &Web, session: &Session) -> Result<Option<Actor>> {
    let Some(login) = session.get::<Login>(LOGIN).await.map_err(unavailable)? else { return Ok(None) };
    let now = web.app.clock.now();
    let over = now - from_millis(login.since) >= Duration::hours(web.app.settings.session_hours.into());
    let user = if over { None } else { web.app.users.user(&login.name).await? };
    let Some(user) = user.filter(|user| fingerprint(&user.password_hash) == login.password) else {
        close(session).await?;
        return Ok(None);
    };
    if now - from_millis(login.seen) >= Duration::minutes(TOUCH_MINUTES) {
        session.insert(LOGIN, &Login { seen: millis(now), ..login }).await.map_err(unavailable)?;
    }
    Ok(Some(Actor::new(user.name, user.role)))
}

fn fingerprint(password_hash: &str) -> String {
    hex::encode(Sha256::digest(password_hash))
}

/// The session's own error may carry what was stored in it; the reader only needs to know what is down.
fn unavailable(error: tower_sessions::session::Error) -> Error {
    tracing::warn!(%error, "a session could not be read or written");
    Error::unavailable("The console's store", "sessions cannot be read right now; try again in a moment")
}
