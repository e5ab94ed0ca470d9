//! Direct access to a worker's socket: peeks at requests without reading them, and writes bytes that are not frames.

use heapstead_wire::HEAD_BYTES;
use std::os::fd::{BorrowedFd, RawFd};

/// The descriptor of a worker's socket.
pub const SOCKET: RawFd = 3;
/// Enough for the heads and the first words of the code of any run in the tests.
const PEEKED_BYTES: usize = 4096;

/// A worker's socket. The channel owns it.
pub fn socket() -> BorrowedFd<'static> {
    // SAFETY: open as long as the process lives, except in the fakes that close it, which do not use it afterwards.
    unsafe { BorrowedFd::borrow_raw(SOCKET) }
}

/// The beginning of the code of the run in the socket, which remains unread.
pub fn peek_code() -> String {
    let mut bytes = [0_u8; PEEKED_BYTES];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: zero is a valid message header: no name, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    // SAFETY: the header points to one live buffer.
    let length = unsafe { libc::recvmsg(SOCKET, &mut message, libc::MSG_PEEK) };
    let seen = &bytes[..usize::try_from(length).unwrap_or(0)];
    String::from_utf8_lossy(code_of(seen).unwrap_or_default()).into_owned()
}

/// The code in the payload of the frame `Run` (see `heapstead_wire`), after the lengths of settings, inputs and form, and these.
fn code_of(mut frames: &[u8]) -> Option<&[u8]> {
    const RUN: u8 = 2;
    loop {
        let (head, rest) = frames.split_first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let (payload, next) = rest.split_at(length.min(rest.len()));
        if head[4] == RUN {
            let (lengths, rest) = payload.split_at_checked(3 * 4)?;
            let length = |bytes: &[u8]| bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
            return rest.get(lengths.chunks(4).map(length).sum()..);
        }
        frames = next;
    }
}

/// Writes all of `bytes`. Exits if the server has closed the socket.
pub fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of a live slice.
        match usize::try_from(unsafe { libc::write(SOCKET, bytes.as_ptr().cast(), bytes.len()) }) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => quit(),
        }
    }
}

/// Exits without a message.
pub fn quit() -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(0) }
}

/// The maximum number of descriptors per message in Linux.
pub const COPIES_MAX: usize = 253;

/// Sends `bytes` with `copies` of the socket itself attached.
pub fn send_with_copies(socket: RawFd, bytes: &[u8], copies: usize) -> isize {
    let data_bytes = (copies.min(COPIES_MAX) * size_of::<RawFd>()) as u32;
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // Words, so that the header in front is aligned.
    let mut control = [0_u64; COPIES_MAX];
    // SAFETY: the header describes one live buffer for bytes and one for control data, and the latter is filled within its length.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(data_bytes) as usize;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(data_bytes) as usize;
        let descriptors = libc::CMSG_DATA(header).cast::<RawFd>();
        for index in 0..copies.min(COPIES_MAX) {
            descriptors.add(index).write_unaligned(socket);
        }
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL)
    }
}
