//! Names of files as seen from a folder: names of inputs, and names to which external links lead.
//!
//! Invariant: a name leads to the same file regardless of the current folder and of symbolic links in the paths.

use raddle_core::output::folder_of;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Returns the folder of `path` with symbolic links resolved: `..` is relative to the real folder, not to the link. The
/// folder need not exist.
pub(crate) fn real_folder(path: &Path) -> std::io::Result<PathBuf> {
    let folder = folder_of(path);
    match (folder.canonicalize(), folder.file_name()) {
        (Err(error), Some(name)) if error.kind() == std::io::ErrorKind::NotFound => Ok(real_folder(folder)?.join(name)),
        (found, _) => found,
    }
}

/// Returns `target` relative to `folder`; both must be absolute and free of symbolic links.
pub(crate) fn from_folder(folder: &Path, target: &Path) -> PathBuf {
    let shared = folder.components().zip(target.components()).take_while(|(left, right)| left == right).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(target.components().skip(shared)).collect()
}

/// Returns the file to which an external link to `named` in `holder` leads, if it exists.
///
/// HDF5 resolves a relative name from the folder of `holder`. If the file is not there and `holder` is a symbolic link,
/// HDF5 resolves the name from the folder of the link's target. An absolute name that does not exist is resolved by its
/// last component.
pub(crate) fn target_from(holder: &Path, named: &Path) -> Option<PathBuf> {
    let relative = match named.is_absolute() {
        true if named.is_file() => return Some(named.to_path_buf()),
        true => Path::new(named.file_name()?),
        false => named,
    };
    let next_to = |holder: &Path| Some(folder_of(holder).join(relative)).filter(|target| target.is_file());
    next_to(holder).or_else(|| next_to(&holder.canonicalize().ok()?))
}

/// Returns the name by which an external link in a file of `folder` leads to the file that `name` means in `holder`. A
/// name that leads to no file from there remains as it is, unless it would lead to one from `folder`.
pub(crate) fn name_from<'n>(folder: &Path, holder: &Path, name: &'n [u8]) -> Cow<'n, [u8]> {
    let named = Path::new(OsStr::from_bytes(name));
    let from_holder = match named.is_absolute() {
        false => Some(named.as_os_str()),
        true if named.is_file() => None,
        true => named.file_name(),
    };
    let (Some(relative), Ok(of_holder)) = (from_holder, real_folder(holder)) else { return Cow::Borrowed(name) };
    let target = target_from(holder, named);
    let is_in_folder = || holder.canonicalize().is_ok_and(|real| folder_of(&real) == folder);
    if (of_holder == folder || is_in_folder()) && (target.is_none() || folder.join(relative).is_file()) {
        return Cow::Borrowed(name);
    }
    let found = target.as_deref().map(|target| (real_folder(target), target.file_name()));
    let moved = match found {
        Some((Ok(of_target), Some(file_name))) => from_folder(folder, &of_target.join(file_name)),
        _ if folder.join(relative).is_file() => from_folder(folder, &of_holder).join(relative),
        _ => return Cow::Borrowed(name),
    };
    Cow::Owned(moved.into_os_string().into_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_from_the_folder() {
        for (folder, target, expected) in [
            ("/data", "/data/run/a.h5", "run/a.h5"),
            ("/data/out", "/data/in/a.h5", "../in/a.h5"),
            ("/data", "/data/a.h5", "a.h5"),
            ("/x/y", "/z/a.h5", "../../z/a.h5"),
        ] {
            assert_eq!(from_folder(Path::new(folder), Path::new(target)), Path::new(expected));
        }
    }

    #[test]
    fn a_name_leads_to_the_same_file_from_another_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("run0/raw")).unwrap();
        std::fs::write(root.join("run0/raw/data.h5"), "").unwrap();
        std::fs::write(root.join("run0/near.h5"), "").unwrap();
        std::os::unix::fs::symlink("run0", root.join("latest")).unwrap();
        std::fs::write(root.join("run0/master.h5"), "").unwrap();
        std::os::unix::fs::symlink("run0/master.h5", root.join("alias.h5")).unwrap();
        let absolute = root.join("run0/near.h5").into_os_string().into_encoded_bytes();
        let found =
            |from: &str, holder: &str, name: &[u8]| name_from(&root.join(from), &root.join(holder), name).to_vec();
        for (from, holder, name, expected) in [
            ("", "run0/master.h5", &b"raw/data.h5"[..], &b"run0/raw/data.h5"[..]),
            ("", "latest/master.h5", b"raw/data.h5", b"run0/raw/data.h5"),
            ("run0/raw", "run0/master.h5", b"near.h5", b"../near.h5"),
            ("run0", "run0/master.h5", b"./raw/data.h5", b"./raw/data.h5"),
            ("", "run0/master.h5", b"absent.h5", b"absent.h5"),
            ("run0", "master.h5", b"near.h5", b"../near.h5"),
            ("", "run0/master.h5", b"/gone/near.h5", b"run0/near.h5"),
            ("", "run0/master.h5", &absolute, &absolute),
            ("", "alias.h5", b"near.h5", b"run0/near.h5"),
            ("run0", "alias.h5", b"./near.h5", b"./near.h5"),
            ("", "alias.h5", b"/gone/near.h5", b"run0/near.h5"),
            ("", "alias.h5", b"absent.h5", b"absent.h5"),
        ] {
            assert_eq!(found(from, holder, name), expected, "{from:?} {holder:?}");
        }
        assert_eq!(real_folder(&root.join("latest/new/er/out.h5")).unwrap(), root.join("run0/new/er"));
    }
}
