//! Finds out how settings reach a program.
//!
//! Scripts are followed to their interpreter, launchers (`mpirun`, `env`, …) to the program that they start. The
//! libraries of a program are those reported by its dynamic linker.

use crate::elf::{self, ProgramKind};
use crate::error::{InjectError, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Way in which settings reach a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Through the preloaded object, before these libraries.
    Preload {
        /// The HDF5 libraries it is linked with; empty if it may load one later, like Python.
        libraries: Vec<LoadedLibrary>,
    },
    /// Through the driver plugin: the program contains an HDF5.
    Driver {
        /// Version of that HDF5, if it can be found.
        version: Option<String>,
    },
    /// Settings cannot be applied.
    None {
        /// Reason why settings cannot be applied.
        reason: String,
    },
}

/// A libhdf5 that a program is linked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedLibrary {
    /// Path of the file.
    pub path: PathBuf,
    /// Version, if it can be found.
    pub version: Option<String>,
}

/// The program that a command line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Path of the file.
    pub path: PathBuf,
    /// Launchers and scripts that lead to the program.
    pub through: Vec<PathBuf>,
    /// Whether the program is linked with an MPI, or started by an MPI launcher.
    pub has_mpi: bool,
    /// Way in which settings reach the program.
    pub route: Route,
}

/// Programs that start the program named in their arguments. Only these are followed: an argument that happens to be a
/// program (as of `cp`) is not run.
const LAUNCHERS: [&str; 14] = [
    "mpirun", "mpiexec", "orterun", "prterun", "srun", "env", "nice", "timeout", "time", "numactl", "chrt", "taskset",
    "strace", "stdbuf",
];
/// Number of the first [`LAUNCHERS`] that launch MPI ranks.
const MPI_LAUNCHERS: usize = 5;
/// Maximum number of nested scripts, as in the kernel.
const MAX_STEPS: usize = 8;

/// Finds the program that `command` runs.
///
/// # Errors
/// If the first word does not name a program, or the program cannot be read.
pub fn find(command: &[OsString]) -> Result<Program> {
    let no_program = |name: &OsStr| {
        let text = name.to_string_lossy().into_owned();
        let is_path = Path::new(name).components().count() > 1;
        if is_path && Path::new(name).is_file() {
            InjectError::NotExecutable { name: text }
        } else {
            InjectError::NoProgram { name: text }
        }
    };
    let first = command.first().ok_or_else(|| no_program(OsStr::new("")))?;
    let (mut path, mut rest) = (resolve(first).ok_or_else(|| no_program(first))?, &command[1..]);
    let (mut through, mut has_mpi) = (Vec::new(), false);
    while let Some(place) = LAUNCHERS.iter().position(|name| is_named(&path, name)) {
        let is_program = |word: &OsString| resolve(word).filter(|_| !word.to_string_lossy().starts_with('-'));
        let Some((at, next)) = rest.iter().enumerate().find_map(|(at, word)| Some((at, is_program(word)?))) else {
            break;
        };
        has_mpi |= place < MPI_LAUNCHERS;
        through.push(std::mem::replace(&mut path, next));
        rest = &rest[at + 1..];
    }
    for _ in 0..MAX_STEPS {
        let failed = |source| InjectError::Io { path: path.clone(), operation: "reading the program", source };
        let ProgramKind::Script(words) = elf::look(&path).map_err(failed)? else { break };
        let interpreter =
            words.iter().find(|word| !(word.starts_with('-') || word.contains('='))).cloned().unwrap_or_default();
        let after_env = words.iter().skip(1).find(|word| !(word.starts_with('-') || word.contains('=')));
        let name = if interpreter.ends_with("/env") { after_env.unwrap_or(&interpreter) } else { &interpreter };
        let next = resolve(OsStr::new(name)).ok_or_else(|| no_program(OsStr::new(name)))?;
        through.push(std::mem::replace(&mut path, next));
    }
    let (route, linked_mpi) = route(&path)?;
    Ok(Program { path, through, has_mpi: has_mpi || linked_mpi, route })
}

