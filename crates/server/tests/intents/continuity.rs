//! A loss of session state is reported truthfully and exactly once, whichever call notices it first.

use crate::fixture::Server;
use crate::owner::{Owner, Site, table};
use serde_json::{Value, json};
use std::time::Duration;

/// Ways to lose the state of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Expired,
    HeapCollected,
    HeapDamaged,
    EngineChanged,
    CatalogChanged,
    Cleared,
}

impl Loss {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Expired, "expired"),
        (Self::HeapCollected, "heap_collected"),
        (Self::HeapDamaged, "heap_damaged"),
        (Self::EngineChanged, "engine_changed"),
        (Self::CatalogChanged, "catalog_changed"),
        (Self::Cleared, "cleared"),
    ];

    fn arguments(self) -> &'static [&'static str] {
        if self == Self::Expired { &["--session-ttl", "2s"] } else { &[] }
    }

    /// Applies the loss to a session with this head.
    async fn apply(self, site: &Site, ann: &Owner, server: Server, session: &str, head: &str) -> Server {
        let heap = site.folders.heaps().join(head);
        match self {
            Self::Expired => tokio::time::sleep(Duration::from_millis(2500)).await,
            Self::HeapCollected => std::fs::remove_file(heap).expect("removed"),
            Self::HeapDamaged => {
                let mut bytes = std::fs::read(&heap).expect("the heap");
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(&heap, bytes).expect("written");
            }
            Self::EngineChanged => {
                drop(server);
                let database = rusqlite::Connection::open(site.folders.database().join("heapstead.db")).expect("the database");
                let changed = database.execute("UPDATE heaps SET engine = replace(engine, 'v8-14', 'v8-13')", []);
                assert!(changed.is_ok_and(|changed| changed >= 2), "the head, and what it was made from");
                // As in a database of a version that did not record imports: otherwise the state would be rebuilt (`upgrade.rs`).
                assert!(database.execute("DELETE FROM journal WHERE is_import", []).is_ok_and(|deleted| deleted > 0));
                return site.start(&[]);
            }
            Self::CatalogChanged => {
                drop(server);
                let file = site.catalog_file("index.ts");
                let text = std::fs::read_to_string(&file).expect("the catalog");
                std::fs::write(file, format!("// Another one.\n{text}")).expect("written");
                return site.start(&[]);
            }
            Self::Cleared => {
                let (status, done) = ann.delete(&server, &format!("/api/sessions/{session}")).await;
                assert_eq!(status, 200, "{done}");
            }
        }
        server
    }
}

/// Creates a session with some state, and returns it with its head.
async fn begin(site: &Site, ann: &Owner, loss: Loss) -> (Server, Value, String) {
    let server = site.start(loss.arguments());
    let first = ann.context(&server, "a task", &[("statistics", "mean")]).await;
    assert_eq!(first["continuity"]["new_symbol_space"], true);
    assert_eq!(first["continuity"]["stale_binding_recovered"], false);
    let body =
        json!({ "code": "let kept = e1([1, 3])", "session": first["logical_session_id"], "durability": "snapshot", "wait_secs": 60 });
    let (_, run) = ann.post(&server, "/api/exec", body).await;
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run.get("continuity"), None, "nothing to report: {run}");
    let head = run["heap"].as_str().expect("a heap").to_owned();
    (server, first, head)
}

fn check_loss_reported(reported: &Value, first: &Value, reason: &str) {
    let continuity = &reported["continuity"];
    assert_eq!(
        (&continuity["stale_binding_recovered"], &continuity["new_symbol_space"], &continuity["discard_cached_plasm_symbols"]),
        (&json!(true), &json!(true), &json!(true)),
        "{reported}"
    );
    assert_eq!((&continuity["reason"], &continuity["previous_execute"]), (&json!(reason), &first["execute_binding"]), "{reported}");
    assert_ne!(reported["execute_binding"], first["execute_binding"]);
    let domain = reported["wave"]["domain"].as_str().expect("a table");
    assert!(domain.starts_with("NOTICE") && domain.contains("void") && domain.contains("statistics.mean"), "{domain}");
    assert_eq!(reported["wave"]["mode"], "recover");
}

