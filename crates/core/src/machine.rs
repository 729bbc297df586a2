//! Processor, cores, memory and open files that this process has, as the system reports and limits them.
//!
//! Decisions are elsewhere: [`crate::engine::default_jobs`] chooses a number of threads. Invariant: what the system
//! does not report is `None`, never a guess.

use serde::Serialize;
use std::path::{Path, PathBuf};

/// Cores of the machine, and limits on their use.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cores {
    /// Number of cores that are online.
    pub online: Option<u32>,
    /// Number of cores to which this process is bound.
    pub bound: Option<u32>,
    /// Processor time that the control group of this process may use, in cores; `None` without a quota.
    pub quota: Option<f64>,
}

/// Memory of the machine, and the limit on its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Memory {
    /// Length of the main memory.
    pub total_bytes: Option<u64>,
    /// Length of the memory that programs can get without swapping.
    pub available_bytes: Option<u64>,
    /// Lowest limit of the control groups of this process; `None` without a limit.
    pub limit_bytes: Option<u64>,
    /// Length of the memory that the control group with this limit uses, without the file pages that it can drop.
    pub used_bytes: Option<u64>,
}

/// Limits on the number of open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OpenFiles {
    /// The limit of this process; `None` if there is none.
    pub limit: Option<u64>,
    /// Highest limit that the process could set; `None` if there is none.
    pub hard_limit: Option<u64>,
}

/// Returns the model of the processor, or the architecture if the system does not report the model.
pub fn processor() -> String {
    SystemFiles::default().processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the cores of this machine and their limits.
pub fn cores() -> Cores {
    SystemFiles::default().cores()
}

/// Returns the memory of this machine and its limit.
pub fn memory() -> Memory {
    SystemFiles::default().memory()
}

/// Returns the limits on the number of open files.
pub fn open_files() -> OpenFiles {
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    OpenFiles { limit: limits.current, hard_limit: limits.maximum }
}

/// Files in which Linux describes the machine and this process.
#[derive(Debug, Clone)]
struct SystemFiles {
    root: PathBuf,
}

impl Default for SystemFiles {
    fn default() -> Self {
        Self { root: PathBuf::from("/") }
    }
}

/// A control group of this process, or one that contains it.
#[derive(Debug)]
struct ControlGroup {
    folder: PathBuf,
    is_version_1: bool,
}

/// Limit that version 1 of control groups reports if there is none: the largest multiple of a page in 63 bits. Any
/// length beyond 2^60 is treated as no limit.
const NO_LIMIT_BYTES: u64 = 1 << 60;

impl SystemFiles {
    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    fn processor(&self) -> Option<String> {
        field(&self.text("proc/cpuinfo")?, "model name").map(str::to_owned)
    }

    fn cores(&self) -> Cores {
        let status = self.text("proc/self/status").unwrap_or_default();
        let online = self.text("sys/devices/system/cpu/online");
        Cores {
            online: online.and_then(|list| listed(list.trim())),
            bound: field(&status, "Cpus_allowed_list").and_then(listed),
            quota: self.groups("cpu").iter().filter_map(ControlGroup::quota).min_by(f64::total_cmp),
        }
    }

    fn memory(&self) -> Memory {
        let info = self.text("proc/meminfo").unwrap_or_default();
        let bytes = |name| field(&info, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024);
        let groups = self.groups("memory");
        let limited = groups.iter().filter_map(|group| Some((group.memory_limit_bytes()?, group)));
        let lowest = limited.min_by_key(|(limit_bytes, _)| *limit_bytes);
        Memory {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            limit_bytes: lowest.as_ref().map(|(limit_bytes, _)| *limit_bytes),
            used_bytes: lowest.and_then(|(_, group)| group.memory_used_bytes()),
        }
    }

    /// Returns the control groups of this process for `controller`, innermost first. In a container, the path of the
    /// group may be that on its host; groups that are not visible are left out.
    fn groups(&self, controller: &str) -> Vec<ControlGroup> {
        let entries = self.text("proc/self/cgroup").unwrap_or_default();
        let mounts = self.root.join("sys/fs/cgroup");
        let places = entries.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            match controllers {
                "" => Some((mounts.clone(), path, false)),
                _ if controllers.split(',').any(|name| name == controller) => {
                    Some((mounts.join(controller), path, true))
                }
                _ => None,
            }
        });
        let groups = places.flat_map(|(mount, path, is_version_1)| {
            let folder = mount.join(path.trim_start_matches('/'));
            let inside: Vec<PathBuf> =
                folder.ancestors().take_while(|folder| folder.starts_with(&mount)).map(Path::to_path_buf).collect();
            inside.into_iter().map(move |folder| ControlGroup { folder, is_version_1 })
        });
        groups.collect()
    }
}

