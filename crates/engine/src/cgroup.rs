//! A cgroup for the zygote and its workers, where the machine delegates one: the kernel then bounds the sum of what they use, and shares the
//! cores between them and the server. Without it, the limits of each worker still hold.
//!
//! ```text
//! GROUP                            the cgroup that the server was started in, delegated to it and with no other process
//! ├── heapstead-PID-server         the server
//! └── heapstead-PID-workers        zygote and workers: memory.max, pids.max
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a group has to offer.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Why there is no group for workers.
#[derive(Debug, thiserror::Error)]
pub enum NotDelegated {
    #[error("this process is in no cgroup v2")]
    NoHierarchy,
    #[error("{group} does not offer the controllers {missing}")]
    NoControllers { group: String, missing: String },
    #[error("{group} contains other processes")]
    Shared { group: String },
    #[error("{path} can't be used: {error}")]
    NotWritable { path: String, error: io::Error },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    pub memory_mb: u64,
    pub processes: u64,
}

/// Removed when dropped, if its processes have ended.
#[derive(Debug)]
pub struct WorkerGroup {
    group: PathBuf,
    server: PathBuf,
    workers: PathBuf,
}

/// The group that this process may divide.
pub fn delegated() -> Result<PathBuf, NotDelegated> {
    let read = |path: &str| fs::read_to_string(path).map_err(|_| NotDelegated::NoHierarchy);
    let group = own_group(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?).ok_or(NotDelegated::NoHierarchy)?;
    check(&group)?;
    Ok(group)
}

/// The memory that the groups of this process leave it, as in a container with a limit. None without a limit.
pub fn memory_mb_max() -> Option<u64> {
    let group = own_group(&fs::read_to_string("/proc/self/cgroup").ok()?, &fs::read_to_string("/proc/self/mountinfo").ok()?)?;
    memory_mb_max_of(&group)
}

/// The lowest limit of a group and those that it is part of. A group without a limit says `max`, and the root has no such file.
fn memory_mb_max_of(group: &Path) -> Option<u64> {
    let limit = |group: &Path| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse::<u64>().ok();
    group.ancestors().filter_map(limit).min().map(|bytes| bytes >> 20)
}

/// The memory that the groups of this process and its workers have left. None without a limit.
pub fn memory_mb_left() -> Option<u64> {
    let group = own_group(&fs::read_to_string("/proc/self/cgroup").ok()?, &fs::read_to_string("/proc/self/mountinfo").ok()?)?;
    let workers = group.parent().map(|parent| parent.join(format!("heapstead-{}-workers", std::process::id())));
    group.ancestors().chain(workers.as_deref()).filter_map(memory_mb_left_in).min()
}

/// Files that the kernel can drop do not count.
fn memory_mb_left_in(group: &Path) -> Option<u64> {
    let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
    let limit = number("memory.max")?;
    let files = fs::read_to_string(group.join("memory.stat")).ok()?;
    let files = files.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(number("memory.current")?.saturating_sub(files)) >> 20)
}

/// The folder of this process's group in the unified hierarchy.
fn own_group(cgroup: &str, mountinfo: &str) -> Option<PathBuf> {
    let name = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    // Fields: id, parent, device, root, mount point, options, optional fields, "-", type, …
    let mount = mountinfo.lines().find(|line| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with("cgroup2 ")))?;
    let (root, mount_point) = (mount.split(' ').nth(3)?, mount.split(' ').nth(4)?);
    // In a container without a cgroup namespace, only its own part of the hierarchy is mounted.
    Path::new(name).strip_prefix(root).ok().map(|below| Path::new(mount_point).join(below))
}

fn check(group: &Path) -> Result<(), NotDelegated> {
    let offered = read(&group.join("cgroup.controllers"))?;
    let missing: Vec<_> = CONTROLLERS.into_iter().filter(|wanted| !offered.split_whitespace().any(|offered| offered == *wanted)).collect();
    let name = || group.display().to_string();
    if !missing.is_empty() {
        return Err(NotDelegated::NoControllers { group: name(), missing: missing.join(", ") });
    }
    let own = std::process::id().to_string();
    if read(&group.join("cgroup.procs"))?.lines().any(|process| process != own) {
        return Err(NotDelegated::Shared { group: name() });
    }
    rustix::fs::access(group, rustix::fs::Access::WRITE_OK).map_err(|error| NotDelegated::NotWritable { path: name(), error: error.into() })
}

fn read(path: &Path) -> Result<String, NotDelegated> {
    fs::read_to_string(path).map_err(|error| NotDelegated::NotWritable { path: path.display().to_string(), error })
}

fn write(path: &Path, text: &str) -> Result<(), NotDelegated> {
    fs::write(path, text).map_err(|error| NotDelegated::NotWritable { path: path.display().to_string(), error })
}

