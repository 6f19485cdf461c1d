//! The `amends` binary.

use std::process::ExitCode;

/// glibc keeps what a peak took for as long as the process lives; this one gives it back (settings: `.cargo/config.toml`).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    server::cli::main()
}
