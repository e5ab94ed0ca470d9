//! Sessions of the REPL, on the local stores and on a server: recorded, undone, forked, resumed by name.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use crate::terminal::Terminal;
use serde_json::Value;
use std::process::Command;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// Where sessions are.
struct Stage {
    place: Place,
    /// A server that knows its callers, and a token for it.
    server: Option<(Server, String)>,
}

impl Stage {
    /// The local stores, and a server.
    fn both() -> [Self; 2] {
        let place = Place::new();
        let tokens = place.path("tokens.toml");
        let tokens = tokens.to_str().expect("UTF-8");
        let added = place.ran(["auth", "add", "acme/ann", "--auth-tokens", tokens]);
        assert_eq!(added.code, Some(0), "{added:?}");
        let server = Server::start_with(&Folders::new(), &["--auth-tokens", tokens]);
        let server = Some((server, added.out.trim_end().to_owned()));
        [Self { place: Place::new(), server: None }, Self { place, server }]
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        if let Some((server, token)) = &self.server {
            command.args(["--url", &server.url]).env("HEAPSTEAD_TOKEN", token);
        }
        command
    }

    fn ran(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("it runs").into()
    }

    /// What a REPL prints for these lines, which must not fail.
    fn typed(&self, arguments: &[&str], lines: &[&str]) -> (Vec<String>, String) {
        let file = self.place.file("lines.txt", lines.join("\n"));
        let input = std::fs::File::open(file).expect("the file");
        let ran = Ran::from(self.command(&[&["repl"], arguments].concat()).stdin(input).output().expect("it runs"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (ran.out.lines().map(str::to_owned).collect(), ran.err)
    }

    fn terminal(&self, arguments: &[&str]) -> Terminal {
        let mut terminal = Terminal::start(self.command(&[&["repl"], arguments].concat()));
        terminal.wait_for("> ");
        terminal
    }

    /// The session id of the only session.
    fn only_session(&self) -> String {
        let listed = self.ran(&["sessions", "ls", "--json"]).json();
        let [session] = listed["sessions"].as_array().expect("sessions").as_slice() else { panic!("not one session: {listed}") };
        session["session_id"].as_str().expect("an id").to_owned()
    }

    fn log(&self, session: &str) -> Vec<Value> {
        self.ran(&["sessions", "log", session, "--json"]).json()["entries"].as_array().expect("entries").clone()
    }
}

/// Types a line and waits until the next can be typed.
fn enter(terminal: &mut Terminal, line: &str, shown: &str) {
    terminal.send(&format!("{line}\r"));
    terminal.wait_for(shown);
    terminal.wait_for("> ");
}

#[test]
fn undo_goes_back_several_turns_and_is_refused_if_there_are_not_enough() {
    for stage in Stage::both() {
        let lines =
            ["let x = 1", "x = 2", "x = 3", "x = 4", ".undo 2", "x", ".undo", ".undo 3", "x", ".undo 3", ".undo", "typeof x", ".undo x"];
        let (out, err) = stage.typed(&["--session", "u"], &lines);
        // The line `x` is a turn too. `.undo 3` after it and `.undo` finds only two, and changes nothing.
        assert_eq!(out, ["undefined", "2", "3", "4", "2", "2", "\"undefined\""], "{err}");
        assert!(err.contains("`turns` is 3, and 2 turns of the session can be undone"), "{err}");
        assert!(err.contains("back to a fresh heap") && err.contains(".undo takes a number of turns"), "{err}");
        let undone: Vec<_> = stage.log(&stage.only_session()).iter().map(|entry| entry["undone"] == true).collect();
        assert_eq!(undone, [true, true, true, true, true, true, false]);
    }
}

#[test]
fn the_turns_of_a_repl_are_recorded_and_can_be_repeated() {
    for stage in Stage::both() {
        // The third turn leads to a state that can't be stored.
        let unsaveable = "var kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 })";
        let lines = ["let x: number = Math.random()", "throw 1", "x - _", unsaveable, "_ === x"];
        let (out, err) = stage.typed(&["--session", "r"], &lines);
        assert_eq!(out.len(), 4, "{out:?} {err}");
        let session = stage.only_session();
        let codes: Vec<_> = stage.log(&session).iter().map(|entry| entry["code"].as_str().expect("code").trim().to_owned()).collect();
        assert_eq!(codes, ["let x         = Math.random()", "x - _", unsaveable, "_ === x"]);
        let replayed = stage.ran(&["sessions", "replay", &session, "--json"]);
        assert_eq!((replayed.code, &replayed.json()["identical"]), (Some(0), &Value::Bool(true)), "{replayed:?}");
    }
}

#[test]
fn a_session_is_resumed_by_its_name() {
    for stage in Stage::both() {
        assert_eq!(stage.typed(&["--session", "my work"], &["let x = 40", "++x"]).0, ["undefined", "41"]);
        assert_eq!(stage.typed(&["--session", "other"], &["typeof x"]).0, ["\"undefined\""]);
        let mut terminal = stage.terminal(&["--session", "my work"]);
        enter(&mut terminal, "_ + ++x", "83");
        // Nothing has to be done for a session to survive.
        terminal.kill();
        let mut terminal = stage.terminal(&["--session", "my work"]);
        enter(&mut terminal, ".undo", "back to ");
        enter(&mut terminal, "[x, _]", "[41,41]");
        terminal.send(CTRL_D);
        let (status, shown) = terminal.end();
        assert!(status.success() && shown.contains("resume with: heapstead repl --session 'my work'"), "{shown}");
        assert_eq!(shown.contains("--url http://127.0.0.1:"), stage.server.is_some(), "{shown}");
    }
}

#[test]
fn a_session_without_a_name_gets_one_and_is_deleted_if_nothing_ran_in_it() {
    for stage in Stage::both() {
        let mut terminal = stage.terminal(&[]);
        terminal.send(CTRL_D);
        let (status, shown) = terminal.end();
        assert!(status.success() && !shown.contains("resume with"), "{shown}");
        assert_eq!(stage.ran(&["sessions", "ls", "--json"]).json()["sessions"], Value::Array(Vec::new()));

        let mut terminal = stage.terminal(&[]);
        enter(&mut terminal, "var x = 42", "undefined");
        terminal.send(CTRL_D);
        let (_, shown) = terminal.end();
        let command = shown.split_once("resume with: heapstead ").expect("how to resume").1;
        let arguments: Vec<_> = command.split_whitespace().skip(1).take(2).collect();
        assert!(arguments[1].starts_with("repl-"), "{shown}");
        assert_eq!(stage.typed(&arguments, &["x"]).0, ["42"]);
    }
}

#[test]
fn ctrl_c_and_errors_leave_the_state_as_it_was() {
    for stage in Stage::both() {
        let mut terminal = stage.terminal(&["--session", "c"]);
        enter(&mut terminal, "let x = 20", "undefined");
        terminal.send("x = 1; console.log('be' + 'gun'); for (;;);\r");
        terminal.wait_for("begun\r\n");
        terminal.send(CTRL_C);
        terminal.wait_for("the run was cancelled");
        terminal.wait_for("> ");
        enter(&mut terminal, "x = 2; throw new Error('boo')", "Error: boo");
        enter(&mut terminal, "x + 1", "21");
        terminal.send(CTRL_D);
        assert!(terminal.end().0.success());
    }
}

#[test]
fn a_fork_has_the_state_and_the_origin_keeps_its_own() {
    for stage in Stage::both() {
        let lines = ["let x = 1", ".fork b", "x += 10", ".fork", "_ + 100", ".fork a", "x"];
        let (out, err) = stage.typed(&["--session", "a"], &lines);
        assert_eq!(out, ["undefined", "11", "111", "11"], "{err}");
        assert!(err.contains("now in session b, a fork of a") && err.contains("now in session repl-"), "{err}");
        assert!(err.contains("there is a session `a` already"), "{err}");
        assert_eq!(stage.typed(&["--session", "a"], &["x"]).0, ["1"]);
        assert_eq!(stage.typed(&["--session", "b"], &["[x, _]"]).0, ["[11,11]"]);
        // Before anything ran in it.
        assert_eq!(stage.typed(&["--session", "b"], &[".fork c"]).0, [""; 0]);
        assert_eq!(stage.typed(&["--session", "c"], &["x"]).0, ["11"]);
    }
}

/// Story: the session that was left stayed behind, empty.
#[test]
fn a_session_that_is_left_before_anything_ran_in_it_is_deleted() {
    for stage in Stage::both() {
        let (out, err) = stage.typed(&[], &[".fork b", "var x = 1"]);
        assert_eq!(out, ["undefined"], "{err}");
        assert_eq!(stage.log(&stage.only_session()).len(), 1);
        // One that was there before stays.
        stage.typed(&["--session", "b"], &[".undo", ".fork"]);
        stage.only_session();
    }
}

/// Story: `.heap` and `.fork` took the heap of the undone turn, and `.undo` spoke of a fresh heap.
#[test]
fn undo_goes_back_to_a_state_that_can_not_be_stored() {
    for stage in Stage::both() {
        let lines = ["var kept = new ArrayBuffer(8, { maxByteLength: 2 ** 32 }), n = 1", "kept = null, n = 2", ".undo", ".heap", "n"];
        let (out, err) = stage.typed(&["--session", "u"], &lines);
        assert_eq!(out, ["undefined", "2", "1"], "{err}");
        assert!(err.contains("back to a state whose heap can't be stored"), "{err}");
    }
}

/// Story: the code of the session that was forked was missing.
#[test]
fn save_in_a_fork_writes_the_code_before_the_fork_too() {
    for stage in Stage::both() {
        let file = stage.place.path("saved.js");
        let save = format!(".save {}", file.to_str().expect("UTF-8"));
        let lines = ["let x = [1]", "x.push(2)", "x.push(3)", ".undo", ".fork b", "x.push(4)", ".fork c", "x.push(5)", &save];
        let (_, err) = stage.typed(&["--session", "a"], &lines);
        let expected = "let x = [1]\nx.push(2)\nx.push(4)\nx.push(5)\n";
        assert!(err.contains("has the code of 4 turns"), "{err}");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), expected);
        // Whatever the others do later, also with a REPL that did not see the fork.
        stage.typed(&["--session", "a"], &[".undo 2", "let y = 1"]);
        stage.typed(&["--session", "c"], &[&save]);
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), expected);
        let gone = stage.ran(&["sessions", "ls", "--json"]).json();
        assert_eq!(gone["sessions"].as_array().map(Vec::len), Some(3), "{gone}");
    }
}

