//! Log lines for people on standard error, and the process-wide metrics recorder.

use crate::state::MetricsHandle;
use anyhow::anyhow;
use metrics_exporter_prometheus::PrometheusBuilder;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

/// What is logged when neither the configuration nor `RUST_LOG` says otherwise.
pub const DEFAULT_FILTER: &str = "info";

/// Starts logging to standard error; `RUST_LOG` wins over `filter`. Later calls change nothing.
pub fn init(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    // A second subscriber is refused, which is what a process that composes itself twice wants.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
}

/// The handle that renders this process's metrics; the recorder is installed at the first call.
pub fn metrics() -> anyhow::Result<MetricsHandle> {
    static HANDLE: OnceLock<Result<MetricsHandle, String>> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
        Ok(handle)
    });
    handle.clone().map_err(|error| anyhow!("the metrics recorder cannot be installed: {error}"))
}
