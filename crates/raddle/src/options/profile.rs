//! Selection of a profile of `raddle tune`.

use crate::error::Error;
use raddle_tune::TuneError;
use raddle_tune::fingerprint::{FileSystem, Machine};
use raddle_tune::profile::{Profile, user_profile_folder};
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Choice of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileChoice {
    /// The newest of the user's profiles measured on this machine and file system.
    Newest,
    /// The profile in a file.
    File(PathBuf),
}

impl FromStr for ProfileChoice {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "auto" { Self::Newest } else { Self::File(text.into()) })
    }
}

impl fmt::Display for ProfileChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest => f.write_str("auto"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl ProfileChoice {
    /// Reads the profile, for files in `folder`.
    ///
    /// # Errors
    /// If it does not exist or is invalid.
    pub fn read(&self, folder: &Path) -> Result<Profile, Error> {
        let found = match self {
            Self::File(path) => Profile::read(path),
            Self::Newest => match newest(folder) {
                Ok(Some((_, profile))) => Ok(profile),
                Ok(None) => {
                    return Err(Error::usage("--profile auto: none was measured on this machine and file system")
                        .hint("measure one with raddle tune, or name a file"));
                }
                Err(error) => Err(error),
            },
        };
        found.map_err(|error| Error::of_tune(&error))
    }
}

/// Finds the user's newest profile for this machine and the file system of `folder`, with its path.
///
/// # Errors
/// If the folder does not exist, or profiles cannot be listed.
pub fn newest(folder: &Path) -> Result<Option<(PathBuf, Profile)>, TuneError> {
    let Some(profiles) = user_profile_folder() else { return Ok(None) };
    Profile::find(&profiles, &Machine::here(), &FileSystem::of_folder(folder)?)
}
