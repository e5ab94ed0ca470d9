//! The same intent of the same owner denotes the same session: for concurrent calls, after a reconnect, after a restart, on another server.

use crate::owner::{Owner, Site, context, table};
use crate::peer::Http;
use serde_json::json;
use std::collections::HashSet;

#[tokio::test]
async fn a_thousand_concurrent_calls_create_one_session() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let (one, two) = (site.start(&[]), site.start(&[]));
    let calls = (0..1000).map(|number| ann.context(if number % 2 == 0 { &one } else { &two }, "one task", &[("statistics", "mean")]));
    let answers = futures_util::future::join_all(calls).await;
    let ids: HashSet<_> = answers.iter().map(|answer| answer["logical_session_id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "one session");
    let bindings: HashSet<_> = answers.iter().map(|answer| answer["execute_binding"].to_string()).collect();
    assert_eq!(bindings.len(), 1, "bound once");
    let opened = answers.iter().filter(|answer| answer["continuity"]["new_symbol_space"] == true).count();
    assert_eq!(opened, 1, "reported as new once");
}

#[tokio::test]
async fn a_session_survives_a_restart_and_is_the_same_on_another_server() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let first = ann.context(&server, "a task", &[("statistics", "mean")]).await;
    let session = first["logical_session_ref"].clone();
    assert_eq!(ann.run(&server, &session, "let kept = e1([1, 2, 3]); kept").await["result"], "2");
    drop(server);

    let server = site.start(&[]);
    let again = ann.context(&server, "a task", &[("statistics", "mean")]).await;
    assert_eq!(again["logical_session_id"], first["logical_session_id"]);
    assert_eq!(again["logical_session_ref"], session, "without a connection, refs belong to the owner");
    assert_eq!(again["execute_binding"], first["execute_binding"]);
    assert_eq!((&again["wave"]["mode"], &again["continuity"]["resumed_from_snapshot"]), (&json!("noop"), &json!(true)), "{again}");
    assert_eq!(ann.run(&server, &session, "kept + e1([1])").await["result"], "3");

    let other = site.start(&[]);
    let elsewhere = ann.context(&other, "a task", &[]).await;
    assert_eq!(elsewhere["logical_session_id"], first["logical_session_id"]);
    let another = ann.context(&other, "another task", &[]).await;
    assert_ne!(another["logical_session_id"], first["logical_session_id"]);
    assert_eq!(another["logical_session_ref"], "s1");
}

#[tokio::test]
async fn a_client_with_credentials_finds_its_session_again_on_another_connection() {
    let site = Site::new();
    let token = format!("Bearer {}", site.token("acme/ann"));
    let server = site.start(&[]);
    let mut found = Vec::new();
    for code in ["let x = 1; x", "++x"] {
        let client = Http::connect(&server, "2025-11-25", &[("authorization", &token)]).await;
        let opened = client.call("session_context", context("a task", &[])).await["structuredContent"].clone();
        let run = json!({ "code": code, "session": opened["logical_session_ref"], "wait_secs": 60 });
        found.push((opened["logical_session_id"].clone(), client.call("run_js", run).await["structuredContent"]["result"].clone()));
    }
    assert_eq!(found[0].0, found[1].0);
    assert_eq!((&found[0].1, &found[1].1), (&json!("1"), &json!("2")));
}

