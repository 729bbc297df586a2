//! Which way settings reach a program.
//!
//! Scripts lead to their interpreter, launchers (`mpirun`, `env`, …) to the program that they start. The libraries of a
//! program are what its dynamic linker says they are.

use crate::elf::{self, Kind};
use crate::error::{InjectError, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How settings reach a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// By the preloaded object, before these libraries.
    Preload {
        /// The HDF5 libraries it is linked with; empty if it may load one later, as Python does.
        libraries: Vec<Library>,
    },
    /// By the driver plugin: an HDF5 is inside of the program.
    Driver {
        /// Its version, if the program tells.
        version: Option<String>,
    },
    /// Not at all.
    None {
        /// Why.
        reason: String,
    },
}

/// A libhdf5 that a program is linked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// Its version, if it tells.
    pub version: Option<String>,
}

/// The program that a command line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// What stands before it on the way: launchers and scripts.
    pub through: Vec<PathBuf>,
    /// It is linked with an MPI, or started by a launcher of one.
    pub has_mpi: bool,
    /// How it is reached.
    pub route: Route,
}

/// Programs that start the one named in their arguments. Only these: an argument that happens to be a program (`cp`'s) is
/// none that is run.
const LAUNCHERS: [&str; 14] = [
    "mpirun", "mpiexec", "orterun", "prterun", "srun", "env", "nice", "timeout", "time", "numactl", "chrt", "taskset",
    "strace", "stdbuf",
];
/// Those of them that start ranks.
const MPI_LAUNCHERS: usize = 5;
/// Scripts that lead to scripts; the kernel follows as many.
const MOST_STEPS: usize = 8;

/// The program that `command` runs.
///
/// # Errors
/// If its first word names no program, or the program cannot be read.
pub fn find(command: &[OsString]) -> Result<Program> {
    let no_program = |name: &OsStr| InjectError::NoProgram { name: name.to_string_lossy().into_owned() };
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
    for _ in 0..MOST_STEPS {
        let failed = |source| InjectError::Io { path: path.clone(), operation: "reading the program", source };
        let Kind::Script(words) = elf::look(&path).map_err(failed)? else { break };
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
    // `mpirun` may be a link to `orterun`, or be called `mpirun.openmpi`.
    path.file_name().is_some_and(|file| file.to_string_lossy().split('.').next() == Some(name))
}

/// The executable file that the shell would run for `name`.
fn resolve(name: &OsStr) -> Option<PathBuf> {
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
    let Kind::Executable(executable) = elf::look(path).map_err(failed)? else {
        return Ok(none("it is no program of this system"));
    };
    if executable.is_foreign {
        return Ok(none("it is a program of another machine or word size"));
    }
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Ok(none("it runs as another user or group, and is not given what its user names"));
    }
    let (libraries, has_mpi) = if executable.is_dynamic { linked(path) } else { (Vec::new(), false) };
    if !libraries.is_empty() {
        return Ok((Route::Preload { libraries }, has_mpi));
    }
    let inside = elf::hdf5_inside(path).map_err(failed)?;
    let route = match inside.version {
        Some(_) if inside.takes_drivers => Route::Driver { version: inside.version },
        Some(version) => Route::None {
            reason: format!("HDF5 {version} is inside of it, which takes no drivers (1.13.0 or later does)"),
        },
        None if executable.is_dynamic => Route::Preload { libraries },
        None => Route::None { reason: "it is statically linked, and no HDF5 is inside of it".to_owned() },
    };
    Ok((route, has_mpi))
}

/// The HDF5 libraries that the dynamic linker loads with the program, and whether there is an MPI among the others. It is the
/// linker that is asked, as `ldd` does, which does not start the program.
fn linked(path: &Path) -> (Vec<Library>, bool) {
    let told = Command::new(path).env("LD_TRACE_LOADED_OBJECTS", "1").env_remove("LD_PRELOAD").output();
    let told = told.map(|told| String::from_utf8_lossy(&told.stdout).into_owned()).unwrap_or_default();
    let (mut libraries, mut has_mpi) = (Vec::new(), false);
    for line in told.lines() {
        let Some((name, found)) = line.trim().split_once(" => ") else { continue };
        has_mpi |= name.starts_with("libmpi");
        let is_hdf5 = name.starts_with("libhdf5")
            && !["_hl", "_cpp", "_fortran", "_tools", "_f90"].iter().any(|part| name.contains(part));
        let found = found.split(" (").next().unwrap_or_default();
        if is_hdf5 && found.starts_with('/') {
            let version = elf::hdf5_inside(Path::new(found)).ok().and_then(|inside| inside.version);
            libraries.push(Library { path: found.into(), version });
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
    }
}
