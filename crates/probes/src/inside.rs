//! Reports which descriptors of a worker are open, its environment variables, and where its memory is.

use std::ptr::null;

/// Far above any descriptor that a worker may have.
const DESCRIPTORS_SEEN: i32 = 4096;

pub fn report() -> String {
    let open: Vec<String> =
        (0..DESCRIPTORS_SEEN).filter(|descriptor| is_open(*descriptor)).map(|descriptor| descriptor.to_string()).collect();
    let environment: String = std::env::vars().map(|(name, value)| format!("{name}={value}\n")).collect();
    format!("open: {}\n{environment}", open.join(" "))
}

/// Addresses of the worker library, the C library, the stack and a mapping that the kernel placed before the fork.
pub fn layout() -> String {
    let on_stack = 0_u8;
    // SAFETY: asks for the limit of the allocated memory.
    let heap = unsafe { libc::sbrk(0) };
    format!("{:x} {:x} {:x} {heap:p}", report as *const () as usize, libc::getpid as *const () as usize, &raw const on_stack as usize)
}

/// Polls the descriptor without waiting: the kernel reports one that is not open.
fn is_open(descriptor: i32) -> bool {
    let mut asked = libc::pollfd { fd: descriptor, events: 0, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: one live entry and a live time.
    unsafe { libc::ppoll(&mut asked, 1, &at_once, null()) };
    asked.revents & libc::POLLNVAL == 0
}
