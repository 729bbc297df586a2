//! Checks of several outputs before anything is written: their folder, their names, and the space that they need.
//!
//! Nothing is created here.

use crate::error::Error;
use crate::exit::Exit;
use crate::text::{escape, quantity};
use raddle_core::output::check::check_output;
use raddle_core::output::space::available_bytes;
use raddle_merge::options::{Compress, Contiguous};
use raddle_merge::plan::MergePlan;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Space for the metadata of an output, in bytes. The metadata of files with very many objects is a small share of
/// their values.
const METADATA_LEN_BYTES: u64 = 64 << 10;
/// Maximum number of files named in an error.
const MAX_NAMES: usize = 10;

/// Checks together the outputs in a folder, which does not have to exist yet. Existing outputs are refused unless
/// `replace` is set. `remedy` is the advice if an output is also an input.
///
/// # Errors
/// If an output is refused. The error gives the reason and names the files.
pub(crate) fn check_folder(
    dir: &Path,
    outputs: &[&Path],
    inputs: &[&Path],
    replace: bool,
    remedy: &str,
) -> Result<(), Error> {
    match std::fs::metadata(dir) {
        Ok(metadata) if !metadata.is_dir() => {
            return Err(Error::new(Exit::Output, &format!("{}: is not a folder; name another one", dir.display())));
        }
        Ok(_) => {}
        // Nothing can be in the way.
        Err(_) => return Ok(()),
    }
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let inputs: HashMap<(u64, u64), &Path> =
        inputs.iter().filter_map(|input| Some((identity(input)?, *input))).collect();
    let mut existing = Vec::new();
    for &output in outputs {
        if let Some(input) = identity(output).and_then(|identity| inputs.get(&identity)) {
            let what = format!("{}: is also an input ({})", output.display(), input.display());
            return Err(Error::new(Exit::Output, &what).hint(remedy));
        }
        check_output(output, &[], true).map_err(|unusable| {
            Error::new(Exit::Output, &format!("{}: {}", unusable.path.display(), unusable.reason))
        })?;
        if !replace && std::fs::symlink_metadata(output).is_ok() {
            existing.push(output);
        }
    }
    match existing.as_slice() {
        [] => Ok(()),
        [one] => Err(Error::new(
            Exit::Output,
            &format!("{}: exists; use --force to replace it, or name another folder", one.display()),
        )),
        many => {
            let lines = many.iter().take(MAX_NAMES).map(|path| format!("  {}\n", escape::path(path)));
            let rest = match many.len().checked_sub(MAX_NAMES) {
                Some(more @ 1..) => format!("  … and {} more\n", quantity::count(more as u64)),
                _ => String::new(),
            };
            let what = format!("{} of the outputs exist; nothing was written", quantity::count(many.len() as u64));
            let error = Error::new(Exit::Output, &what).details(lines.collect::<String>() + &rest);
            Err(error.hint("use --force to replace them, or name another folder"))
        }
    }
}

/// Returns the length that an output is not expected to exceed. The output holds a share of the values of a plan,
/// `values_len_bytes` before compression. The length is that of the values or, with compression, the same share of the
/// inputs if that is less, plus metadata.
pub(crate) fn needed_len_bytes(plan: &MergePlan, values_len_bytes: u64) -> u64 {
    let is_uncompressed = plan.options.compress == Compress::None || plan.options.contiguous == Contiguous::All;
    let share = values_len_bytes as f64 / plan.logical_len_bytes().max(1) as f64;
    let values = match is_uncompressed {
        true => values_len_bytes,
        false => values_len_bytes.min((plan.input_len_bytes() as f64 * share) as u64),
    };
    values.saturating_add(METADATA_LEN_BYTES)
}

/// Returns the folder itself or, if it does not exist yet, the folder in which it will be created.
pub(crate) fn existing_folder(folder: &Path) -> &Path {
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."))
}

/// Refuses to begin if fewer than `needed` bytes are free in an existing folder; `what` needs them, and
/// `remedy` is the advice.
///
/// # Errors
/// If the free space is too small. The error gives both sizes. If the free space is unknown, nothing is refused.
pub(crate) fn check_space(folder: &Path, needed: u64, what: &str, remedy: &str) -> Result<(), Error> {
    let Ok(available) = available_bytes(folder) else { return Ok(()) };
    if needed <= available {
        return Ok(());
    }
    let (needed, available) = (quantity::size(needed), quantity::size(available));
    let what =
        format!("{}: {what} need about {needed}, and {available} are free; nothing was written", folder.display());
    Err(Error::new(Exit::Output, &what).hint(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_outputs_are_named_together() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["in/x.h5", "in/y.h5", "out/x.h5", "out/y.h5"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        let inputs = ["in/x.h5", "in/y.h5"].map(|file| folder.path().join(file));
        let check = |dir: &str, replace| {
            let dir = folder.path().join(dir);
            let outputs = ["x.h5", "y.h5"].map(|file| dir.join(file));
            check_folder(
                &dir,
                &outputs.each_ref().map(|path| path.as_path()),
                &inputs.each_ref().map(|path| path.as_path()),
                replace,
                "",
            )
        };
        let error = check("out", false).unwrap_err();
        assert!(error.message().starts_with("2 of the outputs exist"), "{error}");
        assert!(error.explanation().0.unwrap().contains("out/y.h5"));
        check("out", true).unwrap();
        check("new", false).unwrap();
        assert!(check("in", true).unwrap_err().message().contains("is also an input"));
        assert!(check("in/x.h5", true).unwrap_err().message().contains("is not a folder"));
    }

    #[test]
    fn too_little_space_is_refused_with_both_sizes() {
        let folder = tempfile::tempdir().unwrap();
        check_space(folder.path(), 1, "the outputs", "").unwrap();
        let error = check_space(folder.path(), u64::MAX, "the outputs", "free space").unwrap_err();
        assert!(error.message().contains("the outputs need about") && error.message().contains("are free"), "{error}");
        assert_eq!(existing_folder(&folder.path().join("a/b")), folder.path());
    }
}
