//! One question to a query endpoint: built from the record, sent once, to the configured place only.

use super::Opener;
use super::answer::{Answered, judged};
use super::sign::{Signer, sha256_hex};
use super::sql::Question;
use super::subject::lacks;
use crate::config::{HttpCheck, Steps};
use crate::judge::Outcome;
use crate::named::Param;
use crate::replay::Bucket;
use crate::template::{Escape, Template};
use chrono::{DateTime, Utc};
use domain::clock::Clock;
use domain::evidence::Reason;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Longer answers are no answers to such a question.
const LONGEST_ANSWER: usize = 64 * 1024;

/// A query endpoint, ready to be asked.
pub(super) struct Endpoint {
    config: HttpCheck,
    form: Form,
    client: Client,
    clock: Arc<dyn Clock>,
    bucket: Mutex<Bucket>,
    /// Makes every nonce another.
    asked: AtomicU64,
}

/// The request with its placeholders.
struct Form {
    method: Method,
    url: Template,
    /// The address with a harmless value in every place.
    sample: Url,
    shown: String,
    headers: Vec<(HeaderName, Template)>,
    body: Option<Template>,
    content_type: HeaderValue,
    signer: Option<Signer>,
}

/// The values of one question by placeholder.
struct Values(HashMap<String, String>);

/// A request as it is sent.
struct Prepared {
    url: Url,
    headers: HeaderMap,
    body: Option<String>,
}

impl Endpoint {
    pub(super) fn verify(config: &HttpCheck) -> Result<(), String> {
        Form::new(config).map(drop)
    }

    /// Every parameter its templates take from the record.
    pub(super) fn params(config: &HttpCheck) -> Vec<Param> {
        Form::new(config).map(|form| form.params()).unwrap_or_default()
    }

    pub(super) fn new(config: &HttpCheck, opener: &Opener<'_>) -> Result<Self, String> {
        Ok(Self {
            form: Form::new(config)?,
            client: opener.client.clone(),
            bucket: Mutex::new(Bucket::full(config.rate, opener.clock.now())),
            clock: Arc::clone(&opener.clock),
            asked: AtomicU64::new(0),
            config: config.clone(),
        })
    }

    /// Scheme, host and port: a path may hold a key.
    pub(super) fn shown(&self) -> &str {
        &self.form.shown
    }

    /// What the answer is compared by.
    pub(super) fn columns(&self) -> Vec<String> {
        self.config.row.keys().cloned().collect()
    }

    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Outcome, Reason> {
        let now = self.clock.now();
        let values = self.values(question, now)?;
        let prepared = self.form.prepared(values).map_err(|message| self.failed(question, message))?;
        if !self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(now) {
            let rate = self.config.rate.to_string();
            return Err(Reason::Throttled { check: question.label.to_owned(), rate });
        }
        let secrets = secrets(&prepared.headers);
        let answered = self.send(question, prepared).await?;
        Ok(judged(&self.config, question, &answered, self.shown(), &secrets))
    }

    /// Everything that the placeholders stand for.
    fn values(&self, question: &Question<'_>, now: DateTime<Utc>) -> Result<Values, Reason> {
        let mut values = HashMap::new();
        let plain = Steps::default();
        for param in self.form.params() {
            let value = question.subject.value(&param).ok_or_else(|| lacks(&param))?;
            let steps = question.check.params.get(&param).unwrap_or(&plain);
            if steps.bound(&value).is_none() {
                let check = question.label.to_owned();
                return Err(Reason::NotANumber { check, param: param.to_string() });
            }
            values.insert(param.to_string(), steps.written(&value));
        }
        let count = self.asked.fetch_add(1, Ordering::Relaxed);
        let at = now.timestamp_nanos_opt().unwrap_or_default();
        let nonce = sha256_hex(format!("{at}.{count}.{values:?}").as_bytes());
        values.insert("nonce".into(), nonce[..32].to_owned());
        values.insert("timestamp".into(), now.timestamp().to_string());
        values.insert("timestamp_ms".into(), now.timestamp_millis().to_string());
        Ok(Values(values))
    }

