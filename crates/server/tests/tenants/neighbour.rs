//! A well-behaved tenant: a few ordinary requests in a row, none of which may fail.

use crate::latency::Latencies;
use crate::peer::Http;
use crate::place::{Place, Tenant};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Far longer than anything takes.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Neighbour {
    tenant: Tenant,
    /// Opened before any abuse; has to stay open.
    connection: Http,
    session: String,
    heap: String,
    count: u64,
}

impl Neighbour {
    pub async fn new(place: &Place, tenant: Tenant) -> Self {
        let authorization = format!("Bearer {}", tenant.token);
        let connection = Http::connect(&place.server, "2025-11-25", &[("authorization", &authorization)]).await;
        let (status, session) = tenant.ask("POST", "/api/sessions", Some(json!({}))).await;
        assert!(status < 300, "{session}");
        let session = session["session_id"].as_str().expect("an id").to_owned();
        let mut neighbour = Self { tenant, connection, session, heap: String::new(), count: 0 };
        neighbour.heap = neighbour.run("snapshot").await.expect("the first run").expect("a heap");
        neighbour
    }

    /// One of each request. The failures are what went wrong, in words.
    pub async fn visit(&mut self, latencies: &mut Latencies, failures: &mut Vec<String>) {
        for operation in ["run", "list", "call", "export"] {
            let began = Instant::now();
            let asked = async {
                match operation {
                    "run" => self.run("journal").await.map(drop),
                    "list" => self.list().await,
                    "call" => self.call().await,
                    _ => self.export().await,
                }
            };
            let done = tokio::time::timeout(TIMEOUT, asked).await.unwrap_or_else(|_| Err("no answer in time".into()));
            latencies.add(began.elapsed());
            failures.extend(done.err().map(|why| format!("{operation}: {why}")));
        }
    }

    /// A run in the session, which continues from the one before.
    async fn run(&mut self, durability: &str) -> Result<Option<String>, String> {
        let code = "globalThis.n = (globalThis.n ?? 0) + 1";
        let body = json!({ "code": code, "session": self.session, "durability": durability, "wait_secs": 60 });
        let (status, record) = self.tenant.ask("POST", "/api/exec", Some(body)).await;
        let expected = self.count + 1;
        if status != 200 || record["result"].as_str() != Some(&expected.to_string()) {
            return Err(format!("expected {expected}, got {}", refusal(status, &record)));
        }
        self.count = expected;
        Ok(record["heap"].as_str().map(str::to_owned))
    }

    async fn list(&self) -> Result<(), String> {
        let (status, list) = self.tenant.ask("GET", "/api/executions?limit=5", None).await;
        if status == 200 && list["executions"].as_array().is_some_and(|items| !items.is_empty()) {
            Ok(())
        } else {
            Err(refusal(status, &list))
        }
    }

    /// Over the connection.
    async fn call(&self) -> Result<(), String> {
        let response = self.connection.send(&crate::peer::request("tools/list", json!({}))).await;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(|error| error.to_string())?;
        if status == 200 && text.contains("run_js") { Ok(()) } else { Err(refusal(status, &Value::String(text))) }
    }

    async fn export(&self) -> Result<(), String> {
        let path = format!("/api/heaps/{}/file", self.heap);
        let response = self.tenant.request("GET", &path).send().await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let file = response.bytes().await.map_err(|error| error.to_string())?;
        if status == 200 && file.starts_with(b"MCPV8SNAP") { Ok(()) } else { Err(refusal(status, &Value::Null)) }
    }
}

fn refusal(status: u16, body: &Value) -> String {
    let shown: String = body.to_string().chars().take(300).collect();
    format!("{status} {shown}")
}
