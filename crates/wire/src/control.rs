//! Messages between server and zygote, over a `SOCK_SEQPACKET` socket: one message, one packet.
//!
//! | direction | message | descriptors |
//! |---|---|---|
//! | zygote → server | `Ready` | – |
//! | server → zygote | `Fork` | the worker's socket |
//! | zygote → server | `Forked` | a pidfd of the worker |
//! | zygote → server | `NotForked`, `Exited` | – |

use crate::{receive_with_descriptors, send_with_descriptors};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::IoSliceMut;

/// Larger than any message: engine id and error texts are short.
const MESSAGE_BYTES_MAX: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ToZygote {
    Fork { worker: u64, heap_mb: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum FromZygote {
    Ready {
        engine: String,
        /// Digests of the first n native names, for n = 0, 1, 2, …, to check older heaps.
        natives: Vec<u32>,
    },
    /// The zygote can't serve, with the reason.
    Unfit {
        why: String,
    },
    Forked {
        worker: u64,
        pid: i32,
    },
    NotForked {
        worker: u64,
        why: String,
    },
    Exited {
        worker: u64,
        wait_status: i32,
    },
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
