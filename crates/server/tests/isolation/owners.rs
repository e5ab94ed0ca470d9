//! Owners of every kind on one database: on servers with authentication, on servers without, and on stdio.

use crate::fixture::{Folders, Server, client};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Servers with and without authentication on one database, which share its tables.
pub struct TestServers {
    pub folders: Folders,
    closed: Server,
    closed_sse: Server,
    open: Server,
    open_sse: Server,
}

/// An owner and the servers it uses.
#[derive(Clone)]
pub struct Owner {
    pub name: &'static str,
    pub token: Option<String>,
    pub client: reqwest::Client,
    pub http: String,
    pub sse: String,
}

impl TestServers {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(arguments: &[&str]) -> Self {
        let folders = Folders::new();
        // The token file must exist before the server starts.
        add_token(&folders, "nobody/ever");
        let tokens = tokens(&folders).to_str().expect("a path in UTF-8").to_owned();
        let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogs/statistics");
        let usual = [&["--catalog", catalog.to_str().expect("a path in UTF-8")], arguments].concat();
        let start = |own: &[&str]| Server::start_with(&folders, &[own, &usual[..]].concat());
        Self {
            closed: start(&["--auth-tokens", &tokens, "--allow-heap-import"]),
            closed_sse: start(&["--auth-tokens", &tokens, "--allow-heap-import", "--sse-port", "0"]),
            open: start(&[]),
            open_sse: start(&["--sse-port", "0"]),
            folders,
        }
    }

    /// The owner with this name, `tenant/subject`.
    pub fn owner(&self, name: &'static str) -> Owner {
        let token = Some(add_token(&self.folders, name));
        Owner { name, token, client: client(), http: self.closed.url.clone(), sse: self.closed_sse.url.clone() }
    }

    /// A caller without credentials.
    pub fn anonymous(&self) -> Owner {
        Owner { name: "anonymous", token: None, client: client(), http: self.open.url.clone(), sse: self.open_sse.url.clone() }
    }

    /// The server of an owner, for clients that need one.
    pub fn server(&self, owner: &Owner) -> &Server {
        if owner.token.is_some() { &self.closed } else { &self.open }
    }

    pub fn sse_server(&self, owner: &Owner) -> &Server {
        if owner.token.is_some() { &self.closed_sse } else { &self.open_sse }
    }
}

impl Owner {
    pub fn authorization(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let base = if path.starts_with("/message") { &self.sse } else { &self.http };
        let request = self.client.request(method.parse().expect("a method"), format!("{base}{path}"));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request. Returns the status and body of the response.
    pub async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.request(method, path);
        let request = body.into_iter().fold(request, |request, body| request.json(&body));
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask("POST", path, Some(body)).await;
        assert!(status < 300, "{path}: {answer}");
        answer
    }

    /// Runs code to its end.
    pub async fn run(&self, mut body: Value) -> Value {
        body["wait_secs"] = json!(60);
        self.post("/api/exec", body).await
    }
}

fn tokens(folders: &Folders) -> PathBuf {
    folders.path().join("tokens.toml")
}

fn add_token(folders: &Folders, owner: &str) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_heapstead"))
        .args(["auth", "add", owner, "--permission", "heaps:import", "--json", "--auth-tokens"])
        .arg(tokens(folders))
        .output()
        .expect("the command runs");
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    answer["token"].as_str().expect("a token").to_owned()
}
