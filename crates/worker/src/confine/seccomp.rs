//! The system calls that a worker may make: `policy/seccomp.json`, compiled once in the zygote, applied in each worker.

use super::{ConfineError, Layers, Lifetime};
use seccompiler::{BpfMap, BpfProgram, TargetArch, compile_from_json};

/// The filter of every worker.
const FILTER: &str = "worker";
/// What the filter of a live worker allows besides.
const LIVE: &str = "live";
/// The additional filter of workers whose V8 generates no machine code.
const FILTER_JITLESS: &str = "no_executable_memory";

pub struct Policy {
    no_executable_memory: Option<BpfProgram>,
    worker: BpfProgram,
    live: BpfProgram,
}

impl Policy {
    pub fn compile(layers: &Layers, jitless: bool) -> Result<Self, ConfineError> {
        let invalid = |error: String| ConfineError::Policy(error);
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| invalid(error.to_string()))?;
        let policy = with_live_filter(layers.policy).map_err(|error| invalid(error.to_string()))?;
        let mut filters: BpfMap = compile_from_json(policy.as_bytes(), arch).map_err(|error| invalid(error.to_string()))?;
        let mut filter = |name: &str| filters.remove(name).ok_or_else(|| invalid(format!("no filter `{name}`")));
        let no_executable_memory = if jitless { Some(filter(FILTER_JITLESS)?) } else { None };
        Ok(Self { no_executable_memory, worker: filter(FILTER)?, live: filter(LIVE)? })
    }

    /// Applies the filters. After this, any system call that is not in the policy kills the process.
    pub fn apply(&self, lifetime: Lifetime) -> Result<(), ConfineError> {
        let last = match lifetime {
            Lifetime::OneRun => &self.worker,
            Lifetime::Live => &self.live,
        };
        // The last one forbids the system call that applies filters.
        let filters = self.no_executable_memory.iter().chain([last]);
        filters
            .into_iter()
            .try_for_each(|filter| seccompiler::apply_filter(filter))
            .map_err(|error| ConfineError::Seccomp(error.to_string()))
    }
}

/// All filters apply, so the one of a live worker has to repeat what every worker may do.
fn with_live_filter(policy: &str) -> serde_json::Result<String> {
    let mut policy: serde_json::Value = serde_json::from_str(policy)?;
    let mut live = policy[FILTER].clone();
    if let (Some(rules), Some(more)) = (live["filter"].as_array_mut(), policy[LIVE]["filter"].as_array()) {
        rules.extend(more.iter().cloned());
    }
    policy[LIVE] = live;
    serde_json::to_string(&policy)
}
