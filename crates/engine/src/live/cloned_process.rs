//! A clone of a process of a family: asked for, and identified.
//!
//! The clone says `Opened` on the socket that the server made for it. The kernel attaches the process id of the sender, which nothing in the
//! family can forge, and the process has to be in the family's group.

use super::{CloneCount, Process};
use heapstead_wire::{FromWorker, ToWorker};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair, sockopt,
};
use rustix::process::{Pid, PidfdFlags, getpgid, pidfd_open};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A clone takes milliseconds, also of a large heap.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Clones a process. If it fails, the process is in an unknown state.
pub async fn of(original: &mut Process, group: Pid, count: &CloneCount) -> Result<Process, String> {
    let describe = |error: rustix::io::Errno| format!("a socket can't be made: {error}");
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None).map_err(describe)?;
    rustix::io::ioctl_fionbio(&theirs, false).map_err(describe)?;
    sockopt::set_socket_passcred(&ours, true).map_err(describe)?;
    count.ask();
    original.send(&[ToWorker::Fork], &[theirs.as_fd()]).await.map_err(|failure| failure.to_string())?;
    drop(theirs);
    let sender = tokio::select! {
        greeted = tokio::time::timeout(TIMEOUT, greeting(&ours)) => greeted.map_err(|_| format!("the live worker made no clone in {} s", TIMEOUT.as_secs()))??,
        _ = original.worker.dead() => return Err("the live worker died while it was cloned".into()),
    };
    if Some(sender) == original.worker.pid().and_then(Pid::from_raw) {
        return Err("the live worker did not clone itself".into());
    }
    let pidfd = pidfd_open(sender, PidfdFlags::empty()).map_err(|error| format!("pidfd: {error}"))?;
    // After the pidfd is open: if the number was reused before, it is that of a process outside the group.
    if getpgid(Some(sender)) != Ok(group) {
        return Err("the clone is not in the family".into());
    }
    let worker = original.worker.cloned(ours, pidfd).map_err(|error| error.to_string())?;
    let mut state = original.state.of_clone();
    state.accept(&FromWorker::Opened).map_err(|error| error.to_string())?;
    Ok(Process { worker, state, run: original.run, commit_due: None })
}

/// Waits for `Opened`. Returns who sent it.
async fn greeting(socket: &OwnedFd) -> Result<Pid, String> {
    // SAFETY: the socket outlives the registration.
    let watched = unsafe { AsyncFd::register(socket.as_fd()) }.map_err(|error| error.to_string())?;
    loop {
        let mut ready = watched.readable().await.map_err(|error| error.to_string())?;
        if let Ok(received) = ready.try_io(|socket| Ok(receive(socket.get_ref())?)) {
            return match received {
                Ok(Some(sender)) => Ok(sender),
                Ok(None) => Err("the clone did not say `Opened`".into()),
                Err(error) => Err(error.to_string()),
            };
        }
    }
}

fn receive(socket: impl AsFd) -> rustix::io::Result<Option<Pid>> {
    let mut greeting = [0; FromWorker::OPENED.len()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut greeting)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let sender = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid),
        _ => None,
    });
    Ok(sender.filter(|_| received.bytes == greeting.len() && greeting == FromWorker::OPENED))
}
