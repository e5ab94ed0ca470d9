//! `heapstead repl` without a terminal: reads lines, prints results.

mod common;

use common::{Place, Ran};

fn session(place: &Place, arguments: &[&str], lines: &[&str]) -> Ran {
    place.ran_with_input(["repl"].iter().chain(arguments), &lines.join("\n"))
}

/// Checks the printed results, and that stderr contains these errors.
fn check(lines: &[&str], results: &[&str], errors: &[&str]) {
    let ran = session(&Place::new(), &[], lines);
    assert_eq!(ran.code, Some(0), "{lines:?}: {ran:?}");
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), results, "{lines:?}: {ran:?}");
    for error in errors {
        assert!(ran.err.contains(error), "{lines:?}: `{error}` is not in {ran:?}");
    }
    assert_eq!(ran.err.is_empty(), errors.is_empty(), "{lines:?}: {ran:?}");
}

#[test]
fn declarations_persist_in_later_lines() {
    check(
        &["let x = 1", "x += 1", "console.log('x is', x)", "let x = 5", "x"],
        &["undefined", "2", "x is 2", "undefined", "undefined", "5"],
        &[],
    );
    check(&["", "  ", "1"], &["1"], &[]);
    check(&[], &[], &[]);
}

#[test]
fn a_line_that_fails_leaves_the_heap_as_it_was() {
    check(&["let x = 1", "x = 2; throw new Error('boo')", "x"], &["undefined", "1"], &["error: Error: boo"]);
}

#[test]
fn incomplete_input_continues_on_the_next_line() {
    for lines in [
        &["[1,", "2", "].length"][..],
        &["(function () {", "", "  return 2", "})()"],
        &["`a", "${1 +", "1}`.length - 1"],
        &["Math.max(1,", "2)"],
        &["/* a", "comment */ 2"],
        &["1 +", "1"],
        &["[2]", "  .length + 1", ".5 + 1.5"],
        &["(", "/[/(]/", ".test('(') ? 2 : 1)"],
    ] {
        let ran = session(&Place::new(), &[], lines);
        assert_eq!((ran.code, ran.out.lines().last()), (Some(0), Some("2")), "{lines:?}: {ran:?}");
    }
    check(&["interface A {", "  n: number", "}", "const a: A = {", "  n: 2", "}", "a.n"], &["undefined", "undefined", "2"], &[]);
    check(&["class A {", "  two() {", "    return 2", "  }", "}", "new A().two()"], &["undefined", "2"], &[]);
}

#[test]
fn invalid_input_is_an_immediate_error() {
    for line in ["a = = 3", "foo(a b", "x = }", "'abc", ")", "JSON.parse('{')", "eval('(')"] {
        check(&[line, "1"], &["1"], &["SyntaxError"]);
    }
    check(&["1", "foo("], &["1"], &["SyntaxError: Unexpected end of input"]);
}

#[test]
fn undo_goes_back_turn_by_turn() {
    let place = Place::new();
    let ran =
        session(&place, &[], &["let x = 1", "x = 2", "x = 3", ".undo", "x", ".undo", ".undo", "x", ".undo", ".undo", ".undo", "typeof x"]);
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), ["undefined", "2", "3", "2", "1", "\"undefined\""], "{ran:?}");
    assert!(ran.err.contains("back to a fresh heap") && ran.err.contains("0 turns of the session can be undone"), "{ran:?}");
}

#[test]
fn heap_shows_the_key_that_another_process_can_continue_from() {
    let place = Place::new();
    let ran = session(&place, &[], &[".heap", "let x = 41", ".heap"]);
    let shown: Vec<_> = ran.out.lines().collect();
    assert_eq!(shown[..2], ["a fresh heap", "undefined"], "{ran:?}");
    assert_eq!(place.completed("x + 1", &["--heap", shown[2]]).0, "42");
    assert_eq!(session(&place, &["--heap", shown[2]], &["x"]).out, "41\n");
    // A heap of `heapstead run`, which no database has.
    let (_, key) = place.completed("let y = 1", &[]);
    assert_eq!(session(&place, &["--heap", &key], &["y"]).out, "1\n");
    assert_eq!(session(&place, &["--heap", &key, "--session", "s"], &["y++", ".undo", "y"]).out, "1\n1\n");
    assert_eq!(session(&place, &["--heap", "", "--session", "s"], &["typeof y"]).out, "\"undefined\"\n");
}

