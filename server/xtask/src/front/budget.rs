//! The first load has a budget; a page that grew past it fails the checks.

use super::pack::MANIFEST;
use crate::project::Project;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;

/// Script, wasm and styles as sent, in bytes: 150 KiB less what the page itself and its headers weigh.
const LIMIT: u64 = 138 * 1024;

/// The sizes as a table, or an error when they exceed the budget.
pub fn check(project: &Project) -> Result<String> {
    let site = project.site();
    let manifest = fs::read_to_string(site.join(MANIFEST))
        .context("no assets yet: run `cargo xtask front --release`")?;
    let (mut table, mut total) = (String::new(), 0);
    for (role, name) in
        manifest.lines().filter_map(|line| line.split_once('=')).filter(|(role, _)| *role != "icon")
    {
        let packed = fs::metadata(site.join(format!("{name}.br")))
            .with_context(|| format!("{name} is not compressed: run `cargo xtask front --release`"))?;
        writeln!(table, "{role:>6} {:>7.1} KiB", kib(packed.len()))?;
        total += packed.len();
    }
    write!(table, " total {:>7.1} KiB of {:.0}", kib(total), kib(LIMIT))?;
    if total > LIMIT {
        bail!("the first load is over its budget\n{table}");
    }
    Ok(table)
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}
