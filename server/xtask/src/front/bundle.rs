//! From cargo's wasm to one script and one wasm file.

use super::Mode;
use crate::process;
use crate::project::Project;
use crate::provision::npm;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use wasm_bindgen_cli_support::Bindgen;

/// The script and the wasm, ready to be served.
pub struct Bundle {
    pub js: Vec<u8>,
    pub wasm: Vec<u8>,
}

/// Runs bindgen, folds its script and snippets into one module and, for a release, shrinks both.
pub fn make(project: &Project, mode: Mode, wasm: &Path, work: &Path) -> Result<Bundle> {
    bind(mode, wasm, work)?;
    let tools = npm::tools(project)?;
    let script = work.join("bundle.js");
    process::run(&mut esbuild(&tools, mode, work, &script))?;
    let module = work.join("amends_bg.wasm");
    let module = match mode {
        Mode::Debug => module,
        Mode::Release => {
            let small = work.join("small.wasm");
            // Plain -Oz: switching features on by flag has produced pages that never come alive.
            process::run(
                Command::new(tools.join(".bin/wasm-opt")).arg("-Oz").arg(module).arg("-o").arg(&small),
            )?;
            small
        }
    };
    Ok(Bundle { js: fs::read(script)?, wasm: fs::read(module)? })
}

fn bind(mode: Mode, wasm: &Path, work: &Path) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).out_name("amends").web(true)?.typescript(false);
    // The page names the wasm by its hashed path, so the script must not guess one.
    bindgen.omit_default_module_path(true).remove_producers_section(true);
    bindgen.keep_debug(mode == Mode::Debug).remove_name_section(mode == Mode::Release);
    bindgen.generate(work).context("wasm-bindgen failed")
}

fn esbuild(tools: &Path, mode: Mode, work: &Path, script: &Path) -> Command {
    let mut command = Command::new(tools.join(".bin/esbuild"));
    command.arg(work.join("amends.js")).args([
        "--bundle",
        "--format=esm",
        "--target=es2022",
        "--log-level=warning",
    ]);
    if mode == Mode::Release {
        command.arg("--minify");
    }
    command.arg(format!("--outfile={}", script.display()));
    command
}
