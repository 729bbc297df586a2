//! The section about the folder of future outputs: its file system, and what raddle does there, tried once.

use super::{Check, Mark, Section};
use crate::exit::Exit;
use crate::render::{escape, quantity};
use raddle_core::machine::{self, OpenFiles};
use raddle_core::output::space;
use raddle_core::output::stripes::{self, StripeSource};
use raddle_core::output::trial::{FolderOperation, TrialOutcome, try_folder};
use raddle_core::pooled_file;
use raddle_tune::fingerprint::FileSystem;
use std::io::ErrorKind;
use std::path::Path;

/// Makes the section about `folder`, the folder of future outputs.
pub(super) fn section(folder: &Path) -> Section {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let path_text = escape::path(&path);
    let mut checks = Vec::new();
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => {
            checks.push(Check::ok("path", path_text).value(path.to_string_lossy()));
            checks.extend(file_system(folder));
            checks.extend(try_folder(folder).iter().map(of_trial));
        }
        Ok(_) => {
            let check = Check::broken("path", format!("{path_text} is not a folder"), Exit::Output);
            checks.push(check.remedy("name a folder with --folder"));
        }
        Err(cause) => {
            let check = Check::broken("path", format!("{path_text}: {cause}"), Exit::Output);
            checks.push(check.remedy("create it first, or name another with --folder"));
        }
    }
    checks.push(of_open_files(machine::open_files(), pooled_file::max_open().get() as u64));
    Section::new("folder", checks)
}

fn file_system(folder: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    if let (Ok(found), Ok(stripes)) = (FileSystem::of_folder(folder), stripes::of_folder(folder)) {
        let kind = found.kind.as_str();
        let check = match kind {
            "tmpfs" | "ramfs" => Check::note("file system", format!("{kind}: files take memory")),
            _ => Check::ok("file system", kind),
        };
        checks.push(check.value(kind));
        checks.extend(of_stripes(stripes));
    }
    checks.push(match space::available_bytes(folder) {
        Ok(0) => Check::broken("space", "none left", Exit::Output).value(0).remedy("free some, or name another folder"),
        Ok(bytes) => Check::ok("space", format!("{} left", quantity::size(bytes))).value(bytes),
        Err(cause) => Check::note("space", format!("unknown: {cause}")),
    });
    checks
}

/// Describes the stripes of new files, if the file system has stripes.
fn of_stripes(stripes: stripes::Stripes) -> Option<Check> {
    let size = quantity::size(stripes.len_bytes);
    let check = match (stripes.source, stripes.count) {
        (StripeSource::Lustre, Some(count)) => {
            Check::ok("stripes", format!("{size} on {}", quantity::counted(count.into(), "target")))
        }
        (StripeSource::Lustre, None) => {
            Check::ok("stripes", format!("{size}, on a number of targets that Lustre chooses"))
        }
        (StripeSource::LustreDefault, _) => Check::note("stripes", format!("no layout: {size} on one target"))
            .remedy("lfs setstripe -c 16 -S 4M FOLDER, so that ranks write to more targets"),
        (StripeSource::Gpfs, _) => Check::ok("stripes", format!("blocks of {size}")),
        (StripeSource::Block | StripeSource::Asked, _) => return None,
    };
    Some(check.value(stripes.len_bytes))
}

/// Returns the name of an operation, the mark if it fails, and what this means or how to mend it.
fn consequence(operation: FolderOperation) -> (&'static str, Mark, &'static str) {
    match operation {
        FolderOperation::Write => ("write", Mark::Broken, ""),
        FolderOperation::Lock => ("lock", Mark::Broken, "on Lustre, mount with the option flock"),
        FolderOperation::Sync => ("fsync", Mark::Broken, ""),
        FolderOperation::RenameNew => ("rename", Mark::Missing, "write IDX datasets and Zarr folders here"),
        FolderOperation::HardLink => {
            ("hard link", Mark::Note, "raddle idx write --into copies the files that it keeps")
        }
        FolderOperation::Unnamed => ("scratch file", Mark::Note, "raddle makes one with a name and removes the name"),
        FolderOperation::Evict => ("cache", Mark::Note, "written data is read back from memory, not from the device"),
    }
}

