//! Request, response and cached value: masked unless this one page was asked to reveal them by somebody who may.

use super::cache;
use crate::components::body_view::BodyView;
use crate::components::icon::Icon;
use crate::context::Visit;
use crate::format;
use crate::pages::record_row::denied;
use crate::words;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::record::{Body, RecordDetail};
use domain::roles::{Actor, Permission};
use domain::services::records::RecordView;
use domain::{json, redact};
use leptos::prelude::*;
use std::fmt::Write;

/// The largest body that travels inside the page as a download; browsers refuse longer addresses.
const DOWNLOAD_BYTES: usize = 1024 * 1024;
/// Bytes of a binary body that are shown.
const HEX_BYTES: usize = 1024;
const HEX_LINE: usize = 16;

/// How bodies are shown on this page.
#[derive(Clone, Copy)]
struct Showing<'a> {
    visit: &'a Visit,
    actor: &'a Actor,
    detail: &'a RecordDetail,
    revealed: bool,
}

/// `revealed` is the service's answer when revealing was asked for; its refusal is said and the bodies stay masked.
pub fn panels(
    visit: &Visit,
    actor: &Actor,
    view: &RecordView,
    revealed: Option<domain::Result<RecordDetail>>,
) -> AnyView {
    let masked = &view.detail;
    let t = &visit.texts().record;
    let (detail, refusal) = match &revealed {
        Some(Ok(detail)) => (detail, None),
        Some(Err(error)) => (masked, Some(t.reveal_failed(words::error(visit.locale(), error)))),
        None => (masked, None),
    };
    let refusal = refusal
        .map(|text| view! { <p class="note bad" role="alert">{Icon::Warning.view()}<span>{text}</span></p> });
    let showing = Showing { visit, actor, detail, revealed: matches!(revealed, Some(Ok(_))) };
    let cached = cache::value(view).map(|value| {
        let body = Body::Stored(value.to_vec());
        let title = visit.texts().cache.value;
        view! { <div id="cache">{panel(showing, "cache-value", title, &body, "cache")}</div> }
    });
    view! {
        {refusal}
        <div id="request">{panel(showing, "request-body", t.request, &detail.request, "request")}</div>
        <div id="response">{panel(showing, "response-body", t.response, &detail.response, "response")}</div>
        {cached}
    }
    .into_any()
}

/// How a decoded body came about, and where it was cut off.
fn notes(visit: &Visit, body: &Body) -> Vec<String> {
    let Body::Decoded(decoded) = body else { return Vec::new() };
    let t = &visit.texts().body;
    let how = (!decoded.how.is_empty()).then(|| t.decoded(&decoded.how));
    let cut = decoded.truncated_at.map(|size| t.cut_off(format::bytes(visit.locale(), size)));
    how.into_iter().chain(cut).collect()
}

fn panel(
    showing: Showing<'_>,
    id: &'static str,
    title: &'static str,
    body: &Body,
    file: &'static str,
) -> AnyView {
    let visit = showing.visit;
    let t = &visit.texts().record;
    let bytes = body.bytes().unwrap_or_default();
    let text = body.readable().and_then(|bytes| text(bytes, showing.revealed));
    let missing = match body {
        Body::Stored(_) | Body::Decoded(_) => Some(hidden(visit, bytes)),
        Body::Empty => None,
        Body::NotStored => Some(t.not_kept.to_owned()),
        Body::Unreadable(reason) => Some(t.undecodable(reason)),
    };
    let reveals = body.readable().is_some() && !showing.revealed;
    let downloads = body.bytes().is_some() && showing.revealed;
    let download = if downloads { download(bytes, file) } else { None };
    let too_large = (downloads && download.is_none()).then(|| {
        let limit = format::bytes(visit.locale(), DOWNLOAD_BYTES as u64);
        view! { <small>{t.too_large(limit)}</small> }.into_any()
    });
    BodyView {
        id,
        title: title.to_owned(),
        text,
        size: bytes.len() as u64,
        notes: notes(visit, body),
        masked: !showing.revealed,
        reveal: if reveals { Some(reveal(showing)) } else { too_large },
        download,
        missing,
    }
    .view(visit)
}

