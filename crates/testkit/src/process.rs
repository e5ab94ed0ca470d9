//! Information on processes from `/proc`: identity, children, descriptors, memory.

use std::fs;
use std::path::PathBuf;

/// One process, identified by its pid and start time, because pids are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// In clock ticks since the machine booted.
    started: u64,
}

/// Indices of fields in `/proc/PID/stat`, counted from the one after the name.
const STATE: usize = 0;
const START_TIME: usize = 19;

impl Process {
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: stat_field(pid, START_TIME)?.parse().ok()? })
    }

    /// Whether it is dead and has not been reaped.
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

    /// The target of each open descriptor.
    pub fn descriptors(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(folder(self.pid).join("fd")) else { return Vec::new() };
        let targets = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let mut targets: Vec<String> = targets.map(|target| target.display().to_string()).collect();
        targets.sort();
        targets
    }

    /// Resident anonymous memory: what the process has written itself, and what it still shares with its parent.
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
    // The name is in parentheses and may contain any character, including parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(index).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_child_is_found_and_is_a_zombie_until_it_is_reaped() {
        let this = Process::of(std::process::id()).expect("this process");
        // It reads from this process, so it ends when this test ends or crashes.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a child");
        let seen = this.children().into_iter().find(|process| process.pid == child.id()).expect("among the children");
        // During `exec` a process has no command line.
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
    fn descriptors_show_their_targets() {
        let this = Process::of(std::process::id()).expect("this process");
        let null = fs::File::open("/dev/zero").expect("open");
        assert!(this.descriptors().contains(&"/dev/zero".to_owned()));
        drop(null);
    }
}
