//! The section about ranks: whether this raddle has MPI, and which launchers this machine has.

use super::{Check, Section};
use crate::ranks::Ranks;
use crate::render::{escape, quantity};
use raddle_inject::program::resolve;
use raddle_mpi::launcher::{self, LauncherInfo};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Command that builds raddle with MPI.
const BUILD: &str = "cargo build --release --package raddle-cli --features mpi";

/// Makes the section about ranks; `team` holds the ranks of this run.
pub(super) fn section(team: &Ranks) -> Section {
    let machines = team.machines();
    let of_team = (machines.len() as u64, u64::from(machines.iter().max().map_or(1, |last| last + 1)));
    let mut checks = vec![of_build(raddle_mpi::library().as_deref())];
    checks.extend(["mpirun", "srun"].into_iter().filter_map(|name| of_launcher(name, found(name))));
    if checks.len() == 1 {
        checks.push(
            Check::missing(
                "mpirun",
                "not found, and neither is srun",
                "start raddle, or any program, as several ranks",
            )
            .remedy("apt install openmpi-bin; on a cluster, load the module of its MPI"),
        );
    }
    if raddle_mpi::library().is_none() {
        let compiler = std::env::var_os("MPICC").unwrap_or_else(|| "mpicc".into());
        checks.push(match resolve(&compiler) {
            Some(path) => Check::ok("mpicc", escape::path(&path)).value(path.to_string_lossy()),
            None => Check::missing("mpicc", "not found", "build raddle with MPI")
                .remedy("apt install libopenmpi-dev libclang-dev"),
        });
    }
    checks.push(of_launch(launcher::launched(), of_team));
    Section::new("mpi", checks)
}

fn of_build(library: Option<&str>) -> Check {
    match library {
        Some(text) => {
            let name = escape::text(text.lines().next().unwrap_or_default()).into_owned();
            Check::ok("raddle", format!("built with {name}")).value(name)
        }
        None => Check::missing("raddle", "built without MPI", "share the work of one run among ranks").remedy(BUILD),
    }
}

/// Returns the path of a program, and of the file behind its links.
fn found(name: &str) -> Option<(PathBuf, PathBuf)> {
    let path = resolve(OsStr::new(name))?;
    let target = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    Some((path, target))
}

/// Describes a launcher. On Debian, `mpirun` is a link to the launcher of one MPI: `orterun`, or `mpiexec.hydra`.
fn of_launcher(name: &str, found: Option<(PathBuf, PathBuf)>) -> Option<Check> {
    let (path, target) = found?;
    let behind = if path == target { String::new() } else { format!(", which is {}", escape::path(&target)) };
    Some(Check::ok(name, format!("{}{behind}", escape::path(&path))).value(path.to_string_lossy()))
}

/// Describes the start of this process, with the number of ranks and of machines.
fn of_launch(launched: Option<LauncherInfo>, (ranks, machines): (u64, u64)) -> Check {
    let found = match launched {
        None => "started without a launcher, as one process".to_owned(),
        Some(launched) => {
            let (ranks, machines) = (quantity::counted(ranks, "rank"), quantity::counted(machines, "machine"));
            format!("started by {}: {ranks} on {machines}", launched.launcher)
        }
    };
    Check::ok("ranks", found).value(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn a_build_without_mpi_says_how_to_get_one() {
        let check = of_build(None);
        assert_eq!((check.mark, check.remedy.as_deref()), (Mark::Missing, Some(BUILD)));
        let check = of_build(Some("Open MPI v4.1.4\u{1b}\nand more\n"));
        assert_eq!((check.mark, check.found.as_str()), (Mark::Ok, "built with Open MPI v4.1.4\\x1b"));
    }

    #[test]
    fn links_of_launchers_are_followed() {
        let same = of_launcher("srun", Some(("/bin/srun".into(), "/bin/srun".into()))).unwrap();
        let link = of_launcher("mpirun", Some(("/bin/mpirun".into(), "/bin/orterun".into()))).unwrap();
        assert_eq!((same.found.as_str(), link.found.as_str()), ("/bin/srun", "/bin/mpirun, which is /bin/orterun"));
        assert_eq!(of_launcher("srun", None), None);
    }

    #[test]
    fn ranks_are_counted() {
        let launched = LauncherInfo { launcher: "mpirun", rank: Some(0), size: Some(4) };
        assert_eq!(of_launch(Some(launched), (4, 2)).found, "started by mpirun: 4 ranks on 2 machines");
        assert!(of_launch(None, (1, 1)).found.contains("one process"));
    }
}