impl ControlGroup {
    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.join(name)).ok()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.trim().parse().ok()
    }

    fn quota(&self) -> Option<f64> {
        let (quota, period) = match self.is_version_1 {
            // Without a quota, -1.
            true => (self.number("cpu.cfs_quota_us")?, self.number("cpu.cfs_period_us")?),
            false => {
                let text = self.text("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
        };
        (period > 0).then(|| quota as f64 / period as f64)
    }

    fn memory_limit_bytes(&self) -> Option<u64> {
        // Version 2 reports "max" without a limit.
        let name = if self.is_version_1 { "memory.limit_in_bytes" } else { "memory.max" };
        self.number(name).filter(|limit_bytes| *limit_bytes < NO_LIMIT_BYTES)
    }

    fn memory_used_bytes(&self) -> Option<u64> {
        let (used, dropped) = match self.is_version_1 {
            true => ("memory.usage_in_bytes", "total_inactive_file"),
            false => ("memory.current", "inactive_file"),
        };
        let statistics = self.text("memory.stat").unwrap_or_default();
        let mut lines = statistics.lines().filter_map(|line| line.split_once(' '));
        let dropped_bytes = lines.find(|(name, _)| *name == dropped).and_then(|(_, bytes)| bytes.parse().ok());
        Some(self.number(used)?.saturating_sub(dropped_bytes.unwrap_or(0)))
    }
}

/// Returns the value of the first line `NAME : VALUE`.
fn field<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Returns the length of a list such as `0-3,8`.
fn listed(list: &str) -> Option<u32> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.sum()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Writes files below a new root.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, SystemFiles) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().to_path_buf();
        (folder, SystemFiles { root })
    }

    #[test]
    fn lists_of_cores_are_counted() {
        let counts = ["0", "0-3", "0-3,8", "1,3,5-6", "", "3-1", "0-", "0-4294967295"].map(listed);
        assert_eq!(counts, [Some(1), Some(4), Some(5), Some(4), None, None, None, None]);
    }

    #[test]
    fn nothing_is_guessed_where_nothing_is_reported() {
        let (_folder, files) = system(&[]);
        assert_eq!((files.cores(), files.memory(), files.processor()), (Cores::default(), Memory::default(), None));
    }

    #[test]
    fn a_machine_without_limits_has_none() {
        let (_folder, files) = system(&[
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU: fast\n"),
            ("proc/meminfo", "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n"),
            ("proc/self/status", "Cpus_allowed:\tf\nCpus_allowed_list:\t0-1,3\n"),
            ("proc/self/cgroup", "0::/user.slice\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(files.processor().as_deref(), Some("A CPU: fast"));
        assert_eq!(files.cores(), Cores { online: Some(4), bound: Some(3), quota: None });
        let memory = Memory { total_bytes: Some(16 << 20), available_bytes: Some(8 << 20), ..Memory::default() };
        assert_eq!(files.memory(), memory);
    }

    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let (_folder, files) = system(&[
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/job/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/job/memory.current", "8192\n"),
            ("sys/fs/cgroup/job/memory.stat", "file 6000\ninactive_file 4096\n"),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/step/memory.current", "1024\n"),
        ]);
        assert_eq!(files.cores().quota, Some(1.5));
        assert_eq!((files.memory().limit_bytes, files.memory().used_bytes), (Some(1 << 30), Some(4096)));
    }

    #[test]
    fn groups_of_version_1_and_of_a_container_are_found() {
        // The path is that on the host; inside the container, the group is the root of the mount.
        let (_folder, files) = system(&[
            ("proc/self/cgroup", "9:memory:/docker/f00\n4:cpu,cpuacct:/docker/f00\n1:name=systemd:/docker/f00\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "8192\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(files.cores().quota, Some(0.5));
        assert_eq!((files.memory().limit_bytes, files.memory().used_bytes), (Some(512 << 20), Some(8192)));
        let (_folder, unlimited) = system(&[
            ("proc/self/cgroup", "9:memory:/\n4:cpu,cpuacct:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!((unlimited.cores().quota, unlimited.memory().limit_bytes), (None, None));
    }

    #[test]
    fn this_process_has_limits_that_fit_its_machine() {
        assert!(!processor().is_empty());
        let (cores, memory, files) = (cores(), memory(), open_files());
        assert!(cores.bound.zip(cores.online).is_none_or(|(bound, online)| bound <= online), "{cores:?}");
        assert!(memory.available_bytes.zip(memory.total_bytes).is_none_or(|(free, all)| free <= all), "{memory:?}");
        assert!(files.limit.zip(files.hard_limit).is_none_or(|(limit, hard)| limit <= hard), "{files:?}");
        #[cfg(target_os = "linux")]
        assert!(cores.bound.is_some_and(|bound| bound > 0) && memory.total_bytes.is_some_and(|bytes| bytes > 0));
    }
}
