//! Confinement: the privileges that the zygote drops once, and each worker before it reads a byte. If a step fails, no code runs.
//!
//! The zygote drops what no worker needs (namespaces of the machine, files, network, capabilities, new privileges), because its children inherit
//! that at no cost. A worker
//! then closes every descriptor except its socket, sets its resource limits and its parent-death signal, and allows only the system calls of
//! `policy/seccomp.json`. A live worker may also clone itself, with the permission of the zygote for each clone (`cloning.rs`).

mod capabilities;
mod cloning;
mod descriptors;
mod landlock;
mod layers;
mod lifetime;
mod limits;
mod namespaces;
mod seccomp;
mod speculation;

pub use cloning::{CloneRequest, CloneRequests, Cloned, clone_self};
pub use landlock::ABI_MIN as LANDLOCK_ABI_MIN;
pub use layers::Layers;
pub use limits::snapshot_bytes_max;
pub use namespaces::{Namespaces, enter as enter_namespaces};
pub use seccomp::Policy;

use heapstead_wire::control::OptionalLayer;
use rustix::process::Pid;
use std::os::fd::RawFd;

/// One variant per step, so that the message names the step that this machine does not support.
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
    #[error("confinement: the zygote died while it forked a worker")]
    Orphaned,
    #[error("confinement: parent-death signal: {0}")]
    Lifetime(rustix::io::Errno),
    #[error("confinement: seccomp policy: {0}")]
    Policy(String),
    #[error("confinement: seccomp: {0}")]
    Seccomp(String),
}

/// What a kernel may or may not support.
pub struct Optional {
    pub layers: Vec<OptionalLayer>,
    /// Where workers ask whether they may clone themselves, or why they can't.
    pub clones: Result<CloneRequests, String>,
}

/// Drops the privileges of the zygote, which all its children inherit.
pub fn zygote(mut namespaces: Namespaces, layers: &Layers) -> Result<Optional, ConfineError> {
    limits::measure_inherited();
    rustix::thread::set_no_new_privs(true).map_err(ConfineError::NoNewPrivs)?;
    namespaces.empty_root();
    capabilities::drop_all()?;
    limits::zygote()?;
    landlock::restrict()?;
    // Without a PID namespace, a clone could outlive its zygote.
    let clones = match namespaces.has_processes() {
        true => CloneRequests::receive().map_err(|error| format!("seccomp user notification: {error}")),
        false => Err("there is no PID namespace".into()),
    };
    let mut optional = namespaces.into_layers();
    optional.extend(layers.speculation_off.then(speculation::disable));
    Ok(Optional { layers: optional, clones })
}

/// Whether a worker serves one run, or stays and may be cloned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    OneRun,
    Live,
}

/// Confines a worker, before it reads a byte.
pub fn worker(policy: &Policy, parent: Pid, socket: RawFd, heap_mb: u32, lifetime: Lifetime) -> Result<(), ConfineError> {
    lifetime::tie_to(parent)?;
    descriptors::close_all_but(socket)?;
    limits::worker(heap_mb, lifetime)?;
    policy.apply(lifetime)
}
