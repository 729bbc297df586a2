//! Which ranks share a machine, so that they share its cores.

/// What a rank tells of its machine: the running kernel, then the cores that the rank is bound to. Where the system does
/// not tell, the rank counts as being alone.
pub fn describe(rank: usize) -> Vec<u8> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let kernel = read("/proc/sys/kernel/random/boot_id");
    let status = read("/proc/self/status");
    let cores = status.as_deref().and_then(|status| status.lines().find(|line| line.starts_with("Cpus_allowed_list:")));
    match (kernel, cores) {
        (Some(kernel), Some(cores)) => format!("{kernel}{cores}").into_bytes(),
        _ => format!("rank {rank}").into_bytes(),
    }
}

/// Threads for `rank`, which may use `cores` cores: its share where other ranks may use the very same cores.
pub fn share_of_cores(cores: usize, rank: usize, machines: &[Vec<u8>]) -> usize {
    let sharing = machines.iter().filter(|other| Some(*other) == machines.get(rank)).count().max(1);
    let place = machines.iter().take(rank).filter(|other| Some(*other) == machines.get(rank)).count();
    (cores / sharing + usize::from(place < cores % sharing)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shared_by_ranks_that_are_bound_to_the_same() {
        let machines: Vec<Vec<u8>> = ["a 0-3", "a 0-3", "a 0-3", "b 0-7"].map(|text| text.as_bytes().to_vec()).to_vec();
        let shares: Vec<usize> = (0..3).map(|rank| share_of_cores(4, rank, &machines)).collect();
        assert_eq!(shares, [2, 1, 1]);
        assert_eq!(share_of_cores(8, 3, &machines), 8);
        // Bound to a core each.
        let bound: Vec<Vec<u8>> = ["a 0", "a 1"].map(|text| text.as_bytes().to_vec()).to_vec();
        assert_eq!((share_of_cores(1, 0, &bound), share_of_cores(1, 1, &bound)), (1, 1));
        // More ranks than cores.
        assert_eq!(share_of_cores(2, 3, &vec![b"a 0-1".to_vec(); 4]), 1);
    }

    #[test]
    fn this_machine_is_described_alike_for_all_ranks() {
        assert!(!describe(0).is_empty());
        #[cfg(target_os = "linux")]
        assert_eq!(describe(0), describe(1));
    }
}
