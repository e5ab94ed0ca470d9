//! A running server with its own folders, and short helpers to call it.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// A server starts in milliseconds; this allows for a loaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`
    pub url: String,
    pub client: reqwest::Client,
    folders: Folders,
}

/// The folders of a server. They outlive it, so that another one can be started on them.
#[derive(Clone)]
pub struct Folders(std::sync::Arc<TempDir>);

impl Folders {
    pub fn new() -> Self {
        Self::named("heapstead-")
    }

    /// In a folder whose name has this prefix.
    pub fn named(prefix: &str) -> Self {
        Self(std::sync::Arc::new(tempfile::Builder::new().prefix(prefix).tempdir().expect("a temporary folder")))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn heaps(&self) -> std::path::PathBuf {
        self.path().join("heaps")
    }

    pub fn database(&self) -> std::path::PathBuf {
        self.path().join("sessions")
    }

    /// Runs `heapstead heaps` with these arguments on the folders, as their operator. Returns what it printed.
    #[allow(dead_code, reason = "only some tests need it")]
    pub fn heaps_command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapstead"));
        command.arg("heaps").args(arguments).arg("--directory-path").arg(self.heaps()).arg("--session-db-path").arg(self.database());
        let ran = command.output().expect("the command runs");
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("UTF-8")
    }
}

/// Flags of a server whose answers to runs in sessions have the heaps.
pub const SNAPSHOT: &[&str] = &["--session-durability", "snapshot"];

impl Server {
    pub fn start() -> Self {
        Self::start_with(&Folders::new(), &[])
    }

    pub fn start_with(folders: &Folders, arguments: &[&str]) -> Self {
        Self::start_in(folders, arguments, &[])
    }

    /// Starts a server on a free port. `arguments` follow the default ones.
    pub fn start_in(folders: &Folders, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Self::command(folders);
        if !arguments.contains(&"--sse-port") {
            command.args(["--http-port", "0"]);
        }
        let mut child = command.args(arguments).envs(variables.iter().copied()).stderr(Stdio::piped()).spawn().expect("the server starts");
        let url = listening_url(&mut child);
        Self { child, url, client: client(), folders: folders.clone() }
    }

    /// Like [`start_with`](Self::start_with), with its output in a file.
    #[allow(dead_code, reason = "only some tests look at what is logged")]
    pub fn start_logged(folders: &Folders, arguments: &[&str], log: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
        let said = std::fs::File::create(log).expect("a file");
        let mut command = Self::command(folders);
        command.args(["--http-port", &port.to_string()]).args(arguments).stderr(said);
        let child = command.spawn().expect("the server starts");
        let begun = std::time::Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < START_TIMEOUT, "the server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, url: format!("http://127.0.0.1:{port}"), client: client(), folders: folders.clone() }
    }

    /// `heapstead serve` with these folders and an empty environment.
    pub fn command(folders: &Folders) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapstead"));
        command.env_clear();
        for kept in ["HEAPSTEAD_ENGINE_DIR", "PATH"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.arg("serve").arg("--directory-path").arg(folders.heaps()).arg("--session-db-path").arg(folders.database());
        command
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Memory of the server process, without its workers.
    pub fn memory_mb(&self) -> u64 {
        self.status_mb("VmRSS:")
    }

    /// The most memory that the server process has had so far.
    pub fn peak_memory_mb(&self) -> u64 {
        self.status_mb("VmHWM:")
    }

    fn status_mb(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a living server");
        let kib = status.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.expect("its memory") >> 10
    }

    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Status and body of the response.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.client.get(format!("{}{path}", self.url))).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.client.post(format!("{}{path}", self.url)).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.client.put(format!("{}{path}", self.url)).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        answer(self.client.delete(format!("{}{path}", self.url))).await
    }

    /// Runs code to its end and returns its record.
    pub async fn run(&self, code: &str) -> Value {
        self.run_with(serde_json::json!({ "code": code })).await
    }

    /// Like [`run`](Self::run), with more arguments than code.
    pub async fn run_with(&self, mut body: Value) -> Value {
        body["wait_secs"] = 60.into();
        let (status, record) = self.post("/api/exec", body).await;
        assert_eq!(status, 200, "{record}");
        record
    }

    /// Requests shutdown with a signal, and waits. Returns the exit code.
    pub fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        self.child.wait().expect("the end").code()
    }

    /// Waits until the server has exited by itself.
    pub async fn ended(&mut self) {
        let pidfd = rustix::process::pidfd_open(rustix::process::Pid::from_child(&self.child), rustix::process::PidfdFlags::empty());
        let Ok(pidfd) = pidfd else { return };
        // SAFETY: an owned descriptor keeps naming the same process as long as it lives.
        let ended = unsafe { tokio::io::unix::AsyncFd::register(pidfd) }.expect("a descriptor");
        let _ = ended.readable().await;
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the long forms of tests are enabled: `make torture`.
pub fn torture() -> bool {
    std::env::var_os("HEAPSTEAD_TORTURE").is_some()
}

/// A random generator, which `SEED=…` in the environment replays.
pub struct Random {
    pub seed: u64,
    state: AtomicU64,
}

impl Random {
    pub fn new() -> Self {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| u64::from(std::process::id()));
        println!("SEED={seed}");
        Self::seeded(seed)
    }

    pub fn seeded(seed: u64) -> Self {
        Self { seed, state: AtomicU64::new(seed) }
    }

    pub fn below(&self, bound: u64) -> u64 {
        // SplitMix64.
        let mut mixed = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client with its own connections. The library needs a crypto provider even for plain HTTP.
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Reads the server's output until it prints its address. The rest goes to the test's standard error.
fn listening_url(child: &mut Child) -> String {
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let (found, url) = mpsc::channel();
    std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("Heapstead listens on ") {
                let _ = found
                    .send(address.split(['/', ' ']).filter(|part| part.contains(':') && !part.starts_with("http")).collect::<String>());
            } else {
                eprintln!("server: {line}");
            }
        }
    });
    format!("http://{}", url.recv_timeout(START_TIMEOUT).expect("the server says where it listens"))
}
