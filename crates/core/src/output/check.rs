//! Check of the path of an output, or of a file to replace, before anything is read or written.

use crate::output::folder_of;
use rustix::fs::Access;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Error for a path that cannot be used for an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct UnusableOutput {
    /// Path of the output.
    pub path: PathBuf,
    /// Reason and remedy.
    pub reason: String,
}

/// Refuses an output that cannot be written: it is an input, a folder or a special file, it exists and must not be
/// replaced, or its folder is missing or not writable. Nothing is opened or changed, so a run may call this before
/// reading its inputs.
///
/// # Errors
/// If the output is refused. The error gives the reason and the remedy.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<(), UnusableOutput> {
    let refuse = |reason: String| Err(UnusableOutput { path: output.to_path_buf(), reason });
    if output.file_name().is_none() {
        return refuse("is not a file name; give -o FILE".to_owned());
    }
    if output.as_os_str() == "-" {
        let reason =
            "is standard output elsewhere, but raddle writes to a file; name one (./- for a file of this name)";
        return refuse(reason.to_owned());
    }
    let folder = folder_of(output);
    if !folder.is_dir() {
        return refuse(format!("folder {} does not exist; create it first", folder.display()));
    }
    if rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return refuse(format!("folder {} cannot be written to; name another output", folder.display()));
    }
    let Ok(metadata) = std::fs::metadata(output) else {
        return match std::fs::symlink_metadata(output) {
            Ok(_) => refuse("is a broken symbolic link; remove it or name another output".to_owned()),
            Err(_) => Ok(()),
        };
    };
    if metadata.is_dir() {
        return refuse("is a folder; give the name of a file".to_owned());
    }
    let kind = metadata.file_type();
    if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        return refuse("is not a regular file; name another output".to_owned());
    }
    for input in inputs {
        if let Ok(input_metadata) = std::fs::metadata(input)
            && (input_metadata.dev(), input_metadata.ino()) == (metadata.dev(), metadata.ino())
        {
            return refuse(format!("is also an input ({}); name another output", input.display()));
        }
    }
    if !replace {
        return refuse("exists; use --force to replace it, or name another output".to_owned());
    }
    Ok(())
}

/// Refuses a file that cannot be replaced by a new one of the same name without a loss: it has other names, which would
/// keep the old contents; it is write-protected; it belongs to another user; or its folder cannot be written to.
/// Nothing is opened or changed.
///
/// # Errors
/// If the file is refused. The error gives the reason and the remedy.
pub fn check_replaceable(file: &Path) -> Result<(), UnusableOutput> {
    let refuse = |reason: String| Err(UnusableOutput { path: file.to_path_buf(), reason });
    check_output(file, &[], true)?;
    let metadata = match std::fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) => return refuse(error.to_string()),
    };
    if metadata.nlink() > 1 {
        return refuse(format!(
            "has {} hard links, and replacing it would leave the old contents under the other names; write a copy to another folder instead",
            metadata.nlink()
        ));
    }
    // Root may write to any file, but its owner has protected this one.
    if metadata.mode() & 0o222 == 0 || rustix::fs::access(file, Access::WRITE_OK).is_err() {
        return refuse("is write-protected; make it writable, or write a copy to another folder instead".to_owned());
    }
    let user = rustix::process::geteuid();
    if !user.is_root() && user.as_raw() != metadata.uid() {
        return refuse(
            "belongs to another user, and the new file would not; write a copy to another folder instead".to_owned(),
        );
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn standard_output_is_not_a_file() {
        assert!(check_output(Path::new("-"), &[], true).unwrap_err().reason.contains("name one"));
        assert_eq!(check_output(Path::new("./-"), &[], true), Ok(()));
    }

    #[test]
    fn files_that_would_lose_something_are_not_replaceable() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&file, "a").unwrap();
        assert_eq!(check_replaceable(&file), Ok(()));
        let reason = || check_replaceable(&file).unwrap_err().reason;
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o444)).unwrap();
        assert!(reason().contains("write-protected"), "{}", reason());
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::hard_link(&file, &other).unwrap();
        assert!(reason().contains("2 hard links"), "{}", reason());
        std::fs::remove_file(&other).unwrap();
        assert_eq!(check_replaceable(&file), Ok(()));
        std::fs::remove_file(&file).unwrap();
        assert!(check_replaceable(&file).is_err());
        assert!(check_replaceable(folder.path()).is_err());
    }
}