#[tokio::test]
async fn the_same_intent_of_another_owner_is_another_session() {
    let site = Site::new();
    let (ann, bob) = (Owner::new(&site.token("acme/ann")), Owner::new(&site.token("acme/bob")));
    let server = site.start(&[]);
    let hers = ann.context(&server, "a task", &[]).await;
    let his = bob.context(&server, "a task", &[]).await;
    assert_ne!(hers["logical_session_id"], his["logical_session_id"]);
    ann.run(&server, &hers["logical_session_ref"], "let secret = 1").await;
    assert_eq!(bob.run(&server, &his["logical_session_ref"], "typeof secret").await["result"], "\"undefined\"");

    // Over REST, her id is an ordinary unused name: it denotes a new log of his own.
    for name in [&hers["logical_session_id"], &json!("00000000-0000-4000-8000-000000000000")] {
        assert_eq!(bob.run(&server, name, "typeof secret").await["result"], "\"undefined\"");
        let (_, log) = bob.get(&server, &format!("/api/session-snapshots?session={}", name.as_str().expect("an id"))).await;
        assert_eq!(log["entries"].as_array().map(Vec::len), Some(1), "{log}");
    }
    assert_eq!(ann.run(&server, &hers["logical_session_id"], "secret").await["result"], "1");
    // Where only handles are accepted, it is refused like an id that never existed, and the error says what to do.
    let token = format!("Bearer {}", bob.token);
    let client = Http::connect(&server, "2025-11-25", &[("authorization", &token)]).await;
    let mut refusals = Vec::new();
    let another = ann.context(&server, "another task", &[]).await["logical_session_id"].clone();
    for id in [another.as_str().expect("an id"), "00000000-0000-4000-8000-000000000001"] {
        let refused = client.call("run_js", json!({ "code": "1", "session": id })).await;
        assert_eq!(refused["isError"], true, "{refused}");
        refusals.push(refused["content"][0]["text"].as_str().expect("a text").replace(id, "ID"));
    }
    assert_eq!(refusals[0], refusals[1]);
    assert!(refusals[0].contains("session_context"), "{}", refusals[0]);
}

/// Without a connection, refs are numbered per owner. An existing log whose name looks like a ref keeps its name.
#[tokio::test]
async fn a_ref_is_never_the_name_of_a_log() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    for name in ["s0", "s1", "s03"] {
        assert_eq!(ann.run(&server, &json!(name), "1").await["status"], "completed", "{name}");
    }
    let mut refs = Vec::new();
    for intent in ["a", "b"] {
        refs.push(ann.context(&server, intent, &[]).await["logical_session_ref"].clone());
    }
    assert_eq!(refs, [json!("s2"), json!("s3")]);
    ann.run(&server, &refs[1], "let x = 1").await;
    for (name, seen) in [("s3", "\"number\""), ("s03", "\"undefined\""), ("s0", "\"undefined\"")] {
        assert_eq!(ann.run(&server, &json!(name), "typeof x").await["result"], seen, "{name}");
    }
}

/// An owner's intents are unique, so an intent given with the session of another intent would denote two sessions.
#[tokio::test]
async fn an_intent_of_an_owner_never_denotes_two_sessions() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let first = ann.context(&server, "first", &[]).await["logical_session_id"].clone();
    let second = ann.context(&server, "second", &[]).await["logical_session_id"].clone();
    for intent in ["second", "new"] {
        let (status, refused) = ann.post(&server, "/api/session-context", json!({ "intent": intent, "logical_session_id": first })).await;
        assert_eq!(status, 400, "{refused}");
        assert!(refused["detail"].as_str().expect("a reason").contains("`logical_session_id` is"), "{refused}");
    }
    let (status, same) = ann.post(&server, "/api/session-context", json!({ "intent": "second", "logical_session_id": second })).await;
    assert_eq!((status, &same["logical_session_id"]), (200, &second), "{same}");
}

#[tokio::test]
async fn the_order_of_seeds_never_matters() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let seeds = [("statistics", "mean"), ("dates", "addMonths"), ("statistics", "median"), ("dates", "addDays")];
    let forwards = ann.context(&server, "forwards", &seeds).await;
    let mut reversed = seeds.to_vec();
    reversed.reverse();
    reversed.push(("statistics", "mean"));
    let backwards = ann.context(&server, "backwards", &reversed).await;
    assert_eq!(table(&forwards["wave"]), table(&backwards["wave"]));
    assert_eq!(forwards["execute_binding"]["prompt_hash"], backwards["execute_binding"]["prompt_hash"]);
}