fn of_trial(tried: &TrialOutcome) -> Check {
    let (name, mark, follows) = consequence(tried.operation);
    let Err(cause) = &tried.outcome else { return Check::ok(name, "works") };
    let found = escape::text(&cause.to_string()).into_owned();
    let other = "name a folder on another file system";
    match mark {
        Mark::Broken => {
            let remedy = match (cause.kind(), follows) {
                (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => "free some space",
                (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem, _) => "make the folder writable",
                (_, follows) => follows,
            };
            let remedies: Vec<&str> = [remedy, other].into_iter().filter(|remedy| !remedy.is_empty()).collect();
            Check::broken(name, found, Exit::Output).remedy(&remedies.join(", or "))
        }
        Mark::Missing => Check::missing(name, found, follows).remedy(other),
        Mark::Note | Mark::Ok => Check::note(name, format!("{found}: {follows}")),
    }
}

/// Describes the limit on open files; at most `most` of them are inputs.
fn of_open_files(files: OpenFiles, most: u64) -> Check {
    /// Lowest limit under which a self-test succeeds: measured with two threads.
    const MIN_FILES: u64 = 16;
    /// Number of inputs above which more open files are hardly faster.
    const ENOUGH_INPUTS: u64 = 128;
    let Some(limit) = files.limit else { return Check::ok("open files", "without a limit") };
    let inputs = quantity::counted(most, "input");
    let found = format!("at most {}; raddle keeps {inputs} open", quantity::count(limit));
    let check = match (limit, most) {
        (..MIN_FILES, _) => Check::broken("open files", format!("at most {limit}: too few"), Exit::Limit),
        (_, ..ENOUGH_INPUTS) => Check::note("open files", format!("{found}, and opens more inputs again and again")),
        _ => return Check::ok("open files", found).value(limit),
    };
    let wanted = files.hard_limit.unwrap_or(u64::MAX).min(1024);
    let remedy = match wanted > limit {
        true => format!("ulimit -n {wanted}"),
        false => "ask the administrator for a higher limit (nofile in limits.conf)".to_owned(),
    };
    check.value(limit).remedy(&remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::output::stripes::Stripes;
    use std::io::Error;

    fn mark_of(section: &Section, name: &str) -> Option<Mark> {
        section.checks.iter().find(|check| check.name == name).map(|check| check.mark)
    }

    #[test]
    fn folders_that_no_output_can_be_written_to_are_broken() {
        let folder = tempfile::tempdir().unwrap();
        let found = section(folder.path());
        assert_eq!((mark_of(&found, "path"), mark_of(&found, "write")), (Some(Mark::Ok), Some(Mark::Ok)));
        std::fs::write(folder.path().join("file"), "").unwrap();
        for name in ["file", "none"] {
            let found = section(&folder.path().join(name));
            assert_eq!((mark_of(&found, "path"), mark_of(&found, "write")), (Some(Mark::Broken), None), "{name}");
            assert!(mark_of(&found, "open files").is_some());
        }
    }

    #[test]
    fn an_operation_that_fails_has_a_consequence() {
        let mark = |operation| of_trial(&TrialOutcome { operation, outcome: Err(ErrorKind::Unsupported.into()) }).mark;
        let marks = FolderOperation::ALL.map(mark);
        assert_eq!(marks[..3], [Mark::Broken; 3]);
        assert_eq!(marks[3..], [Mark::Missing, Mark::Note, Mark::Note, Mark::Note]);
        let full = Error::from_raw_os_error(28);
        let check = of_trial(&TrialOutcome { operation: FolderOperation::Write, outcome: Err(full) });
        assert_eq!(check.exit_code, Some(Exit::Output.code()));
        assert!(check.found.contains("No space left") && check.remedy.is_some_and(|remedy| !remedy.is_empty()));
    }

    #[test]
    fn few_open_files_are_noted_and_too_few_are_broken() {
        let of = |limit, hard_limit| {
            let files = OpenFiles { limit: Some(limit), hard_limit: Some(hard_limit) };
            let check = of_open_files(files, 512.min(limit / 2));
            (check.mark, check.remedy.unwrap_or_default())
        };
        assert_eq!(of(1024, 1024), (Mark::Ok, String::new()));
        assert_eq!(of(64, 4096), (Mark::Note, "ulimit -n 1024".to_owned()));
        assert_eq!(of(64, 100), (Mark::Note, "ulimit -n 100".to_owned()));
        assert!(of(64, 64).1.contains("administrator"));
        assert_eq!((of(16, 4096).0, of(15, 4096).0), (Mark::Note, Mark::Broken));
        assert_eq!(of_open_files(OpenFiles { limit: None, hard_limit: None }, 512).mark, Mark::Ok);
    }

    #[test]
    fn stripes_are_described_where_there_are_some() {
        let of = |source, count| of_stripes(Stripes { len_bytes: 1 << 20, count, source });
        assert_eq!(of(StripeSource::Block, None), None);
        assert_eq!(of(StripeSource::Lustre, Some(8)).unwrap().found, "1.00 MiB on 8 targets");
        let default = of(StripeSource::LustreDefault, None).unwrap();
        assert!(default.mark == Mark::Note && default.remedy.unwrap().starts_with("lfs setstripe"));
    }
}
