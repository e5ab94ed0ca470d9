//! An authenticated owner, with short helpers for common calls.

use crate::fixture::{self, Folders, Server};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the shipped catalogs.
pub fn catalogs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogs")
}

/// Folders of a server with authentication, and its token file.
pub struct Site {
    pub folders: Folders,
    statistics: PathBuf,
}

impl Site {
    pub fn new() -> Self {
        Self { folders: Folders::new(), statistics: catalogs().join("statistics") }
    }

    /// With a copy of the statistics catalog that a test may change.
    pub fn with_own_catalog() -> Self {
        let site = Self::new();
        let own = site.folders.path().join("statistics");
        std::fs::create_dir(&own).expect("a folder");
        for file in std::fs::read_dir(catalogs().join("statistics")).expect("the catalog").flatten() {
            if file.path().is_file() {
                std::fs::copy(file.path(), own.join(file.file_name())).expect("copied");
            }
        }
        Self { statistics: own, ..site }
    }

    pub fn catalog_file(&self, name: &str) -> PathBuf {
        self.statistics.join(name)
    }

    fn tokens(&self) -> PathBuf {
        self.folders.path().join("tokens.toml")
    }

    pub fn token(&self, owner: &str) -> String {
        let ran = Command::new(env!("CARGO_BIN_EXE_heapstead"))
            .args(["auth", "add", owner, "--json", "--auth-tokens"])
            .arg(self.tokens())
            .output()
            .expect("the command runs");
        let answer: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
        answer["token"].as_str().expect("a token").to_owned()
    }

    pub fn start(&self, arguments: &[&str]) -> Server {
        if !self.tokens().exists() {
            self.token("nobody/ever");
        }
        let (tokens, dates) = (self.tokens(), catalogs().join("dates"));
        let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let own = [text(&tokens), text(&self.statistics), text(&dates)];
        let usual = ["--auth-tokens", &own[0], "--catalog", &own[1], "--catalog", &own[2]];
        Server::start_with(&self.folders, &[&usual, arguments].concat())
    }
}

/// A caller with this token.
#[derive(Clone)]
pub struct Owner {
    client: reqwest::Client,
    pub token: String,
}

impl Owner {
    pub fn new(token: &str) -> Self {
        Self { client: fixture::client(), token: token.to_owned() }
    }

    pub async fn post(&self, server: &Server, path: &str, body: Value) -> (u16, Value) {
        answer(self.client.post(format!("{}{path}", server.url)).bearer_auth(&self.token).json(&body)).await
    }

    pub async fn get(&self, server: &Server, path: &str) -> (u16, Value) {
        answer(self.client.get(format!("{}{path}", server.url)).bearer_auth(&self.token)).await
    }

    pub async fn delete(&self, server: &Server, path: &str) -> (u16, Value) {
        answer(self.client.delete(format!("{}{path}", server.url)).bearer_auth(&self.token)).await
    }

    /// Opens or extends the session of an intent.
    pub async fn context(&self, server: &Server, intent: &str, seeds: &[(&str, &str)]) -> Value {
        let (status, answer) = self.post(server, "/api/session-context", context(intent, seeds)).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Runs code in a session to its end.
    pub async fn run(&self, server: &Server, session: &Value, code: &str) -> Value {
        self.post(server, "/api/exec", json!({ "code": code, "session": session, "wait_secs": 60 })).await.1
    }
}

/// The arguments of a call.
pub fn context(intent: &str, seeds: &[(&str, &str)]) -> Value {
    let seeds: Vec<_> = seeds.iter().map(|(catalog, entity)| json!({ "catalog": catalog, "entity": entity })).collect();
    if seeds.is_empty() { json!({ "intent": intent }) } else { json!({ "intent": intent, "seeds": seeds }) }
}

pub async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Parses a symbol table: symbol, kind and name of each line.
pub fn table(wave: &Value) -> Vec<(String, String, String)> {
    let domain = wave["domain"].as_str().expect("a table");
    let lines = domain.lines().skip_while(|line| !line.starts_with("symbol\t")).skip(1);
    lines
        .map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            let mut next = || fields.next().expect("a field");
            (next(), next(), next())
        })
        .collect()
}