fn check_no_loss_reported(answer: &Value) {
    let continuity = &answer["continuity"];
    for field in ["stale_binding_recovered", "new_symbol_space", "discard_cached_plasm_symbols", "resumed_from_snapshot"] {
        assert_eq!(continuity[field], false, "{field}: {answer}");
    }
    assert_eq!(continuity.get("reason"), None);
}

#[tokio::test]
async fn a_loss_noticed_by_session_context_is_reported_once() {
    for (loss, reason) in Loss::ALL {
        let site = Site::with_own_catalog();
        let ann = Owner::new(&site.token("acme/ann"));
        let (server, first, head) = begin(&site, &ann, loss).await;
        let id = first["logical_session_id"].as_str().expect("an id").to_owned();
        let server = loss.apply(&site, &ann, server, &id, &head).await;

        let reported = ann.context(&server, "a task", &[("statistics", "mean")]).await;
        assert_eq!(reported["logical_session_id"], first["logical_session_id"], "the id stays: {loss:?}");
        check_loss_reported(&reported, &first, reason);
        check_no_loss_reported(&ann.context(&server, "a task", &[("statistics", "mean")]).await);
        let run = ann.run(&server, &first["logical_session_id"], "typeof kept + e1([5])").await;
        assert_eq!((run["result"].as_str(), run.get("continuity")), (Some("\"undefined5\""), None), "{loss:?}: {run}");
    }
}

#[tokio::test]
async fn a_loss_noticed_by_a_run_is_reported_once() {
    for (loss, reason) in Loss::ALL {
        let site = Site::with_own_catalog();
        let ann = Owner::new(&site.token("acme/ann"));
        let (server, first, head) = begin(&site, &ann, loss).await;
        let id = first["logical_session_id"].as_str().expect("an id").to_owned();
        let server = loss.apply(&site, &ann, server, &id, &head).await;

        let run = ann.run(&server, &first["logical_session_id"], "typeof kept + e1([5])").await;
        assert_eq!(run["result"], "\"undefined5\"", "{loss:?}: {run}");
        check_loss_reported(&run, &first, reason);
        // The record shows it to later readers too.
        let (_, record) = ann.get(&server, &format!("/api/executions/{}", run["execution_id"].as_str().expect("an id"))).await;
        assert_eq!(record["continuity"], run["continuity"]);
        check_no_loss_reported(&ann.context(&server, "a task", &[("statistics", "mean")]).await);
        let next = ann.run(&server, &first["logical_session_id"], "1").await;
        assert_eq!(next.get("continuity"), None, "{next}");
    }
}

#[tokio::test]
async fn a_failed_run_still_reports_the_loss_and_the_new_symbols_stay() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let (server, first, head) = begin(&site, &ann, Loss::HeapCollected).await;
    let server = Loss::HeapCollected.apply(&site, &ann, server, "", &head).await;
    let run = ann.run(&server, &first["logical_session_id"], "throw new Error('no')").await;
    assert_eq!(run["status"], "failed");
    check_loss_reported(&run, &first, "heap_collected");
    let next = ann.context(&server, "a task", &[]).await;
    check_no_loss_reported(&next);
    assert_eq!(next["execute_binding"], run["execute_binding"]);
    assert_eq!(ann.run(&server, &first["logical_session_id"], "e1([4])").await["result"], "4");
}

#[tokio::test]
async fn a_run_with_on_stale_fail_is_refused_and_the_loss_is_still_reported() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let (server, first, head) = begin(&site, &ann, Loss::HeapCollected).await;
    let server = Loss::HeapCollected.apply(&site, &ann, server, "", &head).await;
    let body = json!({ "code": "1", "session": first["logical_session_id"], "on_stale": "fail", "wait_secs": 60 });
    for _ in 0..2 {
        let (status, refused) = ann.post(&server, "/api/exec", body.clone()).await;
        assert_eq!(status, 409, "{refused}");
        assert!(refused["detail"].as_str().expect("a text").contains("session_context"), "{refused}");
    }
    check_loss_reported(&ann.context(&server, "a task", &[]).await, &first, "heap_collected");
    assert_eq!(ann.post(&server, "/api/exec", body).await.0, 200);
}

