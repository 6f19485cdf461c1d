//! Private PostgreSQL, MariaDB and Redis servers for the length of one command: own ports, own folder, own processes.
//! A server that was already running on this machine is never touched.

mod kinds;
mod sandbox;

use crate::process::{self, Stop};
use anyhow::{Context, Result};
use kinds::Server;
use sandbox::Sandbox;
use std::process::{Command, ExitCode};

pub use kinds::postgres_bin;

/// Running servers; dropping it stops them and removes their folder.
pub struct Services {
    servers: Vec<Server>,
    // Dropped after the servers, which still write into it while they stop.
    _sandbox: Sandbox,
}

impl Services {
    /// Starts all three and waits until they answer.
    pub fn start() -> Result<Self> {
        let sandbox = Sandbox::create()?;
        let mut services = Self { servers: Vec::new(), _sandbox: sandbox };
        for start in [kinds::postgres, kinds::mariadb, kinds::redis] {
            let server = start(&services._sandbox)?;
            services.servers.push(server);
        }
        for server in &mut services.servers {
            server.wait_ready()?;
        }
        Ok(services)
    }

    /// The variables that tell tests where the servers are.
    pub fn environment(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.servers.iter().map(|server| (server.variable(), server.url()))
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        for server in &mut self.servers {
            server.stop();
        }
    }
}

/// Runs a command beside the servers and answers with its exit code.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let services = Services::start()?;
    let (program, arguments) = words.split_first().context("name a command to run")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(services.environment());
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let status = process::supervise(&mut child, &stop, || ())?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn servers_answer_while_held_and_are_gone_after() {
        let installed = postgres_bin().is_some()
            && ["mariadbd", "redis-server"].iter().all(|p| process::find(p).is_some());
        if !installed {
            println!("skipped: the database servers are not installed");
            return;
        }
        let services = Services::start().unwrap();
        let ports: Vec<u16> = services.servers.iter().map(Server::port).collect();
        let folder = services._sandbox.folder().to_path_buf();
        assert_eq!(services.environment().count(), 3);
        assert!(ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok()));
        drop(services);
        assert!(ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()));
        assert!(!folder.exists());
    }
}
