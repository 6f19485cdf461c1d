//! Installs what is missing, and only that: a second run changes nothing and takes no time.

mod apt;
pub mod npm;
pub mod wasm;

use crate::process;
use crate::project::Project;
use anyhow::Result;

/// Makes this machine able to build and run (`tests` false) or to run every check (`tests` true).
pub fn provision(project: &Project, tests: bool) -> Result<()> {
    let mut packages = Vec::new();
    packages.extend(apt::missing(apt::BUILD));
    packages.extend(wasm::missing_packages(project)?);
    if tests {
        packages.extend(apt::missing(apt::TESTS));
    }
    apt::install(&packages)?;
    wasm::provision(project)?;
    npm::tools(project)?;
    if tests {
        npm::browser_tests(project)?;
    }
    Ok(())
}

/// Says what is being done, so that a long step is never a silent one.
fn say(text: &str) {
    println!("» {text}");
}

/// A command run with the rights to install packages.
fn privileged(program: &str) -> Result<std::process::Command> {
    if process::is_root() {
        return Ok(std::process::Command::new(program));
    }
    let Some(sudo) = process::find("sudo") else {
        anyhow::bail!("installing needs root and there is no sudo");
    };
    let mut command = std::process::Command::new(sudo);
    command.arg(program);
    Ok(command)
}
