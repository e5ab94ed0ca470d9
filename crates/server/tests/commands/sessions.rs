//! `heapstead sessions`: the same results from a server and from its stores.

use crate::common::Place;
use crate::fixture::{Folders, SNAPSHOT, Server};
use crate::heaps::{at_stores, both, json_of_both};
use serde_json::{Value, json};

async fn open(server: &Server) -> String {
    let (status, session) = server.post("/api/sessions", json!({})).await;
    assert_eq!(status, 200, "{session}");
    session["session_id"].as_str().expect("an id").to_owned()
}

/// More turns than one request repeats.
#[tokio::test]
async fn the_turns_of_a_session_are_repeated() {
    const TURNS: usize = 52;
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let session = open(&server).await;
    for _ in 0..TURNS {
        server.run_with(json!({ "code": "var last = [globalThis.last?.length, Math.random()]; Date.now()", "session": session })).await;
    }
    let report = json_of_both(&server, &["sessions", "replay", &session]);
    let turns = report["turns"].as_array().expect("turns");
    assert!(turns.len() == TURNS && turns.iter().zip(0..).all(|(turn, number)| turn["turn"] == json!(number)), "{report}");
    assert_eq!(report["identical"], true, "{report}");
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    let id = turns[3]["execution_id"].as_str().expect("an id");
    database.execute("UPDATE journal SET output_sha256 = zeroblob(32) WHERE execution_id = ?", [id]).expect("changed");
    for ran in both(&server, &["sessions", "replay", &session, "--from", "2", "--to", "4"]) {
        let rows: Vec<Vec<_>> = ran.out.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(rows.iter().map(|row| (row[0], row[2])).collect::<Vec<_>>(), [("2", "identical"), ("3", "differs"), ("4", "identical")]);
        assert_eq!((rows[1][1], rows[1][3]), (id, "output"), "{ran:?}");
    }
}

#[tokio::test]
async fn sessions_are_listed_shown_forked_and_ended() {
    let server = Server::start_with(&Folders::new(), SNAPSHOT);
    let session = open(&server).await;
    let first = server.run_with(json!({ "code": "let n = 1", "session": session })).await;
    server.run_with(json!({ "code": "++n", "session": session })).await;

    // A server without authentication lists no sessions, because an id grants access. The operator can list them from the stores.
    let listed = at_stores(server.folders(), &["sessions", "ls", "--json"]).json();
    assert_eq!(listed["sessions"][0]["session_id"], json!(session), "{listed}");
    let asked = Place::new().ran(["sessions", "ls", "--json", "--url", &server.url]).json();
    assert_eq!(asked, json!({ "sessions": [], "logs": [] }));
    // Sessions that have only a log come after them, whatever their names.
    let logs = ["a".repeat(64), "notes".to_owned()];
    for name in &logs {
        server.run_with(json!({ "code": "1", "session": name })).await;
        assert_eq!(json_of_both(&server, &["sessions", "log", name])["entries"][0]["code"], "1");
    }
    for ran in both(&server, &["sessions", "ls", "--json"]) {
        assert_eq!(ran.json()["logs"], json!(logs), "{ran:?}");
    }
    let listed = at_stores(server.folders(), &["sessions", "ls"]);
    let rows: Vec<_> = listed.out.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, [session.as_str(), &logs[0], &logs[1]], "{listed:?}");

    // Only a server knows whether the session is live.
    let shown = both(&server, &["sessions", "show", &session, "--json"]).map(|ran| ran.json());
    assert_eq!((&shown[0]["live"], &shown[1]["live"]), (&Value::Null, &json!(false)), "{shown:?}");
    let [stores, asked] =
        shown.map(|shown| Value::from_iter(shown.as_object().cloned().into_iter().flatten().filter(|(name, _)| name != "live")));
    assert_eq!((&stores, &stores["runs"]), (&asked, &json!(2)));
    let log = json_of_both(&server, &["sessions", "log", &session]);
    let codes: Vec<_> = log["entries"].as_array().expect("entries").iter().map(|entry| entry["code"].clone()).collect();
    assert_eq!(codes, [json!("let n = 1"), json!("++n")]);
    for ran in both(&server, &["sessions", "log", &session]) {
        assert!(ran.code == Some(0) && ran.out.starts_with("INDEX ") && ran.out.contains("++n"), "{ran:?}");
    }

    let heap = first["heap"].as_str().expect("a heap");
    for ran in both(&server, &["sessions", "fork", &session, "--heap", heap, "--json"]) {
        let fork = ran.json();
        assert_eq!((&fork["head"], &fork["runs"]), (&first["heap"], &json!(0)), "{fork}");
        let on = server.run_with(json!({ "code": "n", "session": fork["session_id"] })).await;
        assert_eq!(on["result"], "1");
    }

    for by_stores in [true, false] {
        let session = open(&server).await;
        let arguments = ["sessions", "end", &session];
        let ran = match by_stores {
            true => at_stores(server.folders(), &arguments),
            false => Place::new().ran(arguments.iter().chain(&["--url", &server.url])),
        };
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), format!("ended {session}\n").as_str()), "{ran:?}");
        for ran in both(&server, &["sessions", "show", &session]) {
            assert_eq!(ran.code, Some(1), "{ran:?}");
            assert!(ran.err.contains(&session) && ran.err.contains("next: "), "{ran:?}");
        }
    }
}

