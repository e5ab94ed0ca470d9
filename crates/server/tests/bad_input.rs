//! Input that is refused before anything runs: exit code 2, and a message with the parameter, the value and what is allowed.

mod common;

use common::Place;

fn check(place: &Place, arguments: &[&str], parts: &[&str]) {
    let ran = place.ran(arguments);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    for part in parts {
        assert!(ran.err.contains(part), "{arguments:?}: `{part}` is not in {ran:?}");
    }
    assert!(!place.heaps().exists(), "{arguments:?}: something ran");
}

#[test]
fn bounds() {
    let place = Place::new();
    for (flag, bad, allowed) in [
        ("--execution-timeout", ["0", "301", "-1", "1.5", "soon", "", "99999999999999999999"], "1 to 300 seconds"),
        ("--heap-memory-max", ["7", "4097", "-1", "64MB", "x", "", "99999999999999999999"], "8 to 4096 MB"),
        ("--output-max-mb", ["0", "4097", "-1", "1.5", "x", "", "99999999999999999999"], "1 to 4096 MB"),
    ] {
        for value in bad {
            for command in [&["run", "-e", "1"][..], &["repl"]] {
                check(&place, &[command, &[flag, value]].concat(), &[flag, &format!("'{value}'"), allowed]);
            }
        }
    }
}

#[test]
fn bounds_hold_for_variables_too() {
    let place = Place::new();
    for (variable, value, flag, allowed) in [
        ("HEAPSTEAD_EXECUTION_TIMEOUT", "0", "--execution-timeout", "1 to 300 seconds"),
        ("HEAPSTEAD_HEAP_MEMORY_MAX", "5000", "--heap-memory-max", "8 to 4096 MB"),
        ("HEAPSTEAD_OUTPUT_MAX_MB", "0", "--output-max-mb", "1 to 4096 MB"),
        ("HEAPSTEAD_HEAP", "abc", "--heap", "64 lowercase hex digits"),
        ("HEAPSTEAD_ON_MISSING_HEAP", "cry", "--on-missing-heap", "fresh, fail"),
        ("HEAPSTEAD_STATELESS", "perhaps", "--stateless", "value was not a boolean"),
    ] {
        let ran: common::Ran = place.command(["run", "-e", "1"]).env(variable, value).output().expect("it runs").into();
        assert_eq!(ran.code, Some(2), "{variable}: {ran:?}");
        for part in [flag, value, allowed] {
            assert!(ran.err.contains(part), "{variable}: `{part}` is not in {ran:?}");
        }
    }
    assert!(!place.heaps().exists());
}

#[test]
fn heap_keys() {
    let place = Place::new();
    let upper = "A".repeat(64);
    for key in ["abc", &"a".repeat(63), &"a".repeat(65), &upper, &"g".repeat(64), "../../etc/passwd", " "] {
        for command in [&["run", "-e", "1"][..], &["repl"]] {
            check(&place, &[command, &["--heap", key]].concat(), &["--heap", &format!("'{key}'"), "64 lowercase hex digits"]);
        }
    }
}

#[test]
fn inconsistent_arguments() {
    let place = Place::new();
    let file = place.file("a.js", "1");
    let key = "a".repeat(64);
    check(&place, &["run", &file, "-e", "1"], &["[FILE]", "--eval", "cannot be used with"]);
    check(&place, &["run", "-e", "1", "--heap", &key, "--stateless"], &["--heap", &key, "not allowed together with `--stateless`"]);
    check(&place, &["run", "-e", "1", "--on-missing-heap", "cry"], &["--on-missing-heap", "'cry'", "fresh, fail"]);
    check(&place, &["run", "-e", "1", "--unknown"], &["--unknown"]);
    check(&place, &["repl", "--stateless"], &["--stateless"]);
    check(&place, &["fly"], &["fly"]);
}

#[test]
fn a_variable_set_to_false_is_not_a_conflict() {
    let place = Place::new();
    let key = "a".repeat(64);
    let ran: common::Ran =
        place.command(["run", "-e", "1", "--heap", &key]).env("HEAPSTEAD_STATELESS", "false").output().expect("it runs").into();
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn code() {
    let place = Place::new();
    let empty = place.file("empty.js", " \n\t");
    let binary = place.file("binary.js", [0xff, 0xfe, 0x00]);
    let long = place.file("long.js", " ".repeat((16 << 20) + 1));
    check(&place, &["run", "-e", ""], &["-e", "`code` is empty", "expected JavaScript or TypeScript"]);
    check(&place, &["run", "-e", " \n"], &["`code` is empty"]);
    check(&place, &["run", "-"], &["standard input", "`code` is empty"]);
    check(&place, &["run", &empty], &["empty.js", "`code` is empty"]);
    check(&place, &["run", &binary], &["binary.js", "is not UTF-8 text"]);
    check(&place, &["run", &long], &["long.js", "at most 16777216 bytes are allowed"]);
    check(&place, &["run", "missing.js"], &["FILE is `missing.js`", "No such file", "Give a file with JavaScript or TypeScript"]);
    check(&place, &["run", "/"], &["FILE is `/`", "Is a directory"]);
}
