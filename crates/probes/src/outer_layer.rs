//! What a process can do that only the zygote's confinement holds. In a worker the system-call filter hides this layer; it must hold alone.

use crate::calls::said;
use std::ffi::c_long;
use std::ptr::null;

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: pointers are null or lead to live values of the type that the call wants.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

const PORT: u16 = 47_009;

type Attempt = fn() -> c_long;

#[rustfmt::skip]
const ATTEMPTS: &[(&str, Attempt)] = &[
    ("read a file", || call!(SYS_openat, libc::AT_FDCWD, c"/etc/passwd".as_ptr(), libc::O_RDONLY)),
    ("make a file", || call!(SYS_openat, libc::AT_FDCWD, c"/tmp/heapstead-probe".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600)),
    ("list a folder", || call!(SYS_openat, libc::AT_FDCWD, c"/".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY)),
    ("make a folder", || call!(SYS_mkdirat, libc::AT_FDCWD, c"/tmp/heapstead-probe".as_ptr(), 0o700)),
    ("read its own memory", || call!(SYS_openat, libc::AT_FDCWD, c"/proc/self/mem".as_ptr(), libc::O_RDONLY)),
    ("execute", || call!(SYS_execve, c"/bin/sh".as_ptr(), &[c"sh".as_ptr(), null()], &[null::<u8>()])),
    ("mount", || call!(SYS_mount, c"none".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, null::<u8>())),
    ("chroot", || call!(SYS_chroot, c"/tmp".as_ptr())),
    ("raise a limit", || call!(SYS_prlimit64, 0, libc::RLIMIT_CORE, &[1_u64; 2], null::<u8>())),
    ("take capabilities", || call!(SYS_capset, &[0x2008_0522_u32, 0], &[1_u32, 1, 0, 0, 0, 0])),
    ("bind a TCP port", || tcp(libc::SYS_bind)),
    ("connect to a TCP port", || tcp(libc::SYS_connect)),
    ("signal the process above", || call!(SYS_kill, libc::getppid(), 0)),
];

/// Gives up what a zygote gives up, then prints what is left, as `attempt: outcome` lines. Never returns.
pub fn report() -> ! {
    // SAFETY: no pointers: asks the kernel which landlock it has.
    let landlock = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) };
    println!("landlock: {}", said(landlock));
    match heapstead_worker::confine::zygote() {
        Ok(()) => ATTEMPTS.iter().for_each(|(name, attempt)| println!("{name}: {}", said(attempt()))),
        Err(error) => println!("{error}"),
    }
    std::process::exit(0)
}

/// A port of this machine that anybody may bind, and nobody answers at.
fn tcp(number: c_long) -> c_long {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: PORT.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let socket = call!(SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0);
    // SAFETY: a live address of that length.
    unsafe { libc::syscall(number, socket, &address, size_of_val(&address)) }
}
