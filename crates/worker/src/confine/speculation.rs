//! Speculation: turns off two kinds of speculative execution for the zygote and its workers, where the kernel lets a process choose.
//!
//! Flushing the L1 data cache on context switches (`PR_SPEC_L1D_FLUSH`) is not used: the kernel ends a process that asked for it and runs on a
//! core with two hardware threads.

use heapstead_wire::control::OptionalLayer;
use std::ffi::{c_int, c_ulong};

const NAME: &str = "speculation";

// From `linux/prctl.h`.
const PR_GET_SPECULATION_CTRL: c_int = 52;
const PR_SET_SPECULATION_CTRL: c_int = 53;
const PR_SPEC_STORE_BYPASS: c_ulong = 0;
const PR_SPEC_INDIRECT_BRANCH: c_ulong = 1;
const PR_SPEC_NOT_AFFECTED: c_int = 0;
const PR_SPEC_PRCTL: c_int = 1 << 0;
const PR_SPEC_DISABLE: c_int = 1 << 2;
const PR_SPEC_FORCE_DISABLE: c_int = 1 << 3;

const KINDS: &[(&str, c_ulong)] = &[("store bypass", PR_SPEC_STORE_BYPASS), ("indirect branches", PR_SPEC_INDIRECT_BRANCH)];

/// Turns it off and reports what is in effect. A kernel that offers no choice keeps its own default, which only its operator can change.
pub fn disable() -> OptionalLayer {
    let states: Vec<Result<String, String>> = KINDS.iter().map(|(name, kind)| disable_one(name, *kind)).collect();
    let all = states.iter().all(Result::is_ok);
    let text = states.into_iter().map(|state| state.unwrap_or_else(|missing| missing)).collect::<Vec<_>>().join(", ");
    OptionalLayer { name: NAME.into(), outcome: if all { Ok(text) } else { Err(text) } }
}

fn disable_one(name: &str, kind: c_ulong) -> Result<String, String> {
    // SAFETY: no pointers.
    let set = unsafe { libc::prctl(PR_SET_SPECULATION_CTRL, kind, PR_SPEC_FORCE_DISABLE as c_ulong, 0, 0) };
    let refused = std::io::Error::last_os_error();
    // SAFETY: no pointers.
    let state = unsafe { libc::prctl(PR_GET_SPECULATION_CTRL, kind, 0, 0, 0) };
    let refused = (set != 0).then(|| refused.to_string());
    describe(state, refused.as_deref()).map(|state| format!("{name}: {state}")).map_err(|missing| format!("{name}: {missing}"))
}

/// What a state means that the kernel reports, after it was asked to turn this kind off and perhaps refused.
fn describe(state: c_int, refused: Option<&str>) -> Result<&'static str, String> {
    match (state, refused) {
        (PR_SPEC_NOT_AFFECTED, _) => Ok("the processor is not affected"),
        (1.., _) if state & (PR_SPEC_DISABLE | PR_SPEC_FORCE_DISABLE) != 0 => Ok("off"),
        (1.., _) if state & PR_SPEC_PRCTL == 0 => Err("on, and the kernel offers processes no choice".into()),
        (_, Some(refused)) => Err(format!("can't be turned off: {refused}")),
        (_, None) => Err(format!("unknown state {state}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few machines have each of these states, so the kernel's own answers do not cover them.
    #[test]
    fn every_state_that_the_kernel_reports_is_understood() {
        const PR_SPEC_ENABLE: c_int = 1 << 1;
        for (state, refused, expected) in [
            (PR_SPEC_NOT_AFFECTED, Some("No such device or address"), Ok("the processor is not affected")),
            (PR_SPEC_PRCTL | PR_SPEC_FORCE_DISABLE, None, Ok("off")),
            (PR_SPEC_PRCTL | PR_SPEC_DISABLE, None, Ok("off")),
            // Off for all processes.
            (PR_SPEC_DISABLE, Some("No such device or address"), Ok("off")),
            (PR_SPEC_ENABLE, Some("No such device or address"), Err("on, and the kernel offers processes no choice")),
            (PR_SPEC_PRCTL | PR_SPEC_ENABLE, Some("Operation not permitted"), Err("can't be turned off: Operation not permitted")),
            (PR_SPEC_PRCTL | PR_SPEC_ENABLE, None, Err("unknown state 3")),
            (-1, Some("Invalid argument"), Err("can't be turned off: Invalid argument")),
            (-1, None, Err("unknown state -1")),
        ] {
            assert_eq!(describe(state, refused), expected.map_err(str::to_owned), "{state} {refused:?}");
        }
    }
}
