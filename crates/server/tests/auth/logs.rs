//! Tokens never appear in a log at any level; the reasons of refusals do.

use crate::fixture::{Folders, Server};
use crate::issuer::{AUDIENCE, ISSUER, Issuer, Key, claims};
use crate::peer::{MODERN, initialize, modern, request};
use crate::tokens::TokenFile;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A server that logs at the highest level, and its log.
struct TracingServer {
    child: Child,
    url: String,
    logged: JoinHandle<String>,
}

impl TracingServer {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Server::command(&Folders::new());
        command.args(["--http-port", "0", "--log", "trace,rmcp=trace"]).args(arguments).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let (found, url) = mpsc::channel();
        let logged = std::thread::spawn(move || {
            let mut all = String::new();
            for line in lines {
                if let Some(url) = line.strip_prefix("Heapstead listens on ") {
                    let _ = found.send(url.to_owned());
                }
                all += &line;
                all.push('\n');
            }
            all
        });
        Self { child, url: url.recv().expect("an address"), logged }
    }

    fn end(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
        self.child.wait().expect("the end");
        self.logged.join().expect("the log")
    }
}

#[tokio::test]
async fn no_token_is_logged_at_any_level() {
    let file = TokenFile::new();
    let ((revoked_id, revoked), (_, good)) = (file.add("acme/ann", &[]), file.add("acme/bob", &[]));
    let key = Key::ed25519("one");
    let issuer = Issuer::publishing(&[&key]);
    let jwt_flags = ["--jwks-url", &issuer.url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE];
    let path = file.path();
    let server = TracingServer::start(&[&["--auth-tokens", &path], &jwt_flags[..]].concat());
    assert_eq!(file.auth(&["revoke", &revoked_id]).code, Some(0));
    let (jwt, forged) = (key.token(&claims("ann")), Key::ed25519("one").token(&claims("ann")));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    for (token, status) in [(&good, 200), (&jwt, 200), (&revoked, 401), (&forged, 401)] {
        let asked = client.get(format!("{}/api/executions", server.url)).bearer_auth(token).send().await.expect("an answer");
        assert_eq!(asked.status(), status);
        for message in [initialize("2025-11-25"), modern(request("tools/list", json!({})), json!({}))] {
            let asked = client.post(format!("{}/mcp", server.url)).bearer_auth(token).json(&message);
            let asked = asked
                .header("accept", "application/json, text/event-stream")
                .header("mcp-method", message["method"].as_str().expect("text"));
            let asked = if message["method"] == "initialize" { asked } else { asked.header("mcp-protocol-version", MODERN) };
            let answer = asked.send().await.expect("an answer");
            assert_eq!(answer.status(), status, "{}", answer.text().await.expect("a body"));
        }
    }
    let log = server.end();
    assert!(log.contains(" TRACE ") && log.contains("rmcp"), "nothing was logged: {log}");
    for token in [&good, &jwt, &revoked, &forged] {
        let secret = token.rsplit(['_', '.']).next().expect("a secret");
        assert!(!log.contains(secret), "{token} is in the log: {:?}", log.lines().find(|line| line.contains(secret)));
    }
    for reason in ["never issued, revoked, or mistyped", "the JWT is refused: InvalidSignature"] {
        assert!(log.contains(reason), "`{reason}` is not in the log");
    }
}
