//! `kill -9` at random moments under load: acknowledged changes are there afterwards, or the server reports what may be lost.

use crate::fixture::{Folders, Random, Server, torture};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

const CLIENTS: usize = 3;
const LOST: &str = "changes to contexts since its last flush at ";

/// What a client knows: the last acknowledged numbers.
#[derive(Default)]
struct Acknowledged {
    set: u64,
    recorded: u64,
    /// When each number was acknowledged.
    times: Vec<(u64, Timestamp)>,
}

/// Sets and records increasing numbers until the server is gone.
async fn count_up(client: reqwest::Client, url: String, session: String, mut known: Acknowledged) -> Acknowledged {
    let acknowledged = async |path: &str, body: Value| {
        let Ok(response) = client.post(format!("{url}{path}")).json(&body).send().await else { return false };
        let status = response.status();
        // A partial response does not count.
        let Ok(body) = response.text().await else { return false };
        assert_eq!(status, 200, "{body}");
        true
    };
    loop {
        let next = known.set.max(known.recorded) + 1;
        if !acknowledged("/api/context", json!({ "session": session, "custom": { "n": next } })).await {
            return known;
        }
        known.set = next;
        known.times.push((next, Timestamp::now()));
        if !acknowledged("/api/context/record", json!({ "session": session, "resource_id": format!("r{next}") })).await {
            return known;
        }
        known.recorded = next;
    }
}

/// Lets all clients count for this long, then kills the server.
async fn count_and_kill(server: &mut Server, clients: Vec<Acknowledged>, time: Duration) -> Vec<Acknowledged> {
    let counting = clients
        .into_iter()
        .enumerate()
        .map(|(number, known)| tokio::spawn(count_up(server.client.clone(), server.url.clone(), format!("c{number}"), known)));
    let counting: Vec<_> = counting.collect();
    tokio::time::sleep(time).await;
    server.kill();
    futures_util::future::join_all(counting).await.into_iter().map(|known| known.expect("acknowledged")).collect()
}

fn clients() -> Vec<Acknowledged> {
    (0..CLIENTS).map(|_| Acknowledged::default()).collect()
}

async fn number_in(server: &Server, client: usize) -> u64 {
    let (status, context) = server.get(&format!("/api/context?session=c{client}")).await;
    assert_eq!(status, 200, "{context}");
    context["custom"]["n"].as_u64().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_loses_no_acknowledged_change() {
    let rounds = if torture() { 50 } else { 5 };
    let (random, folders) = (Random::new(), Folders::new());
    let mut clients = clients();
    for round in 0..=rounds {
        let mut server = Server::start_with(&folders, &["--log", "error"]);
        for (number, known) in clients.iter().enumerate() {
            let where_from = format!("round {round}, client {number}, SEED={}", random.seed);
            let found = number_in(&server, number).await;
            assert!(found >= known.set, "{where_from}: found {found}, {} was acknowledged", known.set);
            if known.recorded > 0 {
                let (_, note) = server.get(&format!("/api/context/check?session=c{number}&resource_id=r{}", known.recorded)).await;
                assert_eq!(note["note"], "document_already_fetched_this_session", "{where_from}: {note}");
            }
        }
        if round < rounds {
            clients = count_and_kill(&mut server, clients, Duration::from_millis(30 + random.below(500))).await;
        }
    }
    assert!(clients.iter().all(|known| known.recorded > rounds), "too few changes were acknowledged");
}

/// The time since which changes are lost, if the server reports a loss.
async fn lost_since(server: &Server, log: &std::path::Path) -> Option<Timestamp> {
    // The server listens before it opens its stores, so this waits for them.
    server.get("/healthz").await;
    let said = std::fs::read_to_string(log).expect("a log");
    let (_, since) = said.split_once(LOST)?;
    Some(since.split_whitespace().next().and_then(|since| since.parse().ok()).unwrap_or_else(|| panic!("no time: {said}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_loses_only_unflushed_changes_and_reports_it() {
    const FLUSH: Duration = Duration::from_secs(1);
    // Tolerance for late timer ticks on a loaded machine.
    const LATE_MAX: Duration = Duration::from_millis(1500);
    let rounds = if torture() { 10 } else { 2 };
    let (random, folders) = (Random::new(), Folders::new());
    let (log, arguments) = (folders.path().join("log"), ["--context-store", "memory", "--context-flush", "1s"]);
    for round in 0..rounds {
        let mut server = Server::start_logged(&folders, &arguments, &log);
        assert_eq!(lost_since(&server, &log).await, None, "the previous shutdown was clean");
        for number in 0..CLIENTS {
            server.delete(&format!("/api/context?session=c{number}")).await;
        }
        let clients = count_and_kill(&mut server, clients(), FLUSH * 3 + Duration::from_millis(random.below(1000))).await;
        let killed_at = Timestamp::now();
        let server = Server::start_logged(&folders, &arguments, &log);
        let since = lost_since(&server, &log).await.expect("it says since when changes are lost");
        let lost = Duration::try_from(killed_at.duration_since(since)).expect("flushed before it was killed");
        assert!(lost < FLUSH + LATE_MAX, "round {round}: {lost:?} are lost");
        for (number, known) in clients.iter().enumerate() {
            let safe = known.times.iter().filter(|(_, time)| *time < since).map(|(number, _)| *number).max();
            let (found, safe) = (number_in(&server, number).await, safe.expect("some came before the flush"));
            assert!(found >= safe, "round {round}: found {found}, {safe} was acknowledged before the flush at {since}");
        }
        assert_eq!(server.terminate(), Some(0));
    }
}
