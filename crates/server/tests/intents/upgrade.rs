//! Sessions with catalog entities outlive their engine: the imports are in the journal, as the turns are. Another set of V8's flags is another
//! engine.

use crate::fixture::{Random, Server};
use crate::owner::{Owner, Site, table};
use serde_json::{Value, json};
use std::process::Command;

const OTHER_ENGINE: &str = "--jitless";
const INTENT: &str = "a task";

/// A session with three waves and turns between them.
struct Task {
    site: Site,
    ann: Owner,
    id: Value,
    binding: Value,
    symbols: Vec<(String, String, String)>,
    turns: Vec<Value>,
}

const STATE: &str = "JSON.stringify([kept, typeof e1, e2([1, 2, 9]), Object.is(e2, statistics.median), e3('2026-01-01', 1), rows.size])";

impl Task {
    async fn begin(arguments: &[&str]) -> (Self, Server) {
        let site = Site::new();
        let ann = Owner::new(&site.token("acme/ann"));
        let server = site.start(arguments);
        let (mut turns, mut symbols) = (Vec::new(), Vec::new());
        let mut opened = Value::Null;
        let waves = [
            (("statistics", "mean"), "open", &["var kept = [e1([1, 3]), Math.random()]; kept.length", "kept.push(Date.now()); 1"][..]),
            (("statistics", "median"), "expand", &["kept.push(e2([1, 2, 9])); console.log(kept.length)"]),
            (("dates", "addDays"), "federate", &["const rows = new Map([[e3, e1]]); kept.push(e3('2026-01-01', 1)); rows.size"]),
        ];
        for (seed, mode, codes) in waves {
            opened = ann.context(&server, INTENT, &[seed]).await;
            assert_eq!(opened["wave"]["mode"], mode, "{opened}");
            symbols.extend(table(&opened["wave"]));
            for code in codes {
                turns.push(completed(&ann, &server, &opened["logical_session_id"], code).await);
            }
        }
        let (id, binding) = (opened["logical_session_id"].clone(), opened["execute_binding"].clone());
        (Self { site, ann, id, binding, symbols, turns }, server)
    }

    async fn run(&self, server: &Server, code: &str) -> Value {
        completed(&self.ann, server, &self.id, code).await
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/sessions/{}{rest}", self.id.as_str().expect("an id"))
    }

    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.site.folders.database().join("heapstead.db")).expect("the database")
    }
}

async fn completed(ann: &Owner, server: &Server, session: &Value, code: &str) -> Value {
    let record = ann.run(server, session, code).await;
    assert_eq!(record["status"], "completed", "{code}: {record}");
    record
}

fn check_resumed(answer: &Value) {
    let continuity = &answer["continuity"];
    assert_eq!(
        (&continuity["resumed_from_snapshot"], &continuity["stale_binding_recovered"], &continuity["new_symbol_space"]),
        (&json!(true), &json!(false), &json!(false)),
        "{answer}"
    );
    assert_eq!(continuity.get("reason"), None, "{answer}");
}

#[tokio::test]
async fn a_session_with_entities_goes_from_engine_to_engine() {
    for live in ["on", "off"] {
        let (task, server) = Task::begin(&["--live", live]).await;
        let state = task.run(&server, STATE).await["result"].clone();
        let (turns, first_turn) = (task.turns.len(), task.turns[0]["execution_id"].as_str().expect("an id").to_owned());
        assert_eq!(server.terminate(), Some(0));

        for (engine, added) in [
            (&["--jitless"][..], ("statistics", "variance")),
            (&[], ("dates", "differenceInDays")),
            (&["--jitless"], ("statistics", "mode")),
        ] {
            let server = task.site.start(&[&["--live", live], engine].concat());
            let first = task.run(&server, STATE).await;
            assert_eq!(first["result"], state, "{live} {engine:?}: {first}");
            check_resumed(&first);
            let next = task.run(&server, "kept.length").await;
            assert_eq!(next.get("continuity"), None, "it is rebuilt once: {next}");
            let same = task.ann.context(&server, INTENT, &[("statistics", "mean")]).await;
            assert_eq!((&same["execute_binding"], &same["wave"]["mode"]), (&task.binding, &json!("noop")), "{same}");
            for (symbol, _, name) in task.symbols.iter().filter(|(symbol, ..)| symbol.starts_with('e')) {
                let is_same = task.run(&server, &format!("Object.is({symbol}, {name})")).await;
                assert_eq!(is_same["result"], "true", "{symbol} is {name}");
            }
            task.ann.context(&server, INTENT, &[added]).await;
            let (_, report) = task.ann.post(&server, &task.path("/replay"), json!({})).await;
            assert_eq!(report["identical"], true, "{live} {engine:?}: {report}");
            assert!(report["turns"].as_array().is_some_and(|all| all.len() > turns), "{report}");
            let (_, report) = task.ann.post(&server, &format!("/api/executions/{first_turn}/replay"), json!({})).await;
            assert_eq!(report["identical"], true, "{report}");
            let ran = Command::new(env!("CARGO_BIN_EXE_heapstead"))
                .args(["sessions", "replay", task.id.as_str().expect("an id"), "--url", &server.url, "--token", &task.ann.token])
                .output()
                .expect("the command runs");
            assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            assert_eq!(server.terminate(), Some(0));
        }
    }
}

