//! A worker is killed when its zygote dies, and other processes can't inspect it.

use super::ConfineError;
use rustix::process::{DumpableBehavior, Pid, Signal, getppid, set_dumpable_behavior, set_parent_process_death_signal};

pub fn tie_to(parent: Pid) -> Result<(), ConfineError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(ConfineError::Lifetime)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(ConfineError::Lifetime)?;
    // The parent may have died before the signal was set.
    if getppid() != Some(parent) {
        return Err(ConfineError::Orphaned);
    }
    Ok(())
}
