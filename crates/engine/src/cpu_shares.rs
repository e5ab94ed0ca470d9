//! Shares the cores between budget holders, as far as an unprivileged process can: workers of a holder with many are niced.
//!
//! The kernel shares the cores between processes, so a holder with 64 workers would get 64 times as much as one with a single worker. One step
//! of niceness divides a process's share by 1.25; with the logarithm of the number of its workers to that base, all workers of a holder
//! together weigh about as much as one. Nothing is niced while only one holder has workers. Niceness can't be taken back without privileges:
//! a niced worker stays so until it ends, which is at the latest at its time limit.

use heapstead_types::BudgetHolder;
use rustix::process::{Pid, setpriority_process};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one step of niceness divides a process's share by (`sched_prio_to_weight` in the kernel).
const STEP: f64 = 1.25;
const NICE_MAX: i32 = 19;

#[derive(Debug, Clone, Default)]
pub struct CpuShares(Arc<Mutex<HashMap<BudgetHolder, Vec<NicedWorker>>>>);

#[derive(Debug)]
struct NicedWorker {
    pid: i32,
    nice: i32,
}

/// A worker that takes part; dropped when it has ended.
#[derive(Debug)]
pub struct CpuShare {
    holder: BudgetHolder,
    pid: i32,
    shares: CpuShares,
}

impl CpuShares {
    pub fn add(&self, holder: &BudgetHolder, pid: i32) -> CpuShare {
        let mut holders = self.holders();
        holders.entry(holder.clone()).or_default().push(NicedWorker { pid, nice: 0 });
        let is_shared = holders.len() > 1;
        for workers in holders.values_mut() {
            // A holder that shared the cores a moment ago stays niced, or its new workers would displace its older ones.
            if is_shared || workers.iter().any(|worker| worker.nice > 0) {
                let nice = nice_of_each(workers.len());
                workers.iter_mut().for_each(|worker| worker.raise_to(nice));
            }
        }
        CpuShare { holder: holder.clone(), pid, shares: self.clone() }
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<BudgetHolder, Vec<NicedWorker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NicedWorker {
    fn raise_to(&mut self, nice: i32) {
        if nice > self.nice {
            // A worker that has just died can't be niced and need not be.
            let _ = setpriority_process(Pid::from_raw(self.pid), nice);
            self.nice = nice;
        }
    }
}

impl Drop for CpuShare {
    fn drop(&mut self) {
        let mut holders = self.shares.holders();
        if let Some(workers) = holders.get_mut(&self.holder) {
            workers.retain(|worker| worker.pid != self.pid);
            if workers.is_empty() {
                holders.remove(&self.holder);
            }
        }
    }
}

/// The niceness at which so many workers together weigh about as much as one.
fn nice_of_each(workers: usize) -> i32 {
    ((workers as f64).ln() / STEP.ln()).round().clamp(0.0, f64::from(NICE_MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_of_a_holder_together_weigh_about_as_much_as_one() {
        assert_eq!(nice_of_each(1), 0);
        for workers in 1..=68 {
            let weight = workers as f64 * STEP.powi(-nice_of_each(workers));
            assert!((0.89..=1.12).contains(&weight), "{workers} workers weigh {weight}");
        }
        assert_eq!(nice_of_each(4096), NICE_MAX);
    }
}
