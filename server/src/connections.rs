//! Taking connections: a client that takes for ever to say what it wants is not waited for.

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// How long a client may take for a request's head, and may leave a connection idle.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// Serves every connection until `stop`; returns when the requests that were running then have been answered.
pub async fn serve(mut listener: TcpListener, app: Router, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    let open = GracefulShutdown::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = Listener::accept(&mut listener) => accepted,
        };
        let service = app.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.map(Body::new)
        });
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let watched = open.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%peer, %error, "a connection ended early");
            }
        });
    }
    drop(listener);
    open.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn console(stop: &CancellationToken) -> (TcpStream, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let peer = async |ConnectInfo(peer): ConnectInfo<std::net::SocketAddr>| peer.to_string();
        let server = tokio::spawn(serve(listener, Router::new().route("/", get(peer)), stop.clone()));
        (TcpStream::connect(address).await.unwrap(), server)
    }

    // Paused time runs on by itself as soon as nothing else can happen.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_finishes_its_head_is_let_go() {
        let (mut client, _server) = console(&CancellationToken::new()).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").await.unwrap();
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest).await;
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_request_knows_where_it_comes_from_and_an_idle_connection_does_not_hold_up_the_end() {
        let stop = CancellationToken::new();
        let (mut client, server) = console(&stop).await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let here = client.local_addr().unwrap().to_string();
        let mut answer = Vec::new();
        while !String::from_utf8_lossy(&answer).ends_with(&here) {
            assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0);
        }
        stop.cancel();
        server.await.unwrap();
    }
}
