//! Owners share one server: what one of them takes delays, refuses and tells the others nothing.

use crate::fixture::Server;
use crate::tokens::TokenFile;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A server, a greedy owner and a modest one.
struct Owners {
    server: Server,
    greedy: String,
    modest: String,
    operator: String,
    _file: TokenFile,
}

impl Owners {
    fn new(arguments: &[&str]) -> Self {
        let file = TokenFile::new();
        let token = |owner: &str| file.add(owner, &[]).1;
        let (greedy, modest, operator) = (token("acme/greedy"), token("other/modest"), token("operator/monitor"));
        Self { server: file.server(arguments), greedy, modest, operator, _file: file }
    }

    async fn post(&self, token: &str, body: &Value) -> (u16, Value) {
        let sent = self.server.client.post(format!("{}/api/exec", self.server.url)).bearer_auth(token).json(body).send();
        let response = sent.await.expect("an answer");
        (response.status().as_u16(), response.json().await.expect("JSON"))
    }

    async fn health(&self, token: &str) -> Value {
        let sent = self.server.client.get(format!("{}/api/health", self.server.url)).bearer_auth(token).send();
        sent.await.expect("an answer").json().await.expect("JSON")
    }

    /// Submits runs of the greedy owner until one is refused. Returns their number and the refusal.
    async fn fill(&self, body: &Value) -> (usize, Value) {
        for accepted in 0.. {
            let (status, answer) = self.post(&self.greedy, body).await;
            if status != 202 {
                assert_eq!(status, 429, "{answer}");
                return (accepted, answer);
            }
        }
        unreachable!("the server accepts any number of runs")
    }

    /// A run of the modest owner, with the time it took.
    async fn modest_run(&self, code: &str) -> Duration {
        let began = Instant::now();
        let (status, record) = self.post(&self.modest, &json!({ "code": code, "wait_secs": 60 })).await;
        assert_eq!((status, &record["status"]), (200, &json!("completed")), "{record}");
        began.elapsed()
    }
}

const LOOPS: &str = "for (;;);";

/// One owner could take all slots and all places in the queue, and every run of the others was refused.
#[tokio::test]
async fn an_owner_that_fills_slots_and_queue_delays_no_other() {
    let owners = Owners::new(&["--max-concurrent-executions", "8", "--max-queued", "40"]);
    let (accepted, refusal) = owners.fill(&json!({ "code": LOOPS, "execution_timeout_secs": 300, "heap_memory_max_mb": 8 })).await;
    assert_eq!(accepted, 6 + 30, "three quarters of the slots and of the queue");
    assert!(refusal["detail"].as_str().is_some_and(|text| text.contains("30 of your executions are waiting")), "{refusal}");
    for _ in 0..5 {
        let took = owners.modest_run("1 + 1").await;
        assert!(took < Duration::from_secs(10), "the others loop for 300 s, and this took {took:?}");
    }
}

/// Twelve queued runs of 16 MiB took 411 MB, and the queue had room for a thousand.
#[tokio::test]
async fn the_source_of_queued_runs_is_kept_once_and_bounded() {
    let owners = Owners::new(&["--max-concurrent-executions", "8", "--max-source-mb", "256"]);
    let loops = json!({ "code": LOOPS, "execution_timeout_secs": 300, "heap_memory_max_mb": 8 });
    for _ in 0..6 {
        assert_eq!(owners.post(&owners.greedy, &loops).await.0, 202);
    }
    let before = owners.server.memory_mb();
    let large = json!({ "code": format!("/*{}*/", "x".repeat((16 << 20) - 4)) });
    let (accepted, refusal) = owners.fill(&large).await;
    assert_eq!(accepted, 11, "three quarters of 256 MiB, of which the loops take a few bytes");
    let held = owners.server.memory_mb().saturating_sub(before);
    assert!(held < 12 * 16 + 96, "{accepted} sources of 16 MiB take {held} MB");
    let text = "`code` is 16777216 bytes, and no space is left for it";
    assert!(refusal["detail"].as_str().is_some_and(|detail| detail.contains(text)), "{refusal}");
    owners.modest_run("1 + 1").await;
    let (status, _) = owners.post(&owners.modest, &large).await;
    assert_eq!(status, 202, "the reserve has space for a source of the largest size");
}

/// `/api/health` showed every caller how much others run.
#[tokio::test]
async fn an_owner_sees_its_own_load_and_an_operator_sees_all() {
    let owners = Owners::new(&["--max-concurrent-executions", "8"]);
    let quiet = owners.health(&owners.modest).await;
    for _ in 0..8 {
        owners.post(&owners.greedy, &json!({ "code": LOOPS, "execution_timeout_secs": 300, "heap_memory_max_mb": 8 })).await;
    }
    let load = |health: &Value| (health["engine"]["running"].clone(), health["engine"]["queued"].clone());
    assert_eq!(load(&owners.health(&owners.greedy).await), (json!(6), json!(2)));
    assert_eq!(load(&owners.health(&owners.operator).await), (json!(6), json!(2)));
    let mut busy = owners.health(&owners.modest).await;
    busy["timestamp"] = quiet["timestamp"].clone();
    assert_eq!(busy, quiet, "nothing that another owner sees depends on it");
    assert_eq!(load(&quiet), (json!(0), json!(0)));
    for hidden in ["/context_store/session_count", "/context_store/heap_used_mb", "/heap_store/damaged"] {
        assert_eq!(quiet.pointer(hidden), Some(&Value::Null), "{hidden}");
        assert!(owners.health(&owners.operator).await.pointer(hidden).is_some_and(Value::is_u64), "{hidden}");
    }
}

/// The kernel shares the cores between processes, so an owner with 48 loops got 48 times as much as one with a single run.
#[tokio::test]
async fn an_owner_with_many_loops_leaves_others_their_share_of_the_cores() {
    let owners = Owners::new(&[]);
    let computes = "let sum = 0; for (let i = 0; i < 2e7; i++) sum = (sum + i) | 0; sum";
    let mut alone = [Duration::ZERO; 3];
    for took in &mut alone {
        *took = owners.modest_run(computes).await;
    }
    let loops = json!({ "code": format!("console.log('loops'); {LOOPS}"), "execution_timeout_secs": 120, "heap_memory_max_mb": 8 });
    let mut looping = Vec::new();
    for _ in 0..32 {
        looping.push(owners.post(&owners.greedy, &loops).await.1["execution_id"].as_str().expect("an id").to_owned());
    }
    for id in &looping {
        let path = format!("{}/api/executions/{id}/output?wait_secs=60", owners.server.url);
        owners.server.client.get(path).bearer_auth(&owners.greedy).send().await.expect("an answer");
    }
    let mut beside = [Duration::ZERO; 5];
    for took in &mut beside {
        *took = owners.modest_run(computes).await;
    }
    alone.sort_unstable();
    beside.sort_unstable();
    eprintln!("{:?} alone, {:?} beside 32 loops of another owner", alone[1], beside[2]);
    assert!(beside[2] < alone[1] * 6 + Duration::from_millis(300), "{:?} alone, {:?} beside 32 loops", alone[1], beside[2]);
}