#[tokio::test]
async fn restored_state_is_reported_once() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    for by_run in [false, true] {
        let server = site.start(&[]);
        let intent = format!("a task {by_run}");
        let first = ann.context(&server, &intent, &[("statistics", "mean")]).await;
        ann.run(&server, &first["logical_session_id"], "let kept = 7").await;
        drop(server);
        let server = site.start(&[]);
        let reported = match by_run {
            true => ann.run(&server, &first["logical_session_id"], "kept").await,
            false => ann.context(&server, &intent, &[]).await,
        };
        let continuity = &reported["continuity"];
        assert_eq!((&continuity["resumed_from_snapshot"], &continuity["new_symbol_space"]), (&json!(true), &json!(false)), "{reported}");
        check_no_loss_reported(&ann.context(&server, &intent, &[]).await);
        assert_eq!(ann.run(&server, &first["logical_session_id"], "kept + e1([1])").await["result"], "8");
    }
}

#[tokio::test]
async fn reverting_a_catalog_restores_its_symbols() {
    let site = Site::with_own_catalog();
    let ann = Owner::new(&site.token("acme/ann"));
    let (server, first, head) = begin(&site, &ann, Loss::CatalogChanged).await;
    let file = site.catalog_file("index.ts");
    let original = std::fs::read_to_string(&file).expect("the catalog");
    let server = Loss::CatalogChanged.apply(&site, &ann, server, "", &head).await;
    let changed = ann.context(&server, "a task", &[("statistics", "mean")]).await;
    check_loss_reported(&changed, &first, "catalog_changed");
    drop(server);
    std::fs::write(&file, original).expect("written");
    let server = site.start(&[]);
    let back = ann.context(&server, "a task", &[("statistics", "mean")]).await;
    assert_eq!(back["execute_binding"], first["execute_binding"], "the same execute session is bound again: {back}");
    let continuity = &back["continuity"];
    assert_eq!((&continuity["new_symbol_space"], &continuity["stale_binding_recovered"]), (&json!(false), &json!(true)), "{back}");
    assert_eq!((&continuity["previous_execute"], &continuity["reason"]), (&changed["execute_binding"], &json!("catalog_changed")));
    let domain = back["wave"]["domain"].as_str().expect("a table");
    assert!(domain.starts_with("NOTICE") && !domain.contains("void"), "the symbols are the same: {domain}");
    check_no_loss_reported(&ann.context(&server, "a task", &[]).await);
    assert_eq!(ann.run(&server, &first["logical_session_id"], "kept + e1([1])").await["result"], "3");
}

