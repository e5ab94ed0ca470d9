//! What the server tells a worker to do: limits, headers and the code, with the heap descriptors beside them.
//!
//! ```text
//! 0              4              8
//! | header length | code length | header (JSON) | code (UTF-8) |      lengths: u32 little-endian
//! ```
//! Descriptors, sent with the first byte: the heap to restore if `heap_bytes` is set, then the one to write the snapshot to if `snapshot` is.

use crate::{receive_with_descriptors, send_with_descriptors};
use heapstead_types::limits;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

const HEADER_BYTES_MAX: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Start {
    pub heap_mb: u32,
    pub output_bytes_max: u64,
    /// Length of the heap to restore; none: the base heap.
    pub heap_bytes: Option<u64>,
    /// Where the identity hashes of new objects begin: given by the heap, so that the same run on it leaves the same bytes.
    pub identity_seed: u64,
    /// Whether to write a snapshot at the end.
    pub snapshot: bool,
    /// `X-MCP-*` headers, for `mcp.headers`.
    pub headers: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the other side is gone")]
    Closed,
    #[error("a start message that can't be read: {0}")]
    Malformed(&'static str),
    #[error(transparent)]
    Io(#[from] Errno),
}

impl Start {
    /// The bytes of the message. The descriptors go with the first of them.
    pub fn encode(&self, code: &str) -> Vec<u8> {
        let header = serde_json::to_vec(self).unwrap_or_default();
        let mut bytes = Vec::with_capacity(8 + header.len() + code.len());
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(code.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(code.as_bytes());
        bytes
    }

    /// Sends as much of `encoded` as fits now, with the descriptors. Returns how much that was.
    pub fn send_first(socket: impl AsFd, encoded: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
        send_with_descriptors(socket, encoded, descriptors)
    }

    /// Waits for a whole message: the worker's side.
    pub fn receive(socket: impl AsFd) -> Result<(Self, String, Vec<OwnedFd>), StartError> {
        let mut head = [0; 8];
        let (mut filled, descriptors) = receive_with_descriptors(&socket, &mut head)?;
        if filled == 0 {
            return Err(StartError::Closed);
        }
        while filled < head.len() {
            filled += read_some(&socket, &mut head[filled..])?;
        }
        let [h0, h1, h2, h3, c0, c1, c2, c3] = head;
        let header_length = u32::from_le_bytes([h0, h1, h2, h3]) as usize;
        let code_length = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
        if header_length > HEADER_BYTES_MAX || code_length > limits::SOURCE_BYTES_MAX {
            return Err(StartError::Malformed("too long"));
        }
        let header = read_exact(&socket, header_length)?;
        let start: Self = serde_json::from_slice(&header).map_err(|_| StartError::Malformed("header"))?;
        let code = String::from_utf8(read_exact(&socket, code_length)?).map_err(|_| StartError::Malformed("code"))?;
        if descriptors.len() != usize::from(start.heap_bytes.is_some()) + usize::from(start.snapshot) {
            return Err(StartError::Malformed("descriptors"));
        }
        Ok((start, code, descriptors))
    }
}

fn read_exact(socket: impl AsFd, length: usize) -> Result<Vec<u8>, StartError> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        filled += read_some(&socket, &mut bytes[filled..])?;
    }
    Ok(bytes)
}

fn read_some(socket: impl AsFd, buffer: &mut [u8]) -> Result<usize, StartError> {
    match rustix::io::retry_on_intr(|| rustix::io::read(&socket, &mut *buffer))? {
        0 => Err(StartError::Closed),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn a_start_arrives_with_its_code_and_descriptors() {
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("socketpair");
        let start = Start {
            heap_mb: 64,
            output_bytes_max: 10,
            heap_bytes: Some(3),
            identity_seed: 9,
            snapshot: true,
            headers: vec![("x-mcp-a".into(), "é".into())],
        };
        let encoded = start.encode("let é = 1");
        let sent = Start::send_first(&near, &encoded, &[near.as_fd(), near.as_fd()]).expect("send");
        assert_eq!(sent, encoded.len());
        let (received, code, descriptors) = Start::receive(&far).expect("receive");
        assert_eq!((received, code.as_str(), descriptors.len()), (start, "let é = 1", 2));
    }

    #[test]
    fn missing_descriptors_and_silence_are_told_apart() {
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("socketpair");
        let start = Start { heap_mb: 64, output_bytes_max: 10, heap_bytes: None, identity_seed: 9, snapshot: true, headers: vec![] };
        Start::send_first(&near, &start.encode("1"), &[]).expect("send");
        assert!(matches!(Start::receive(&far), Err(StartError::Malformed("descriptors"))));
        drop(near);
        assert!(matches!(Start::receive(&far), Err(StartError::Closed)));
    }
}
