//! What server, zygote and worker say to each other: bounded frames over stream sockets, and descriptors beside them.
//!
//! Server and worker speak [`Start`] (down) and [`Frame`] (up). Server and zygote speak [`control`] messages.
#![forbid(unsafe_code)]

pub mod control;
mod descriptors;
mod frame;
mod start;

pub use descriptors::{receive_with_descriptors, send_with_descriptors};
pub use frame::{Decoder, Frame, FrameError, OUTPUT_FRAME_BYTES_MAX};
pub use start::{Start, StartError};
