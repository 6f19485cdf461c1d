//! How each server is set up, started, asked whether it is ready, and stopped.

use super::sandbox::Sandbox;
use crate::process;
use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const READY_WITHIN: Duration = Duration::from_secs(60);
const USER: &str = "amends";

/// One running server.
pub struct Server {
    child: Child,
    port: u16,
    log: PathBuf,
    variable: &'static str,
    url: String,
    stop: Signal,
    ready: Box<dyn Fn() -> bool>,
}

impl Server {
    /// The environment variable tests look at.
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    #[cfg(test)]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the server answers; an early end or a long silence is an error with the end of its log.
    pub fn wait_ready(&mut self) -> Result<()> {
        let mut gone = false;
        let settled = process::wait_until(READY_WITHIN, || {
            gone = !matches!(self.child.try_wait(), Ok(None));
            gone || (self.ready)()
        });
        if settled && !gone {
            return Ok(());
        }
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        bail!("the server for {} did not start on port {}:\n{}", self.variable, self.port, log.trim())
    }

    pub fn stop(&mut self) {
        process::end(&mut self.child, self.stop);
    }
}

/// PostgreSQL's own programs, which Debian keeps off PATH, newest version first.
pub fn postgres_bin() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.retain(|folder| folder.join("initdb").exists());
    folders.sort();
    folders.pop().or_else(|| process::find("initdb")?.parent().map(Path::to_path_buf))
}

pub fn postgres(sandbox: &Sandbox) -> Result<Server> {
    let bin = postgres_bin().context("PostgreSQL is missing: run `cargo xtask provision test`")?;
    let data = sandbox.subfolder("postgres")?;
    let mut init = sandbox.command(&bin.join("initdb"));
    init.args(["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-U", USER, "-D"]).arg(&data);
    process::capture(&mut init)?;
    let port = free_port()?;
    let mut command = sandbox.command(&bin.join("postgres"));
    command.arg("-D").arg(&data).args(["-p", &port.to_string()]).arg("-k").arg(sandbox.folder());
    // Durability is not under test, and thousands of short connections are.
    for setting in
        ["listen_addresses=127.0.0.1", "fsync=off", "synchronous_commit=off", "full_page_writes=off"]
    {
        command.args(["-c", setting]);
    }
    command.args(["-c", "max_connections=400"]);
    let probe = bin.join("pg_isready");
    let ready = move || {
        let mut probe = Command::new(&probe);
        process::capture(probe.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()])).is_ok()
    };
    let url = format!("postgres://{USER}@127.0.0.1:{port}/postgres");
    // Interrupt is PostgreSQL's fast stop; terminate would wait for its clients.
    start(sandbox, command, port, "AMENDS_TEST_POSTGRES", url, Signal::INT, Box::new(ready))
}

pub fn mariadb(sandbox: &Sandbox) -> Result<Server> {
    let install = program("mariadb-install-db")?;
    let data = sandbox.subfolder("mariadb")?;
    let mut init = sandbox.command(&install);
    init.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    process::capture(init.arg(format!("--datadir={}", data.display())))?;
    let users = sandbox.folder().join("users.sql");
    fs::write(
        &users,
        format!(
            "CREATE DATABASE {USER};\nCREATE USER {USER}@'%' IDENTIFIED BY '{USER}';\nGRANT ALL ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
        ),
    )?;
    let port = free_port()?;
    let mut command = sandbox.command(&program("mariadbd")?);
    command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", sandbox.folder().join("mariadb.sock").display()));
    command.arg(format!("--init-file={}", users.display())).arg(format!("--port={port}"));
    command.args([
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--max-connections=400",
    ]);
    command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"]);
    let url = format!("mysql://{USER}:{USER}@127.0.0.1:{port}/{USER}");
    start(sandbox, command, port, "AMENDS_TEST_MYSQL", url, Signal::TERM, Box::new(move || answers(port)))
}

pub fn redis(sandbox: &Sandbox) -> Result<Server> {
    let data = sandbox.subfolder("redis")?;
    let port = free_port()?;
    let mut command = sandbox.command(&program("redis-server")?);
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
    ]);
    command.arg(&data);
    let url = format!("redis://127.0.0.1:{port}/0");
    start(sandbox, command, port, "AMENDS_TEST_REDIS", url, Signal::TERM, Box::new(move || answers(port)))
}

fn start(
    sandbox: &Sandbox,
    mut command: Command,
    port: u16,
    variable: &'static str,
    url: String,
    stop: Signal,
    ready: Box<dyn Fn() -> bool>,
) -> Result<Server> {
    let log = sandbox.folder().join(format!("{variable}.log"));
    let output = File::create(&log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let child = command.spawn().with_context(|| format!("cannot start {}", process::show(&command)))?;
    Ok(Server { child, port, log, variable, url, stop, ready })
}

fn program(name: &str) -> Result<PathBuf> {
    process::find(name).with_context(|| format!("{name} is missing: run `cargo xtask provision test`"))
}

fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// A port nobody listens on now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