/// What may be shown as text; `None` hides the whole.
fn text(bytes: &[u8], revealed: bool) -> Option<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) if revealed => Some(text.to_owned()),
        Ok(text) => redact::masked(text),
        Err(_) => revealed.then(|| hex(bytes)),
    }
}

fn hidden(visit: &Visit, bytes: &[u8]) -> String {
    let t = &visit.texts().record;
    let size = format::bytes(visit.locale(), bytes.len() as u64);
    if std::str::from_utf8(bytes).is_ok() { t.hidden_text(size) } else { t.hidden_bytes(size) }
}

/// The beginning of a binary body: offset and bytes, sixteen a line.
fn hex(bytes: &[u8]) -> String {
    let mut dump = String::new();
    for (index, line) in bytes[..bytes.len().min(HEX_BYTES)].chunks(HEX_LINE).enumerate() {
        let _ = write!(dump, "{:06x} ", index * HEX_LINE);
        for byte in line {
            let _ = write!(dump, " {byte:02x}");
        }
        dump.push('\n');
    }
    if bytes.len() > HEX_BYTES {
        dump.push('…');
    }
    dump
}

/// The exact bytes inside the page, so that what was revealed and audited is what is saved.
fn download(bytes: &[u8], file: &str) -> Option<(String, String)> {
    (bytes.len() <= DOWNLOAD_BYTES).then(|| {
        let address = format!("data:application/octet-stream;base64,{}", STANDARD.encode(bytes));
        let is_json = std::str::from_utf8(bytes).is_ok_and(|text| json::parse(text).is_some());
        let extension = if is_json { "json" } else { "bin" };
        (address, format!("{file}.{extension}"))
    })
}

fn reveal(showing: Showing<'_>) -> AnyView {
    let Showing { visit, actor, detail, .. } = showing;
    let label = visit.texts().body.reveal;
    if !actor.role.may(Permission::RevealBodies) {
        let t = visit.texts();
        let needs = t.record.reveal_needs(words::role(t, Permission::RevealBodies.least_role()));
        let button = denied(visit, actor, Permission::RevealBodies, label, "btn sm");
        return view! { <small>{needs}</small>{button} }.into_any();
    }
    view! {
        <form method="post" action=visit.href("/api/fn/reveal")>
            <input type="hidden" name="id" value=detail.row.id.to_string()/>
            <button class="btn sm" type="submit">{label}</button>
        </form>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c70_revealed_bytes_come_out_exactly() {
        let bytes = br#"{"orderId":4634343214213523454,"amt":0.10,"e":1E400}"#;
        let (address, name) = download(bytes, "request").unwrap();
        let encoded = address.strip_prefix("data:application/octet-stream;base64,").unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), bytes);
        assert_eq!(name, "request.json");
        assert!(download(&vec![0; DOWNLOAD_BYTES + 1], "request").is_none());
    }

    #[test]
    fn masked_is_the_rule_and_what_cannot_be_masked_is_hidden() {
        let body = br#"{"card":"6222021234567894","amount":128.00}"#;
        let shown = text(body, false).unwrap();
        assert!(shown.contains("128.00") && !shown.contains("6222021234567894"), "{shown}");
        assert_eq!(text(b"free text with 13800138000", false), None);
        assert_eq!(text(b"\xff\x00secret", false), None);
    }

    #[test]
    fn c71_binary_bodies_show_as_hex() {
        assert_eq!(text(b"\xff\x00A", true).unwrap(), "000000  ff 00 41\n");
        assert!(text(&vec![0xff; 5_000], true).unwrap().ends_with('…'));
    }
}
