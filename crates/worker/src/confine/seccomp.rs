//! The system calls that a worker may make: `policy/seccomp.json`, compiled once in the zygote, applied in each worker.

use super::{ConfineError, Layers};
use seccompiler::{BpfMap, BpfProgram, TargetArch, compile_from_json};

/// The filter of every worker.
const FILTER: &str = "worker";
/// The additional filter of workers whose V8 generates no machine code.
const FILTER_JITLESS: &str = "no_executable_memory";

pub struct Policy(Vec<BpfProgram>);

impl Policy {
    pub fn compile(layers: &Layers, jitless: bool) -> Result<Self, ConfineError> {
        let invalid = |error: String| ConfineError::Policy(error);
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| invalid(error.to_string()))?;
        let mut filters: BpfMap = compile_from_json(layers.policy.as_bytes(), arch).map_err(|error| invalid(error.to_string()))?;
        // The last one forbids the system call that applies filters.
        let names = jitless.then_some(FILTER_JITLESS).into_iter().chain([FILTER]);
        names.map(|name| filters.remove(name).ok_or_else(|| invalid(format!("no filter `{name}`")))).collect::<Result<_, _>>().map(Self)
    }

    /// Applies the filters. After this, any system call that is not in the policy kills the process.
    pub fn apply(&self) -> Result<(), ConfineError> {
        self.0.iter().try_for_each(|filter| seccompiler::apply_filter(filter)).map_err(|error| ConfineError::Seccomp(error.to_string()))
    }
}
