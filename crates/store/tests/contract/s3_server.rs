//! An S3 server for these tests: shared by all, and stopped with their process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tokio::runtime::{Handle, Runtime};

pub struct S3Server {
    pub port: u16,
    pub tls_port: u16,
    /// The certificate to trust.
    pub certificate: PathBuf,
    buckets: AtomicU32,
    /// The server runs as long as this is open.
    _alive: ChildStdin,
    _server: Child,
}

pub fn start() -> &'static S3Server {
    static SERVER: OnceLock<S3Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tools");
        let mut command = Command::new(tools.join("python"));
        let mut server = command
            .arg(tools.join("s3_server.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("python");
        let mut ready = String::new();
        BufReader::new(server.stdout.take().expect("output")).read_line(&mut ready).expect("output");
        let [port, tls_port, certificate] = *ready.split_whitespace().collect::<Vec<_>>() else {
            panic!("the S3 server did not start: {:?}", server.wait())
        };
        S3Server {
            port: port.parse().expect("a port"),
            tls_port: tls_port.parse().expect("a port"),
            certificate: certificate.into(),
            buckets: AtomicU32::new(0),
            _alive: server.stdin.take().expect("input"),
            _server: server,
        }
    })
}

impl S3Server {
    pub fn new_bucket(&self) -> String {
        let name = format!("heaps-{}-{}", std::process::id(), self.buckets.fetch_add(1, Relaxed));
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).expect("connection");
        let request = format!("PUT /{name} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", self.port);
        connection.write_all(request.as_bytes()).expect("request");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("answer");
        assert!(answer.lines().next().is_some_and(|status| status.contains(" 200 ")), "{answer}");
        name
    }
}

/// The runtime for the clients of all tests.
pub fn runtime() -> Handle {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("runtime")).handle().clone()
}
