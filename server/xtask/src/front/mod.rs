//! The browser half: cargo → bindgen → minify and optimise → styles → hashed, precompressed files.

pub mod budget;
mod bundle;
mod pack;
mod stamp;

use crate::process;
use crate::project::Project;
use crate::provision::wasm;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// How much work to spend on the size of what is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Fast to build, readable, uncompressed.
    Debug,
    /// Optimised, minified, precompressed.
    Release,
}

impl Mode {
    pub fn of(release: bool) -> Self {
        if release { Self::Release } else { Self::Debug }
    }

    fn cargo_profile(self) -> &'static str {
        match self {
            Self::Debug => "dev",
            Self::Release => "front",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "front",
        }
    }
}

/// Builds the assets into the site folder, or returns at once when nothing they depend on has changed.
pub fn build(project: &Project, mode: Mode) -> Result<()> {
    let stamp = stamp::of(project, mode)?;
    if stamp::is_current(project, &stamp) {
        return Ok(());
    }
    let begun = Instant::now();
    println!("» building the browser half");
    let wasm = compile(project, mode)?;
    let work = project.front().join("work");
    fs::remove_dir_all(&work).or_else(ignore_absent)?;
    fs::create_dir_all(&work)?;
    let bundle = bundle::make(project, mode, &wasm, &work)?;
    let css = styles(project, mode)?;
    let icon = read(project, "style/favicon.svg")?;
    pack::write(project, mode, pack::Parts { js: bundle.js, wasm: bundle.wasm, css, icon })?;
    stamp::write(project, &stamp)?;
    println!("» browser half built in {:.0} s", begun.elapsed().as_secs_f32());
    Ok(())
}

/// Builds the optimised server with the optimised assets inside.
pub fn build_server(project: &Project) -> Result<()> {
    build(project, Mode::Release)?;
    println!("» building the server (minutes at first, seconds when little changed)");
    process::run(project.cargo().args(["build", "--release", "--package", "server"]))
}

fn compile(project: &Project, mode: Mode) -> Result<PathBuf> {
    let mut cargo = project.cargo_with(wasm::toolchain(project)?);
    cargo.args([
        "build",
        "--locked",
        "--package",
        "app",
        "--lib",
        "--no-default-features",
        "--features",
        "hydrate",
    ]);
    cargo.args(["--target", wasm::TARGET, "--profile", mode.cargo_profile()]);
    process::run(cargo.arg("--target-dir").arg(project.front()))?;
    let file = project.front().join(wasm::TARGET).join(mode.folder()).join("app.wasm");
    if file.is_file() { Ok(file) } else { bail!("cargo left no {}: `app` must be a cdylib", file.display()) }
}

fn styles(project: &Project, mode: Mode) -> Result<Vec<u8>> {
    let style = match mode {
        Mode::Debug => grass::OutputStyle::Expanded,
        Mode::Release => grass::OutputStyle::Compressed,
    };
    let source = project.root().join("style/main.scss");
    let css = grass::from_path(&source, &grass::Options::default().style(style))
        .with_context(|| format!("cannot compile {}", source.display()))?;
    Ok(css.into_bytes())
}

fn read(project: &Project, file: &str) -> Result<Vec<u8>> {
    fs::read(project.root().join(file)).with_context(|| format!("cannot read {file}"))
}

fn ignore_absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
