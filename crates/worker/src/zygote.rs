//! The zygote: initialises V8 once, forks a worker for each request of the server, and reports the exit of each worker.

use crate::confine::{Layers, Lifetime};
use crate::families::Families;
use crate::{Channel, allocator, channel, code_pages, confine, entry, vm};
use heapstead_wire::ZygoteSettings;
use heapstead_wire::control::{self, FromZygote, ToZygote};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, setpgid, waitpid};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// What a worker does once it is confined.
pub type Runner = fn(&Channel);

/// The descriptor of the control socket, in the zygote.
const CONTROL: RawFd = 3;
/// The descriptor of the worker's socket, in the worker.
const SOCKET: RawFd = 3;

const USAGE: &str = "usage: zygote BASE_HEAP SETTINGS | base-heap FILE | raw-loop BASE_HEAP | describe";

/// # Safety
/// `argv` holds `argc` strings that live as long as the process.
pub unsafe fn main(argc: i32, argv: *mut *mut c_char, runner: Runner) -> i32 {
    let arguments: Vec<String> = (1..argc as usize)
        // SAFETY: the caller's contract.
        .map(|index| unsafe { CStr::from_ptr(*argv.add(index)) }.to_string_lossy().into_owned())
        .collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["zygote", base_heap, settings] => match ZygoteSettings::from_word(settings) {
            Some(settings) => serve(Path::new(base_heap), settings, &Layers::ALL, runner),
            None => fail(&format!("`{settings}` are not settings of a zygote")),
        },
        ["base-heap", file] => match vm::base_heap::build().and_then(|heap| heap.write(Path::new(file))) {
            Ok(()) => 0,
            Err(error) => fail(&format!("the base heap can't be built: {error}")),
        },
        ["raw-loop", base_heap] => vm::bench::main(Path::new(base_heap)),
        ["describe"] => {
            println!("{}", vm::engine_id());
            0
        }
        _ => fail(USAGE),
    }
}

fn fail(message: &str) -> i32 {
    eprintln!("{message}");
    1
}

/// Serves the control socket until the server closes it.
pub fn serve(base_heap: &Path, settings: ZygoteSettings, layers: &Layers, runner: Runner) -> i32 {
    // SAFETY: the server starts this process with the control socket on this descriptor.
    let control = unsafe { OwnedFd::from_raw_fd(CONTROL) };
    let mut zygote = match Zygote::prepare(control.as_fd(), base_heap, settings, layers, runner) {
        Ok(zygote) => zygote,
        Err(why) => {
            let _ = control::send(&control, &FromZygote::Unfit { why: why.clone() }, None);
            return fail(&why);
        }
    };
    zygote.serve()
}

struct Zygote<'a> {
    control: BorrowedFd<'a>,
    children: OwnedFd,
    workers: HashMap<Pid, u64>,
    /// None if workers can't be live here.
    families: Option<Families>,
    policy: confine::Policy,
    runner: Runner,
}

impl<'a> Zygote<'a> {
    fn prepare(
        control: BorrowedFd<'a>,
        base_heap: &Path,
        settings: ZygoteSettings,
        layers: &Layers,
        runner: Runner,
    ) -> Result<Self, String> {
        vm::set_jitless(settings.jitless);
        vm::set_resolution_us(settings.timer_resolution_us);
        vm::base_heap::load(base_heap).map_err(|error| format!("base heap: {error}"))?;
        vm::initialize();
        let stateful_jit = vm::enable_stateful_jit(settings.stateful_jit && !settings.jitless);
        code_pages::copy_to_anonymous_memory();
        entry::cache_stack();
        entry::cache_time_zone();
        allocator::use_huge_pages();
        // After everything that reads files, which the process may no longer be able to read, or that calls libc functions which use its record of
        // the thread id, which is stale in the clone. The clone has only those pages of files mapped that it accesses itself.
        let namespaces = if layers.namespaces { confine::enter_namespaces() } else { confine::Namespaces::none() };
        let cloned = namespaces.is_clone();
        let children = watch_children().map_err(|error| format!("exits of workers can't be watched: {error}"))?;
        let policy = confine::Policy::compile(layers, settings.jitless).map_err(|error| error.to_string())?;
        let confine::Optional { layers, clones } = confine::zygote(namespaces, layers).map_err(|error| error.to_string())?;
        let (live, families) = match clones {
            Ok(requests) => (Ok(()), Some(Families::new(requests))),
            Err(why) => (Err(why), None),
        };
        let (engine, natives) = (vm::engine_id().to_string(), vm::natives_digests());
        let ready = FromZygote::Ready { engine, natives, layers, stateful_jit, live, cloned };
        control::send(control, &ready, None).map_err(|error| format!("control socket: {error}"))?;
        Ok(Self { control, children, workers: HashMap::new(), families, policy, runner })
    }