/// Symbols are assigned wave by wave, and a recovery assigns them again in a new order: here the second and the third are swapped.
/// Regression: when the catalog changed back, the earlier table was restored silently, and the session's work in between was lost without a
/// notice.
#[tokio::test]
async fn a_return_to_an_earlier_symbol_table_is_reported() {
    for by_run in [false, true] {
        let site = Site::with_own_catalog();
        let ann = Owner::new(&site.token("acme/ann"));
        let server = site.start(&[]);
        let mut first = Value::Null;
        for pick in [("dates", "addDays"), ("statistics", "median"), ("statistics", "mean")] {
            first = ann.context(&server, "a task", &[pick]).await;
        }
        let id = &first["logical_session_id"];
        assert_eq!(ann.run(&server, id, "globalThis.kept = 1; e2([1, 2, 9])").await["result"], "2");
        let file = site.catalog_file("index.ts");
        let original = std::fs::read_to_string(&file).expect("the catalog");
        let server = Loss::CatalogChanged.apply(&site, &ann, server, "", "").await;
        let changed = ann.context(&server, "a task", &[]).await;
        check_loss_reported(&changed, &first, "catalog_changed");
        assert_eq!(ann.run(&server, id, "globalThis.between = 1; e2([1, 2, 9])").await["result"], "4", "e2 is another one now");
        drop(server);
        std::fs::write(&file, original).expect("written");
        let server = site.start(&[]);

        let reported = match by_run {
            true => ann.run(&server, id, "1").await,
            false => ann.context(&server, "a task", &[]).await,
        };
        assert_eq!(reported["execute_binding"], first["execute_binding"], "{reported}");
        check_loss_reported(&reported, &changed, "catalog_changed");
        let taught: Vec<_> =
            table(&reported["wave"]).into_iter().filter(|(symbol, ..)| symbol.starts_with('e')).map(|(.., name)| name).collect();
        assert_eq!(taught, ["dates.addDays", "statistics.median", "statistics.mean"], "the whole table: {reported}");
        check_no_loss_reported(&ann.context(&server, "a task", &[]).await);
        let run = ann.run(&server, id, "[typeof between, kept, e2([1, 2, 9])]").await;
        assert_eq!((run["result"].as_str(), run.get("continuity")), (Some(r#"["undefined",1,2]"#), None), "{run}");
    }
}

/// A response that is only an id reports nothing, so the next response that can must report it.
#[tokio::test]
async fn a_loss_noticed_by_an_unawaited_run_is_reported_by_the_next_response() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    for next in ["session_context", "get_execution", "run_js"] {
        let server = site.start(&[]);
        let first = ann.context(&server, next, &[("statistics", "mean")]).await;
        let session = &first["logical_session_id"];
        ann.run(&server, session, "let kept = 1").await;
        let path = format!("/api/sessions/{}", session.as_str().expect("an id"));
        assert_eq!(ann.delete(&server, &path).await.0, 200);
        let (_, begun) = ann.post(&server, "/api/exec", json!({ "code": "e1([4])", "session": session })).await;
        let id = begun["execution_id"].as_str().expect("an id");
        assert_eq!(begun, json!({ "execution_id": id }));
        // Waits for the end, but reports nothing about the session.
        let (_, output) = ann.get(&server, &format!("/api/executions/{id}/output?wait_secs=60")).await;
        assert_eq!(output["status"], "completed", "{output}");

        let reported = match next {
            "session_context" => ann.context(&server, next, &[]).await,
            "get_execution" => ann.get(&server, &format!("/api/executions/{id}")).await.1,
            _ => ann.run(&server, session, "e1([5])").await,
        };
        check_loss_reported(&reported, &first, "cleared");
        check_no_loss_reported(&ann.context(&server, next, &[("statistics", "mean")]).await);
        assert_eq!(ann.run(&server, session, "1").await.get("continuity"), None);
    }
}

/// Regression: a session expired while its code ran longer than the TTL, and lost its state.
#[tokio::test]
async fn a_session_does_not_expire_while_its_code_runs() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&["--session-ttl", "2s"]);
    let first = ann.context(&server, "a task", &[("statistics", "mean")]).await;
    let session = &first["logical_session_id"];
    let run = ann.run(&server, session, "let kept = e1([1, 3]); await new Promise((done) => setTimeout(done, 5000)); kept").await;
    assert_eq!((run["result"].as_str(), run.get("continuity")), (Some("2"), None), "{run}");
    let next = ann.run(&server, session, "kept + e1([1])").await;
    assert_eq!((next["result"].as_str(), next.get("continuity")), (Some("3"), None), "{next}");
}

#[tokio::test]
async fn of_concurrent_runs_exactly_one_reports_the_loss() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let (server, first, head) = begin(&site, &ann, Loss::HeapCollected).await;
    let server = Loss::HeapCollected.apply(&site, &ann, server, "", &head).await;
    let runs = (0..8).map(|_| ann.run(&server, &first["logical_session_id"], "e1([1])"));
    let answers = futures_util::future::join_all(runs).await;
    let reported: Vec<_> = answers.iter().filter(|answer| answer.get("continuity").is_some()).collect();
    assert_eq!(reported.len(), 1, "{answers:?}");
    check_loss_reported(reported[0], &first, "heap_collected");
    check_no_loss_reported(&ann.context(&server, "a task", &[]).await);
}