#[tokio::test]
async fn a_refused_call_creates_no_session() {
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let server = site.start(&[]);
    let refused = [
        (json!({ "intent": "x", "seeds": [] }), "seeds"),
        (json!({ "intent": "", "seeds": [{ "catalog": "statistics", "entity": "mean" }] }), "intent"),
        (json!({ "intent": "é".repeat(257) }), "intent"),
        (context("x", &[("statistic", "mean")]), "`statistics`"),
        (context("x", &[("statistics", "meen")]), "`mean`"),
        (context("x", &[("statistics", "mean"), ("dates", "nothing")]), "dates"),
        (json!({ "intent": "x", "seeds": "mean" }), "seeds"),
        (json!({ "intent": "x", "seeds": [{ "catalog": "statistics" }] }), "entity"),
    ];
    for (body, named) in refused {
        let (status, problem) = ann.post(&server, "/api/session-context", body.clone()).await;
        assert_eq!(status, 400, "{body}: {problem}");
        assert!(problem["detail"].as_str().expect("a text").contains(named), "{body}: {problem}");
    }
    let (_, sessions) = ann.get(&server, "/api/sessions/opened").await;
    assert_eq!(sessions, json!({ "sessions": [] }));
}

/// A module that fails to evaluate fails only when the session already exists.
#[tokio::test]
async fn a_call_whose_seed_throws_creates_no_session() {
    let site = Site::with_own_catalog();
    let ann = Owner::new(&site.token("acme/ann"));
    let (file, broken) = (site.catalog_file("average.ts"), "\nthrow new Error('broken');\n");
    let sound = std::fs::read_to_string(&file).expect("the catalog");
    std::fs::write(&file, format!("{sound}{broken}")).expect("written");
    let server = site.start(&[]);
    let (status, refused) = ann.post(&server, "/api/session-context", context("a task", &[("statistics", "mean")])).await;
    assert!(status >= 400 && refused["detail"].as_str().is_some_and(|text| text.contains("broken")), "{refused}");
    let (_, sessions) = ann.get(&server, "/api/sessions/opened").await;
    assert_eq!(sessions, json!({ "sessions": [] }));
    // Existing entities stay unchanged.
    let first = ann.context(&server, "a task", &[("dates", "addDays")]).await;
    assert_eq!((&first["wave"]["mode"], &first["logical_session_ref"]), (&json!("open"), &json!("s0")));
    assert!(ann.post(&server, "/api/session-context", context("a task", &[("statistics", "mean")])).await.0 >= 400);
    assert_eq!(ann.context(&server, "a task", &[("dates", "addDays")]).await["wave"]["mode"], "noop");
}

/// A task could not be deleted: ending its session only cleared its state.
#[tokio::test]
async fn a_task_is_cleared_or_forgotten() {
    let site = Site::new();
    let (ann, bob) = (Owner::new(&site.token("acme/ann")), Owner::new(&site.token("acme/bob")));
    let server = site.start(&[]);
    let open = async || ann.post(&server, "/api/session-context", json!({ "intent": "plan" })).await.1;
    let first = open().await;
    let path = format!("/api/sessions/{}", first["logical_session_id"].as_str().expect("an id"));
    assert_eq!(ann.delete(&server, &path).await.0, 200);
    assert_eq!(open().await["logical_session_id"], first["logical_session_id"], "it keeps its id");
    let forget = format!("{path}?forget=true");
    assert_eq!(bob.delete(&server, &forget).await.0, 404, "of another owner");
    assert_eq!(ann.delete(&server, &forget).await.0, 200);
    assert_eq!(ann.delete(&server, &forget).await.0, 404, "it is gone");
    let next = open().await;
    assert_ne!(next["logical_session_id"], first["logical_session_id"]);
    assert_ne!(next["logical_session_ref"], first["logical_session_ref"], "a ref never changes its meaning");
}
