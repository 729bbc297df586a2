//! Detection of a parallel launcher that started this process, from the environment alone: a plain command must not
//! initialise MPI, which may take seconds, open ports, or fail on a machine that is not set up for it.

use std::env::VarError;

/// Information from a launcher about this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LauncherInfo {
    /// Launcher that started the process.
    pub launcher: &'static str,
    /// Rank of the process, if known.
    pub rank: Option<usize>,
    /// Number of processes that the launcher started, if known.
    pub size: Option<usize>,
}

/// Launchers and the variables that they set for rank and number of ranks. The first whose rank is set counts.
///
/// Open MPI's `mpirun` also sets variables of PMIx, and `srun` those of the interface that `--mpi` names. PMIx has no
/// variable for the number of ranks, but then Slurm provides the number of tasks of the step. In a batch script of
/// Slurm outside of `srun`, none of these is set.
const LAUNCHERS: [(&str, &str, &str); 4] = [
    ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("mpirun", "PMI_RANK", "PMI_SIZE"),
    ("srun", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
];

/// Variable that Open MPI sets to `singleton` in a process that initialises MPI without a launcher, such as Python
/// after `from mpi4py import MPI`. Programs that this process starts inherit it, and the variables of PMIx.
const SINGLETON: &str = "OMPI_MCA_ess";

/// Returns the launcher that started this process, if any.
pub fn launched() -> Option<LauncherInfo> {
    launched_by(|name| std::env::var(name))
}

fn launched_by(variable: impl Fn(&str) -> Result<String, VarError>) -> Option<LauncherInfo> {
    let number = |name: &str| variable(name).ok()?.trim().parse::<usize>().ok();
    let is_of_singleton = variable(SINGLETON).is_ok_and(|value| value == "singleton");
    let mut launchers = LAUNCHERS.iter().filter(|(_, rank, _)| !is_of_singleton || *rank != "PMIX_RANK");
    launchers.find_map(|(launcher, rank, size)| {
        let rank = number(rank)?;
        Some(LauncherInfo { launcher, rank: Some(rank), size: number(size).or_else(|| number("SLURM_STEP_NUM_TASKS")) })
    })
}

impl LauncherInfo {
    /// Returns whether there may be other ranks.
    pub fn has_others(&self) -> bool {
        self.size != Some(1)
    }

    /// Returns whether this is the rank that reports for all.
    pub fn is_first(&self) -> bool {
        self.rank.is_none_or(|rank| rank == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(variables: &[(&str, &str)]) -> Option<LauncherInfo> {
        launched_by(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(received(&[]), None);
        let open_mpi = received(&[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "2")]);
        assert_eq!(open_mpi, Some(LauncherInfo { launcher: "mpirun", rank: Some(2), size: Some(4) }));
        let mpich = received(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]).unwrap();
        assert!(mpich.is_first() && !mpich.has_others());
        let slurm = received(&[("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "16")]).unwrap();
        assert_eq!((slurm.launcher, slurm.size, slurm.is_first()), ("srun", Some(16), false));
        // A PMIx launcher that does not provide the number of ranks may have started several.
        assert!(received(&[("PMIX_RANK", "0")]).unwrap().has_others());
    }

    #[test]
    fn a_program_started_by_a_process_with_mpi_but_without_a_launcher_was_not_launched() {
        let inherited = [("OMPI_MCA_ess", "singleton"), ("PMIX_RANK", "0")];
        assert_eq!(received(&inherited), None);
        let launched = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(received(&[inherited, launched].concat()).unwrap().rank, Some(1));
        let rank_of_srun = [("OMPI_MCA_ess", "pmi"), ("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert_eq!(received(&rank_of_srun).unwrap().size, Some(2));
    }

    #[test]
    fn a_batch_script_is_not_a_launch() {
        assert_eq!(received(&[("SLURM_NTASKS", "16"), ("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "7")]), None);
        assert_eq!(received(&[("PMI_RANK", "no number")]), None);
    }
}