impl WorkerGroup {
    pub fn create(limits: GroupLimits) -> Result<Self, NotDelegated> {
        Self::create_in(delegated()?, limits)
    }

    fn create_in(group: PathBuf, limits: GroupLimits) -> Result<Self, NotDelegated> {
        let part = |name: &str| group.join(format!("heapstead-{}-{name}", std::process::id()));
        let this = Self { server: part("server"), workers: part("workers"), group };
        for folder in [&this.server, &this.workers] {
            let made = fs::create_dir(folder);
            made.map_err(|error| NotDelegated::NotWritable { path: folder.display().to_string(), error })?;
        }
        // Controllers can be enabled only for a group without processes of its own. An error drops `this`, which undoes everything.
        write(&this.server.join("cgroup.procs"), &std::process::id().to_string())?;
        write(&this.group.join("cgroup.subtree_control"), &this.all('+'))?;
        write(&this.workers.join("memory.max"), &(limits.memory_mb << 20).to_string())?;
        write(&this.workers.join("pids.max"), &limits.processes.to_string())?;
        Ok(this)
    }

    /// A process that writes `0` to this file enters the group.
    pub fn entrance(&self) -> PathBuf {
        self.workers.join("cgroup.procs")
    }

    fn all(&self, sign: char) -> String {
        CONTROLLERS.map(|controller| format!("{sign}{controller}")).join(" ")
    }
}

impl Drop for WorkerGroup {
    fn drop(&mut self) {
        // What fails here is removed with the group itself, at the latest when the service manager stops the service.
        let _ = fs::remove_dir(&self.workers);
        let _ = write(&self.group.join("cgroup.subtree_control"), &self.all('-'));
        let _ = write(&self.group.join("cgroup.procs"), &std::process::id().to_string());
        let _ = fs::remove_dir(&self.server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_the_unified_hierarchy() {
        let mountinfo = "24 1 0:22 / /proc rw - proc proc rw\n30 1 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let found = |cgroup| own_group(cgroup, mountinfo);
        assert_eq!(found("0::/system.slice/heapstead.service\n"), Some("/sys/fs/cgroup/system.slice/heapstead.service".into()));
        assert_eq!(found("4:memory:/x\n0::/\n"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(found("4:memory:/x\n"), None);
        assert_eq!(own_group("0::/", "24 1 0:22 / /proc rw - proc proc rw\n"), None);
        let part = "30 1 0:27 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(own_group("0::/docker/ab\n", part), Some("/sys/fs/cgroup/".into()));
        assert_eq!(own_group("0::/docker/ab/x\n", part), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(own_group("0::/elsewhere\n", part), None);
    }

    #[test]
    fn the_lowest_memory_limit_of_the_hierarchy_counts() {
        let folder = std::env::temp_dir().join(format!("heapstead-cgroup-limits-{}", std::process::id()));
        let group = folder.join("service/part");
        fs::create_dir_all(&group).expect("folders");
        let limit = |group: &Path, text: &str| fs::write(group.join("memory.max"), text).expect("written");
        assert_eq!(memory_mb_max_of(&group), None);
        limit(&group, "max\n");
        assert_eq!(memory_mb_max_of(&group), None);
        limit(&folder, "536870912\n");
        limit(&folder.join("service"), "1073741824\n");
        assert_eq!(memory_mb_max_of(&group), Some(512));
        limit(&group, "268435456\n");
        assert_eq!(memory_mb_max_of(&group), Some(256));
        fs::remove_dir_all(&folder).expect("removed");
    }

    /// A folder of plain files in the place of a group: it shows what would be written, not what the kernel does with it.
    #[test]
    fn a_delegated_group_is_divided_and_others_are_left_alone() {
        let folder = std::env::temp_dir().join(format!("heapstead-cgroup-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let file = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
        file("cgroup.controllers", "cpu io pids\n");
        file("cgroup.procs", "");
        assert!(matches!(check(&folder), Err(NotDelegated::NoControllers { missing, .. }) if missing == "memory"));
        file("cgroup.controllers", "cpu io memory pids\n");
        file("cgroup.procs", "1\n");
        assert!(matches!(check(&folder), Err(NotDelegated::Shared { .. })));
        file("cgroup.procs", &format!("{}\n", std::process::id()));
        check(&folder).expect("delegated");
        let group = WorkerGroup::create_in(folder.clone(), GroupLimits { memory_mb: 3, processes: 9 }).expect("divided");
        let workers = group.entrance().parent().expect("a folder").to_owned();
        let written = |path: PathBuf| fs::read_to_string(path).expect("written");
        assert_eq!((written(workers.join("memory.max")), written(workers.join("pids.max"))), ("3145728".into(), "9".into()));
        assert_eq!(written(folder.join("cgroup.subtree_control")), "+cpu +memory +pids");
        drop(group);
        assert_eq!(written(folder.join("cgroup.subtree_control")), "-cpu -memory -pids");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