#[tokio::test]
async fn the_state_key_is_rotated_on_the_local_stores() {
    let server = Server::start();
    let done = at_stores(server.folders(), &["sessions", "rotate-key", "--json"]);
    assert_eq!((done.code, done.json()), (Some(0), json!({ "ok": true })), "{done:?}");
    let refused = Place::new().ran(["sessions", "rotate-key", "--url", &server.url]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let database = rusqlite::Connection::open(server.folders().database().join("heapstead.db")).expect("the database");
    let keys: i64 =
        database.query_row("SELECT count(*) FROM server_keys WHERE purpose = 'session_state'", [], |row| row.get(0)).expect("a count");
    assert!(keys >= 1, "{keys}");
}

#[tokio::test]
async fn ending_a_session_on_the_stores_removes_its_context() {
    let folders = Folders::new();
    let kept = || {
        let database = rusqlite::Connection::open(folders.database().join("context.db")).expect("the database");
        database.query_row("SELECT count(*) FROM context_records", [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    for store in ["sqlite", "memory"] {
        let server = Server::start_with(&folders, &["--context-store", store]);
        let ended = open(&server).await;
        for session in [&ended, "stays"] {
            assert_eq!(server.post("/api/context", json!({ "session": session, "custom": { "k": 1 } })).await.0, 200);
        }
        assert_eq!(server.terminate(), Some(0));
        assert_eq!(kept(), 2, "{store}");
        let ran = at_stores(&folders, &["sessions", "end", &ended]);
        assert_eq!((ran.code, kept()), (Some(0), 1), "{store}: {ran:?}");
    }
}

#[tokio::test]
async fn a_live_session_is_shown_with_its_checkpoint_and_its_tail() {
    let server = Server::start_with(&Folders::new(), &["--session-durability", "journal"]);
    let session = open(&server).await;
    server.run_with(json!({ "code": "globalThis.kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); 1", "session": session })).await;
    let shown = Place::new().ran(["sessions", "show", &session, "--url", &server.url]);
    let line = |name: &str| shown.out.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned();
    assert_eq!((line("checkpoint"), line("tail")), ("none yet".into(), "1 turns after the checkpoint".into()), "{shown:?}");
    assert_eq!((line("live"), line("turns")), ("yes".into(), "1".into()), "{shown:?}");
    let listed = at_stores(server.folders(), &["sessions", "ls"]);
    let rows: Vec<Vec<_>> = listed.out.lines().map(|line| line.split_whitespace().collect()).collect();
    // Story: the turns were called runs, and the memory was in the column that says whether a session is live.
    assert_eq!(rows[0][..6], ["SESSION", "TURNS", "CHECKPOINT", "TAIL", "LIVE", "MEMORY"], "{listed:?}");
    assert_eq!(
        rows[1][..6],
        [session.as_str(), "1", "-", "1", "-", "-"],
        "who reads the database does not see the memory of a server: {listed:?}"
    );
    // Story: JSON said `false`, although a server had the session in its memory.
    let listed = at_stores(server.folders(), &["sessions", "ls", "--json"]).json();
    assert_eq!((listed["sessions"][0].get("live"), &listed["sessions"][0]["tail_turns"]), (Some(&Value::Null), &json!(1)), "{listed}");
    let shown = at_stores(server.folders(), &["sessions", "show", &session, "--json"]).json();
    assert_eq!((shown.get("live"), &shown["turns"]), (Some(&Value::Null), &json!(1)), "{shown}");
    let not_live = open(&server).await;
    let shown = Place::new().ran(["sessions", "show", &not_live, "--url", &server.url]);
    assert!(shown.out.lines().any(|line| line.split_whitespace().eq(["live", "no"])), "a server knows: {shown:?}");
}

#[tokio::test]
async fn undone_turns_are_marked_in_the_log() {
    let server = Server::start();
    let session = open(&server).await;
    for code in ["var n = 1", "n += 1"] {
        server.run_with(json!({ "code": code, "session": session })).await;
    }
    assert_eq!(server.post(&format!("/api/sessions/{session}/undo"), json!({})).await.0, 200);
    for ran in both(&server, &["sessions", "log", &session]) {
        let marks: Vec<_> = ran.out.lines().skip(1).map(|line| line.contains("(undone)")).collect();
        assert_eq!(marks, [false, true], "{ran:?}");
    }
}
