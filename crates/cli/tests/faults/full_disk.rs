//! Row 11: a disk that is really full. Needs permission to mount a file system in memory, which containers often lack.

use crate::workload::{GOES_ON, OLD, Workload};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system of limited size mounted over a folder, until it is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts the file system; on failure, returns the reason.
    pub fn new(folder: &Path, size_kib: u64) -> Result<Self, String> {
        let size = format!("size={size_kib}k");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "raddle-test"]).arg(folder).output();
        match mount {
            Ok(output) if output.status.success() => Ok(Self(folder.to_path_buf())),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub fn resize(&self, size_kib: u64) {
        let options = format!("remount,size={size_kib}k");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Runs on file systems that are too small, from a few pages up to one that is large enough, and then makes room.
/// Returns how many runs failed, and how many of these resumed later; `None` if no file system can be mounted.
pub fn too_small(workload: &Workload, sizes_kib: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
    let folder = workload.root().join("out");
    let (mut failed, mut resumed) = (0, 0);
    for size_kib in sizes_kib {
        let mounted = match Mounted::new(&folder, size_kib) {
            Ok(mounted) => mounted,
            Err(why) => {
                println!("skipped: a file system cannot be mounted here: {why}");
                return None;
            }
        };
        workload.reset();
        let outcome = workload.run(workload.command());
        let context = (size_kib, &outcome);
        match outcome.code {
            0 => workload.assert_right(&context),
            5 => {
                failed += 1;
                assert!(outcome.reported.contains("No space left on device"), "{context:?}");
                assert!(outcome.reported.contains("out/"), "{context:?}: no file is named");
                assert_eq!(std::fs::read(workload.output()).unwrap(), OLD, "{context:?}");
                workload.assert_tidy(&outcome);
                mounted.resize(64 << 10);
                resumed += u64::from(workload.assert_resumes(&context).contains(GOES_ON));
            }
            _ => panic!("{context:?}"),
        }
    }
    Some((failed, resumed))
}

fn merges(sizes_kib: impl Iterator<Item = u64>) {
    if let Some((failed, resumed)) = too_small(&Workload::small(), sizes_kib) {
        assert!(failed > 5 && resumed > 2, "{failed} runs failed, {resumed} went on");
    }
}

#[test]
fn a_full_disk_is_reported_and_resumed_when_there_is_room() {
    merges((8..2000).step_by(100));
}

#[test]
fn messages_that_cannot_be_written_do_not_end_a_run() {
    let workload = Workload::small();
    let code = |mut command: Command| {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(full).status().unwrap().code()
    };
    for progress in ["auto", "always"] {
        workload.reset();
        assert_eq!(code(workload.raddle(&["merge", "in", "-o", "out/out.h5", "-f", "--progress", progress])), Some(0));
        assert_eq!(workload.left(), ["out.h5"]);
        assert_eq!(code(workload.raddle(&["verify", "out/out.h5", "--progress", progress])), Some(0));
    }
    assert_eq!(code(workload.raddle(&["merge", "nowhere", "-o", "out/none.h5"])), Some(3));
    assert_eq!(code(workload.raddle(&["verify", "out/out.h5", "in"])), Some(2));
}

#[test]
fn a_full_disk_is_broken_for_doctor_and_self_test() {
    let workload = Workload::small();
    let folder = workload.root().join("out");
    let mounted = match Mounted::new(&folder, 64) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped: a file system cannot be mounted here: {why}"),
    };
    let folder = folder.to_str().unwrap();
    let self_test = workload.run(workload.raddle(&["self-test", "--folder", folder]));
    assert_eq!(self_test.code, 5, "{self_test:?}");
    assert!(self_test.reported.contains("No space left on device"), "{self_test:?}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    let doctor = || workload.run(workload.raddle(&["doctor", "--folder", folder])).code;
    assert_eq!(doctor(), 0);
    let _ = std::fs::write(Path::new(folder).join("filler"), vec![1; 128 << 10]);
    assert_eq!(doctor(), 5);
    drop(mounted);
}

#[test]
fn a_merge_that_will_not_fit_is_warned_about() {
    let workload = Workload::small();
    let folder = workload.root().join("out");
    let mounted = match Mounted::new(&folder, 64) {
        Ok(mounted) => mounted,
        Err(why) => return println!("skipped: a file system cannot be mounted here: {why}"),
    };
    workload.reset();
    let warning = "the output will need at least";
    let failed = workload.run(workload.command());
    assert!(failed.code == 5 && failed.reported.contains(warning), "{failed:?}");
    mounted.resize(64 << 10);
    let merged = workload.run(workload.command());
    assert!(merged.code == 0 && !merged.reported.contains(warning), "{merged:?}");
}

#[test]
#[ignore = "make soak"]
fn soak_a_full_disk_is_reported_and_resumed_when_there_is_room() {
    merges((4..2000).step_by(4));
}
