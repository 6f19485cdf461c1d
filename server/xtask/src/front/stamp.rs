//! Decides whether built assets are current: a digest over everything they are made from.

use super::Mode;
use crate::project::Project;
use crate::provision::wasm;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

const INPUTS: [&str; 6] = ["app", "style", "server/domain", "server/xtask", "Cargo.toml", "Cargo.lock"];

/// The digest of the inputs, the mode and the compiler.
pub fn of(project: &Project, mode: Mode) -> Result<String> {
    let mut digest = Sha256::new();
    digest.update(mode.cargo_profile());
    digest.update(wasm::version(project)?);
    for file in files(project.root())? {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        digest.update(file.strip_prefix(project.root())?.as_os_str().as_encoded_bytes());
        digest.update(bytes.len().to_le_bytes());
        digest.update(bytes);
    }
    Ok(hex::encode(digest.finalize()))
}

/// True when the site folder was made from inputs with this digest.
pub fn is_current(project: &Project, stamp: &str) -> bool {
    project.site().is_dir() && fs::read_to_string(file(project)).is_ok_and(|old| old == stamp)
}

/// Notes what the site folder was made from.
pub fn write(project: &Project, stamp: &str) -> Result<()> {
    fs::write(file(project), stamp).context("cannot note the state of the assets")
}

fn file(project: &Project) -> PathBuf {
    project.front().join("site.stamp")
}

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for input in INPUTS {
        let walk = WalkDir::new(root.join(input)).sort_by_file_name().into_iter();
        for entry in walk.filter_entry(|entry| entry.file_name() != "node_modules") {
            let entry = entry?;
            if entry.file_type().is_file() {
                files.push(entry.into_path());
            }
        }
    }
    Ok(files)
}