fn is_named(path: &Path, name: &str) -> bool {
    // `mpirun` may be a link to `orterun`, or be named `mpirun.openmpi`.
    path.file_name().is_some_and(|file| file.to_string_lossy().split('.').next() == Some(name))
}

/// Returns the executable file that the shell would run for `name`.
pub fn resolve(name: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if Path::new(name).components().count() > 1 {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(is_program)
}

fn route(path: &Path) -> Result<(Route, bool)> {
    let failed = |source| InjectError::Io { path: path.to_path_buf(), operation: "reading the program", source };
    let none = |reason: &str| (Route::None { reason: reason.to_owned() }, false);
    let ProgramKind::Executable(executable) = elf::look(path).map_err(failed)? else {
        return Ok(none("it is not a program of this system"));
    };
    if executable.is_foreign {
        return Ok(none("it is a program for another machine or word size"));
    }
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Ok(none("it runs as another user or group, so its environment is not trusted"));
    }
    let (libraries, has_mpi) = if executable.is_dynamic { linked(path) } else { (Vec::new(), false) };
    if !libraries.is_empty() {
        return Ok((Route::Preload { libraries }, has_mpi));
    }
    let inside = elf::hdf5_inside(path).map_err(failed)?;
    let route = match inside.version {
        Some(_) if inside.takes_drivers => Route::Driver { version: inside.version },
        Some(version) => Route::None {
            reason: format!("it contains HDF5 {version}, which supports no driver plugins (1.13.0 or later does)"),
        },
        None if executable.is_dynamic => Route::Preload { libraries },
        None => Route::None { reason: "it is statically linked and contains no HDF5".to_owned() },
    };
    Ok((route, has_mpi))
}

/// Returns the HDF5 libraries that the dynamic linker loads with the program, and whether MPI is among the others. The
/// linker itself is queried, as by `ldd`, without starting the program.
fn linked(path: &Path) -> (Vec<LoadedLibrary>, bool) {
    let reported = Command::new(path).env("LD_TRACE_LOADED_OBJECTS", "1").env_remove("LD_PRELOAD").output();
    let reported = reported.map(|reported| String::from_utf8_lossy(&reported.stdout).into_owned()).unwrap_or_default();
    let (mut libraries, mut has_mpi) = (Vec::new(), false);
    for line in reported.lines() {
        let Some((name, found)) = line.trim().split_once(" => ") else { continue };
        has_mpi |= name.starts_with("libmpi");
        let is_hdf5 = name.starts_with("libhdf5")
            && !["_hl", "_cpp", "_fortran", "_tools", "_f90"].iter().any(|part| name.contains(part));
        let found = found.split(" (").next().unwrap_or_default();
        if is_hdf5 && found.starts_with('/') {
            let version = elf::hdf5_inside(Path::new(found)).ok().and_then(|inside| inside.version);
            libraries.push(LoadedLibrary { path: found.into(), version });
        }
    }
    (libraries, has_mpi)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn launchers_and_scripts_lead_to_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("run");
        std::fs::write(&script, "#!/usr/bin/env sh\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let program = find(&words(&format!("env A=1 timeout 5 {} cp", script.display()))).unwrap();
        assert_eq!(program.path.file_name().unwrap(), "sh");
        assert_eq!(program.through.len(), 3, "{program:?}");
        assert!(!program.has_mpi);
        assert_eq!(program.route, Route::Preload { libraries: Vec::new() });
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        assert_eq!(find(&words("no-such-program x")).unwrap_err().to_string(), "no-such-program: no such program");
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("analysis.py");
        std::fs::write(&script, "print(1)").unwrap();
        let refused = find(&[script.clone().into()]).unwrap_err().to_string();
        assert_eq!(refused, format!("{}: the file is not executable", script.display()));
    }
}
