//! Outputs of many files: their paths, and which of them can be written.
//!
//! Invariant: no two targets have the same output, and the output of a target is not the input of another one.

use super::{Destination, FailedFile};
use crate::error::Error;
use crate::exit::Exit;
use crate::text::quantity;
use raddle_core::output::check::check_replaceable;
use raddle_core::output::publish::published_path;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// An input and the output to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Path of the input, as given.
    pub input: PathBuf,
    /// Path under which the output is published: the path of the file itself if a link leads to it.
    pub output: PathBuf,
}

/// Returns the targets, in the order of the inputs, and the inputs that cannot be replaced.
///
/// # Errors
/// If an input has no name, or two inputs have the same output.
pub(super) fn targets(files: Vec<PathBuf>, to: &Destination) -> Result<(Vec<Target>, Vec<FailedFile>), Error> {
    let (mut targets, mut failed) = (Vec::with_capacity(files.len()), Vec::new());
    for input in files {
        let output = match &to.dir {
            Some(dir) => match input.file_name() {
                Some(name) => published_path(&dir.join(name)),
                None => return Err(Error::usage(&format!("{}: is not the name of a file", input.display()))),
            },
            None => match std::fs::canonicalize(&input) {
                Ok(output) => output,
                Err(error) => {
                    failed.push(FailedFile::new(&input, Exit::InputRefused, error.to_string(), error.raw_os_error()));
                    continue;
                }
            },
        };
        targets.push(Target { input, output });
    }
    check_distinct(&targets)?;
    Ok((targets, failed))
}

fn check_distinct(targets: &[Target]) -> Result<(), Error> {
    let mut by_output: HashMap<&Path, &Target> = HashMap::with_capacity(targets.len());
    let mut clashes = Vec::new();
    for target in targets {
        if let Some(other) = by_output.insert(&target.output, target) {
            clashes.push((other, target));
        }
    }
    let Some((one, other)) = clashes.first() else { return Ok(()) };
    if std::fs::canonicalize(&one.input).ok() == std::fs::canonicalize(&other.input).ok() {
        let what = format!("{}: given twice (also as {})", other.input.display(), one.input.display());
        return Err(Error::new(Exit::InputRefused, &what).hint("name each file once"));
    }
    let what = format!(
        "{} would be written by more than one input: {} and {}",
        one.output.display(),
        one.input.display(),
        other.input.display()
    );
    let more = match clashes.len() {
        1 => String::new(),
        all => format!(" (and {} more)", quantity::counted(all as u64 - 1, "name")),
    };
    let hint = "rename files, or write those of each folder to a folder of their own";
    Err(Error::new(Exit::InputRefused, &format!("{what}{more}; nothing was written")).hint(hint))
}

/// Separates the targets whose inputs cannot be replaced.
pub(super) fn split_replaceable(targets: Vec<Target>) -> (Vec<Target>, Vec<FailedFile>) {
    let (mut good, mut failed) = (Vec::with_capacity(targets.len()), Vec::new());
    for target in targets {
        match check_replaceable(&target.output) {
            Ok(()) => good.push(target),
            Err(unusable) => failed.push(FailedFile::new(&target.input, Exit::Output, unusable.reason, None)),
        }
    }
    (good, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        folder
    }

    #[test]
    fn two_inputs_of_one_name_clash() {
        let folder = folder_of(&["a/x.h5", "b/x.h5", "b/y.h5"]);
        let files = ["a/x.h5", "b/y.h5", "b/x.h5"].map(|file| folder.path().join(file)).to_vec();
        let to = Destination { dir: Some(folder.path().join("out")), ..Destination::default() };
        let error = targets(files.clone(), &to).unwrap_err();
        let names = ["out/x.h5", "a/x.h5", "b/x.h5"];
        assert!(names.iter().all(|name| error.message().contains(name)), "{error}");
        assert_eq!(error.exit, Exit::InputRefused);

        let (found, failed) = targets(files[..2].to_vec(), &to).unwrap();
        assert_eq!(found[1].output, folder.path().join("out/y.h5"));
        assert!(failed.is_empty());
        let twice = targets(vec![files[0].clone(), files[0].clone()], &to).unwrap_err();
        assert!(twice.message().contains("given twice"), "{twice}");
    }

    #[test]
    fn a_link_in_place_is_the_file_it_leads_to() {
        let folder = folder_of(&["data/x.h5"]);
        let (file, link) = (folder.path().join("data/x.h5"), folder.path().join("link.h5"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let to = Destination { in_place: true, ..Destination::default() };
        let (found, _) = targets(vec![link.clone()], &to).unwrap();
        assert_eq!(found[0].output, std::fs::canonicalize(&file).unwrap());
        assert!(targets(vec![link, file], &to).unwrap_err().message().contains("given twice"));
        let (found, failed) = targets(vec![folder.path().join("none.h5")], &to).unwrap();
        assert_eq!((found.len(), failed.len()), (0, 1));
    }
}
