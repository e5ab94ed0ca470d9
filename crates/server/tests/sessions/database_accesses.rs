//! Database accesses of a `run_js` in a session, over real MCP: everything that a request does is counted, also around the service.
//!
//! Story: one such call read the row of its session four times and refreshed its TTL up to three times.

use crate::client::Client;
use crate::fixture::{Folders, Server};

const RUNS: u64 = 20;

/// Reads and write transactions since the server started. Reading them costs some too, the same number each time.
async fn accesses(server: &Server) -> [u64; 2] {
    let page = server.client.get(format!("{}/metrics", server.url)).send().await.expect("an answer").text().await.expect("a page");
    ["read", "write"].map(|kind| {
        let name = format!("heapstead_database_accesses_total{{kind=\"{kind}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or_else(|| panic!("{name}: {page}"))
    })
}

#[tokio::test]
async fn a_run_in_a_session_costs_one_read_and_one_write() {
    let server = Server::start_with(&Folders::new(), &["--context-store", "memory"]);
    for mut client in [Client::http(&server).await, Client::modern(&server)] {
        let mut session = client.create().await;
        session = client.run_in(&session, "let n = 0").await["_meta"][client.key()].clone();
        let start = accesses(&server).await;
        let own = accesses(&server).await;
        for _ in 0..RUNS {
            let ran = client.run_in(&session, "n += 1").await;
            session = ran["_meta"][client.key()].clone();
        }
        let end = accesses(&server).await;
        let [reads, writes] = [0, 1].map(|kind| end[kind] - own[kind] - (own[kind] - start[kind]));
        // A little more, because the server looks for expired sessions and writes checkpoints in the background.
        assert!((RUNS..RUNS + 5).contains(&reads), "{}: {reads} reads of {RUNS} runs: one resolves the session", client.key());
        // Two if the code takes more than a few milliseconds.
        assert!((RUNS..2 * RUNS).contains(&writes), "{}: {writes} writes of {RUNS} runs: acceptance and end in one", client.key());
    }
}
