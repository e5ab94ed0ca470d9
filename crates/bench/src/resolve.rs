//! What it takes to find out which session a call is in and whether it may be: counted in instructions, by callgrind.
//!
//! `heapstead-bench --resolve FOLDER ROUNDS` does nothing else, and is what callgrind watches. It is run twice, and only what the second run does
//! more counts, so opening the database does not.

use crate::server::known_session;
use crate::{fail, instructions};
use heapstead_service::{Archive, Caller, OnMissingHeap, Policy, Quotas, Target};
use heapstead_store::{FileHeaps, Metadata, Owner};
use heapstead_types::{Limits, Principal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub const FLAG: &str = "--resolve";
/// Whose the sessions are.
pub const OWNER: &str = "acme/ann";
/// Rounds of the first run, which also fill every cache.
const ROUNDS_BEFORE: u32 = 20;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Resolves calls by each kind of handle, so many times.
pub async fn run(folder: &Path, rounds: u32) {
    let broken = |error: &dyn std::fmt::Display| -> ! { fail(&error.to_string()) };
    let metadata = Metadata::open(folder, Owner::Anyone).unwrap_or_else(|error| broken(&error));
    let heaps = FileHeaps::open(&folder.join("heaps"), Owner::Anyone).unwrap_or_else(|error| broken(&error));
    let policy = Policy {
        limits: Limits::default(),
        on_missing_heap: OnMissingHeap::Fresh,
        retain_executions: DAY,
        retain_heaps: DAY,
        session_ttl: DAY,
        require_session: false,
        quotas: Quotas::default(),
        delegated: false,
    };
    let archive = Archive::open(Arc::new(heaps), metadata, policy);
    let principal: Principal = OWNER.parse().unwrap_or_else(|error| broken(&error));
    let caller = Caller { principal, ..Caller::default() };
    for _ in 0..rounds {
        for handle in known_session() {
            match archive.session_of(&caller, Some(&handle)).await {
                Ok(Target::Opened(_)) => {}
                other => fail(&format!("`{handle}` was resolved to {other:?}")),
            }
        }
    }
}

/// Instructions of one round on the database in this folder.
pub fn instructions(folder: &Path, rounds: u32) -> Result<f64, String> {
    instructions::of_one_round(&[FLAG.as_ref(), folder.as_os_str()], ROUNDS_BEFORE, rounds)
}
