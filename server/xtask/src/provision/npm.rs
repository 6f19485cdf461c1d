//! Programs from npm: the wasm optimiser and the minifier in the cache, Playwright beside its tests.

use super::say;
use crate::process;
use crate::project::{Project, cache};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STAMP: &str = "node_modules/.amends-stamp";

/// Where the build's own npm programs are, installed when they were not.
pub fn tools(project: &Project) -> Result<PathBuf> {
    let source = project.root().join("server/xtask/tools");
    let lock = read(&source.join("package-lock.json"))?;
    let folder = cache()?.join("tools").join(&digest(&lock)[..16]);
    if !installed(&folder, &lock) {
        fs::create_dir_all(&folder)?;
        for name in ["package.json", "package-lock.json"] {
            fs::copy(source.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
        }
        install(&folder, &lock, "the wasm optimiser and the minifier")?;
    }
    Ok(folder.join("node_modules"))
}

/// Installs Playwright for the browser tests; the browser itself is the distribution's.
pub fn browser_tests(project: &Project) -> Result<()> {
    let folder = project.root().join("end2end");
    let lock = read(&folder.join("package-lock.json"))?;
    if installed(&folder, &lock) { Ok(()) } else { install(&folder, &lock, "Playwright") }
}

fn installed(folder: &Path, lock: &[u8]) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == digest(lock))
}

fn install(folder: &Path, lock: &[u8], what: &str) -> Result<()> {
    say(&format!("installing {what} from npm"));
    let mut npm = Command::new("npm");
    npm.current_dir(folder).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    process::run(npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    fs::write(folder.join(STAMP), digest(lock)).context("cannot note what npm installed")
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
