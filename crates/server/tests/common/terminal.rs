//! Runs a command on a pseudo-terminal, as a user would.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Long timeout: only a failure waits this long.
const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Terminal {
    child: Child,
    keyboard: File,
    shown: Receiver<Vec<u8>>,
    /// Everything printed and not yet consumed.
    seen: String,
}

impl Terminal {
    pub fn start(mut command: Command) -> Self {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
        grantpt(&near).expect("granted");
        unlockpt(&near).expect("unlocked");
        let name = ptsname(&near, Vec::new()).expect("its name");
        let far = OpenOptions::new().read(true).write(true).open(std::ffi::OsStr::from_bytes(name.as_bytes())).expect("its other side");
        let stdio = || Stdio::from(far.try_clone().expect("a copy"));
        command.env("TERM", "xterm").stdin(stdio()).stdout(stdio()).stderr(stdio());
        // SAFETY: only two system calls are made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(std::io::stdin())?)
            });
        }
        let child = command.spawn().expect("it starts");
        let keyboard = File::from(near);
        let mut screen = keyboard.try_clone().expect("a copy");
        let (show, shown) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails once the other side is closed.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if show.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, shown, seen: String::new() }
    }

    pub fn send(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    /// Waits until this text is printed. Returns everything up to and including it.
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            match self.shown.recv_timeout(TIMEOUT) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{text:?} was not shown ({error}), but {:?}", self.seen),
            }
        }
    }

    /// Kills the command with SIGKILL.
    #[allow(dead_code, reason = "only some tests need it")]
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
    }

    /// Waits for the end. Returns the remaining output.
    pub fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("it ends");
        while let Ok(bytes) = self.shown.recv_timeout(TIMEOUT) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status, self.seen)
    }
}
