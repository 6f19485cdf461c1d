//! Decoder chains: bounded, and never an error: what cannot be undone is said and shown as bytes.

use crate::config::{Charset, Decoder};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Map, Value};
use std::io::Read;

/// Nobody reads more than this, and no bomb gets further.
const DECODED_MAX: usize = 4 * 1024 * 1024;

/// What a chain came to.
pub(super) struct Chain {
    /// Nothing when the end is not text.
    pub(super) text: Option<String>,
    /// The steps in words, with the one that failed.
    pub(super) how: String,
    /// The decoded length at which reading stopped.
    pub(super) cut_at: Option<u64>,
}

/// Undoes the steps one after the other.
pub(super) fn chain(bytes: &[u8], decoders: &[Decoder], charset: Option<Charset>) -> Chain {
    let mut current = bytes.to_vec();
    let (mut steps, mut cut_at) = (Vec::new(), None);
    for decoder in decoders {
        steps.push(decoder.word());
        let undone = match decoder {
            Decoder::Xml => continue,
            Decoder::Opaque => return Chain { text: None, how: steps.join(", "), cut_at },
            Decoder::Form => Ok((form(&current, charset).into_bytes(), false)),
            decoder => decoder.undo(&current),
        };
        match undone {
            Ok((next, cut)) => {
                cut_at = cut.then_some(next.len() as u64).or(cut_at);
                current = next;
            }
            Err(()) => {
                let how = format!("{}: the stored bytes are not {}", steps.join(", "), decoder.word());
                return Chain { text: None, how, cut_at };
            }
        }
    }
    // A form's texts were decoded field by field.
    let charset = charset.filter(|_| decoders.last() != Some(&Decoder::Form));
    steps.extend(charset.map(|Charset(encoding)| encoding.name()));
    Chain { text: text(current, charset, cut_at.is_some()), how: steps.join(", "), cut_at }
}

fn text(bytes: Vec<u8>, charset: Option<Charset>, cut: bool) -> Option<String> {
    match charset {
        Some(Charset(encoding)) => {
            let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes);
            text.map(std::borrow::Cow::into_owned)
        }
        None => match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            // A cut may fall into the middle of a character.
            Err(error) if cut && error.utf8_error().error_len().is_none() => {
                let end = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(end);
                String::from_utf8(bytes).ok()
            }
            Err(_) => None,
        },
    }
}

impl Decoder {
    fn word(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Form => "form",
            Self::Xml => "xml",
            Self::Opaque => "opaque",
        }
    }

    /// The bytes behind one step, and whether they were cut off.
    fn undo(self, bytes: &[u8]) -> Result<(Vec<u8>, bool), ()> {
        match self {
            Self::Gzip => bounded(GzDecoder::new(bytes)),
            Self::Zlib => bounded(ZlibDecoder::new(bytes)),
            Self::Deflate => bounded(DeflateDecoder::new(bytes)),
            Self::Zstd => bounded(StreamingDecoder::new(bytes).map_err(drop)?),
            Self::Base64 => base64(bytes).map(|bytes| (bytes, false)),
            Self::Hex => {
                let digits = plain(bytes);
                let digits = digits.strip_prefix(b"0x").or(digits.strip_prefix(b"\\x")).unwrap_or(&digits);
                hex::decode(digits).map(|bytes| (bytes, false)).map_err(drop)
            }
            Self::Form | Self::Xml | Self::Opaque => Ok((bytes.to_vec(), false)),
        }
    }
}

fn bounded(reader: impl Read) -> Result<(Vec<u8>, bool), ()> {
    let mut out = Vec::new();
    reader.take(DECODED_MAX as u64 + 1).read_to_end(&mut out).map_err(drop)?;
    let cut = out.len() > DECODED_MAX;
    out.truncate(DECODED_MAX);
    Ok((out, cut))
}

/// Standard or URL alphabet, padded or not, with line breaks.
fn base64(bytes: &[u8]) -> Result<Vec<u8>, ()> {
    let plain = plain(bytes);
    [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD]
        .into_iter()
        .find_map(|engine| engine.decode(&plain).ok())
        .ok_or(())
}

