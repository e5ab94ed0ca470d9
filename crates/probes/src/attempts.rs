//! Attempts to escape from a worker. Each uses arguments that would succeed without confinement, and that are harmless then.

use crate::ancestors::ancestors;
use crate::calls::outcome_of;
use crate::outer_layer::{PR_SET_SPECULATION_CTRL, PR_SPEC_ENABLE};
use crate::socket::SOCKET;
use std::ffi::{CStr, c_long};
use std::ptr::null;

pub type Attempt = fn() -> c_long;

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: pointers are null or point to live values of the type that the call expects.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

/// Signal 0 only checks whether a signal could be sent.
const WOULD_SIGNAL: i32 = 0;
const PASSWD: &CStr = c"/etc/passwd";
const TRUE: &CStr = c"/bin/true";

#[rustfmt::skip]
const ATTEMPTS: &[(&str, Attempt)] = &[
    // Files.
    ("openat a file", || call!(SYS_openat, libc::AT_FDCWD, PASSWD.as_ptr(), libc::O_RDONLY)),
    ("openat2 a file", || call!(SYS_openat2, libc::AT_FDCWD, PASSWD.as_ptr(), &[0_u64; 3], 24)),
    ("make a file", || call!(SYS_openat, libc::AT_FDCWD, c"/tmp/heapstead-probe".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600)),
    ("open a handle", || call!(SYS_open_by_handle_at, libc::AT_FDCWD, null::<u8>(), libc::O_RDONLY)),
    ("stat a file", || call!(SYS_statx, libc::AT_FDCWD, PASSWD.as_ptr(), 0, libc::STATX_BASIC_STATS, &mut [0_u64; 32])),
    ("read a link", || call!(SYS_readlinkat, libc::AT_FDCWD, c"/proc/self/exe".as_ptr(), &mut [0_u8; 64], 64)),
    ("remove a file", || call!(SYS_unlinkat, libc::AT_FDCWD, c"/tmp/heapstead-probe".as_ptr(), 0)),
    ("mount", || call!(SYS_mount, c"none".as_ptr(), c"/tmp".as_ptr(), c"tmpfs".as_ptr(), 0, null::<u8>())),
    ("chroot", || call!(SYS_chroot, c"/".as_ptr())),
    // Other processes, through files.
    ("open its own memory", || open_of("self", "mem")),
    ("open its own environment", || open_of("self", "environ")),
    ("open the zygote's memory", || open_of(ancestors().zygote, "mem")),
    ("open the server's memory", || open_of(ancestors().server, "mem")),
    ("open the server's environment", || open_of(ancestors().server, "environ")),
    ("open the server's descriptors", || open_of(ancestors().server, "fd/3")),
    // Other processes, directly.
    ("ptrace the zygote", || call!(SYS_ptrace, libc::PTRACE_SEIZE, ancestors().zygote, 0, 0)),
    ("ptrace the server", || call!(SYS_ptrace, libc::PTRACE_SEIZE, ancestors().server, 0, 0)),
    ("be traced", || call!(SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0)),
    ("read the zygote's memory", || across(libc::SYS_process_vm_readv, ancestors().zygote)),
    ("write the zygote's memory", || across(libc::SYS_process_vm_writev, ancestors().zygote)),
    ("signal the zygote", || call!(SYS_kill, ancestors().zygote, WOULD_SIGNAL)),
    ("signal the server", || call!(SYS_kill, ancestors().server, WOULD_SIGNAL)),
    ("signal every process", || call!(SYS_kill, -1, WOULD_SIGNAL)),
    ("signal its own group", || call!(SYS_kill, 0, WOULD_SIGNAL)),
    ("signal a thread of the zygote", || call!(SYS_tgkill, ancestors().zygote, ancestors().zygote, WOULD_SIGNAL)),
    ("queue a signal", || call!(SYS_rt_sigqueueinfo, ancestors().zygote, WOULD_SIGNAL, &[0_u64; 16])),
    ("pidfd_open the zygote", || call!(SYS_pidfd_open, ancestors().zygote, 0)),
    ("signal through a pidfd", || call!(SYS_pidfd_send_signal, SOCKET, WOULD_SIGNAL, null::<u8>(), 0)),
    ("take a descriptor through a pidfd", || call!(SYS_pidfd_getfd, SOCKET, 0, 0)),
    ("get the pid of its parent", || call!(SYS_getppid)),
    // More processes.
    ("clone", || call!(SYS_clone, libc::SIGCHLD, 0, 0, 0, 0)),
    ("clone a thread", || call!(SYS_clone, libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND, 0, 0, 0, 0)),
    ("clone3", || call!(SYS_clone3, &[0_u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0], 64)),
    ("execve", || call!(SYS_execve, TRUE.as_ptr(), &[TRUE.as_ptr(), null()], &[null::<u8>()])),
    ("execveat", || call!(SYS_execveat, libc::AT_FDCWD, TRUE.as_ptr(), &[TRUE.as_ptr(), null()], &[null::<u8>()], 0)),
    // Descriptors.
    ("send descriptors to the server", send_descriptors),
    ("connect", || call!(SYS_connect, SOCKET, &[libc::AF_UNIX as u16, 0], 4)),
    ("listen", || call!(SYS_listen, SOCKET, 1)),
    ("shut the socket down", || call!(SYS_shutdown, SOCKET, libc::SHUT_RDWR)),
    ("create a pair of sockets", || call!(SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, &mut [0_i32; 2])),
    ("create a pipe", || call!(SYS_pipe2, &mut [0_i32; 2], 0)),
    ("memfd_create", || call!(SYS_memfd_create, c"probe".as_ptr(), 0)),
    ("memfd_secret", || call!(SYS_memfd_secret, 0)),
    ("duplicate a descriptor", || call!(SYS_dup, SOCKET)),
    ("fcntl", || call!(SYS_fcntl, SOCKET, libc::F_DUPFD, 100)),
    ("ioctl", || call!(SYS_ioctl, SOCKET, libc::FIONREAD, &mut 0_i32)),
    ("lseek", || call!(SYS_lseek, SOCKET, 0, libc::SEEK_SET)),
    ("ftruncate", || call!(SYS_ftruncate, SOCKET, 0)),
    ("epoll", || call!(SYS_epoll_create1, 0)),
    ("inotify", || call!(SYS_inotify_init1, 0)),
    // Kernel interfaces with a large attack surface.
    ("io_uring_setup", || call!(SYS_io_uring_setup, 1, &mut [0_u8; 120])),
    ("userfaultfd", || call!(SYS_userfaultfd, 0)),
    ("bpf", || call!(SYS_bpf, 0, &[4_u32, 4, 4, 1], 16)),
    ("perf_event_open", || call!(SYS_perf_event_open, &[1_u64; 16], 0, -1, -1, 0)),
    ("keyctl", || call!(SYS_keyctl, 0, -3, 0)),
    ("add_key", || call!(SYS_add_key, c"user".as_ptr(), c"probe".as_ptr(), c"x".as_ptr(), 1, -3)),
    ("shared memory", || call!(SYS_shmget, libc::IPC_PRIVATE, 4096, 0o600)),
    ("a message queue", || call!(SYS_mq_open, c"probe".as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, null::<u8>())),
    // Its own confinement.
    ("unshare its user namespace", || call!(SYS_unshare, libc::CLONE_NEWUSER)),
    ("unshare its mount namespace", || call!(SYS_unshare, libc::CLONE_NEWNS)),
    ("setns", || call!(SYS_setns, SOCKET, 0)),
    ("raise a limit", || call!(SYS_prlimit64, 0, libc::RLIMIT_DATA, &[u64::MAX; 2], null::<u8>())),
    ("raise the zygote's limit", || call!(SYS_prlimit64, ancestors().zygote, libc::RLIMIT_DATA, &[u64::MAX; 2], null::<u8>())),
    ("become another user", || call!(SYS_setuid, 0)),
    ("take capabilities", || call!(SYS_capset, &[0x2008_0522_u32, 0], &[u32::MAX; 6])),
    ("outlive the zygote", || call!(SYS_prctl, libc::PR_SET_PDEATHSIG, 0, 0, 0, 0)),
    ("turn speculation on again", || call!(SYS_prctl, PR_SET_SPECULATION_CTRL, 0, PR_SPEC_ENABLE, 0, 0)),
    ("become dumpable", || call!(SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0)),
    ("set strict seccomp mode", || call!(SYS_seccomp, libc::SECCOMP_SET_MODE_STRICT, 0, null::<u8>())),
    ("leave its session", || call!(SYS_setsid)),
    #[cfg(target_arch = "x86_64")]
    ("open", || call!(SYS_open, PASSWD.as_ptr(), libc::O_RDONLY)),
    #[cfg(target_arch = "x86_64")]
    ("fork", || call!(SYS_fork)),
    #[cfg(target_arch = "x86_64")]
    ("vfork", || call!(SYS_vfork)),
    #[cfg(target_arch = "x86_64")]
    ("setrlimit", || call!(SYS_setrlimit, libc::RLIMIT_DATA, &[u64::MAX; 2])),
    #[cfg(target_arch = "x86_64")]
    ("getpid by its x32 number", || {
        // SAFETY: takes no arguments.
        unsafe { libc::syscall(X32 | libc::SYS_getpid) }
    }),
    #[cfg(target_arch = "x86_64")]
    ("getpid as a 32-bit process calls it", getpid_32),
];

