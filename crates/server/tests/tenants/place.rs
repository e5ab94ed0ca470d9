//! One server with tokens, and its tenants.

use crate::fixture::{Folders, Server, client};
use serde_json::Value;
use std::process::Command;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

/// Of a client that does not read.
const RECEIVE_BUFFER_BYTES: u32 = 16 << 10;

pub struct Place {
    pub server: Server,
}

/// A tenant with its own token and connections.
#[derive(Clone)]
pub struct Tenant {
    pub url: String,
    pub token: String,
    pub client: reqwest::Client,
}

impl Place {
    /// A server on which each of these tenants has a token.
    pub fn start<const N: usize>(names: [&str; N], arguments: &[&str]) -> (Self, [Tenant; N]) {
        let folders = Folders::new();
        let tokens = names.map(|name| add_token(&folders, name));
        let file = folders.path().join("tokens.toml");
        let usual = ["--auth-tokens", file.to_str().expect("a path in UTF-8"), "--log", "error"];
        let server = Server::start_with(&folders, &[&usual, arguments].concat());
        let tenants = tokens.map(|token| Tenant { url: server.url.clone(), token, client: client() });
        (Self { server }, tenants)
    }
}

impl Tenant {
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.url);
        self.client.request(method.parse().expect("a method"), url).bearer_auth(&self.token)
    }

    /// Status and body of the response. Status 0 if there is none.
    pub async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = body.into_iter().fold(self.request(method, path), |request, body| request.json(&body));
        let Ok(response) = request.send().await else { return (0, Value::Null) };
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_default();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// A connection on which a request has been begun: its head, for a body of this length.
    pub async fn begin(&self, method: &str, path: &str, content_type: &str, body_bytes: usize) -> Option<TcpStream> {
        let address = self.url.strip_prefix("http://")?;
        let socket = TcpSocket::new_v4().ok()?;
        // What is not read stays in the server. By default the kernel takes up to 4 MB of it, which depends on the time between two reads.
        socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).ok()?;
        let mut stream = socket.connect(address.parse().ok()?).await.ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nAccept: */*\r\nContent-Type: {content_type}\r\n\
             Content-Length: {body_bytes}\r\n\r\n",
            self.token
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        Some(stream)
    }
}

fn add_token(folders: &Folders, owner: &str) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_heapstead"))
        .args(["auth", "add", owner, "--json", "--auth-tokens"])
        .arg(folders.path().join("tokens.toml"))
        .output()
        .expect("the command runs");
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    answer["token"].as_str().expect("a token").to_owned()
}
