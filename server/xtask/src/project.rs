//! Where things are: the checkout, its target folder and the cache outside it.

use anyhow::{Context, Result};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout and the folders that belong to it.
pub struct Project {
    root: PathBuf,
    target: PathBuf,
}

impl Project {
    /// Finds the checkout this program was built from and the target folder cargo uses for it.
    pub fn locate() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root =
            manifest.ancestors().nth(2).context("xtask lives two folders below the root")?.to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// The top folder of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder for the native half.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Cargo's target folder for the browser half: other compiler flags, so another folder.
    pub fn front(&self) -> PathBuf {
        self.target.join("front")
    }

    /// The finished browser assets, which the server embeds.
    pub fn site(&self) -> PathBuf {
        self.front().join("site")
    }

    /// The optimised server.
    pub fn release_binary(&self) -> PathBuf {
        self.target.join("release/amends")
    }

    /// A cargo command in the checkout, free of what an outer `cargo run` left in the environment:
    /// some build scripts watch those variables and would rebuild on every switch.
    pub fn cargo(&self) -> Command {
        self.cargo_with(None)
    }

    /// As `cargo`, with a named rustup toolchain.
    pub fn cargo_with(&self, toolchain: Option<&str>) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root);
        strip_outer_cargo(&mut command);
        if let Some(name) = toolchain {
            command.arg(format!("+{name}"));
        }
        command
    }
}

/// The folder for downloads and tools that outlive a checkout.
pub fn cache() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set: set it, or XDG_CACHE_HOME")?)
            .join(".cache"),
    };
    Ok(base.join("amends"))
}

/// Removes the per-package variables that cargo sets for the program it runs.
pub fn strip_outer_cargo(command: &mut Command) {
    const PREFIXES: [&str; 5] =
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    const NAMES: [&str; 5] =
        ["CARGO", "RUSTUP_TOOLCHAIN", "RUST_RECURSION_COUNT", "OUT_DIR", "LD_LIBRARY_PATH"];
    for (key, _) in env::vars_os() {
        let name = key.to_string_lossy();
        if NAMES.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&key);
        }
    }
}
