//! Processes as seen through `/proc`: parents, children and liveness.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::{Duration, Instant};

/// Polling interval of `/proc`, which has no way to wait for a change.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    alive: bool,
    frozen: bool,
}

pub fn this() -> i32 {
    i32::try_from(std::process::id()).expect("a pid")
}

/// The zygote that `server` started with this spelling of the base heap's path.
pub fn zygote_of(server: i32, base_heap: &Path) -> Option<i32> {
    zygotes_of(server, base_heap).first().copied()
}

/// All zygotes that `server` started with this spelling of the base heap's path.
pub fn zygotes_of(server: i32, base_heap: &Path) -> Vec<i32> {
    let argument = base_heap.to_str().expect("a path in UTF-8");
    let is_it = |process: &Process| {
        let command_line = std::fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        process.alive && process.parent == server && command_line.split('\0').any(|word| word == argument)
    };
    all().into_iter().filter(is_it).map(|process| process.pid).collect()
}

/// The living children of a process.
pub fn children_of(parent: i32) -> Vec<i32> {
    all().into_iter().filter(|process| process.alive && process.parent == parent).map(|process| process.pid).collect()
}

/// Whether a process still runs. A zombie does not.
pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|process| process.alive)
}

/// Polls until there is a result. `None` after the timeout `patience`.
pub fn wait_for<T>(patience: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        match look() {
            Some(seen) => return Some(seen),
            None if begun.elapsed() > patience => return None,
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// The value of one line of `/proc/<pid>/status`.
pub fn status(pid: i32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("/proc/{pid}/status has no {field}")).trim().to_owned()
}

/// Kills a process if it still exists.
pub fn kill(pid: i32) {
    signal(pid, Signal::KILL);
}

/// Stops a process and waits until it has stopped.
pub fn freeze(pid: i32) {
    signal(pid, Signal::STOP);
    wait_for(Duration::from_secs(1), || stat(pid).is_none_or(|process| process.frozen).then_some(())).expect("it stops");
}

fn signal(pid: i32, signal: Signal) {
    let sent = kill_process(Pid::from_raw(pid).expect("a pid"), signal);
    assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
}

fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries.flatten().filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Parses `/proc/<pid>/stat`: `pid (name) state parent …`. The name may contain any characters.
fn stat(pid: i32) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    let mut words = after_name.split_ascii_whitespace();
    let state = words.next()?;
    Some(Process { pid, parent: words.next()?.parse().ok()?, alive: !matches!(state, "Z" | "X"), frozen: state == "T" })
}
