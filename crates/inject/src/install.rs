//! Installation of the embedded objects where programs find them.
//!
//! They are kept, in a folder named by a hash of their content: a started program outlives the command, and on a
//! cluster all hosts must see the folder. Invariant: a file under that name has that content, or is replaced as a
//! whole.

use crate::error::{InjectError, Result};
use crate::program::resolve;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libraddle_apply.so"));
const DRIVER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libraddle_apply_driver.so"));
const MEASURE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/raddle_measure"));

/// Paths of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objects {
    /// The object to preload.
    pub shim: PathBuf,
    /// Folder with only the driver: HDF5 opens every object in it.
    pub drivers: PathBuf,
    /// The program that starts and measures others.
    pub measure: PathBuf,
    folder: PathBuf,
}

/// Returns the default folder for objects.
///
/// # Errors
/// If the environment does not name one.
pub fn default_folder() -> Result<PathBuf> {
    let of = |variable: &str, below: &str| {
        std::env::var_os(variable)
            .filter(|value| Path::new(value).is_absolute())
            .map(|value| PathBuf::from(value).join(below))
    };
    of("XDG_CACHE_HOME", "raddle").or_else(|| of("HOME", ".cache/raddle")).ok_or(InjectError::NoFolder)
}

impl Objects {
    /// Returns the paths of the objects in `folder`, whether they exist or not.
    ///
    /// # Errors
    /// If objects cannot be preloaded from there, or on this system.
    pub fn within(folder: &Path) -> Result<Self> {
        if SHIM.is_empty() {
            return Err(InjectError::System);
        }
        let io = |source| InjectError::Io { path: folder.to_path_buf(), operation: "finding the folder", source };
        let folder = std::path::absolute(folder).map_err(io)?;
        if folder.as_os_str().as_bytes().iter().any(|byte| b" :\t\n;".contains(byte)) {
            return Err(InjectError::Separator { folder });
        }
        let folder = folder.join(format!("apply-{:016x}", hash(&(SHIM, DRIVER, MEASURE))));
        Ok(Self {
            shim: folder.join("preload/libraddle_apply.so"),
            drivers: folder.join("drivers"),
            measure: folder.join("raddle_measure"),
            folder,
        })
    }

    /// Writes the objects to their paths.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn install(&self) -> Result<()> {
        place(&self.shim, SHIM)?;
        place(&self.drivers.join("libraddle_apply_driver.so"), DRIVER)?;
        place_program(&self.measure, MEASURE)
    }

    /// Returns the path of the file of MPI-IO hints with the content `text`.
    pub fn hints(&self, text: &str) -> PathBuf {
        self.folder.join(format!("hints-{:016x}", hash(&text)))
    }

    /// Writes the file of MPI-IO hints.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn install_hints(&self, text: &str) -> Result<()> {
        place(&self.hints(text), text.as_bytes())
    }
}

/// Installs the objects for a moment next to where `folder` is or would be, and preloads the first into a program that
/// does nothing. Objects that are installed in `folder` are left alone.
///
/// # Errors
/// If objects cannot be preloaded from `folder` or written there, or the dynamic linker refuses them.
pub fn try_preload(folder: &Path) -> Result<()> {
    Objects::within(folder)?;
    let folder = std::path::absolute(folder).map_err(|source| InjectError::Io {
        path: folder.to_path_buf(),
        operation: "finding the folder",
        source,
    })?;
    let existing = folder.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    let trial = TrialFolder(existing.join(format!(".raddle-trial-{}", std::process::id())));
    let objects = Objects::within(&trial.0)?;
    objects.install()?;
    let refused = |detail: String| InjectError::Preload { object: objects.shim.clone(), detail };
    let shell = resolve(OsStr::new("sh")).ok_or_else(|| InjectError::NoProgram { name: "sh".to_owned() })?;
    let ended = Command::new(shell).args(["-c", ":"]).env("LD_PRELOAD", &objects.shim).env("LC_ALL", "C").output();
    let ended = ended.map_err(|source| refused(source.to_string()))?;
    // The linker of glibc reports an object that it cannot preload, and starts the program without it.
    match (ended.status.success(), String::from_utf8_lossy(&ended.stderr).trim()) {
        (true, "") => Ok(()),
        (_, "") => Err(refused(ended.status.to_string())),
        (_, detail) => Err(refused(detail.to_owned())),
    }
}

/// Folder that is removed when it is dropped.
struct TrialFolder(PathBuf);

impl Drop for TrialFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn hash(content: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// Installs an executable file; see [`place`].
fn place_program(path: &Path, content: &[u8]) -> Result<()> {
    place(path, content)?;
    let failed = |source| InjectError::Io { path: path.to_path_buf(), operation: "writing", source };
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o111 == 0o111 {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode | 0o111)).map_err(failed)
}

/// Writes `content` to `path` atomically, because another process may read it at the same time.
fn place(path: &Path, content: &[u8]) -> Result<()> {
    if std::fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let failed = |operation| move |source| InjectError::Io { path: path.to_path_buf(), operation, source };
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(failed("making the folder"))?;
    let mut temporary = OsString::from(path.as_os_str());
    temporary.push(format!(".{}", std::process::id()));
    let written = std::fs::File::create(&temporary).and_then(|mut file| file.write_all(content));
    let placed = written.and_then(|()| std::fs::rename(&temporary, path));
    placed.inspect_err(|_| drop(std::fs::remove_file(&temporary))).map_err(failed("writing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_placed_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::within(folder.path()).unwrap();
        objects.install().unwrap();
        assert_eq!(std::fs::read(&objects.shim).unwrap(), SHIM);
        std::fs::write(&objects.shim, "damaged").unwrap();
        objects.install().unwrap();
        assert_eq!(std::fs::read(&objects.shim).unwrap(), SHIM);
        assert_eq!(std::fs::read_dir(&objects.drivers).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(objects.shim.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_trial_leaves_nothing_and_makes_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        try_preload(&folder.path().join("cache/raddle")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(matches!(try_preload(Path::new("/tmp/a:b")), Err(InjectError::Separator { .. })));
        assert!(matches!(try_preload(Path::new("/proc/raddle")), Err(InjectError::Io { .. })));
    }

    #[test]
    fn folders_that_the_linker_would_split_are_refused() {
        for name in ["/tmp/with blank", "/tmp/a:b"] {
            assert!(matches!(Objects::within(Path::new(name)), Err(InjectError::Separator { .. })), "{name}");
        }
    }
}
