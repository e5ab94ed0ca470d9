//! Messages between server and zygote, over a `SOCK_SEQPACKET` socket: one message, one packet.
//!
//! | direction | message | descriptors |
//! |---|---|---|
//! | zygote → server | `Ready` | – |
//! | server → zygote | `Fork` | the worker's socket |
//! | server → zygote | `KillFamily` | – |
//! | zygote → server | `Forked` | a pidfd of the worker |
//! | zygote → server | `NotForked`, `Exited`, `Cloned`, `FamilyEnded` | – |

use crate::{receive_with_descriptors, send_with_descriptors};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::IoSliceMut;

/// Larger than any message: engine id and error texts are short.
const MESSAGE_BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ToZygote {
    Fork {
        worker: u64,
        heap_mb: u32,
        /// The worker may clone itself when the server asks it to: it and its clones are a family.
        live: bool,
    },
    /// Kills a live worker and all its clones.
    KillFamily { worker: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FromZygote {
    Ready {
        engine: String,
        /// Digests of the first n native names, for n = 0, 1, 2, …, to check older heaps.
        natives: Vec<u32>,
        /// The layers of confinement that not every kernel has.
        layers: Vec<OptionalLayer>,
        stateful_jit: StatefulJit,
        /// Whether workers can be live, or why not.
        live: Result<(), String>,
        /// The zygote is a clone of the process that the server started, in a PID namespace of its own. That process has exited.
        cloned: bool,
    },
    /// The zygote can't serve, with the reason.
    Unfit {
        why: String,
    },
    Forked {
        worker: u64,
    },
    NotForked {
        worker: u64,
        why: String,
    },
    Exited {
        worker: u64,
        wait_status: i32,
    },
    /// A process of the family of this worker was allowed to clone itself.
    Cloned {
        worker: u64,
    },
    /// The last process of the family of this worker has ended.
    FamilyEnded {
        worker: u64,
    },
}

/// Whether V8 optimises stateful code, as it does stateless code.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StatefulJit {
    On,
    /// The operator's choice.
    Off,
    /// The code is interpreted, because of this.
    Unavailable {
        why: String,
    },
}

impl std::fmt::Display for StatefulJit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::On => f.write_str("on"),
            Self::Off => f.write_str("off"),
            Self::Unavailable { why } => write!(f, "unavailable: {why}"),
        }
    }
}

/// A layer of confinement that a kernel may not support, or that the rights of the server do not allow. All others are required.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OptionalLayer {
    pub name: String,
    /// What is in effect, or why the layer is missing.
    pub outcome: Result<String, String>,
}

pub fn send(socket: impl AsFd, message: &impl serde::Serialize, descriptor: Option<BorrowedFd<'_>>) -> rustix::io::Result<()> {
    let bytes = serde_json::to_vec(message).unwrap_or_default();
    send_with_descriptors(socket, &bytes, descriptor.as_slice()).map(drop)
}

/// The next message. None if the other side has closed the socket or sent something that can't be parsed.
pub fn receive<M: serde::de::DeserializeOwned>(socket: impl AsFd) -> rustix::io::Result<Option<(M, Option<OwnedFd>)>> {
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    let (length, mut descriptors) = receive_with_descriptors(socket, &mut [IoSliceMut::new(&mut buffer)])?;
    Ok(serde_json::from_slice(&buffer[..length]).ok().map(|message| (message, descriptors.pop())))
}