#[test]
fn save_writes_the_code_that_leads_to_the_state() {
    for stage in Stage::both() {
        let file = stage.place.path("saved.js");
        let file = file.to_str().expect("UTF-8");
        let save = format!(".save {file}");
        let lines = ["let x = [", "  1", "]", "x.push(2)", "x.push(3)", ".undo", "x.push(9)", &save, ".save"];
        let (_, err) = stage.typed(&["--session", "s"], &lines);
        assert!(err.contains("has the code of 3 turns") && err.contains(".save needs the name of a file"), "{err}");
        assert_eq!(std::fs::read_to_string(file).expect("the file"), "let x = [\n  1\n]\nx.push(2)\nx.push(9)\n");
        assert_eq!(stage.typed(&[], &[&format!(".load {file}"), "x"]).0, ["3", "[1,2,9]"]);
    }
}

#[test]
fn the_last_result_is_a_variable_until_code_assigns_it() {
    for stage in Stage::both() {
        let lines = ["typeof _", "_.length", "({ a: _ })", "_.a + _.a", "throw 1", "_", "let y = 1", "_", "Object.keys(globalThis)"];
        let (out, err) = stage.typed(&[], &lines);
        assert_eq!(out, ["\"undefined\"", "9", "{\"a\":9}", "18", "18", "undefined", "undefined", "[]"], "{err}");
        let (out, err) = stage.typed(&[], &["1", "_ = 'mine'", "2", "_", "delete _", "3", "_"]);
        assert_eq!(out, ["1", "\"mine\"", "2", "\"mine\"", "true", "3", "3"], "{err}");
        assert_eq!(stage.typed(&[], &["1", "let _ = 'mine'", "2", "_"]).0, ["1", "undefined", "2", "\"mine\""]);
    }
}

