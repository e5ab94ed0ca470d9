//! A live worker that attacks: it clones itself when it is asked to, as it should, unless its last run was to do something else.

use crate::attempts;
use heapstead_wire::{FromWorker, ToWorker};
use heapstead_worker::Channel;
use heapstead_worker::confine::{Cloned, clone_self};
use std::os::fd::{AsRawFd, OwnedFd};

/// How the process answers the next `Fork`.
#[derive(Clone, Copy)]
enum Forks {
    AsAsked,
    /// It answers for the clone itself.
    Pretends,
    Never,
}

pub fn serve(channel: &Channel) {
    let mut forks = Forks::AsAsked;
    while let Ok((request, descriptor)) = channel.receive() {
        match (request, descriptor) {
            (ToWorker::Open(_), _) => channel.opened(),
            (ToWorker::Fork, Some(socket)) => fork(channel, socket, forks),
            (ToWorker::Run { run, code, .. }, _) => {
                channel.send(&FromWorker::Started { run });
                let result = match code.split_once(' ').unwrap_or((&code, "")) {
                    ("attempt", name) => attempts::run(name),
                    ("clone", "without end") => loop {
                        let _ = clone_self();
                    },
                    ("clone", "once") => match clone_self() {
                        Ok(Cloned::Clone) => wait(),
                        Ok(Cloned::Original) => "cloned".into(),
                        Err(error) => error.to_string(),
                    },
                    ("commit", _) => {
                        channel.send(&FromWorker::Committed { run });
                        "sent".into()
                    }
                    ("pretend", _) => {
                        forks = Forks::Pretends;
                        "next time".into()
                    }
                    ("refuse", _) => {
                        forks = Forks::Never;
                        "next time".into()
                    }
                    _ => format!("there is no live probe `{code}`"),
                };
                channel.completed(run, None, result);
            }
            (ToWorker::Commit { run }, _) => channel.send(&FromWorker::Committed { run }),
            _ => return,
        }
    }
}

fn fork(channel: &Channel, socket: OwnedFd, forks: Forks) {
    match forks {
        Forks::AsAsked => {
            if let Ok(Cloned::Clone) = clone_self() {
                channel.continue_on(socket);
            }
        }
        Forks::Pretends => {
            let greeting = FromWorker::OPENED;
            // SAFETY: pointer and length of a live array.
            unsafe { libc::write(socket.as_raw_fd(), greeting.as_ptr().cast(), greeting.len()) };
            std::mem::forget(socket);
        }
        Forks::Never => wait(),
    }
}

/// Waits without end, as a process would that tries to outlive its session.
fn wait() -> ! {
    loop {
        // SAFETY: watches nothing, without a time limit.
        unsafe { libc::ppoll(std::ptr::null_mut(), 0, std::ptr::null(), std::ptr::null()) };
    }
}
