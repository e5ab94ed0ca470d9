//! What a process can do that has only the zygote's required confinement. In a worker the seccomp filter and the namespaces hide these layers, but
//! they must hold on their own.

use crate::calls::outcome_of;
use heapstead_worker::confine;
use std::ffi::c_long;
use std::ptr::null;

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: pointers are null or point to live values of the type that the call expects.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

const PORT: u16 = 47_009;
// From `linux/prctl.h`.
pub const PR_SET_SPECULATION_CTRL: i32 = 53;
pub const PR_SPEC_ENABLE: i32 = 1 << 1;

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
    ("turn speculation of store bypass on again", || call!(SYS_prctl, PR_SET_SPECULATION_CTRL, 0, PR_SPEC_ENABLE, 0, 0)),
    ("turn speculation of indirect branches on again", || call!(SYS_prctl, PR_SET_SPECULATION_CTRL, 1, PR_SPEC_ENABLE, 0, 0)),
    ("signal the parent process", || call!(SYS_kill, libc::getppid(), 0)),
];

/// Confines this process as a zygote, then prints the outcome of each attempt as `attempt: outcome` lines. Never returns.
pub fn report() -> ! {
    // SAFETY: no pointers. Queries the kernel's version of landlock.
    let landlock = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) };
    println!("landlock: {}", outcome_of(landlock));
    match confine::zygote(confine::Namespaces::none(), &confine::Layers::ALL) {
        Ok(_) => ATTEMPTS.iter().for_each(|(name, attempt)| println!("{name}: {}", outcome_of(attempt()))),
        Err(error) => println!("{error}"),
    }
    std::process::exit(0)
}

/// Binds or connects to a local port that any user may bind and on which no process listens.
pub fn tcp(number: c_long) -> c_long {
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
