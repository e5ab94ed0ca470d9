//! What a process takes of the machine's memory.

use std::fs::read_to_string;

/// Its proportional set size. 0 if it has ended. Where the kernel does not let this process see it, its resident set, which is more.
pub fn proportional_kib(pid: i32) -> u64 {
    let field = |file: &str, name: &str| {
        let text = read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
    };
    field("smaps_rollup", "Pss:").or_else(|| field("status", "RssAnon:")).unwrap_or(0)
}
