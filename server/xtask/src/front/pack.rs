//! Writes the assets under content-hashed names, each also compressed as far as it goes.

use super::{Mode, ignore_absent};
use crate::project::Project;
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// What the manifest inside the site folder is called: one `role=file name` a line.
pub const MANIFEST: &str = "manifest";

/// The bytes of each asset.
pub struct Parts {
    pub js: Vec<u8>,
    pub wasm: Vec<u8>,
    pub css: Vec<u8>,
    pub icon: Vec<u8>,
}

/// Replaces the site folder as a whole, so that no stale file is ever embedded.
pub fn write(project: &Project, mode: Mode, parts: Parts) -> Result<()> {
    let fresh = project.front().join("site.new");
    fs::remove_dir_all(&fresh).or_else(ignore_absent)?;
    fs::create_dir_all(&fresh)?;
    let mut manifest = String::new();
    for (role, stem, extension, bytes) in [
        ("js", "amends", "js", &parts.js),
        ("wasm", "amends", "wasm", &parts.wasm),
        ("css", "main", "css", &parts.css),
        ("icon", "favicon", "svg", &parts.icon),
    ] {
        let name = format!("{stem}.{}.{extension}", &hex::encode(Sha256::digest(bytes))[..16]);
        asset(&fresh, &name, bytes, mode)?;
        writeln!(manifest, "{role}={name}")?;
    }
    fs::write(fresh.join(MANIFEST), manifest)?;
    let site = project.site();
    fs::remove_dir_all(&site).or_else(ignore_absent)?;
    fs::rename(&fresh, &site).with_context(|| format!("cannot put {} in place", site.display()))
}

fn asset(folder: &Path, name: &str, bytes: &[u8], mode: Mode) -> Result<()> {
    fs::write(folder.join(name), bytes)?;
    if mode == Mode::Release {
        fs::write(folder.join(format!("{name}.br")), brotli(bytes)?)?;
        fs::write(folder.join(format!("{name}.gz")), gzip(bytes)?)?;
    }
    Ok(())
}

fn brotli(bytes: &[u8]) -> Result<Vec<u8>> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: 11,
        lgwin: 22,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut packed, &params).context("brotli failed")?;
    Ok(packed)
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish().context("gzip failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_assets_unpack_to_the_same_bytes() {
        let bytes = "the same bytes, ".repeat(500).into_bytes();
        let mut unpacked = Vec::new();
        brotli::BrotliDecompress(&mut brotli(&bytes).unwrap().as_slice(), &mut unpacked).unwrap();
        assert_eq!(unpacked, bytes);
        let mut decoder = flate2::write::GzDecoder::new(Vec::new());
        decoder.write_all(&gzip(&bytes).unwrap()).unwrap();
        assert_eq!(decoder.finish().unwrap(), bytes);
    }
}
