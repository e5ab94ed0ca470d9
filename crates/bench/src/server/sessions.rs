//! Benchmarks of sessions: the cost of a head against explicit heap keys, and whether the number of stored sessions matters.

use super::fill;
use super::mcp::McpHttp;
use super::process::{self, Server};
use super::{CODE, Rest, WARM_UP, timed};
use crate::fail;
use crate::report::{Bar, Report, Row};
use crate::resolve;
use crate::sample::Effort;
use serde_json::{Value, json};
use std::time::Instant;

/// Numbers of stored sessions: large and small.
const STORED: [u64; 2] = [100_000, 100];

pub async fn measure(effort: Effort, report: &mut Report) {
    eprintln!("measuring sessions …");
    opened_session(effort, report).await;
    unchanged_context(effort, report).await;
    resolving(effort, report);
}

/// Consecutive runs in an opened session, each right after a run of a chain that passes heap keys.
async fn opened_session(effort: Effort, report: &mut Report) {
    let server = Server::start(&["--http-port", "0"]);
    let mut chain = Rest { connection: server.connect().await, heap: Value::Null };
    let mut connection = server.connect().await;
    let opened = connection.post("/api/sessions", &json!({})).await;
    let run = json!({ "code": CODE, "session": opened["session_id"], "durability": "snapshot", "wait_secs": 60 });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(60, 400) + WARM_UP {
        let their = timed(chain.run()).await;
        let began = Instant::now();
        let record = connection.post("/api/exec", &run).await;
        let mine = began.elapsed();
        if record["status"] != "completed" {
            fail(&format!("a run in a session ended as {record}"));
        }
        if round >= WARM_UP {
            ours.push(mine);
            theirs.push(their);
        }
    }
    report.add_pairs("run_js in an opened session, against a chain with heaps", &ours, &theirs, 1.1);
}

/// A `session_context` call that changes nothing, with many stored sessions and with few.
async fn unchanged_context(effort: Effort, report: &mut Report) {
    let catalog = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogs/statistics");
    let arguments = json!({ "intent": "the same task", "seeds": [{ "catalog": "statistics", "entity": "mean" }] });
    let catalog = catalog.to_string_lossy();
    let [large, small] = STORED.map(|count| Server::start_in(fill::sessions(count), &["--http-port", "0", "--catalog", &catalog]));
    let (mut on_large, mut on_small) = (McpHttp::connect(&large).await, McpHttp::connect(&small).await);
    for client in [&mut on_large, &mut on_small] {
        client.call("session_context", &arguments).await;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.choose(200, 2000) + WARM_UP {
        let (mine, their) = (timed(unchanged(&mut on_large, &arguments)).await, timed(unchanged(&mut on_small, &arguments)).await);
        if round >= WARM_UP {
            ours.push(mine);
            theirs.push(their);
        }
    }
    report.add_pairs("session_context, no change, among 100,000, against 100", &ours, &theirs, 1.5);
}

async fn unchanged(client: &mut McpHttp, arguments: &Value) {
    let answer = client.call("session_context", arguments).await;
    if answer["wave"]["mode"] != "noop" {
        fail(&format!("session_context changed something: {answer}"));
    }
}

/// Counts instructions instead of time, because they do not depend on the machine or its load.
fn resolving(effort: Effort, report: &mut Report) {
    const WHAT: &str = "resolving a call among 100,000 sessions, against 100";
    let counted = STORED.map(|count| {
        let folder = fill::sessions(count);
        resolve::instructions(&process::database(&folder), effort.choose(100, 1000))
    });
    let row = match counted {
        [Ok(large), Ok(small)] => {
            let detail = format!("{large:.0} instructions against {small:.0}, counted by callgrind");
            Row::new(WHAT, " ×", Bar::AtMost(1.3), large / small, (large / small, large / small), detail)
        }
        // A missing count counts as a missed bar.
        [Err(why), _] | [_, Err(why)] => Row::new(WHAT, " ×", Bar::AtMost(1.3), f64::NAN, (f64::NAN, f64::NAN), why),
    };
    report.add(row);
}
