//! A Redis of a test's own, which it may flush, stop and start again.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use guard::{Cache, Local, Shared};

pub struct PrivateRedis {
    port: u16,
    server: Child,
    folder: tempfile::TempDir,
}

impl PrivateRedis {
    /// `None`, with a line on standard error, where no Redis is installed.
    pub async fn start() -> Option<PrivateRedis> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        match launch(port, &folder) {
            Ok(server) => {
                let redis = PrivateRedis { port, server, folder };
                redis.until_ready().await;
                Some(redis)
            }
            Err(e) => {
                eprintln!("skipped: redis-server cannot be started: {e}");
                None
            }
        }
    }

    /// A cache without memory of its own, so that Redis is what tells.
    pub fn cache(&self) -> Cache {
        Cache::Redis(Local { max_bytes: 0 }, Shared::new(self.client()))
    }

    pub fn client(&self) -> kv::Redis {
        let options =
            kv::Options { pause_after_failure: Duration::from_millis(50), ..kv::Options::default() };
        kv::Redis::open(&format!("redis://127.0.0.1:{}/0", self.port), options).unwrap()
    }

    pub async fn flush(&self) {
        let flush = kv::Script::new("redis.call('FLUSHALL') return 1");
        let _: i64 = self.client().call(&flush, &[], &[]).await.unwrap();
    }

    /// How many commands of this name were served.
    pub async fn commands(&self, name: &str) -> u64 {
        let stats = kv::Script::new("return redis.call('INFO', 'commandstats')");
        let stats: String = self.client().call(&stats, &[], &[]).await.unwrap();
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    pub fn stop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    /// Empty, as after a crash without persistence.
    pub async fn start_again(&mut self) {
        self.server = launch(self.port, &self.folder).unwrap();
        self.until_ready().await;
    }

    async fn until_ready(&self) {
        let ready = tokio::time::timeout(Duration::from_secs(20), async {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        ready.await.expect("redis-server listens within 20 seconds");
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn launch(port: u16, folder: &tempfile::TempDir) -> std::io::Result<Child> {
    Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
