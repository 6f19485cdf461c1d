//! What stands around the guard of a callback route: outside, the notification is opened; inside, the handler's good
//! answer becomes the acknowledgement, so that the record keeps exactly what the channel gets.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

use super::{Callback, Notification, OpenError};
use crate::answer::BODY_NOT_STORED;
use crate::claim::Outcome;
use crate::layer::{GuardLayer, Guarded, receive};

/// Protects one callback route; made by [`crate::Guard::callback`].
#[derive(Clone)]
pub struct CallbackLayer {
    pub(super) callback: Arc<Callback>,
    pub(super) guard: GuardLayer,
}

impl<S> Layer<S> for CallbackLayer {
    type Service = Notified<S>;

    fn layer(&self, inner: S) -> Notified<S> {
        let callback = self.callback.clone();
        let inner = self.guard.layer(Acknowledging { callback: callback.clone(), inner });
        Notified { callback, max_request: self.guard.max_request(), inner }
    }
}

/// A protected callback service.
#[derive(Clone)]
pub struct Notified<S> {
    callback: Arc<Callback>,
    max_request: usize,
    inner: Guarded<Acknowledging<S>>,
}

impl<S> Service<Request> for Notified<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The guard is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Notified { callback, max_request, inner } = self.clone();
        Box::pin(async move {
            let request = match opened(&callback, request, max_request).await {
                Ok(request) => request,
                Err(status) => return Ok(callback.nack.response(status)),
            };
            let response = inner.oneshot(request).await?;
            // Done, and its answer lost: the channel still must hear that it is done.
            let lost = response.status().is_success() && response.headers().contains_key(BODY_NOT_STORED);
            Ok(if lost { callback.ack.response(callback.ack_status) } else { response })
        })
    }
}

/// The request with what it says beside it.
async fn opened(callback: &Callback, request: Request, max: usize) -> Result<Request, StatusCode> {
    let (mut parts, body) = request.into_parts();
    let body = receive(body, max).await.map_err(|refusal| refusal.status())?;
    match callback.opener.open(&parts, &body) {
        Ok(said) => {
            parts.extensions.insert(Notification(said));
            Ok(Request::from_parts(parts, Body::from(body)))
        }
        Err(error) => {
            tracing::warn!(biz_type = callback.biz_type, %error, "a notification was refused");
            Err(match error {
                OpenError::NotGenuine => StatusCode::UNAUTHORIZED,
                OpenError::Unreadable(_) => StatusCode::BAD_REQUEST,
            })
        }
    }
}

/// The handler of a callback route.
#[derive(Clone)]
pub struct Acknowledging<S> {
    callback: Arc<Callback>,
    inner: S,
}

impl<S> Service<Request> for Acknowledging<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Acknowledging { callback, inner } = self.clone();
        Box::pin(async move { Ok(callback.in_the_channels_words(inner.oneshot(request).await?)) })
    }
}

impl Callback {
    /// The acknowledgement for what was done; for anything else what makes the channel send again, under a status
    /// that says what the outcome is.
    fn in_the_channels_words(&self, answer: Response) -> Response {
        let outcome = answer.extensions().get::<Outcome>().copied();
        let done =
            answer.status().is_success() && outcome.is_none_or(|outcome| outcome == Outcome::Definitive);
        let failed = answer.status().is_client_error() || answer.status().is_server_error();
        let mut response = match done {
            true => self.ack.response(self.ack_status),
            false if failed => self.nack.response(answer.status()),
            false => self.nack.response(StatusCode::INTERNAL_SERVER_ERROR),
        };
        if let Some(outcome) = outcome {
            response.extensions_mut().insert(outcome);
        }
        response
    }
}
