//! Runs the tests of a file again in environments with fewer rights than the one that tests usually run in.

use super::{PROBES, production};
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user that owns nothing and that no distribution assigns.
const ORDINARY_USER: u32 = 60_123;

#[derive(Debug, Clone, Copy)]
enum Environment {
    /// Without capabilities, and the files of the engine belong to another user.
    OrdinaryUser,
    /// The same, where user namespaces are forbidden by a filter, as container runtimes do.
    NoUserNamespaces,
    /// Root of a user namespace in which no other user exists and no other user namespace may be made, as in a rootless container.
    RootOfContainer,
}

/// Runs all tests of this file but this one in every environment.
pub fn test_all_but(this: &str) {
    let folder = Folder::new();
    for environment in [Environment::OrdinaryUser, Environment::NoUserNamespaces, Environment::RootOfContainer] {
        let output = command(environment, &folder.0.join("tests")).args(["--skip", this]).current_dir("/").output().expect("a process");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{environment:?}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("test result: ok. ") && !said.contains(" 0 passed"), "{environment:?}: {said}");
    }
}

fn command(environment: Environment, tests: &Path) -> Command {
    const FORBID: &str = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@""#;
    let mut command = match environment {
        Environment::OrdinaryUser | Environment::NoUserNamespaces => Command::new(tests),
        Environment::RootOfContainer => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "sh", "-c", FORBID]).arg(tests);
            command
        }
    };
    // Whoever is not root has no more rights than that anyway.
    if rustix::process::geteuid().is_root() {
        command.uid(ORDINARY_USER).gid(ORDINARY_USER);
    }
    if matches!(environment, Environment::NoUserNamespaces) {
        let filter = no_user_namespaces();
        // SAFETY: between fork and exec only two system calls are made.
        unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(|_| std::io::ErrorKind::Other.into())) };
    }
    command.env("HEAPSTEAD_ENGINE_DIR", tests.parent().expect("a folder"));
    command
}

fn no_user_namespaces() -> BpfProgram {
    let (arch, wanted) = (TargetArch::try_from(std::env::consts::ARCH).expect("an architecture"), libc::CLONE_NEWUSER as u64);
    let rule = || {
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(wanted), wanted).expect("a condition");
        vec![SeccompRule::new(vec![condition]).expect("a rule")]
    };
    let rules = [(libc::SYS_clone, rule()), (libc::SYS_unshare, rule())];
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules.into(), SeccompAction::Allow, refusal, arch).expect("a filter").try_into().expect("a program")
}

/// This program and the engine's files, where every user can read them: the build may be in a folder of root.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = Self(std::env::temp_dir().join(format!("heapstead-tests-{}", std::process::id())));
        fs::create_dir(&folder.0).expect("a folder");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("readable");
        let parts = production();
        let probes = parts.worker.with_file_name(PROBES);
        folder.add(&std::env::current_exe().expect("this program"), "tests");
        for part in [&parts.host, &parts.worker, &parts.base_heap, &probes] {
            folder.add(part, part.file_name().and_then(|name| name.to_str()).expect("a name"));
        }
        folder
    }

    fn add(&self, from: &Path, name: &str) {
        let to = self.0.join(name);
        fs::copy(from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).expect("readable");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
