//! The system calls that a worker may make: `policy/seccomp.json`, compiled once in the zygote, applied in each worker.

use super::ConfineError;
use seccompiler::{BpfMap, BpfProgram, TargetArch, compile_from_json};

const POLICY: &str = include_str!("../../policy/seccomp.json");
const FILTER: &str = "worker";

pub struct Policy(BpfProgram);

impl Policy {
    pub fn compile() -> Result<Self, ConfineError> {
        let invalid = |error: String| ConfineError::Policy(error);
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| invalid(error.to_string()))?;
        let mut filters: BpfMap = compile_from_json(POLICY.as_bytes(), arch).map_err(|error| invalid(error.to_string()))?;
        filters.remove(FILTER).map(Self).ok_or_else(|| invalid("no filter for workers".into()))
    }

    /// Applies the filter. After this, any system call that is not in the policy kills the process.
    pub fn apply(&self) -> Result<(), ConfineError> {
        seccompiler::apply_filter(&self.0).map_err(|error| ConfineError::Seccomp(error.to_string()))
    }
}
