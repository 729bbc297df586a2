//! The machine and file system of a measurement, so that a profile is not used elsewhere by mistake.
//!
//! Invariant: a fingerprint contains no names of users, hosts or paths.

use crate::error::{Result, TuneError};
use raddle_core::engine::default_jobs;
use raddle_core::machine;
use raddle_core::output::stripes;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Description of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor, as reported by the system.
    pub processor: String,
    /// Cores available to the measuring process.
    pub cores: u32,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// Operating system and its version.
    pub system: String,
}

/// A file system, as seen from a folder in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Type of the file system: `ext4`, `lustre`, `tmpfs`, or the number reported by the kernel.
    pub kind: String,
    /// Length of a block or, on a striped file system, of a stripe.
    pub block_len_bytes: u64,
    /// Number of stripes of the folder's files, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_count: Option<u32>,
}

impl Machine {
    /// Returns the machine of this process.
    pub fn here() -> Self {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: machine::processor(),
            cores: u32::try_from(default_jobs()).unwrap_or(u32::MAX),
            memory_bytes: machine::memory().total_bytes.unwrap_or(0),
            system: format!("{} {}", std::env::consts::OS, release.trim()),
        }
    }

    /// Returns whether a measurement on `self` may be valid on `other`: same processor and number of cores. Memory size
    /// and kernel version are ignored because they have little influence.
    pub fn is_like(&self, other: &Self) -> bool {
        self.processor == other.processor && self.cores == other.cores
    }
}

/// Values of `f_type` of `statfs(2)` and the names of file systems.
const KINDS: [(u64, &str); 18] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0x2FC1_2FC1, "zfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58F6, "ramfs"),
    (0x794C_7630, "overlay"),
    (0x0BD0_0BD0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x1983_0326, "beegfs"),
    (0x00C3_6400, "ceph"),
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFE53_4D42, "smb2"),
    (0xFF53_4D42, "cifs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0xF2F5_2010, "f2fs"),
];

impl FileSystem {
    /// Returns the file system of `folder`.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let failed =
            |source| TuneError::Io { path: folder.to_path_buf(), operation: "asking for its file system", source };
        // The type is int on one platform and unsigned on another; the lower 32 bits identify the file system.
        let number = rustix::fs::statfs(folder).map_err(|error| failed(error.into()))?.f_type as u64 & 0xFFFF_FFFF;
        let stripes = stripes::of_folder(folder).map_err(failed)?;
        let known = KINDS.iter().find(|(magic, _)| *magic == number);
        Ok(Self {
            kind: known.map_or_else(|| format!("{number:#x}"), |(_, name)| (*name).to_owned()),
            block_len_bytes: stripes.len_bytes,
            stripe_count: stripes.count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_fingerprint() {
        let here = Machine::here();
        assert!(here.cores > 0 && !here.processor.is_empty());
        assert!(here.is_like(&Machine { memory_bytes: 0, ..here.clone() }));
        assert!(!here.is_like(&Machine { cores: here.cores + 1, ..here.clone() }));
        let folder = tempfile::tempdir().unwrap();
        let file_system = FileSystem::of_folder(folder.path()).unwrap();
        assert!(file_system.block_len_bytes > 0 && !file_system.kind.is_empty());
        let error = FileSystem::of_folder(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(error.contains("absent"), "{error}");
    }
}
