//! `heapstead run`: sources of code, destinations of output, and exit codes.

mod common;

use common::Place;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn code_comes_from_the_command_line_a_file_or_standard_input() {
    let place = Place::new();
    let file = place.file("sum.ts", "const a: number = 20; a + 22");
    for ran in [
        place.ran(["run", "-e", "20 + 22"]),
        place.ran(["run", "--eval", "20 + 22"]),
        place.ran(["run", &file]),
        place.ran_with_input(["run", "-"], "20 + 22"),
        place.ran_with_input(["run"], "20 + 22\n"),
    ] {
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "42\n"), "{ran:?}");
    }
    assert_eq!(place.ran(["run", "-e", "-1"]).out, "-1\n", "code may look like a flag");
}

#[test]
fn standard_output_holds_output_and_result_and_nothing_else() {
    let place = Place::new();
    for (code, out) in
        [("console.log('a'); console.error('b'); 'c'", "a\nb\n\"c\"\n"), ("console.log('a')", "a\n"), ("undefined", ""), ("null", "null\n")]
    {
        let ran = place.ran(["run", "-e", code]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), out), "{code}: {ran:?}");
        let mut about = ran.err.lines();
        assert!(about.next().is_some_and(|line| line.starts_with("completed in ") && line.ends_with(" ms")), "{ran:?}");
        assert!(about.next().is_some_and(|line| line.starts_with("heap ") && line.len() == "heap ".len() + 64), "{ran:?}");
        assert_eq!(about.next(), None, "{ran:?}");
    }
}

#[test]
fn the_exit_code_reports_the_status() {
    let place = Place::new();
    for (arguments, code, out, err) in [
        (vec!["-e", "1"], 0, "1\n", "completed in"),
        (vec!["-e", "console.log('kept'); throw new Error('boo')"], 1, "kept\n", "error: Error: boo\n"),
        (vec!["-e", "let a = = 3"], 1, "", "at main.js:1:9"),
        (vec!["-e", "await new Promise(() => {})"], 1, "", "can never settle"),
        (
            vec!["-e", "let a = []; for (;;) a.push(new Array(1000).fill(7))", "--heap-memory-max", "16"],
            1,
            "",
            "next: raise the cap with `--heap-memory-max MB`",
        ),
        (
            vec!["-e", "console.log('kept'); for (;;);", "--execution-timeout", "1"],
            124,
            "kept\n",
            "next: raise the limit with `--execution-timeout SECONDS`",
        ),
    ] {
        let ran = place.ran(["run"].iter().chain(&arguments));
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), out), "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(err), "{arguments:?}: {ran:?}");
        assert_eq!(ran.heap().is_some(), code == 0, "only a run that completed has a heap: {ran:?}");
    }
}

#[test]
fn ctrl_c_cancels_the_run_and_keeps_its_output() {
    let place = Place::new();
    let mut child = place.command(["run", "-e", "console.log('begun'); for (;;);"]).spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    out.read_line(&mut line).expect("output while it runs");
    assert_eq!(line, "begun\n");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).expect("interrupted");
    let (mut rest, mut err) = (String::new(), String::new());
    out.read_to_string(&mut rest).expect("the rest");
    child.stderr.take().expect("stderr").read_to_string(&mut err).expect("the words");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(rest, "");
    assert!(err.starts_with("error: the run was cancelled\ncancelled in "), "{err}");
    assert!(!err.contains("heap "), "{err}");
}

#[test]
fn output_over_its_limit_ends_with_one_notice_line() {
    let place = Place::new();
    let last = "[output truncated: more than 1 MB was written]\n\"end\"\n";
    // The limit either cuts a line, which then gets a newline, or falls between two lines.
    for (line_length, added) in [(50_000, 1), ((1 << 16) - 1, 0)] {
        let code = format!("for (let i = 0; i < 40; i++) console.log('x'.repeat({line_length})); 'end'");
        let ran = place.ran(["run", "-e", &code, "--output-max-mb", "1"]);
        assert_eq!(ran.code, Some(0), "the run continues");
        assert!(ran.out.ends_with(&format!("x\n{last}")), "{line_length}: {}", &ran.out[ran.out.len() - 200..]);
        assert_eq!(ran.out.len(), (1 << 20) + added + last.len(), "{line_length}: all output up to the limit is printed");
    }
}

