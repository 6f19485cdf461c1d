//! A compiler for wasm32-unknown-unknown: rustup's target, or the distribution's Rust where rustup may not download.

use super::{apt, privileged, say};
use crate::process;
use crate::project::{Project, strip_outer_cargo};
use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only target of the browser half.
pub const TARGET: &str = "wasm32-unknown-unknown";
/// The rustup name of the distribution's Rust.
const DEBIAN: &str = "debian-web";
const DEBIAN_LIB: &str = "/usr/lib/rustlib/wasm32-unknown-unknown/lib";
const STAMP: &str = "amends-std.stamp";

/// Which rustup toolchain builds the browser half: none for the default one.
pub fn toolchain(project: &Project) -> Result<Option<&'static str>> {
    if has_std(&sysroot(project)?) {
        return Ok(None);
    }
    if debian_std_is_current() {
        return Ok(Some(DEBIAN));
    }
    bail!("no Rust here builds {TARGET}: run `make run` once, or `cargo xtask provision`")
}

/// The packages still needed where only the distribution's Rust can build the target, so that one installation gets all.
pub fn missing_packages(project: &Project) -> Result<Vec<&'static str>> {
    let only_distribution = !may_download() && process::find("apt-get").is_some();
    Ok(if only_distribution && !has_std(&sysroot(project)?) {
        apt::missing(apt::DEBIAN_RUST)
    } else {
        Vec::new()
    })
}

/// Makes sure that some Rust builds the target.
pub fn provision(project: &Project) -> Result<()> {
    if has_std(&sysroot(project)?) {
        return Ok(());
    }
    if may_download() {
        say("adding the wasm target to Rust");
        let mut rustup = rustup();
        if process::run(rustup.args(["target", "add", TARGET])).is_ok() {
            return Ok(());
        }
        say("rustup could not; trying the distribution's Rust");
    }
    debian(project)
}

/// The compiler's version line, part of what decides whether built assets are current.
pub fn version(project: &Project) -> Result<String> {
    match toolchain(project)? {
        None => process::capture(rustc(project).arg("--version")),
        Some(_) => process::capture(Command::new("/usr/bin/rustc").arg("--version")),
    }
}

fn may_download() -> bool {
    process::find("rustup").is_some() && env::var_os("RUSTUP_AUTO_INSTALL").is_none_or(|value| value != "0")
}

fn rustc(project: &Project) -> Command {
    let mut command = Command::new("rustc");
    strip_outer_cargo(&mut command);
    command.current_dir(project.root());
    command
}

fn rustup() -> Command {
    let mut command = Command::new("rustup");
    strip_outer_cargo(&mut command);
    command
}

fn sysroot(project: &Project) -> Result<PathBuf> {
    process::capture(rustc(project).args(["--print", "sysroot"])).map(PathBuf::from)
}

fn has_std(sysroot: &Path) -> bool {
    // The distribution's folder also needs its stamp: a newer compiler cannot read an older standard library.
    if sysroot == Path::new("/usr") {
        return debian_std_is_current();
    }
    let lib = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    fs::read_dir(lib).is_ok_and(|files| {
        files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
    })
}

fn debian_std_is_current() -> bool {
    let version = process::capture(Command::new("/usr/bin/rustc").arg("--version")).ok();
    let stamp = fs::read_to_string(Path::new(DEBIAN_LIB).join(STAMP)).ok();
    version.is_some() && version == stamp.map(|text| text.trim().to_owned())
}

fn debian(project: &Project) -> Result<()> {
    if process::find("apt-get").is_none() {
        bail!(
            "Rust's {TARGET} target is missing: run `rustup target add {TARGET}` where downloads are allowed"
        );
    }
    apt::install(&apt::missing(apt::DEBIAN_RUST))?;
    if !debian_std_is_current() {
        build_std(project)?;
    }
    if process::find("rustup").is_some() {
        process::capture(rustup().args(["toolchain", "link", DEBIAN, "/usr"]))
            .context("cannot link the distribution's Rust")?;
    }
    Ok(())
}

/// Builds the standard library once with the compiler it must match, then installs it beside that compiler.
fn build_std(project: &Project) -> Result<()> {
    say("building Rust's standard library for wasm (half a minute)");
    let folder = project.target().join("wasm-std");
    fs::create_dir_all(folder.join("src"))?;
    fs::write(folder.join("Cargo.toml"), "[package]\nname = \"empty\"\nedition = \"2021\"\n[workspace]\n")?;
    fs::write(folder.join("src/lib.rs"), "")?;
    let mut cargo = Command::new("/usr/bin/cargo");
    strip_outer_cargo(&mut cargo);
    cargo.current_dir(&folder).env_remove("CARGO_TARGET_DIR");
    cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1");
    cargo.env("RUSTFLAGS", "-Cembed-bitcode=yes -Cdebuginfo=0");
    process::run(cargo.args(["build", "--release", "-Zbuild-std=std,panic_abort,test", "--target", TARGET]))?;
    install_std(&folder.join("target").join(TARGET).join("release/deps"))?;
    fs::remove_dir_all(&folder).context("cannot remove the scratch crate")
}

fn install_std(built: &Path) -> Result<()> {
    process::run(privileged("rm")?.args(["-rf", DEBIAN_LIB]))?;
    process::run(privileged("mkdir")?.args(["-p", DEBIAN_LIB]))?;
    process::run(privileged("cp")?.args(rlibs(built)?).arg(DEBIAN_LIB))?;
    let stamp = built.join(STAMP);
    fs::write(&stamp, process::capture(Command::new("/usr/bin/rustc").arg("--version"))?)?;
    process::run(privileged("cp")?.arg(stamp).arg(DEBIAN_LIB))
}

fn rlibs(built: &Path) -> Result<Vec<PathBuf>> {
    let files = fs::read_dir(built).with_context(|| format!("cannot read {}", built.display()))?;
    let wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(".rlib") && !name.starts_with("libempty")
    };
    Ok(files.flatten().map(|file| file.path()).filter(wanted).collect())
}
