//! The `amends` binary.

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Gives memory back after a peak (password hashing, a big page); the system's keeps it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    server::cli::main()
}
