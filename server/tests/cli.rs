//! The binary from outside: what it prints, and the exit codes that scripts rely on.

#![expect(clippy::unwrap_used, reason = "a test stops where something unexpected comes")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// 0 good, 1 found a problem, 2 could not run.
const GOOD: i32 = 0;
const PROBLEM: i32 = 1;
const COULD_NOT_RUN: i32 = 2;

struct Cli {
    folder: TempDir,
}

impl Cli {
    /// A folder with a configuration.
    fn with(sources: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("store = \"sqlite://data/amends.db\"\n{sources}");
        std::fs::write(folder.path().join("amends.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amends"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("AMENDS_DEMO_PASSWORD")
            .env_remove("RUST_LOG");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that refuses its arguments reads no input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Ran::of(child.wait_with_output().unwrap())
    }
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "out: {}\nerr: {}", self.out, self.err);
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(
            self.out.contains(text) || self.err.contains(text),
            "{text:?} is not in {}{}",
            self.out,
            self.err
        );
        self
    }
}

#[test]
fn help_is_everywhere_and_nonsense_could_not_run() {
    let cli = Cli::with("");
    for command in [
        &["--help"][..],
        &["demo", "--help"],
        &["serve", "--help"],
        &["check", "--help"],
        &["migrate", "--help"],
        &["user", "add", "--help"],
        &["user", "list", "--help"],
        &["token", "create", "--help"],
        &["audit", "verify", "--help"],
    ] {
        cli.run(command).ends(GOOD).says("Example");
    }
    cli.run(&["no-such-command"]).ends(COULD_NOT_RUN);
    cli.run(&["serve"]).ends(COULD_NOT_RUN).says("--config");
}

#[test]
fn a_wrong_configuration_could_not_run_and_names_the_line() {
    let cli = Cli::with("listen_on = 3000\n");
    cli.run(&["serve", "--config", "amends.toml"]).ends(COULD_NOT_RUN).says("amends.toml:2: listen_on: ");
    cli.run(&["check", "--config", "nowhere.toml"]).ends(COULD_NOT_RUN).says("nowhere.toml: cannot be read");
}

#[test]
fn check_tells_a_good_source_from_a_missing_table() {
    let cli = Cli::with("[[source]]\nname = \"orders\"\nurl = \"sqlite://orders.db\"\n");
    let run = cli.run(&["check", "--config", "amends.toml"]).ends(PROBLEM);
    assert!(!run.out.is_empty());
    let json = cli.run(&["check", "--config", "amends.toml", "--json"]).ends(PROBLEM);
    let reports: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(reports[0]["source"], "orders");
    assert!(reports[0]["findings"].as_array().unwrap().iter().any(|finding| finding["level"] == "error"));

    prepare_native_table(&format!("sqlite://{}/orders.db", cli.path().display()));
    cli.run(&["check", "--config", "amends.toml"]).ends(GOOD).says("orders");
    Cli::with("").run(&["check", "--config", "amends.toml"]).ends(GOOD).says("names no [[source]] yet");
}

fn prepare_native_table(url: &str) {
    block_on(async {
        let db = db::Db::connect(url, &db::Options::own()).await.unwrap();
        guard::schema::create(&db).await.unwrap();
        db.close().await;
    });
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn people_and_tokens_are_added_and_a_short_password_is_refused() {
    let cli = Cli::with("");
    cli.run(&["migrate", "--config", "amends.toml"]).ends(GOOD).says("up to date");
    let add = ["user", "add", "mei", "--role", "operator", "--password-stdin", "--config", "amends.toml"];
    cli.run_with_input(&add, "short\n").ends(COULD_NOT_RUN).says("shorter than");
    cli.run_with_input(&add, "correct-horse\n").ends(GOOD).says("mei may sign in as operator");
    let nobody = ["user", "add", "li", "--role", "king", "--password-stdin", "--config", "amends.toml"];
    cli.run_with_input(&nobody, "correct-horse\n").ends(COULD_NOT_RUN).says("no role");
    let list = cli.run(&["user", "list", "--config", "amends.toml"]).ends(GOOD);
    assert_eq!(list.out, "mei\toperator\n");

    let create = ["token", "create", "shop", "--role", "viewer", "--config", "amends.toml"];
    let (first, second) = (cli.run(&create).ends(GOOD).out, cli.run(&create).ends(GOOD).out);
    assert!(first.starts_with("amends_") && first.trim().len() > 40, "{first}");
    assert_ne!(first, second);
}

#[test]
fn audit_verify_finds_an_edited_entry() {
    let cli = Cli::with("");
    let add = ["user", "add", "mei", "--role", "operator", "--password-stdin", "--config", "amends.toml"];
    cli.run_with_input(&add, "correct-horse\n").ends(GOOD);
    let verify = ["audit", "verify", "--config", "amends.toml"];
    // Four first alert rules and one user.
    let whole = cli.run(&verify).ends(GOOD).says("5 entries, unbroken").out;
    let noted = whole.trim().rsplit(' ').next().unwrap().to_owned();
    let against = ["audit", "verify", "--config", "amends.toml", "--noted", &noted];
    cli.run(&against).ends(GOOD);
    let other = format!("5:{}", "0".repeat(64));
    let elsewhere = ["audit", "verify", "--config", "amends.toml", "--noted", &other];
    cli.run(&elsewhere).ends(PROBLEM).says("entry 5 is not the one that was noted");
    block_on(async {
        let url = format!("sqlite://{}/data/amends.db", cli.path().display());
        let db = db::Db::connect(&url, &db::Options::own()).await.unwrap();
        let edit = db::Query::raw("UPDATE audit_entries SET actor = 'somebody else' WHERE seq = 3", vec![]);
        assert_eq!(db.execute(&edit).await.unwrap(), 1);
        db.close().await;
    });
    cli.run(&verify).ends(PROBLEM).says("entry 3 was changed");
}

#[test]
fn a_taken_port_is_said_before_anything_is_made() {
    let cli = Cli::with("");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    cli.run(&["demo", "--listen", &address, "--data", "shop"])
        .ends(COULD_NOT_RUN)
        .says("taken by another program");
    assert!(!cli.path().join("shop").exists());
}

#[cfg(unix)]
#[test]
fn the_demo_says_when_it_serves_and_stops_cleanly_when_asked() {
    let cli = Cli::with("");
    let mut command = cli.command(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--data",
        "shop",
        "--traffic",
        "off",
        "--stuck",
        "1",
    ]);
    let mut demo = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let greeting: Vec<String> =
        lines.by_ref().take_while(|line| !line.starts_with("ready http://127.0.0.1:")).collect();
    assert!(greeting.iter().any(|line| line.contains("Password")), "{greeting:?}");
    cli.run(&["audit", "verify", "--config", "shop/amends.toml"]).ends(GOOD);
    let stop = Command::new("kill").args(["-TERM", &demo.id().to_string()]).status().unwrap();
    assert!(stop.success());
    assert!(demo.wait().unwrap().success());
}