#[test]
fn load_runs_a_file_on_the_same_heap() {
    let place = Place::new();
    let file = place.file("two.ts", "function two(): number {\n  return x + 1\n}\nconsole.log('loaded')");
    let ran = session(&place, &[], &["let x = 1", &format!(".load {file}"), "two()", ".load", ".load missing.js"]);
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), ["undefined", "loaded", "undefined", "2"], "{ran:?}");
    assert!(ran.err.contains(".load needs the name of a file"), "{ran:?}");
    assert!(ran.err.contains("FILE is `missing.js`, which can't be read"), "{ran:?}");
}

#[test]
fn commands_are_distinguished_from_code() {
    check(&["1", ".exit", "2"], &["1"], &[]);
    check(&[".5 * 2"], &["1"], &[]);
    check(&[".flee", "1"], &["1"], &["error: `.flee` is not a command: .help lists them"]);
    let ran = session(&Place::new(), &[], &[".help"]);
    for command in [".undo [N]", ".fork [NAME]", ".save FILE", ".load FILE", ".heap", ".help", ".exit"] {
        assert!(ran.out.contains(command), "{ran:?}");
    }
}

#[test]
fn limits_apply_to_every_line_and_the_session_continues() {
    let place = Place::new();
    let ran = session(&place, &["--execution-timeout", "1"], &["let x = 1", "for (;;);", "x"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "undefined\n1\n"), "{ran:?}");
    assert!(ran.err.contains("its limit of 1 s"), "{ran:?}");
}

#[test]
fn a_missing_heap_starts_fresh_with_one_warning_or_fails() {
    let place = Place::new();
    let key = "0".repeat(64);
    let fresh = session(&place, &["--heap", &key], &["1", "2"]);
    assert_eq!(fresh.out, "1\n2\n");
    assert_eq!(fresh.err.matches("was not found: the run began with a fresh heap").count(), 1, "{fresh:?}");
    let failed = session(&place, &["--heap", &key, "--on-missing-heap", "fail"], &["1"]);
    assert_eq!(failed.out, "");
    assert!(failed.err.contains(&format!("error: heap `{key}` is not known")), "{failed:?}");
}

/// The state is in memory while the REPL runs. When it is resumed without its heap, it must not look as if it had been empty.
#[test]
fn a_session_whose_heap_is_gone_says_so_when_it_is_resumed() {
    let place = Place::new();
    let ran = session(&place, &["--session", "s"], &["let x = 1", ".heap"]);
    let key = ran.out.lines().last().expect("the key");
    std::fs::remove_file(place.heap_file(key)).expect("remove");
    let resumed = session(&place, &["--session", "s"], &["typeof x"]);
    assert_eq!(resumed.out, "\"undefined\"\n", "{resumed:?}");
    assert!(resumed.err.contains("warning: the state of the session is gone (heap collected): it starts with a fresh heap"), "{resumed:?}");
    assert_eq!(session(&place, &["--session", "s"], &["1"]).err, "");
}

#[test]
fn a_repl_that_can_not_start_says_what_to_do() {
    let place = Place::new();
    let file = place.file("file", "");
    let ran = session(&place, &["--directory-path", &file], &["1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.err.contains("is not a folder") && ran.err.contains("next: "), "{ran:?}");
}

#[test]
fn input_that_can_not_be_read_ends_the_repl_and_not_the_session() {
    let place = Place::new();
    let ran = session(&place, &["--session", "s"], &["let x = 1", &"x".repeat((16 << 20) + 1), "2"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "undefined\n"), "{ran:?}");
    assert!(ran.err.contains("a line is longer than 16777216 bytes"), "{ran:?}");
    assert!(ran.err.contains("next: `heapstead repl --session s` continues the session"), "{ran:?}");
    assert_eq!(session(&place, &["--session", "s"], &["x"]).out, "1\n");
}
