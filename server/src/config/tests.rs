use super::*;
use std::fmt::Write;

fn environment(name: &str) -> Option<String> {
    match name {
        "ORDERS_DB_URL" => Some("postgres://amends:s3cret-pass@db/orders".into()),
        "PLAIN" => Some("s3cret-pass".into()),
        _ => None,
    }
}

fn read(text: &str) -> Result<Config, Vec<Fault>> {
    Config::read(text, Path::new("/etc/amends"), &environment)
}

fn good(text: &str) -> Config {
    match read(text) {
        Ok(config) => config,
        Err(faults) => panic!("{}", ConfigError::new(Path::new("amends.toml"), faults)),
    }
}

#[test]
fn an_almost_empty_file_is_enough() {
    let config = good("store = \"sqlite://amends.db\"");
    assert_eq!(config.listen.to_string(), "127.0.0.1:3000");
    assert_eq!(config.base_path, "/");
    assert_eq!(config.display_zone, Tz::UTC);
    assert_eq!(config.evidence_life, Duration::from_secs(60));
    assert_eq!(config.late_check_after, Duration::from_secs(300));
    assert_eq!((config.session_hours, config.secure_cookies), (12, false));
    assert!(config.sources.is_empty());
}

#[test]
fn values_come_from_the_environment_and_sqlite_paths_start_at_the_file() {
    let config = good(
        r#"
        base_path = "/amends/"
        store = "sqlite://data/amends.db?mode=rwc"
        allowed_origins = ["https://ops.example.com"]
        log = "warn,amends=debug"
        [[source]]
        name = "orders"
        url = "${ORDERS_DB_URL}"
        [[source]]
        name = "promo"
        url = "sqlite:promo.db"
        [[source.biz]]
        type = "COUPON"
        [source.biz.response]
        template = '{"price":"$${not a name"}'
        "#,
    );
    assert_eq!(config.base_path, "/amends");
    assert_eq!(config.store.expose(), "sqlite:///etc/amends/data/amends.db?mode=rwc");
    let [orders, promo] = config.sources.as_slice() else { panic!("two sources") };
    assert_eq!(orders.url.expose(), "postgres://amends:s3cret-pass@db/orders");
    assert_eq!(promo.url.expose(), "sqlite:///etc/amends/promo.db");
    let template = &promo.biz[0].response.as_ref().unwrap().template;
    assert_eq!(template, r#"{"price":"${not a name"}"#);
}

#[test]
fn absolute_and_in_memory_sqlite_urls_stay_as_they_are() {
    for url in ["sqlite:///var/lib/amends.db", "sqlite::memory:", "postgres://db/amends"] {
        assert_eq!(good(&format!("store = {url:?}")).store.expose(), url);
    }
}

#[test]
fn a_configuration_never_shows_its_secrets() {
    let config = good("store = \"${ORDERS_DB_URL}\"\n[[source]]\nname = \"a\"\nurl = \"${ORDERS_DB_URL}\"\n");
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn every_fault_names_line_and_key_and_says_what_to_write() {
    const SOURCE: &str =
        "store = \"sqlite://a.db\"\n[[source]]\nname = \"orders\"\nurl = \"sqlite://o.db\"\n";
    let cases = [
        ("not TOML", "store = \"sqlite://a.db\"\nlisten 127.0.0.1:3000"),
        ("no store", "listen = \"127.0.0.1:3000\""),
        ("store of an unknown kind", "\nstore = \"oracle://scott:s3cret-pass@db\""),
        ("unknown key", "store = \"sqlite://a.db\"\nlisten_on = \"127.0.0.1:3000\""),
        ("address without a port", "store = \"sqlite://a.db\"\nlisten = \"localhost\""),
        ("wrong type", "store = \"sqlite://a.db\"\n\nlisten = 3000"),
        ("base path", "base_path = \"amends\"\nstore = \"sqlite://a.db\""),
        ("zone", "store = \"sqlite://a.db\"\ndisplay_zone = \"Mars/Base\""),
        ("duration", "store = \"sqlite://a.db\"\nevidence_life = \"60\""),
        ("session", "store = \"sqlite://a.db\"\nsession_hours = 0"),
        ("origin", "store = \"sqlite://a.db\"\nallowed_origins = [\"ops.example.com\"]"),
        ("log", "store = \"sqlite://a.db\"\nlog = \"a=b=c\""),
        (
            "missing variable",
            "store = \"sqlite://a.db\"\n[[source]]\nname = \"orders\"\nurl = \"${NO_SUCH}\"",
        ),
        ("broken variable", "store = \"sqlite://${a.db\""),
        ("secret of the wrong type", "store = \"sqlite://a.db\"\nsession_hours = \"${PLAIN}\""),
        ("secret of the wrong form", "store = \"sqlite://a.db\"\ndisplay_zone = \"${PLAIN}\""),
        ("unknown key in a source", &format!("{SOURCE}tabel = \"x\"")),
        (
            "wrong value deep inside",
            &format!("{SOURCE}[[source.biz]]\ntype = \"ORDER\"\nstuck_after = \"soon\""),
        ),
        ("source without a url", "store = \"sqlite://a.db\"\n\n[[source]]\nname = \"orders\""),
        ("source of an unknown kind", &SOURCE.replace("sqlite://o.db", "redis://o")),
        ("name twice", &format!("{SOURCE}[[source]]\nname = \"orders\"\nurl = \"sqlite://p.db\"")),
        (
            "several faults at once",
            &format!(
                "{SOURCE}max_connections = 0\n[[source.biz]]\ntype = \"ORDER\"\n[source.biz.replay]\nurl = \"orders\"\n"
            ),
        ),
    ];
    let mut told = String::new();
    for (what, text) in cases {
        let faults = read(text).expect_err(what);
        let error = ConfigError::new(Path::new("amends.toml"), faults).to_string();
        assert!(!error.contains("s3cret"), "{what}: {error}");
        writeln!(told, "{what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::load(Path::new("/no/such/amends.toml")).expect_err("no file").to_string();
    assert!(error.starts_with("/no/such/amends.toml: cannot be read: "), "{error}");
}
