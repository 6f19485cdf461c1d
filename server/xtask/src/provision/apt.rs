//! Packages of the distribution.

use super::{privileged, say};
use crate::process;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// A package and how to see that it, or something as good, is there.
pub struct Package {
    name: &'static str,
    seen: fn() -> bool,
}

/// What building needs beyond the bootstrap's compiler and cargo.
pub const BUILD: &[Package] =
    &[Package { name: "nodejs", seen: || on_path("node") }, Package { name: "npm", seen: || on_path("npm") }];

/// What the checks need: a browser, fonts it can draw Chinese with, the databases.
pub const TESTS: &[Package] = &[
    Package { name: "chromium", seen: || on_path("chromium") },
    Package {
        name: "fonts-noto-cjk",
        seen: || Path::new("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc").exists(),
    },
    Package { name: "postgresql", seen: || crate::services::postgres_bin().is_some() },
    Package { name: "mariadb-server", seen: || on_path("mariadbd") },
    Package { name: "redis-server", seen: || on_path("redis-server") },
    Package { name: "sqlite3", seen: || on_path("sqlite3") },
];

/// The distribution's own Rust with the parts that can make a wasm standard library.
pub const DEBIAN_RUST: &[Package] = &[
    Package { name: "rustc-web", seen: || Path::new("/usr/bin/rustc").exists() },
    Package { name: "cargo-web", seen: || Path::new("/usr/bin/cargo").exists() },
    Package { name: "rust-web-src", seen: || Path::new("/usr/lib/rustlib/src/rust/library").exists() },
    Package { name: "rust-web-llvm", seen: || Path::new("/usr/bin/rust-lld").exists() },
    Package { name: "lld-22", seen: || on_path("wasm-ld-22") },
    Package { name: "rust-web-clippy", seen: || Path::new("/usr/bin/cargo-clippy").exists() },
];

/// The names of the packages that are not there yet.
pub fn missing(packages: &[Package]) -> Vec<&'static str> {
    packages.iter().filter(|package| !(package.seen)()).map(|package| package.name).collect()
}

/// Installs packages with apt; says what to install where there is no apt.
pub fn install(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let list = names.join(" ");
    if process::find("apt-get").is_none() {
        bail!("no apt-get here: install these, or what your system calls them, and run again: {list}");
    }
    let mut update = privileged("apt-get").with_context(|| {
        format!("as root run `apt-get update && apt-get install {list}`, then the same command again")
    })?;
    say(&format!("installing {list} (a minute or two)"));
    process::run(update.args(["update", "-qq"])).context("cannot refresh the package lists")?;
    let mut install = privileged("apt-get")?;
    // Without a terminal of its own dpkg leaves out its percentages.
    install.args(["install", "-y", "-qq", "-o", "Dpkg::Use-Pty=0", "--no-install-recommends"]).args(names);
    process::run(install.env("DEBIAN_FRONTEND", "noninteractive")).context("cannot install packages")
}

fn on_path(program: &str) -> bool {
    process::find(program).is_some()
}
