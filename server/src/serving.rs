//! Serving until asked to stop, and stopping so that nothing is cut off.

use crate::connections;
use crate::jobs::{self, Jobs};
use crate::runtime::TokioRuntime;
use crate::state::AppState;
use anyhow::{Context, anyhow};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long running requests may go on after the signal; supervisors lose patience at about ten seconds.
const FINISH_REQUESTS: Duration = Duration::from_secs(4);
/// How long tasks and compensations may go on after that. What is cut off here is resolved at the next start.
const FINISH_WORK: Duration = Duration::from_secs(4);

/// Takes the address, before anything slow is done.
pub async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "{address} is taken by another program: stop it, or listen elsewhere (demo: --listen 127.0.0.1:PORT; \
             serve: `listen` in the configuration)"
        ),
        ErrorKind::PermissionDenied => {
            anyhow!("this user may not listen on {address}: ports below 1024 need a right; choose a higher one")
        }
        ErrorKind::AddrNotAvailable => anyhow!("{address} is not an address of this machine"),
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}

/// Where people find the console.
pub fn address(listener: &TcpListener, base_path: &str) -> anyhow::Result<String> {
    let mut address = listener.local_addr().context("the listener has no address")?;
    // Nobody can visit "any address"; this machine is among them.
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(format!("http://{address}{}/", base_path.trim_end_matches('/')))
}

/// Serves, with all background tasks, until Ctrl-C or SIGTERM; then finishes what runs and closes the store.
pub async fn serve(listener: TcpListener, state: AppState, runtime: &TokioRuntime) -> anyhow::Result<()> {
    let jobs = jobs::run(&state);
    let stop = CancellationToken::new();
    let app = crate::http::router(state.clone());
    let mut server = tokio::spawn(connections::serve(listener, app, stop.clone()));
    let ended = tokio::select! {
        () = asked_to_stop() => None,
        ended = &mut server => Some(ended),
    };
    tracing::info!("stopping");
    stop.cancel();
    state.hub.close();
    if ended.is_none() && tokio::time::timeout(FINISH_REQUESTS, &mut server).await.is_err() {
        tracing::warn!("some connections were still open and are cut off");
        server.abort();
    }
    finish(jobs, runtime).await;
    state.store.close().await;
    match ended {
        Some(ended) => ended.context("the server panicked"),
        None => Ok(()),
    }
}

async fn finish(jobs: Jobs, runtime: &TokioRuntime) {
    let (tasks, work) = tokio::join!(jobs.stop(FINISH_WORK), runtime.finish(FINISH_WORK));
    if !(tasks && work) {
        tracing::warn!("some work was still running; the next start resolves it by looking");
    }
}

/// Returns on Ctrl-C or, where it exists, SIGTERM.
async fn asked_to_stop() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