#[test]
fn the_heap_is_stored_even_if_stdout_is_closed() {
    let place = Place::new();
    let mut child = place
        .command(["run", "-e", "for (let i = 0; i < 1000; i++) console.log('x'.repeat(1000)); let kept = 1"])
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let ran = common::Ran::from(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.completed("kept", &["--heap", &ran.heap().expect("a heap")]).0, "1");
}

#[test]
fn json_is_the_record_and_the_output() {
    let place = Place::new();
    let unknown = "0".repeat(64);
    for (arguments, expected) in [
        (
            vec!["-e", "console.log('é'); 1 + 1"],
            serde_json::json!({ "status": "completed", "result": "2", "error": null, "output": "é\n" }),
        ),
        (
            vec!["-e", "1", "--stateless"],
            serde_json::json!({ "status": "completed", "result": "1", "heap": null, "error": null, "output": "" }),
        ),
        (
            vec!["-e", "console.log('a'); throw 'boo'"],
            serde_json::json!({ "status": "failed", "result": null, "heap": null, "error": "Uncaught 'boo'", "error_code": "exception", "output": "a\n" }),
        ),
        (
            vec!["-e", "1", "--heap", &unknown, "--on-missing-heap", "fail"],
            serde_json::json!({ "status": "failed", "result": null, "heap": null, "error": format!("heap {unknown} was not found"), "error_code": "heap_not_found", "output": "" }),
        ),
        (
            vec!["-e", "1", "--heap", &unknown],
            serde_json::json!({
                "status": "completed", "result": "1", "error": null, "output": "",
                "warnings": [format!("heap {unknown} was not found: the run began with a fresh heap")]
            }),
        ),
    ] {
        let ran = place.ran(["run", "--json"].iter().chain(&arguments));
        assert_eq!(ran.err, "", "{arguments:?}");
        assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
        let mut record = ran.json();
        let fields = record.as_object_mut().expect("an object");
        assert_eq!(fields.remove("execution_id").and_then(|id| id.as_str().map(str::len)), Some(32));
        for time in ["started_at", "completed_at"] {
            let time = fields.remove(time).expect("a time");
            let time: jiff::Timestamp = time.as_str().expect("a text").parse().expect("ISO 8601");
            assert!(time.duration_until(jiff::Timestamp::now()) < jiff::SignedDuration::from_mins(1));
        }
        if expected.get("heap").is_none() {
            assert_eq!(fields.remove("heap").and_then(|heap| heap.as_str().map(str::len)), Some(64));
        }
        if arguments.contains(&"console.log('a'); throw 'boo'") {
            // The wording of a thrown value is tested in the engine.
            assert!(fields["error"].as_str().is_some_and(|error| error.contains("boo")));
            fields["error"] = expected["error"].clone();
        }
        assert_eq!(record, expected, "{arguments:?}");
    }
}

#[test]
fn stateless_stores_nothing() {
    let place = Place::new();
    let ran = place.ran(["run", "--stateless", "-e", "let gone = 1; gone"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.heap()), (Some(0), "1\n", None), "{ran:?}");
    assert!(!place.heaps().exists(), "the folder is not created");
}

#[test]
fn without_an_engine_the_error_says_how_to_get_one() {
    let place = Place::new();
    let ran: common::Ran = place.command(["run", "-e", "1"]).env("HEAPSTEAD_ENGINE_DIR", "/nonexistent").output().expect("it runs").into();
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    for part in ["/nonexistent", "set HEAPSTEAD_ENGINE_DIR", "next: `heapstead doctor`"] {
        assert!(ran.err.contains(part), "{ran:?}");
    }
}

#[test]
fn run_without_code_fails_immediately() {
    let place = Place::new();
    let ran: common::Ran = place.command(["run"]).stdin(Stdio::null()).output().expect("it runs").into();
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
