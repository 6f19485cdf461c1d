//! Puts the browser assets into the binary: writes a table of `include_bytes!` for what the site folder holds.
//! Without the folder (a plain `cargo check` or `cargo test`) the table is empty and everything still compiles.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let site = site();
    println!("cargo::rerun-if-env-changed=AMENDS_SITE");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    // A watched path that does not exist would make cargo rebuild the server every time.
    fs::create_dir_all(&site)?;
    println!("cargo::rerun-if-changed={}", site.display());
    let manifest = fs::read_to_string(site.join("manifest")).unwrap_or_default();
    let roles: BTreeMap<&str, &str> = manifest.lines().filter_map(|line| line.split_once('=')).collect();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let copies = out.join("site");
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir(&copies)?;
    fs::write(out.join("assets.rs"), table(&site, &copies, &roles)?)?;
    Ok(())
}

fn site() -> PathBuf {
    if let Some(folder) = env::var_os("AMENDS_SITE") {
        return folder.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    target.join("front/site")
}

fn table(
    site: &Path,
    out: &Path,
    roles: &BTreeMap<&str, &str>,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut code = String::from("static ASSETS: &[Asset] = &[\n");
    for (role, name) in roles {
        let plain = embed(site, out, name)?
            .ok_or_else(|| format!("{name} is in the manifest and not in the folder"))?;
        let brotli = optional(embed(site, out, &format!("{name}.br"))?);
        let gzip = optional(embed(site, out, &format!("{name}.gz"))?);
        writeln!(
            code,
            "    Asset {{ role: {role:?}, name: {name:?}, plain: {plain}, brotli: {brotli}, gzip: {gzip} }},"
        )?;
    }
    code.push_str("];\n");
    Ok(code)
}

/// Copies a file first: the site folder may be replaced before the compiler comes to read it.
fn embed(site: &Path, out: &Path, name: &str) -> std::io::Result<Option<String>> {
    let (from, to) = (site.join(name), out.join(name));
    if !from.exists() {
        return Ok(None);
    }
    fs::copy(from, &to)?;
    Ok(Some(format!("include_bytes!({:?})", to.display().to_string())))
}

fn optional(bytes: Option<String>) -> String {
    bytes.map_or_else(|| "None".to_owned(), |bytes| format!("Some({bytes})"))
}