    fn serve(&mut self) -> i32 {
        loop {
            let clones = self.families.as_ref().map_or(self.control, AsFd::as_fd);
            let watched = [self.control, self.children.as_fd(), clones];
            let mut ready = watched.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            if poll(&mut ready, None).is_err() {
                continue;
            }
            let [control_ready, children_ready, clones_ready] = ready.map(|descriptor| !descriptor.revents().is_empty());
            // First what makes room.
            if children_ready {
                self.reap();
            }
            if clones_ready && let Some(cloned) = self.families.as_mut().and_then(Families::decide) {
                let _ = control::send(self.control, &cloned, None);
            }
            if control_ready && !self.answer() {
                return 0;
            }
        }
    }

    /// Answers one request. False if the server has closed the socket.
    fn answer(&mut self) -> bool {
        match control::receive(self.control) {
            Ok(Some((ToZygote::Fork { worker, heap_mb, live }, Some(socket)))) => match (live, &self.families) {
                (true, None) => self.refuse(worker, "workers can't be live here"),
                (true, Some(_)) => self.fork(worker, heap_mb, Lifetime::Live, socket),
                (false, _) => self.fork(worker, heap_mb, Lifetime::OneRun, socket),
            },
            Ok(Some((ToZygote::KillFamily { worker }, _))) => {
                if let Some(families) = &self.families {
                    families.kill(worker);
                }
            }
            Ok(Some((ToZygote::Fork { worker, .. }, None))) => self.refuse(worker, "no socket came with the request"),
            Ok(None) | Err(_) => return false,
        }
        true
    }

    fn fork(&mut self, worker: u64, heap_mb: u32, lifetime: Lifetime, socket: OwnedFd) {
        let parent = rustix::process::getpid();
        // SAFETY: this process has one thread, so the child inherits no locked mutex or unfinished write.
        match unsafe { libc::fork() } {
            0 => self.become_worker(parent, heap_mb, lifetime, socket),
            -1 => self.refuse(worker, &format!("fork: {}", std::io::Error::last_os_error())),
            pid => {
                let Some(pid) = Pid::from_raw(pid) else { return };
                self.workers.insert(pid, worker);
                if let (Lifetime::Live, Some(families)) = (lifetime, &mut self.families) {
                    // The child does the same: whichever is first.
                    let _ = setpgid(Some(pid), Some(pid));
                    families.add(worker, pid);
                }
                match pidfd_open(pid, PidfdFlags::empty()) {
                    Ok(pidfd) => {
                        let _ = control::send(self.control, &FromZygote::Forked { worker }, Some(pidfd.as_fd()));
                    }
                    Err(error) => {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                        self.refuse(worker, &format!("pidfd: {error}"));
                    }
                }
            }
        }
    }

    fn refuse(&self, worker: u64, why: &str) {
        let _ = control::send(self.control, &FromZygote::NotForked { worker, why: why.to_owned() }, None);
    }

    /// The child's side of a fork: confines itself, runs, exits. It reads nothing before it is confined.
    fn become_worker(&self, parent: Pid, heap_mb: u32, lifetime: Lifetime, socket: OwnedFd) -> ! {
        if lifetime == Lifetime::Live {
            let _ = setpgid(None, None);
        }
        // SAFETY: both descriptors are open. SOCKET is the control socket, which the worker's socket replaces.
        if unsafe { libc::dup2(socket.as_raw_fd(), SOCKET) } == SOCKET {
            // SAFETY: the descriptor was just created, and nothing else in this process owns it.
            let channel = Channel::new(unsafe { OwnedFd::from_raw_fd(SOCKET) });
            match confine::worker(&self.policy, parent, SOCKET, heap_mb, lifetime) {
                Ok(()) => (self.runner)(&channel),
                // The server notices the death of the zygote itself.
                Err(confine::ConfineError::Orphaned) => {}
                Err(error) => channel.unfit_and_quit(error.to_string()),
            }
        }
        channel::quit()
    }

    fn reap(&mut self) {
        let mut drained = [0_u8; 1024];
        let _ = rustix::io::read(&self.children, &mut drained);
        while let Some(pid) = ended_child() {
            if let Some(ended) = self.families.as_mut().and_then(|families| families.ended(pid)) {
                let _ = control::send(self.control, &ended, None);
            }
            let Ok(Some((_, status))) = waitpid(Some(pid), WaitOptions::NOHANG) else { return };
            if let Some(worker) = self.workers.remove(&pid) {
                let _ = control::send(self.control, &FromZygote::Exited { worker, wait_status: status.as_raw() }, None);
            }
        }
    }
}

/// A child that has exited and is not reaped yet.
fn ended_child() -> Option<Pid> {
    // SAFETY: a live structure, which the kernel fills in.
    unsafe {
        let mut ended: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(libc::P_ALL, 0, &raw mut ended, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
            0 => Pid::from_raw(ended.si_pid()),
            _ => None,
        }
    }
}

/// A descriptor that becomes readable when a child exits.
fn watch_children() -> std::io::Result<OwnedFd> {
    // SAFETY: plain libc calls on a local signal set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        // Writing a snapshot past its limit must fail with an error, not kill the process.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(std::io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}
