//! A worker's socket below its session: to look at a start without reading it, and to write what no frame can say.

use std::os::fd::RawFd;

/// Where a worker's socket is.
pub const SOCKET: RawFd = 3;
/// More than the head and the first words of any start a test sends.
const PEEKED_BYTES: usize = 4096;

/// The beginning of the code of the start that waits in the socket. It stays there.
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
    // The start's own layout: two lengths, a header, the code.
    let code = seen.split_first_chunk::<4>().and_then(|(header, _)| seen.get(8 + u32::from_le_bytes(*header) as usize..));
    String::from_utf8_lossy(code.unwrap_or_default()).into_owned()
}

/// Writes all of `bytes`, whatever they are. Ends the process when the server is gone.
pub fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: pointer and length are those of a live slice.
        match usize::try_from(unsafe { libc::write(SOCKET, bytes.as_ptr().cast(), bytes.len()) }) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => quit(),
        }
    }
}

/// Ends the process without a word.
pub fn quit() -> ! {
    // SAFETY: always allowed.
    unsafe { libc::_exit(0) }
}

/// The most descriptors the kernel takes in one message.
pub const COPIES_MAX: usize = 253;

/// Sends `bytes` with `copies` of the socket itself beside them.
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
