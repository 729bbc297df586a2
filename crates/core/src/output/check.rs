//! Check of the path of an output, before anything is read or written.

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
/// The reason and what to do.
pub fn check_output(output: &Path, inputs: &[PathBuf], replace: bool) -> Result<(), UnusableOutput> {
    let refuse = |reason: String| Err(UnusableOutput { path: output.to_path_buf(), reason });
    if output.file_name().is_none() {
        return refuse("is not a file name; give -o FILE".to_owned());
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
