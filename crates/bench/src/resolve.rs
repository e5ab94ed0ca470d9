//! Counts the instructions needed to resolve the session of a call and check access to it, with callgrind.
//!
//! `heapstead-bench --resolve FOLDER ROUNDS` does only this; callgrind runs it twice. Only the difference between the two runs counts, so
//! opening the database is not included.

use crate::server::known_session;
use crate::{fail, instructions};
use heapstead_service::{Caller, Policy, SessionTarget, Stores};
use heapstead_store::{Database, HeapStore, Owner};
use heapstead_types::Principal;
use std::path::Path;

pub const FLAG: &str = "--resolve";
/// Owner of the sessions.
pub const OWNER: &str = "acme/ann";
/// Rounds of the first run, which also warms every cache.
const ROUNDS_BEFORE: u32 = 20;

/// Resolves calls by each kind of handle, `rounds` times.
pub async fn run(folder: &Path, rounds: u32) {
    let broken = |error: &dyn std::fmt::Display| -> ! { fail(&error.to_string()) };
    let database = Database::open(folder, Owner::Anyone).unwrap_or_else(|error| broken(&error));
    let heaps = HeapStore::in_folder(&folder.join("heaps"), Owner::Anyone).unwrap_or_else(|error| broken(&error));
    let stores = Stores::open(heaps, database, Policy::default());
    let principal: Principal = OWNER.parse().unwrap_or_else(|error| broken(&error));
    let caller = Caller { principal, ..Caller::default() };
    for _ in 0..rounds {
        for handle in known_session() {
            match stores.sessions().resolve(&caller, Some(&handle)).await {
                Ok(SessionTarget::Opened(_)) => {}
                other => fail(&format!("`{handle}` was resolved to {other:?}")),
            }
        }
    }
}

/// Instructions per round on the database in this folder.
pub fn instructions(folder: &Path, rounds: u32) -> Result<f64, String> {
    instructions::of_one_round(&[FLAG.as_ref(), folder.as_os_str()], ROUNDS_BEFORE, rounds)
}
