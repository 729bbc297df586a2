//! The section about `raddle apply`: whether its library can be preloaded into other programs here.

use super::{Check, Section};
use crate::command::apply::FOLDER_VARIABLE;
use crate::render::escape;
use raddle_inject::install::{default_folder, try_preload};
use raddle_inject::{InjectError, Result};
use std::path::PathBuf;

/// Makes the section about `raddle apply`.
pub(super) fn section() -> Section {
    let folder = match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => default_folder(),
    };
    let tried = folder.and_then(|folder| try_preload(&folder).map(|()| folder));
    Section::new("apply", vec![of_trial(&tried)])
}

fn of_trial(tried: &Result<PathBuf>) -> Check {
    let error = match tried {
        Ok(folder) => {
            let check = Check::ok("library", format!("can be preloaded from {}", escape::path(folder)));
            return check.value(folder.to_string_lossy());
        }
        Err(error) => error,
    };
    let remedy = match error {
        InjectError::System => "run the program on Linux",
        InjectError::NoProgram { .. } => "put sh on PATH, or ignore this: only the trial needs it",
        _ => "export RADDLE_APPLY_FOLDER=FOLDER, a folder on a disk from which programs may run",
    };
    let without = "apply settings to unmodified programs, or tune them (raddle apply, raddle tune -- COMMAND)";
    Check::missing("library", escape::text(&error.to_string()), without).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn a_library_that_cannot_be_preloaded_is_missing() {
        let check = of_trial(&Ok("/home/a/.cache/raddle".into()));
        assert_eq!((check.mark, check.without), (Mark::Ok, None));
        let check = of_trial(&Err(InjectError::System));
        assert_eq!((check.mark, check.remedy.as_deref()), (Mark::Missing, Some("run the program on Linux")));
        let check = of_trial(&Err(InjectError::NoFolder));
        assert!(check.mark == Mark::Missing && check.remedy.unwrap().contains(FOLDER_VARIABLE));
    }
}
