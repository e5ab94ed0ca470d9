//! Clones of live workers. A worker may clone itself only if the zygote allows it, each time: the kernel stops the call and asks the zygote
//! (seccomp user notification). The policy of other workers forbids the call altogether.

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, c_ulong, sock_filter};
use std::io::{Error, Result};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// A clone is a child of the zygote, as every worker: it lives on when the worker that it was cloned from ends.
const CLONE_FLAGS: u32 = (libc::CLONE_PARENT | libc::SIGCHLD) as u32;

/// The requests of all workers of this zygote.
pub struct CloneRequests(OwnedFd);

/// A call that waits for the decision.
pub struct CloneRequest {
    id: u64,
    pub pid: i32,
}

impl CloneRequests {
    /// Makes the kernel ask this process about clones of the workers that it forks from now on. Needs `no_new_privs`.
    pub fn receive() -> Result<Self> {
        let step = |code: u32, k: u32, jf: u8| sock_filter { code: code as u16, jt: 0, jf, k };
        let load = |offset: usize| step(BPF_LD | BPF_W | BPF_ABS, offset as u32, 0);
        let unless_equal = |value: u32, skipped: u8| step(BPF_JMP | BPF_JEQ | BPF_K, value, skipped);
        let end = |action: u32| step(BPF_RET | BPF_K, action, 0);
        let low_half = if cfg!(target_endian = "little") { 0 } else { 4 };
        let mut filter = [
            load(offset_of!(libc::seccomp_data, nr)),
            unless_equal(libc::SYS_clone as u32, 3),
            load(offset_of!(libc::seccomp_data, args) + low_half),
            unless_equal(CLONE_FLAGS, 1),
            end(libc::SECCOMP_RET_USER_NOTIF),
            end(libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: a live program of that length.
        let listener = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER, &raw const program)
        };
        match RawFd::try_from(listener) {
            // SAFETY: the kernel has just created it for this process.
            Ok(listener @ 0..) => Ok(Self(unsafe { OwnedFd::from_raw_fd(listener) })),
            _ => Err(Error::last_os_error()),
        }
    }

    /// The next request. None if its process has been killed meanwhile.
    pub fn next(&self) -> Option<CloneRequest> {
        // SAFETY: the kernel demands zeros and fills the structure in.
        unsafe {
            let mut request: libc::seccomp_notif = std::mem::zeroed();
            let received = libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut request);
            (received == 0).then_some(CloneRequest { id: request.id, pid: request.pid as i32 })
        }
    }

    /// Lets the call continue. Its arguments are in registers, so what the filter has checked is what the kernel does. False if the process has
    /// been killed meanwhile.
    pub fn allow(&self, request: CloneRequest) -> bool {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        self.decide(libc::seccomp_notif_resp { id: request.id, val: 0, error: 0, flags })
    }

    pub fn refuse(&self, request: CloneRequest) {
        self.decide(libc::seccomp_notif_resp { id: request.id, val: 0, error: -libc::EPERM, flags: 0 });
    }

    /// False if the process is dead.
    fn decide(&self, decision: libc::seccomp_notif_resp) -> bool {
        // SAFETY: a live structure.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const decision) == 0 }
    }
}

impl AsFd for CloneRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Which of the two processes this is after a clone.
pub enum Cloned {
    Original,
    Clone,
}

/// Clones this process, if the zygote allows it.
pub fn clone_self() -> Result<Cloned> {
    // SAFETY: as fork: this process has one thread, so the clone inherits no locked mutex or unfinished write.
    match unsafe { libc::syscall(libc::SYS_clone, c_ulong::from(CLONE_FLAGS), 0, 0, 0, 0) } {
        0 => Ok(Cloned::Clone),
        -1 => Err(Error::last_os_error()),
        1..=c_long::MAX => Ok(Cloned::Original),
        other => Err(Error::other(format!("clone returned {other}"))),
    }
}