#[tokio::test]
async fn a_session_on_a_server_is_live() {
    let [_, stage] = Stage::both();
    stage.typed(&["--session", "l"], &["var x = 1"]);
    let shown = stage.ran(&["sessions", "show", &stage.only_session(), "--json"]).json();
    assert_eq!((&shown["live"], &shown["turns"]), (&Value::Bool(true), &Value::from(1)), "{shown}");
}

/// Callers without credentials share an owner, so the same intent of two of them means two sessions.
#[tokio::test]
async fn a_server_that_does_not_know_its_callers_resumes_sessions_by_id() {
    let server = Server::start();
    let stage = Stage { place: Place::new(), server: None };
    let url = ["--url", &server.url];
    let refused = stage.ran(&[&["repl", "--session", "n"], &url[..]].concat());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("does not know its callers") && refused.err.contains("next: omit the name"), "{refused:?}");

    let mut terminal = stage.terminal(&url);
    enter(&mut terminal, "var x = 42", "undefined");
    terminal.send(CTRL_D);
    let (_, shown) = terminal.end();
    let command = shown.split_once("resume with: heapstead repl --session ").expect("how to resume").1;
    let id = command.split_whitespace().next().expect("an id");
    assert_eq!(stage.typed(&[&["--session", id], &url[..]].concat(), &["x"]).0, ["42"]);
    let unknown = stage.ran(&[&["repl", "--session", &"0".repeat(64)], &url[..]].concat());
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
}
