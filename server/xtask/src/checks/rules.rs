//! Rules about the shape of the project that no compiler checks.

use crate::process;
use crate::project::Project;
use crate::provision::wasm;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// What must never reach the browser half or the domain.
const NATIVE_ONLY: [&str; 7] = ["axum", "hyper", "mio", "reqwest", "rustls", "sqlx", "tokio"];

/// Which rooms each room may stand on.
const ARROWS: [(&str, &[&str]); 9] = [
    ("domain", &[]),
    ("db", &[]),
    ("kv", &[]),
    ("store", &["domain", "db"]),
    ("sources", &["domain", "db", "kv"]),
    ("guard", &["db", "kv"]),
    ("app", &["domain"]),
    ("server", &["app", "domain", "db", "kv", "store", "sources", "guard"]),
    ("xtask", &[]),
];

/// The browser half and the domain stay free of IO; rooms depend only on the rooms they may.
pub fn dependencies(project: &Project) -> Result<String> {
    let wasm_tree =
        ["--package", "app", "--no-default-features", "--features", "hydrate", "--target", wasm::TARGET];
    let browser = tree(project, &wasm_tree)?;
    let domain = tree(project, &["--package", "domain", "--all-features"])?;
    for (name, packages) in [("the browser half of `app`", &browser), ("`domain`", &domain)] {
        if let Some(package) = NATIVE_ONLY.iter().find(|package| packages.contains(**package)) {
            bail!("{name} depends on {package}: move what needs it behind a port or the `ssr` feature");
        }
    }
    arrows(project)?;
    Ok(format!("{} packages in the browser, {} in the domain", browser.len(), domain.len()))
}

fn tree(project: &Project, arguments: &[&str]) -> Result<BTreeSet<String>> {
    let mut cargo = project.cargo();
    cargo.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let text = process::capture(cargo.args(arguments))?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn arrows(project: &Project) -> Result<()> {
    let text = process::capture(project.cargo().args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--locked",
    ]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let rooms: Vec<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    for package in list(&metadata["packages"]) {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == name) else {
            bail!("crate `{name}` is in no room: say in ARROWS what it may stand on");
        };
        let normal = list(&package["dependencies"]).iter().filter(|dependency| dependency["kind"].is_null());
        for used in normal.filter_map(|dependency| dependency["name"].as_str()) {
            if rooms.contains(&used) && !allowed.contains(&used) {
                bail!("`{name}` must not depend on `{used}`");
            }
        }
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Every migration exists for each database under the same number and name.
pub fn migrations(project: &Project) -> Result<String> {
    let names = |database: &str| -> Result<BTreeSet<String>> {
        let folder = project.root().join("migrations").join(database);
        let files = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        Ok(files.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect())
    };
    let sqlite = names("sqlite")?;
    for database in ["postgres", "mysql"] {
        let other = names(database)?;
        let odd: Vec<&String> = sqlite.symmetric_difference(&other).collect();
        if !odd.is_empty() {
            bail!("migrations differ between sqlite and {database}: {odd:?}");
        }
    }
    Ok(format!("{} migrations", sqlite.len()))
}
