//! The default folders are in `/tmp`, where any user could have created them first, so the server checks that it owns them.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Runs `heapstead serve` with a private `/tmp` that contains only what `prepare` creates.
fn serve_after(prepare: &str) -> Command {
    let mut command = Command::new("unshare");
    // The program may be below the folder that is about to be covered, so it is opened first and mounted again.
    let script = format!(
        "exec 9<\"$0\" 8<\"$1\"; mount --make-rprivate / && mount -t tmpfs tmpfs /tmp &&
         case $1 in /tmp/*) mkdir -p \"$1\" && mount --no-canonicalize --bind /proc/self/fd/8 \"$1\";; esac &&
         {prepare} && exec /proc/self/fd/9 serve --http-port 0"
    );
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    command.args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_heapstead")]).arg(repository).stdin(Stdio::null());
    command
}

#[test]
fn a_default_folder_of_another_user_is_refused() {
    for folder in ["/tmp/mcp-v8-heaps", "/tmp/mcp-v8-sessions"] {
        let ended = serve_after(&format!("mkdir {folder} && chown 12345 {folder}")).output().expect("run");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success(), "{folder}: {said}");
        assert!(said.contains(&format!("{folder} belongs to another user (uid 12345, this is uid ")), "{said}");
        assert!(!said.contains("listens on"), "{said}");
        let linked = serve_after(&format!("mkdir /tmp/elsewhere && ln -s /tmp/elsewhere {folder}")).output().expect("run");
        let said = String::from_utf8_lossy(&linked.stderr);
        assert!(!linked.status.success() && said.contains(&format!("{folder} is not a folder")), "{said}");
    }
}

#[test]
fn an_own_default_folder_is_used_and_a_missing_one_is_created_privately() {
    for prepare in ["true", "mkdir -m 700 /tmp/mcp-v8-heaps /tmp/mcp-v8-sessions"] {
        let mut child = serve_after(prepare).stderr(Stdio::piped()).spawn().expect("run");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("Heapstead listens on ")), "{prepare}");
        for folder in ["mcp-v8-heaps", "mcp-v8-sessions"] {
            let seen = std::fs::metadata(format!("/proc/{}/root/tmp/{folder}", child.id())).expect("made");
            let mode = std::os::unix::fs::PermissionsExt::mode(&seen.permissions());
            assert_eq!(mode & 0o777, 0o700, "{folder}");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
}