/// The journal of turns that have no heap leads through an import, and the call that notices it imports more.
#[tokio::test]
async fn entities_are_imported_into_a_state_of_another_engine() {
    for live in ["on", "off"] {
        let (task, mut server) = Task::begin(&[]).await;
        if live == "on" {
            // This value can't be saved, so this state never has a heap.
            task.run(&server, "globalThis.unsaved = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }); kept.push('unsaved')").await;
            task.run(&server, "unsaved = 0; kept.length").await;
        }
        let state = task.run(&server, STATE).await["result"].clone();
        server.kill();
        let server = task.site.start(&[OTHER_ENGINE, "--live", live]);
        let grown = task.ann.context(&server, INTENT, &[("statistics", "variance")]).await;
        assert_eq!((&grown["wave"]["mode"], &grown["execute_binding"]), (&json!("expand"), &task.binding), "{grown}");
        check_resumed(&grown);
        assert_eq!(task.run(&server, STATE).await["result"], state);
        assert_eq!(task.run(&server, "typeof e4").await["result"], "\"function\"");
        let id = task.turns[1]["execution_id"].as_str().expect("an id");
        let (status, turn) = task.ann.get(&server, &format!("/api/executions/{id}?materialize=true")).await;
        assert!(status == 200 && turn["heap"].is_string(), "{turn}");
        let heap = task.ann.get(&server, &format!("/api/executions/{}", task.turns[3]["execution_id"].as_str().expect("an id"))).await.1;
        if let Some(key) = heap["heap"].as_str() {
            let (status, upgraded) = task.ann.post(&server, &format!("/api/heaps/{key}/upgrade"), json!({})).await;
            assert_eq!(status, 200, "{upgraded}");
        }
    }
}

/// A state from before an import has not all entities: they are imported into it again, under the symbols that they have.
#[tokio::test]
async fn a_session_that_returns_to_an_earlier_state_keeps_its_symbols() {
    for (live, by_run) in [("on", true), ("off", true), ("on", false)] {
        let (task, server) = Task::begin(&["--live", live]).await;
        assert_eq!(server.terminate(), Some(0));
        let tampered = "UPDATE journal SET result_sha256 = zeroblob(32) WHERE execution_id = ?";
        assert_eq!(task.database().execute(tampered, [task.turns[1]["execution_id"].as_str().expect("an id")]), Ok(1));
        let server = task.site.start(&[OTHER_ENGINE, "--live", live]);
        let refused =
            task.ann.post(&server, "/api/exec", json!({ "code": "1", "session": task.id, "on_stale": "fail", "wait_secs": 60 })).await.1;
        assert_eq!(refused["status"], "failed", "{refused}");
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("turn 1")), "{refused}");
        let reported = match by_run {
            true => task.run(&server, "1").await,
            false => task.ann.context(&server, INTENT, &[("statistics", "variance")]).await,
        };
        let continuity = &reported["continuity"];
        assert_eq!(
            (&continuity["reason"], &continuity["turn"], &continuity["new_symbol_space"]),
            (&json!("replay_diverged"), &json!(1), &json!(false)),
            "{reported}"
        );
        assert_eq!(reported["execute_binding"], task.binding);
        let next = task.run(&server, "[kept.length, typeof rows, e1([4]), e2([1, 2, 9]), e3('2026-01-01', 1)].join()").await;
        assert_eq!(next["result"], "\"2,undefined,4,2,2026-01-02\"", "{next}");
        assert_eq!(next.get("continuity"), None, "it is reported once: {next}");
        let (_, log) = task
            .ann
            .get(&server, &format!("/api/session-snapshots?session={}&fields=index,undone", task.id.as_str().expect("an id")))
            .await;
        let undone: Vec<_> = log["entries"].as_array().expect("entries").iter().map(|entry| entry["undone"] == true).collect();
        assert_eq!(undone[..4], [false, true, true, true], "{log}");
        assert!(undone[4..].iter().all(|undone| !undone), "{log}");
    }
}

