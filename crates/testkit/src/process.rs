//! Processes as `/proc` shows them: who they are, their children, their descriptors, their memory.

use std::fs;
use std::path::PathBuf;

/// One process, told apart from any later one with the same id by when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// In clock ticks since the machine booted.
    started: u64,
}

/// Fields of `/proc/PID/stat`, counted from the one after the name: state and start time.
const STATE: usize = 0;
const START_TIME: usize = 19;

impl Process {
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: stat_field(pid, START_TIME)?.parse().ok()? })
    }

    /// Dead, and not yet waited for.
    pub fn is_zombie(&self) -> bool {
        stat_field(self.pid, STATE).is_some_and(|state| state == "Z")
    }

    pub fn children(&self) -> Vec<Self> {
        let Ok(threads) = fs::read_dir(folder(self.pid).join("task")) else { return Vec::new() };
        let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| Self::of(pid.parse().ok()?)).collect::<Vec<_>>()).collect()
    }

    pub fn command_line(&self) -> Vec<String> {
        let bytes = fs::read(folder(self.pid).join("cmdline")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// What each open descriptor leads to.
    pub fn descriptors(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(folder(self.pid).join("fd")) else { return Vec::new() };
        let targets = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let mut targets: Vec<String> = targets.map(|target| target.display().to_string()).collect();
        targets.sort();
        targets
    }

    /// Resident anonymous memory: all that the process has written itself, and what it still shares with the one that forked it.
    pub fn anonymous_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(folder(self.pid).join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
    }
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

fn stat_field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(folder(pid).join("stat")).ok()?;
    // The name is in parentheses and may hold any character, even a parenthesis.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(index).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_seen_and_is_a_zombie_until_it_is_waited_for() {
        let this = Process::of(std::process::id()).expect("this process");
        // It reads from us, so it ends when this test does, however that ends.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child");
        let seen = this.children().into_iter().find(|process| process.pid == child.id()).expect("among the children");
        // In the middle of exec a process has no command line.
        while seen.command_line()[0].is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(seen.command_line()[0], "cat");
        assert!(!seen.is_zombie());
        assert!(seen.anonymous_bytes().expect("its memory") > 0);
        drop(child.stdin.take());
        while !seen.is_zombie() {
            std::thread::yield_now();
        }
        child.wait().expect("waited for");
        assert_eq!(Process::of(seen.pid), None);
    }

    #[test]
    fn descriptors_tell_what_they_lead_to() {
        let this = Process::of(std::process::id()).expect("this process");
        let null = fs::File::open("/dev/zero").expect("open");
        assert!(this.descriptors().contains(&"/dev/zero".to_owned()));
        drop(null);
    }
}
