//! Landlock: denies access to files, to the network, and to signals and abstract sockets of other processes.

use super::ConfineError;
use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};

/// The version in the kernel of Debian 12 (6.1). The zygote refuses to start with less, and uses what newer kernels add.
pub const ABI_MIN: ABI = ABI::V2;
const ABI_KNOWN: ABI = ABI::V6;

pub fn restrict() -> Result<(), ConfineError> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI_MIN))
        .map(|ruleset| ruleset.set_compatibility(CompatLevel::BestEffort))
        .and_then(|ruleset| ruleset.handle_access(AccessFs::from_all(ABI_KNOWN)))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(ABI_KNOWN)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI_KNOWN)))
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| ConfineError::Landlock(error.to_string()))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(ConfineError::Landlock("the kernel does not enforce it".into())),
        _ => Ok(()),
    }
}