/// An import that does something else on another engine costs only the turns after it: none after the last one, two after the second.
#[tokio::test]
async fn an_import_that_can_not_be_repeated_is_done_again() {
    for (import, lost_from) in [(3, None), (1, Some(2))] {
        let (task, server) = Task::begin(&[]).await;
        task.ann.context(&server, INTENT, &[("statistics", "variance")]).await;
        assert_eq!(server.terminate(), Some(0));
        let tampered = "UPDATE journal SET result_sha256 = zeroblob(32)
            WHERE rowid = (SELECT rowid FROM journal WHERE is_import ORDER BY rowid LIMIT 1 OFFSET ?)";
        assert_eq!(task.database().execute(tampered, [import]), Ok(1));
        let server = task.site.start(&[OTHER_ENGINE]);
        let record = task.run(&server, "[kept.length, typeof rows, typeof e2, typeof e3, typeof e4].join()").await;
        match lost_from {
            None => {
                assert_eq!(record["result"], "\"5,object,function,function,function\"", "{record}");
                check_resumed(&record);
            }
            Some(turn) => {
                assert_eq!(record["result"], "\"3,undefined,function,function,function\"", "{record}");
                let continuity = &record["continuity"];
                assert_eq!((&continuity["reason"], &continuity["turn"]), (&json!("replay_diverged"), &json!(turn)), "{record}");
            }
        }
        assert_eq!(task.run(&server, "e2([1, 2, 9])").await.get("continuity"), None, "it is reported once");
    }
}

#[tokio::test]
async fn turns_before_an_import_are_undone() {
    for live in ["on", "off"] {
        let (task, server) = Task::begin(&["--live", live]).await;
        task.ann.context(&server, INTENT, &[("statistics", "variance")]).await;
        let (status, undone) = task.ann.post(&server, &task.path("/undo"), json!({ "turns": 3 })).await;
        assert_eq!((status, &undone["undone"]), (200, &json!([1, 2, 3])), "{undone}");
        let code = "[kept.length, typeof rows, e2([1, 2, 9]), e3('2026-01-01', 1), typeof e4].join()";
        assert_eq!(task.run(&server, code).await["result"], "\"2,undefined,2,2026-01-02,function\"");
        // The import of the undo is crossed by the next one.
        let (status, undone) = task.ann.post(&server, &task.path("/undo"), json!({ "turns": 2 })).await;
        assert_eq!((status, &undone["undone"]), (200, &json!([0, 4])), "{undone}");
        assert_eq!(task.run(&server, "[typeof kept, typeof e1, typeof e4].join()").await["result"], "\"undefined,function,function\"");
        let (status, refused) = task.ann.post(&server, &task.path("/undo"), json!({ "turns": 2 })).await;
        assert_eq!(status, 409, "{refused}");
        assert_eq!(server.terminate(), Some(0));
        let server = task.site.start(&[OTHER_ENGINE, "--live", live]);
        check_resumed(&task.run(&server, "[typeof kept, e1([3])].join()").await);
    }
}

/// `SEED=…` replays a failure.
#[tokio::test]
async fn random_turns_and_waves_survive_random_engines() {
    let random = Random::new();
    let site = Site::new();
    let ann = Owner::new(&site.token("acme/ann"));
    let entities = [
        ("statistics", "mean"),
        ("statistics", "median"),
        ("statistics", "variance"),
        ("statistics", "mode"),
        ("dates", "addDays"),
        ("dates", "differenceInDays"),
    ];
    let mut server = site.start(&[]);
    let opened = ann.context(&server, INTENT, &[]).await;
    let (session, mut expected) = (opened["logical_session_id"].clone(), 0);
    completed(&ann, &server, &session, "globalThis.all = []; 0").await;
    let steps = if crate::fixture::torture() { 300 } else { 24 };
    for step in 0..steps {
        match random.below(6) {
            0 | 1 => drop(ann.context(&server, INTENT, &[entities[random.below(6) as usize]]).await),
            2 => {
                if random.below(2) == 0 {
                    server.kill();
                } else {
                    assert_eq!(server.terminate(), Some(0));
                }
                let arguments = [&["--live", "on"][..], &["--live", "off"], &["--jitless"], &["--jitless", "--live", "off"]];
                server = site.start(arguments[random.below(4) as usize]);
            }
            _ => {
                let code = "all.push([Math.random(), typeof e1, typeof e2]); JSON.stringify(all.map(String)).length > 0 && all.length";
                let record = completed(&ann, &server, &session, code).await;
                expected += 1;
                assert_eq!(record["result"], expected.to_string(), "step {step}, SEED={}: {record}", random.seed);
                assert_ne!(record["continuity"]["stale_binding_recovered"], true, "step {step}, SEED={}: {record}", random.seed);
            }
        }
    }
}