    async fn send(&self, question: &Question<'_>, prepared: Prepared) -> Result<Answered, Reason> {
        let Prepared { url, headers, body } = prepared;
        let mut request = self.client.request(self.form.method.clone(), url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let sent = request.timeout(self.config.timeout).send().await;
        let response = sent.map_err(|error| self.trouble(question, &error))?;
        let status = response.status().as_u16();
        let is_form = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        match read(response).await {
            Ok(Some(body)) => Ok(Answered { status, body, is_form }),
            Ok(None) => {
                Err(self.failed(question, format!("the answer is longer than {LONGEST_ANSWER} bytes")))
            }
            Err(error) => Err(self.trouble(question, &error)),
        }
    }

    fn trouble(&self, question: &Question<'_>, error: &reqwest::Error) -> Reason {
        let shown = self.shown();
        if error.is_timeout() {
            return Reason::TimedOut { check: question.label.to_owned() };
        }
        let message = if error.is_connect() {
            format!("{shown} cannot be reached")
        } else {
            format!("the connection to {shown} was lost")
        };
        self.failed(question, message)
    }

    fn failed(&self, question: &Question<'_>, message: String) -> Reason {
        Reason::EndpointDown { check: question.label.to_owned(), message }
    }
}

impl Form {
    fn new(config: &HttpCheck) -> Result<Self, String> {
        let url = Template::parse_as(config.url.expose(), Escape::Url);
        let wrong =
            "http.url is no http address; write it whole, like \"https://pay.example.com/orders/{biz_no}\"";
        let sample = url.render(|_| Some("0".to_owned())).ok().and_then(|text| Url::parse(&text).ok());
        let sample = sample.filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
        let sample = sample.ok_or(wrong)?;
        let header = |(name, value): (&String, &crate::config::Secret)| {
            let parsed = name.parse().map_err(|_| format!("http.headers: {name:?} is no header name"))?;
            Ok::<_, String>((parsed, Template::parse_as(value.expose(), Escape::Nothing)))
        };
        let form = Self {
            method: Method::from_bytes(config.method.as_bytes())
                .map_err(|_| "http.method is no HTTP method; write GET, POST or the like")?,
            shown: sample.origin().ascii_serialization(),
            url,
            sample,
            headers: config.headers.iter().map(header).collect::<Result<_, _>>()?,
            body: config
                .body
                .as_ref()
                .map(|body| Template::parse_as(body.expose(), escape_of(&config.content_type))),
            content_type: config.content_type.parse().map_err(
                |_| "http.content_type is no header value; write \"application/json\" or the like",
            )?,
            signer: config.sign.as_ref().map(Signer::new).transpose()?,
        };
        form.verified()
    }

    /// Every placeholder must have a value when it is rendered.
    fn verified(self) -> Result<Self, String> {
        let signs_request = self.signer.as_ref().is_some_and(Signer::covers_request);
        for (template, place) in self.templates() {
            for name in template.names().filter(|name| Param::try_from((*name).to_owned()).is_err()) {
                let known = match name {
                    "timestamp" | "timestamp_ms" | "nonce" => true,
                    "signature" => match place {
                        "headers" => self.signer.is_some(),
                        "url" | "body" => self.signer.is_some() && !signs_request,
                        _ => false,
                    },
                    "method" | "url" | "host" | "path" | "body" | "body_sha256" => place == "sign.template",
                    _ => false,
                };
                if !known {
                    return Err(format!(
                        "http.{place}: {{{name}}} has no value there; write {{biz_no}}, {{key}}, {{biz_type}}, {{id}}, {{column.user_id}}, {{/pointer}}, {{timestamp}}, {{timestamp_ms}} or {{nonce}}; {{signature}} needs sign, and stands in the url and the body only when it does not cover them"
                    ));
                }
            }
        }
        Ok(self)
    }