fn plain(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// A form as a JSON object; a name that comes again makes a list.
fn form(bytes: &[u8], charset: Option<Charset>) -> String {
    let mut fields: Map<String, Value> = Map::new();
    for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let mut half = || {
            let bytes = unescaped(halves.next().unwrap_or_default());
            match charset {
                Some(Charset(encoding)) => encoding.decode(&bytes).0.into_owned(),
                None => String::from_utf8_lossy(&bytes).into_owned(),
            }
        };
        let (name, value) = (half(), Value::String(half()));
        match fields.get_mut(&name) {
            None => drop(fields.insert(name, value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(fields).to_string()
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escaped.and_then(|digits| hex::decode(digits).ok()) {
            Some(byte) => {
                out.extend(byte);
                at += 3;
            }
            None => {
                out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    const JSON: &str = r#"{"orderId":4634343214213523454,"名":"值"}"#;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8], decoders: &[Decoder]) -> Option<String> {
        chain(bytes, decoders, None).text
    }

    #[test]
    fn c71_every_decoder_gives_the_text_back() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(JSON.as_bytes()).unwrap();
        let mut zlib = zlib.finish().unwrap();
        zlib.extend(b":1");
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
        deflate.write_all(JSON.as_bytes()).unwrap();
        let zstd =
            ruzstd::encoding::compress_to_vec(JSON.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
        let wrapped = STANDARD.encode(gzip(JSON.as_bytes()));
        for (bytes, decoders) in [
            (gzip(JSON.as_bytes()), vec![Decoder::Gzip]),
            (zlib, vec![Decoder::Zlib]),
            (deflate.finish().unwrap(), vec![Decoder::Deflate]),
            (zstd, vec![Decoder::Zstd]),
            (wrapped.into_bytes(), vec![Decoder::Base64, Decoder::Gzip]),
            (hex::encode(JSON).into_bytes(), vec![Decoder::Hex]),
            (URL_SAFE_NO_PAD.encode(JSON).into_bytes(), vec![Decoder::Base64]),
        ] {
            assert_eq!(read(&bytes, &decoders).as_deref(), Some(JSON), "{decoders:?}");
        }
    }

    #[test]
    fn c71_forms_and_old_character_sets_are_readable() {
        assert_eq!(
            read(b"name=%E5%BC%A0+x&a=1&a=2", &[Decoder::Form]).unwrap(),
            r#"{"name":"张 x","a":["1","2"]}"#
        );
        let gbk = Charset::try_from("gbk".to_owned()).unwrap();
        let (bytes, _, _) = encoding_rs::GBK.encode("支付成功");
        assert_eq!(chain(&bytes, &[], Some(gbk)).text.as_deref(), Some("支付成功"));
        assert_eq!(chain(b"s=%D6%A7", &[Decoder::Form], Some(gbk)).text.as_deref(), Some(r#"{"s":"支"}"#));
    }

    #[test]
    fn what_cannot_be_undone_is_named_and_never_an_error() {
        let failed = chain(b"plain", &[Decoder::Base64, Decoder::Gzip], None);
        assert_eq!((failed.text, failed.how.contains("not base64")), (None, true), "{}", failed.how);
        assert_eq!(read(&[0x08, 0x96, 0x01, 0xff], &[Decoder::Opaque]), None);
        assert_eq!(read(&[0x08, 0x96, 0x01, 0xff], &[]), None);
        for decoder in [Decoder::Gzip, Decoder::Zlib, Decoder::Deflate, Decoder::Zstd, Decoder::Hex] {
            assert_eq!(read(b"\xff\x00\x13", &[decoder]), None, "{decoder:?}");
        }
    }

    #[test]
    fn a_bomb_is_cut_off_and_says_so() {
        let bomb = gzip(&vec![b'a'; DECODED_MAX + 10]);
        let cut = chain(&bomb, &[Decoder::Gzip], None);
        assert_eq!((cut.cut_at, cut.text.unwrap().len()), (Some(DECODED_MAX as u64), DECODED_MAX));
    }
}
