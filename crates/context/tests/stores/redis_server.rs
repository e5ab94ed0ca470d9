//! A real Redis for tests, on its own socket and data folder. It can be killed and restarted.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct RedisServer {
    folder: TempDir,
    process: Mutex<Option<Child>>,
}

/// Shared by all tests that do not disturb it. It exits with this process.
pub fn shared() -> &'static RedisServer {
    static SERVER: OnceLock<RedisServer> = OnceLock::new();
    SERVER.get_or_init(RedisServer::start)
}

impl RedisServer {
    pub fn start() -> Self {
        let server = Self { folder: tempfile::tempdir().expect("folder"), process: Mutex::new(None) };
        server.start_again();
        server
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Restarts it with everything it had synced. `appendfsync always` makes it as durable as SQLite.
    pub fn start_again(&self) {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(tools.join("redis"));
        command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--unixsocket"]).arg(self.socket());
        command.arg("--dir").arg(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::inherit());
        *self.process.lock().expect("process") = Some(spawn_for_life(command));
        let begun = Instant::now();
        while !self.answers() {
            assert!(begun.elapsed() < Duration::from_secs(120), "Redis did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn kill(&self) {
        let mut process = self.process.lock().expect("process").take().expect("it runs");
        process.kill().expect("killed");
        process.wait().expect("ended");
    }

    pub fn connection(&self) -> redis::Connection {
        redis::Client::open(self.url()).expect("client").get_connection().expect("connection")
    }

    fn answers(&self) -> bool {
        let connection = redis::Client::open(self.url()).and_then(|client| client.get_connection());
        connection.and_then(|mut connection| redis::cmd("PING").query::<String>(&mut connection)).is_ok()
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.lock().expect("process").take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The command to start, and the channel for the child.
type Start = (Command, Sender<Child>);

/// A process with a parent-death signal dies with the thread that started it. So one thread that lives as long as this process starts all
/// of them.
fn spawn_for_life(command: Command) -> Child {
    static STARTER: OnceLock<Mutex<Sender<Start>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (ask, asked) = channel::<Start>();
        std::thread::spawn(move || {
            for (mut command, reply) in asked {
                reply.send(command.spawn().expect("a process")).expect("the receiver waits");
            }
        });
        Mutex::new(ask)
    });
    let (reply, child) = channel();
    starter.lock().expect("starter").send((command, reply)).expect("the thread lives");
    child.recv().expect("a process")
}
