//! Live workers and their clones. Each live worker leads a process group, which its clones inherit and can't leave: that is the family.

use crate::confine::{CloneRequest, CloneRequests};
use heapstead_wire::control::FromZygote;
use rustix::process::{Pid, Signal, getpgid, kill_process_group};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};

/// A base, a process for the turn, one that writes a snapshot, and some that are being killed. More than that wait: the server, which knows how
/// many clones it has asked for, kills a family that makes others.
const PROCESSES_MAX: usize = 8;

pub struct Families {
    requests: CloneRequests,
    by_group: HashMap<Pid, Family>,
}

struct Family {
    worker: u64,
    processes: usize,
    /// Clones for which there is no room now.
    waiting: VecDeque<CloneRequest>,
}

impl Families {
    pub fn new(requests: CloneRequests) -> Self {
        Self { requests, by_group: HashMap::new() }
    }

    pub fn add(&mut self, worker: u64, leader: Pid) {
        self.by_group.insert(leader, Family { worker, processes: 1, waiting: VecDeque::new() });
    }

    /// Decides about the next request of a process to clone itself. Returns what to report.
    pub fn decide(&mut self) -> Option<FromZygote> {
        let request = self.requests.next()?;
        let family = getpgid(Pid::from_raw(request.pid)).ok().and_then(|group| self.by_group.get_mut(&group));
        let Some(family) = family else {
            self.requests.refuse(request);
            return None;
        };
        family.waiting.push_back(request);
        family.allow_next(&self.requests)
    }

    /// Notes that a process has ended. It is not reaped yet, so that its group is known. Returns what to report.
    pub fn ended(&mut self, process: Pid) -> Option<FromZygote> {
        let group = getpgid(Some(process)).ok()?;
        let family = self.by_group.get_mut(&group)?;
        family.processes -= 1;
        if family.processes > 0 {
            return family.allow_next(&self.requests);
        }
        self.by_group.remove(&group).map(|family| FromZygote::FamilyEnded { worker: family.worker })
    }

    pub fn kill(&self, worker: u64) {
        for (group, _) in self.by_group.iter().filter(|(_, family)| family.worker == worker) {
            // The group exists as long as it is in the table, because its processes are reaped by this one.
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }
}

impl Family {
    /// Lets the next process that waits clone itself, if there is room.
    fn allow_next(&mut self, requests: &CloneRequests) -> Option<FromZygote> {
        while self.processes < PROCESSES_MAX {
            // One that was killed while it waited makes no clone.
            if requests.allow(self.waiting.pop_front()?) {
                self.processes += 1;
                return Some(FromZygote::Cloned { worker: self.worker });
            }
        }
        None
    }
}

impl AsFd for Families {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.as_fd()
    }
}
