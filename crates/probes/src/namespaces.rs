//! What a process sees and can do that has only the namespaces of a zygote. Landlock and the seccomp filter hide this layer, but it must hold on
//! its own.

use crate::ancestors::ancestors;
use crate::attempts::Attempt;
use crate::calls::outcome_of;
use crate::outer_layer::tcp;
use heapstead_worker::confine;
use std::ffi::c_long;

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: pointers are null or point to live values of the type that the call expects.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

#[rustfmt::skip]
const ATTEMPTS: &[(&str, Attempt)] = &[
    ("its process id", || call!(SYS_getpid)),
    ("its user id", || call!(SYS_getuid)),
    ("its group id", || call!(SYS_getgid)),
    ("signal the server", || call!(SYS_kill, ancestors().server, 0)),
    ("open a file of the machine", || call!(SYS_openat, libc::AT_FDCWD, c"/etc/passwd".as_ptr(), libc::O_RDONLY)),
    ("open /proc", || call!(SYS_openat, libc::AT_FDCWD, c"/proc/self".as_ptr(), libc::O_RDONLY)),
    ("leave the root directory", || call!(SYS_openat, libc::AT_FDCWD, c"../../etc".as_ptr(), libc::O_RDONLY)),
    ("make a file", || call!(SYS_openat, libc::AT_FDCWD, c"/probe".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o600)),
    ("connect to a port of the machine", || tcp(libc::SYS_connect)),
    ("entries of the root directory", || std::fs::read_dir("/").map_or(-1, |entries| entries.count() as c_long)),
];

/// Enters the namespaces and prints `attempt: outcome` lines. `key` is that of a shared memory segment of the caller. Never returns.
pub fn report(key: &str) -> ! {
    let mut namespaces = confine::enter_namespaces();
    namespaces.empty_root();
    for (name, attempt) in ATTEMPTS {
        println!("{name}: {}", outcome_of(attempt()));
    }
    let key: i32 = key.parse().unwrap_or(0);
    println!("find shared memory of the machine: {}", outcome_of(call!(SYS_shmget, key, 0, 0)));
    println!("host name: {}", rustix::system::uname().nodename().to_string_lossy());
    for layer in namespaces.into_layers() {
        println!("layer {}: {:?}", layer.name, layer.outcome);
    }
    std::process::exit(0)
}