    fn templates(&self) -> impl Iterator<Item = (&Template, &'static str)> {
        let headers = self.headers.iter().map(|(_, template)| (template, "headers"));
        let body = self.body.iter().map(|template| (template, "body"));
        let signed = self.signer.iter().map(|signer| (&signer.template, "sign.template"));
        std::iter::once((&self.url, "url")).chain(headers).chain(body).chain(signed)
    }

    fn params(&self) -> Vec<Param> {
        let names = self.templates().flat_map(|(template, _)| template.names());
        let mut params: Vec<Param> = names.filter_map(|name| Param::try_from(name.to_owned()).ok()).collect();
        params.sort();
        params.dedup();
        params
    }

    fn prepared(&self, mut values: Values) -> Result<Prepared, String> {
        values.put("method", self.method.as_str());
        let signs_request = self.signer.as_ref().is_some_and(Signer::covers_request);
        if let Some(signer) = self.signer.as_ref().filter(|_| !signs_request) {
            let signature = signer.signature(&values.render(&signer.template)?);
            values.put("signature", signature);
        }
        let url = self.address(&values)?;
        let body = self.body.as_ref().map(|body| values.render(body)).transpose()?;
        if let Some(signer) = self.signer.as_ref().filter(|_| signs_request) {
            values.put_request(&url, body.as_deref().unwrap_or_default());
            let signature = signer.signature(&values.render(&signer.template)?);
            values.put("signature", signature);
        }
        Ok(Prepared { headers: self.headers(&values)?, url, body })
    }

    /// The address, which leads to the configured host and path whatever the record says.
    fn address(&self, values: &Values) -> Result<Url, String> {
        if let Some(empty) = self.url.names().find(|name| values.0.get(*name).is_some_and(String::is_empty)) {
            return Err(format!("the record's {empty} is empty, and the address needs it"));
        }
        let parsed = Url::parse(&values.render(&self.url)?).ok();
        // Dots that walk through the path leave fewer segments with something in them.
        let segments = |url: &Url| {
            url.path_segments().map_or(0, |all| all.filter(|segment| !segment.is_empty()).count())
        };
        let same = |url: &Url| {
            url.origin() == self.sample.origin()
                && segments(url) == segments(&self.sample)
                && url.fragment().is_some() == self.sample.fragment().is_some()
        };
        parsed.filter(same).ok_or_else(|| "the record's values do not fit into the address".to_owned())
    }

    fn headers(&self, values: &Values) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        if self.body.is_some() {
            headers.insert(CONTENT_TYPE, self.content_type.clone());
        }
        for (name, template) in &self.headers {
            headers.insert(name.clone(), header_value(name, &values.render(template)?)?);
        }
        if let Some(name) = self.signer.as_ref().and_then(|signer| signer.header.as_ref()) {
            let signature = values.0.get("signature").map(String::as_str).unwrap_or_default();
            headers.insert(name.clone(), header_value(name, signature)?);
        }
        Ok(headers)
    }
}

impl Values {
    fn put(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn put_request(&mut self, url: &Url, body: &str) {
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        self.put("url", url.as_str());
        self.put("host", url.authority().rsplit('@').next().unwrap_or_default());
        self.put("path", path);
        self.put("body", body);
        self.put("body_sha256", sha256_hex(body.as_bytes()));
    }

    fn render(&self, template: &Template) -> Result<String, String> {
        template.render(|name| self.0.get(name).cloned())
    }
}

fn escape_of(content_type: &str) -> Escape {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/x-www-form-urlencoded" => Escape::Url,
        json if json.ends_with("json") => Escape::Json,
        xml if xml.ends_with("xml") => Escape::Xml,
        _ => Escape::Nothing,
    }
}

fn header_value(name: &HeaderName, value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| format!("the value of header {name} cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// What an answer must not give back to the eye: everything sent in headers.
fn secrets(headers: &HeaderMap) -> Vec<String> {
    let values =
        headers.iter().filter(|(name, _)| *name != CONTENT_TYPE).filter_map(|(_, value)| value.to_str().ok());
    values.flat_map(str::split_whitespace).filter(|word| word.len() >= 6).map(str::to_owned).collect()
}

/// `None` when the answer is too long.
async fn read(mut response: Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}
