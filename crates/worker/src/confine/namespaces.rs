//! Namespaces: the zygote and its workers have users, processes, networks, IPC, mounts, host names and control groups of their own, and an empty
//! read-only root directory.
//!
//! ```text
//! server ── starts ──► launcher (root only: takes a user id of its own) ── clone(CLONE_PARENT | CLONE_NEW…) ──► exits
//!    └──────────────── parent of ─────────────────► zygote, process 1 of its PID namespace ── forks ──► workers
//! ```
//! A process never changes its own PID namespace, so the zygote is a clone of the process that the server started. `CLONE_PARENT` makes it a
//! child of the server too. If process 1 of a PID namespace ends, the kernel kills all others in it: no worker outlives its zygote.

use super::capabilities;
use heapstead_wire::control::OptionalLayer;
use std::ffi::{CStr, c_int, c_ulong};
use std::io::{Error, Result};

const NAME: &str = "namespaces";
const USER_NAME: &str = "user id";
const ROOT_NAME: &str = "empty root directory";

/// The only user and group that exist in the user namespace: "nobody".
const ID_INSIDE: u32 = 65534;
/// A zygote that root started has the user and group id of this number plus its process id. No distribution assigns ids in this range, process
/// ids are below 2²², and so two zygotes never share a user.
const ID_OUTSIDE_FIRST: u32 = 1 << 31;

const ALL: &[(&str, c_int)] = &[
    ("user", libc::CLONE_NEWUSER),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("mount", libc::CLONE_NEWNS),
    ("host name", libc::CLONE_NEWUTS),
    ("control group", libc::CLONE_NEWCGROUP),
];
const HOST_NAME: &CStr = c"worker";

/// What this process entered.
pub struct Namespaces {
    /// The `CLONE_NEW…` flags in effect.
    flags: c_int,
    layers: Vec<OptionalLayer>,
}

/// Continues in namespaces of its own, as a clone of the process that called it, which exits. Must be called while this process has one thread
/// and nothing depends on its process id. Without the kernel's permission it continues in the same process, and reports that.
pub fn enter() -> Namespaces {
    let mut layers: Vec<OptionalLayer> = own_user().into_iter().collect();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let every = ALL.iter().fold(0, |flags, (_, flag)| flags | flag);
    let (flags, outcome) = match clone_into(every) {
        Ok(()) => (every, map_ids(uid, gid).and_then(|()| name_host()).map_err(|error| error.to_string())),
        // Root may create the others also where user namespaces are forbidden.
        Err(refused) => match clone_into(every & !libc::CLONE_NEWUSER) {
            Ok(()) => (every & !libc::CLONE_NEWUSER, Err(refused.to_string())),
            Err(_) => (0, Err(refused.to_string())),
        },
    };
    let entered = names(flags);
    let outcome =
        outcome.map(|()| entered.clone()).map_err(|why| format!("entered: {}; {why}", if flags == 0 { "none" } else { &entered }));
    layers.insert(0, OptionalLayer { name: NAME.into(), outcome });
    Namespaces { flags, layers }
}

impl Namespaces {
    /// No namespaces.
    pub fn none() -> Self {
        Self { flags: 0, layers: Vec::new() }
    }

    /// Whether this process is a clone of the one that the server started.
    pub fn is_clone(&self) -> bool {
        self.flags != 0
    }

    /// Whether all processes that this one forks end with it.
    pub fn has_processes(&self) -> bool {
        self.flags & libc::CLONE_NEWPID != 0
    }

    /// Replaces all mounts by an empty directory that can't be written to. After this, nothing can be opened by its path.
    pub fn empty_root(&mut self) {
        if self.flags & libc::CLONE_NEWNS != 0 {
            let outcome = replace_root().map(|()| "in effect".to_owned()).map_err(|error| error.to_string());
            self.layers.push(OptionalLayer { name: ROOT_NAME.into(), outcome });
        }
    }

    pub fn into_layers(self) -> Vec<OptionalLayer> {
        self.layers
    }
}

fn names(flags: c_int) -> String {
    ALL.iter().filter(|(_, flag)| flags & flag != 0).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Root gives up its user id, so that files and processes of root do not belong to the zygote. None if this process is not root.
fn own_user() -> Option<OptionalLayer> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let outcome = change_user().map_err(|error| format!("root: {error}"));
    Some(OptionalLayer { name: USER_NAME.into(), outcome })
}

fn change_user() -> Result<String> {
    // Without CAP_KILL, the server could not kill workers of another user.
    if !capabilities::has_all(&[capabilities::KILL, capabilities::SETGID, capabilities::SETUID])? {
        return Err(Error::other("the server lacks CAP_KILL, CAP_SETGID or CAP_SETUID"));
    }
    let id = ID_OUTSIDE_FIRST + std::process::id();
    let done = |returned: c_int| if returned == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    // SAFETY: no pointers but an empty list.
    unsafe {
        // The capabilities are needed for the namespaces. `capabilities::drop_all` drops them later.
        done(libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0))?;
        done(libc::setgroups(0, std::ptr::null()))?;
        done(libc::setresgid(id, id, id))?;
        done(libc::setresuid(id, id, id))?;
        // A change of user makes `/proc/self` inaccessible, which the zygote still reads.
        done(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0))?;
    }
    capabilities::raise_all()?;
    Ok(id.to_string())
}

/// Clones this process into new namespaces. Returns in the clone; the original exits.
fn clone_into(flags: c_int) -> Result<()> {
    let flags = (flags | libc::CLONE_PARENT | libc::SIGCHLD) as c_ulong;
    // SAFETY: like fork: this process has one thread, so the clone inherits no locked mutex or unfinished write.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        0 => Ok(()),
        -1 => Err(Error::last_os_error()),
        // SAFETY: always allowed.
        _ => unsafe { libc::_exit(0) },
    }
}

fn map_ids(uid: u32, gid: u32) -> Result<()> {
    // Required before an unprivileged process may map a group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/gid_map", format!("{ID_INSIDE} {gid} 1"))?;
    std::fs::write("/proc/self/uid_map", format!("{ID_INSIDE} {uid} 1"))
}

fn name_host() -> Result<()> {
    // SAFETY: a live text of that length.
    match unsafe { libc::sethostname(HOST_NAME.as_ptr(), HOST_NAME.count_bytes()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// A folder that exists in every root, for the new root to be mounted on.
const MOUNT_POINT: &CStr = c"/proc";

fn replace_root() -> Result<()> {
    let done = |returned: c_int| if returned == 0 { Ok(()) } else { Err(Error::last_os_error()) };
    let (none, here, root) = (std::ptr::null(), c".".as_ptr(), c"/".as_ptr());
    let sealed = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: all pointers are null or live texts.
    unsafe {
        done(libc::mount(none, root, none, libc::MS_REC | libc::MS_PRIVATE, none.cast()))?;
        done(libc::mount(c"empty".as_ptr(), MOUNT_POINT.as_ptr(), c"tmpfs".as_ptr(), sealed, c"mode=555".as_ptr().cast()))?;
        done(libc::chdir(MOUNT_POINT.as_ptr()))?;
        // Puts the old root on top of the new one, from where it is unmounted with everything in it.
        done(libc::syscall(libc::SYS_pivot_root, here, here) as c_int)?;
        done(libc::umount2(here, libc::MNT_DETACH))?;
        done(libc::chdir(root))
    }
}