/// The bit that marks a system call of the x32 ABI, which has other numbers.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

/// Calls `getpid` through the 32-bit entry, where it has number 20. A filter that does not check the architecture would take it for `writev`.
#[cfg(target_arch = "x86_64")]
fn getpid_32() -> c_long {
    let mut number: c_long = 20;
    // SAFETY: a call without arguments; the entry preserves all registers except those listed.
    unsafe { std::arch::asm!("int 0x80", inout("rax") number, out("r8") _, out("r9") _, out("r10") _, out("r11") _) };
    number
}

fn all() -> impl Iterator<Item = &'static (&'static str, Attempt)> {
    ATTEMPTS.iter().chain(crate::arguments::ATTEMPTS)
}

pub fn names() -> String {
    all().map(|(name, _)| *name).collect::<Vec<_>>().join("\n")
}

pub fn run(name: &str) -> String {
    match all().find(|(known, _)| *known == name) {
        Some((_, attempt)) => outcome_of(attempt()),
        None => format!("no attempt is called `{name}`"),
    }
}

pub fn socket(family: &str) -> String {
    match family.parse::<i32>() {
        Ok(family) => outcome_of(call!(SYS_socket, family, libc::SOCK_DGRAM, 0)),
        Err(_) => format!("`{family}` is not a number"),
    }
}

/// Opens a file of `/proc/<process>`.
fn open_of(process: impl std::fmt::Display, file: &str) -> c_long {
    let path = format!("/proc/{process}/{file}\0");
    call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY)
}

/// Copies one byte between this process and another, at an address that exists in both, because one is a fork of the other.
fn across(number: c_long, process: i32) -> c_long {
    let mut byte = 0_u8;
    let part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: both vectors describe one live byte.
    unsafe { libc::syscall(number, process, &part, 1, &part, 1, 0) }
}

/// Sends its own socket to the server, attached to one byte.
fn send_descriptors() -> c_long {
    crate::socket::send_with_copies(SOCKET, b"x", 1) as c_long
}
