//! Auxiliary text files named by the user: reports, logs, lists, pages and their figures.
//!
//! Results have separate rules. Invariant: before a command does anything, it checks that none of these files is one
//! that it reads or writes under any name, or an existing file with other content.

use crate::exit::Exit;
use crate::render::escape;
use raddle::Error;
use raddle_core::output::folder_of;
use raddle_hdf5::native::superblock::SIGNATURE;
use rustix::fs::Access;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of a command that reads and writes none.
pub const NO_FILES: [&Path; 0] = [];

/// Content of a text file: a report, log, list, page, figure or profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// JSON objects.
    Json,
    /// Paths, one per line.
    List,
    /// A page or a figure: HTML or SVG.
    Page,
    /// A figure as PNG.
    Picture,
    /// A profile: TOML.
    Profile,
}

/// Signature at the start of every PNG file.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Length of the head that is enough to distinguish text from the usual binary formats: these have zero bytes in their
/// first words, and an HDF5 file has its signature at the start or after a user block of 512 bytes times a power of
/// two.
const HEAD_LEN_BYTES: u64 = 8 << 10;

impl Text {
    /// Returns whether a file that begins with `head` may be overwritten with such text.
    fn may_replace(self, head: &[u8]) -> bool {
        match self {
            Self::Json => head.trim_ascii_start().first().is_none_or(|&byte| byte == b'{'),
            Self::List | Self::Profile => !head.contains(&0) && !head.starts_with(SIGNATURE),
            Self::Page => head.trim_ascii_start().first().is_none_or(|&byte| byte == b'<'),
            Self::Picture => head.is_empty() || head.starts_with(PNG_SIGNATURE),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Json => "JSON written by raddle",
            Self::List | Self::Profile => "text",
            Self::Page => "a page or figure",
            Self::Picture => "a picture",
        }
    }
}

/// Target of a path: an existing file, or the name that a new one would get.
#[derive(Debug, PartialEq, Eq)]
enum ResolvedTarget {
    File { device: u64, inode: u64 },
    Name { folder: PathBuf, name: OsString },
}

impl ResolvedTarget {
    /// Resolves `path`; `None` if its folder does not exist.
    fn of(path: &Path) -> Option<Self> {
        if let Ok(metadata) = std::fs::metadata(path) {
            return Some(Self::File { device: metadata.dev(), inode: metadata.ino() });
        }
        // Writing to a dangling link would create its target.
        if let Ok(target) = std::fs::read_link(path) {
            return Self::of_name(&folder_of(path).join(target));
        }
        Self::of_name(path)
    }

    fn of_name(path: &Path) -> Option<Self> {
        let folder = std::fs::canonicalize(folder_of(path)).ok()?;
        Some(Self::Name { folder, name: path.file_name()?.to_owned() })
    }
}

/// Refuses `path`, given by `option` for `text`, if it is one of the `files` that the command reads or writes, or
/// inside one that is a folder; if it is a file with other content; or if it cannot be written.
///
/// # Errors
/// If the path is refused. The error names the reason; nothing was opened for writing.
pub fn check(
    path: &Path,
    option: &str,
    text: Text,
    files: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<(), Error> {
    let refuse = |why: &str| {
        let what = format!("{option} {}: {why}; nothing was written", escape::path(path));
        Err(Error::new(Exit::Output, &what).hint(&format!("name another file with {option}")))
    };
    let Some(place) = ResolvedTarget::of(path) else {
        return refuse(&format!("folder {} does not exist", escape::path(folder_of(path))));
    };
    let folder = std::fs::canonicalize(folder_of(path)).ok();
    for file in files {
        let file = file.as_ref();
        if ResolvedTarget::of(file).as_ref() == Some(&place) {
            return refuse(&format!("is also a file that the command reads or writes ({})", escape::path(file)));
        }
        if file.is_dir()
            && folder
                .as_ref()
                .zip(std::fs::canonicalize(file).ok())
                .is_some_and(|(ours, theirs)| ours.starts_with(theirs))
        {
            return refuse(&format!("is inside a folder that the command reads or writes ({})", escape::path(file)));
        }
    }
    let (written, access) = match &place {
        ResolvedTarget::File { .. } => (path, Access::WRITE_OK),
        ResolvedTarget::Name { folder, .. } => (folder.as_path(), Access::WRITE_OK | Access::EXEC_OK),
    };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return refuse("is a folder"),
        Ok(metadata) if metadata.is_file() => match head(path) {
            Ok(head) if text.may_replace(&head) => {}
            Ok(_) => return refuse(&format!("exists and is not {}", text.words())),
            Err(cause) => return refuse(&format!("exists and cannot be inspected: {cause}")),
        },
        // A pipe, a terminal, or a file that does not exist yet.
        _ => {}
    }
    match rustix::fs::access(written, access) {
        Ok(()) => Ok(()),
        Err(cause) => refuse(&format!("{} cannot be written to: {cause}", escape::path(written))),
    }
}

fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_LEN_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_of_the_kind_is_replaced() {
        let hdf5 = [SIGNATURE.as_slice(), &[0; 8]].concat();
        let behind_a_user_block = [&[b' '; 512], SIGNATURE.as_slice(), &[0; 8]].concat();
        for (head, kinds) in [
            (&b""[..], [true, true, true, true]),
            (b"\n{\"inputs\": 2}", [true, true, false, false]),
            (b"a.h5\nb\xff.h5\n", [false, true, false, false]),
            (b"<!DOCTYPE html>\n<html>", [false, true, true, false]),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", [false, false, false, true]),
            (b"root\0\0\xf6", [false; 4]),
            (&hdf5, [false; 4]),
            (&behind_a_user_block, [false; 4]),
        ] {
            let of = [Text::Json, Text::List, Text::Page, Text::Picture].map(|text| text.may_replace(head));
            assert_eq!(of, kinds, "{head:?}");
        }
    }

    #[test]
    fn a_file_is_found_under_every_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("in.h5"), b"").unwrap();
        std::fs::create_dir(at("inner")).unwrap();
        std::os::unix::fs::symlink("in.h5", at("link")).unwrap();
        std::os::unix::fs::symlink("out.h5", at("dangling")).unwrap();
        std::fs::hard_link(at("in.h5"), at("hard")).unwrap();
        for (path, other, is_refused) in [
            ("in.h5", "in.h5", true),
            ("link", "in.h5", true),
            ("hard", "in.h5", true),
            ("inner/../out.h5", "out.h5", true),
            ("dangling", "out.h5", true),
            ("inner/report.json", "inner", true),
            ("other.json", "out.h5", false),
            ("none/report.json", "out.h5", true),
            ("inner", "out.h5", true),
        ] {
            let outcome = check(&at(path), "--report", Text::Json, [at(other)]);
            assert_eq!(outcome.is_err(), is_refused, "{path} and {other}: {outcome:?}");
        }
        assert!(check(Path::new("/dev/null"), "--report", Text::Json, NO_FILES).is_ok());
    }
}
