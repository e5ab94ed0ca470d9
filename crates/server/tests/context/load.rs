//! Continuous load: runs and context changes, each caller in its own session, counted when acknowledged.

use crate::fixture::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const SESSIONS_EACH: usize = 2;
/// Far longer than a call takes.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Load {
    callers: Vec<(Arc<Counts>, JoinHandle<()>)>,
    over: Arc<AtomicBool>,
}

/// The acknowledged operations of a caller.
struct Counts {
    session: String,
    /// The last acknowledged number, and how many responses reported an unavailable store.
    set: AtomicU64,
    unavailable: AtomicU64,
    runs: AtomicU64,
}

impl Load {
    /// Runs must complete. Context changes may be refused because the store is unavailable.
    pub fn start(servers: &[Server]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let callers = servers.iter().enumerate().flat_map(|(server, place)| {
            let over = &over;
            (0..SESSIONS_EACH).map(move |number| {
                let session = format!("load-{server}-{number}");
                let counts = Arc::new(Counts { session, set: AtomicU64::new(0), unavailable: AtomicU64::new(0), runs: AtomicU64::new(0) });
                let (counted, over, client, url) = (counts.clone(), over.clone(), place.client.clone(), place.url.clone());
                let calling = tokio::spawn(async move {
                    for number in 1.. {
                        if over.load(Relaxed) {
                            return;
                        }
                        call(&client, &url, &counted, number).await;
                    }
                });
                (counts, calling)
            })
        });
        Self { callers: callers.collect(), over }
    }

    /// Waits until every caller has made this many more runs or has failed.
    pub async fn advance(&self, runs: u64) {
        let begun = Instant::now();
        for (counts, calling) in &self.callers {
            let wanted = counts.runs.load(Relaxed) + runs;
            while counts.runs.load(Relaxed) < wanted {
                assert!(!calling.is_finished(), "{}: a call failed", counts.session);
                assert!(begun.elapsed() < TIMEOUT, "{}: no more calls complete", counts.session);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    pub fn unavailable(&self) -> u64 {
        self.callers.iter().map(|(counts, _)| counts.unavailable.load(Relaxed)).sum()
    }

    /// Stops the load, and checks that the server has every acknowledged change. Returns the sessions with their numbers of runs.
    pub async fn end_acknowledged_by(self, server: &Server) -> Vec<(String, u64)> {
        self.over.store(true, Relaxed);
        let mut ran = Vec::new();
        for (counts, calling) in self.callers {
            calling.await.expect("every call was answered as it should be");
            let (status, context) = server.get(&format!("/api/context?session={}", counts.session)).await;
            let (found, acknowledged) = (context["custom"]["n"].as_u64(), counts.set.load(Relaxed));
            assert!(status == 200 && acknowledged > 0, "{status}: {acknowledged}");
            assert!(found >= Some(acknowledged), "found {found:?}, {acknowledged} was acknowledged");
            ran.push((counts.session.clone(), counts.runs.load(Relaxed)));
        }
        ran
    }
}

async fn call(client: &reqwest::Client, url: &str, counts: &Counts, number: u64) {
    let post = async |path: &str, body: Value| client.post(format!("{url}{path}")).json(&body).send().await.expect("an answer");
    let set = post("/api/context", json!({ "session": counts.session, "custom": { "n": number } })).await;
    match set.status().as_u16() {
        200 => counts.set.store(number, Relaxed),
        503 => drop(counts.unavailable.fetch_add(1, Relaxed)),
        other => panic!("{other}: {}", set.text().await.unwrap_or_default()),
    }
    let ran = post("/api/exec", json!({ "session": counts.session, "code": "6 * 7", "wait_secs": 60 })).await;
    let record: Value = ran.json().await.expect("a record");
    assert_eq!((&record["status"], &record["result"]), (&json!("completed"), &json!("42")), "{record}");
    counts.runs.fetch_add(1, Relaxed);
}
