//! Checks that make no sense as written say what to write.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use sources::SourceConfig;

/// Everything wrong with a source that has this check, as one text.
fn problems(check: &str) -> String {
    let text = format!(
        "name = \"orders\"\nurl = \"sqlite://a.db\"\n[[biz]]\ntype = \"ORDER\"\n[biz.reverse_check]\n{check}\n"
    );
    match toml::from_str::<SourceConfig>(&text) {
        Err(error) => error.message().to_owned(),
        Ok(config) => config.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

fn http(more: &str) -> String {
    format!("[biz.reverse_check.http]\nurl = \"http://h/q/{{biz_no}}\"\n{more}")
}

#[test]
fn a_check_that_makes_no_sense_says_what_to_write() {
    const FOUND: &str = "found = { when = { \"/state\" = \"PAID\" } }\n";
    for (check, said) in [
        ("".to_owned(), "a check needs sql"),
        (format!("sql = \"SELECT 1\"\n{}", http(FOUND)), "by sql or by http"),
        ("sql = \"SELECT 1\"\nurl = \"sqlite://b.db\"\nshards = { url = \"sqlite://c.db\" }".into(), "not both"),
        ("sql = \"SELECT 1\"\nroute = { last = 6 }".into(), "are for shards"),
        ("sql = \"SELECT 1\"\ntimeout = \"1s\"".into(), "statement_timeout"),
        ("sql = \"SELECT 1 FROM {table}\"".into(), "stands for a table of shards"),
        ("sql = \"SELECT 1 FROM t\"\nshards = { url = \"sqlite://c.db\", table = \"t_{0..3}\" }".into(), "FROM {table}"),
        ("sql = \"SELECT 1 FROM {table}\"\nshards = { url = \"sqlite://c.db\", table = \"t_{3..0}\" }".into(), "counts up"),
        ("sql = \"SELECT 1 FROM {table}\"\nshards = { url = \"sqlite://c.db\", table = \"t_{0..3}\" }\nroute = { modulo = 5 }".into(), "more than the 4 shards"),
        ("sql = \"SELECT 1 FROM {table}\"\nshards = { url = \"sqlite://c.db\", table = \"t_{0..3}\" }\nroute = { sql = \"DELETE FROM t\" }".into(), "one SELECT"),
        ("sql = \"SELECT 1 FROM {table}\"\nshards = { url = \"sqlite://c.db\", table = \"t_{0..3}\" }\nconcurrency = 0".into(), "between 1 and 64"),
        ("sql = \"SELECT :biz_no\"\nparams = { key = \"trim\" }".into(), "params names key, which the check does not use"),
        ("sql = \"SELECT :biz_no\"\nparams = { biz_no = [\"integer\", \"trim\"] }".into(), "last step"),
        (http(""), "http needs found"),
        (http("found = { status = [200] }"), "any gateway can answer"),
        (http(&format!("{FOUND}absent = {{ status = 404 }}")), "any gateway can answer"),
        (http(&format!("{FOUND}absent = {{ status = 503, any_body = true }}")), "an answer 503 proves nothing"),
        (http(&format!("{FOUND}absent = {{ status = 302, any_body = true }}")), "an answer 302 proves nothing"),
        (format!("compare = {{ amount = \"/amount\" }}\n{}", http(FOUND)), "http.row has no amount"),
        (format!("rows = 2\n{}", http(FOUND)), "rows belongs to sql"),
        (http(&format!("{FOUND}headers = {{ X = \"{{order_no}}\" }}")), "{order_no} has no value there"),
        (http(&format!("{FOUND}headers = {{ X = \"{{signature}}\" }}")), "{signature} needs sign"),
        (http(&format!("{FOUND}body = '{{\"s\":\"{{signature}}\"}}'\nsign = {{ secret = \"x\", template = \"{{body}}\" }}")), "only when it does not cover"),
        (http(FOUND).replace("http://h", "ftp://h"), "http.url is no http address"),
    ] {
        let found = problems(&check);
        assert!(found.contains(said), "{check}\n→ {found}");
    }
}

#[test]
fn a_check_that_makes_sense_is_taken() {
    for check in [
        "sql = \"SELECT a FROM t WHERE n = :biz_no\"\nparams = { biz_no = [\"trim\", \"lower\"] }".to_owned(),
        "sql = \"SELECT a FROM {table} JOIN i_{n} USING (a) WHERE n = :biz_no\"\nshards = { url = \"mysql://h/d\", table = \"t_{00..15}\" }".into(),
        "sql = \"SELECT a FROM t WHERE n = :biz_no\"\nshards = [{ url = \"mysql://h/d0\" }, { url = \"mysql://h/d1\" }]".into(),
        http("found = { status = 200, any_body = true }\nabsent = [{ status = [404, 410], any_body = true }, { when = { \"/a\" = { null = true } } }]"),
        http("found = { when = { \"/a\" = 1 } }\nheaders = { X = \"{signature}\", Y = \"{column.tenant}{id}{timestamp_ms}\" }\nsign = { secret = \"eA==\", secret_encoding = \"base64\", template = \"{biz_no}{body_sha256}\" }"),
    ] {
        assert_eq!(problems(&check), "", "{check}");
    }
}
