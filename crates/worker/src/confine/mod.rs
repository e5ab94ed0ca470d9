//! Confinement: what is taken away from the zygote once, and from each worker before it reads a byte. Whole or not at all.
//!
//! The zygote gives up what every worker would have to give up anyway (files, network, capabilities, new privileges), because children
//! inherit the loss for nothing. A worker then closes every descriptor but its socket, fixes its limits, ties its life to the zygote's, and
//! keeps only the system calls of `policy/seccomp.json`.

mod capabilities;
mod descriptors;
mod landlock;
mod lifetime;
mod limits;
mod seccomp;

pub use landlock::ABI_MIN as LANDLOCK_ABI_MIN;
pub use limits::snapshot_bytes_max;
pub use seccomp::Policy;

use rustix::process::Pid;
use std::os::fd::RawFd;

/// One variant per step, so that a message says which one this machine can't do.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    #[error("confinement: no_new_privs: {0}")]
    NoNewPrivs(rustix::io::Errno),
    #[error("confinement: landlock: {0}")]
    Landlock(String),
    #[error("confinement: capabilities: {0}")]
    Capabilities(std::io::Error),
    #[error("confinement: limit on {what}: {error}")]
    Limit { what: &'static str, error: rustix::io::Errno },
    #[error("confinement: closing descriptors: {0}")]
    Descriptors(std::io::Error),
    #[error("confinement: the zygote died while a worker was being made")]
    Orphaned,
    #[error("confinement: parent-death signal: {0}")]
    Lifetime(rustix::io::Errno),
    #[error("confinement: seccomp policy: {0}")]
    Policy(String),
    #[error("confinement: seccomp: {0}")]
    Seccomp(String),
}

/// What the zygote gives up for itself and all its children.
pub fn zygote() -> Result<(), ConfineError> {
    limits::measure_inherited();
    rustix::thread::set_no_new_privs(true).map_err(ConfineError::NoNewPrivs)?;
    capabilities::drop_all()?;
    limits::zygote()?;
    landlock::restrict()
}

/// What a worker gives up before it reads a byte.
pub fn worker(policy: &Policy, parent: Pid, socket: RawFd, heap_mb: u32) -> Result<(), ConfineError> {
    lifetime::tie_to(parent)?;
    descriptors::close_all_but(socket)?;
    limits::worker(heap_mb)?;
    policy.apply()
}
