//! On a terminal: colours, line editing, history, and keys that interrupt.

#[path = "common/mod.rs"]
mod common;
#[path = "common/terminal.rs"]
mod terminal;

use common::Place;
use std::os::unix::fs::PermissionsExt;
use terminal::Terminal;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";

#[test]
fn an_interactive_session() {
    let place = Place::new();
    let mut terminal = Terminal::start(place.command(["repl"]));
    let banner = terminal.wait_for("> ");
    assert!(banner.contains(concat!("heapstead ", env!("CARGO_PKG_VERSION"), ", V8 ")) && banner.contains(".help"), "{banner:?}");

    let mut check = |input: &str, shown: &str| {
        terminal.send(input);
        terminal.wait_for(shown);
        // Keys are read only while the line editor controls the terminal.
        terminal.wait_for("> ");
    };
    check("let x = 20\r", "\x1b[2mundefined\x1b[0m");
    check("x +\r22\r", "\x1b[33m42\x1b[0m");
    // The history recalls the whole input, not only its last line.
    check(&format!("{UP}\r"), "\x1b[33m42\x1b[0m");
    check(CTRL_C, "Ctrl-D or .exit exits");

    terminal.send("foo(\r");
    terminal.wait_for("... ");
    terminal.send(CTRL_C);
    terminal.wait_for("> ");

    terminal.send("console.log('be' + 'gun'); for (;;);\r");
    terminal.wait_for("begun\r\n");
    terminal.send(CTRL_C);
    terminal.wait_for("the run was cancelled");
    terminal.wait_for("> ");
    terminal.send("x\r");
    terminal.wait_for("\x1b[33m20\x1b[0m");
    terminal.wait_for("> ");
    terminal.send(CTRL_D);
    assert!(terminal.end().0.success());

    let history = place.path("state/heapstead/repl_history");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&history), mode(history.parent().expect("a folder"))), (0o600, 0o700));

    let mut later = Terminal::start(place.command(["repl"]));
    later.wait_for("> ");
    later.send(&format!("{UP}\r"));
    later.wait_for("x is not defined");
    later.wait_for("> ");
    later.send(".exit\r");
    assert!(later.end().0.success());
}

#[test]
fn ctrl_c_stops_a_run() {
    let place = Place::new();
    let mut terminal = Terminal::start(place.command(["run", "-e", "console.log('begun'); for (;;);"]));
    terminal.wait_for("begun\r\n");
    terminal.send(CTRL_C);
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(130), "{shown:?}");
    assert!(shown.contains("the run was cancelled"), "{shown:?}");
}

#[test]
fn colours_are_used_only_on_terminals_that_allow_them() {
    let place = Place::new();
    let shown = |no_color: &str| {
        let mut command = place.command(["run", "-e", "console.log('a'); 42"]);
        command.env("NO_COLOR", no_color);
        let (status, shown) = Terminal::start(command).end();
        assert!(status.success(), "{shown}");
        shown
    };
    assert!(shown("").contains("a\r\n\x1b[33m42\x1b[0m\r\n"));
    assert!(shown("1").starts_with("a\r\n42\r\n"));
    assert!(!shown("1").contains('\x1b'));
}

#[test]
fn run_without_code_does_not_wait_for_terminal_input() {
    let (status, shown) = Terminal::start(Place::new().command(["run"])).end();
    assert_eq!(status.code(), Some(2), "{shown}");
    assert!(shown.contains("there is nothing to run: give a FILE, `-` for standard input, or `-e CODE`"), "{shown}");
}

#[test]
fn tables_have_colours_on_a_terminal_and_nowhere_else() {
    let place = Place::new();
    let (_, key) = place.completed("1", &[]);
    let mut terminal = Terminal::start(place.command(["heaps", "ls"]));
    let shown = terminal.wait_for(&key);
    assert!(shown.contains("\x1b[2mHEAP\x1b[0m"), "{shown:?}");
    let piped = place.ran(["heaps", "ls"]);
    assert!(piped.out.starts_with("HEAP ") && !piped.out.contains('\x1b'), "{piped:?}");
}
