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
    let out = PathBuf::from(env::var("OUT_DIR")?).join("assets.rs");
    fs::write(out, table(&site, &roles)?)?;
    Ok(())
}

fn site() -> PathBuf {
    if let Some(folder) = env::var_os("AMENDS_SITE") {
        return folder.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder));
    target.join("front/site")
}

fn table(site: &Path, roles: &BTreeMap<&str, &str>) -> Result<String, std::fmt::Error> {
    let mut code = String::from("static ASSETS: &[Asset] = &[\n");
    for (role, name) in roles {
        let file = site.join(name);
        writeln!(
            code,
            "    Asset {{ role: {role:?}, name: {name:?}, plain: {}, brotli: {}, gzip: {} }},",
            bytes(&file),
            optional(&site.join(format!("{name}.br"))),
            optional(&site.join(format!("{name}.gz"))),
        )?;
    }
    code.push_str("];\n");
    Ok(code)
}

fn optional(file: &Path) -> String {
    if file.exists() { format!("Some({})", bytes(file)) } else { "None".to_owned() }
}

fn bytes(file: &Path) -> String {
    format!("include_bytes!({:?})", file.display().to_string())
}
