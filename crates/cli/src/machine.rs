//! Grouping of ranks by machine, because they share its cores and memory.

/// Identifies the running kernel.
fn kernel() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// Returns a name for this machine, on which `rank` runs. If the system has no identity, the rank counts as alone on
/// its machine.
pub fn name(rank: usize) -> Vec<u8> {
    kernel().unwrap_or_else(|| format!("rank {rank}")).into_bytes()
}

/// Numbers the machines with these names, in the order of first appearance.
pub fn numbers(names: &[Vec<u8>]) -> Vec<u32> {
    let mut known: Vec<&[u8]> = Vec::new();
    let mut numbers = Vec::with_capacity(names.len());
    for name in names {
        let found = known.iter().position(|other| other == name);
        numbers.push(found.unwrap_or(known.len()) as u32);
        if found.is_none() {
            known.push(name);
        }
    }
    numbers
}

/// Describes the machine of a rank: the running kernel, followed by the cores to which the rank is bound. If the system
/// does not report them, the rank counts as alone on its machine.
pub fn describe(rank: usize) -> Vec<u8> {
    let kernel = kernel();
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let cores = status.as_deref().and_then(|status| status.lines().find(|line| line.starts_with("Cpus_allowed_list:")));
    match (kernel, cores) {
        (Some(kernel), Some(cores)) => format!("{kernel}{cores}").into_bytes(),
        _ => format!("rank {rank}").into_bytes(),
    }
}

/// Returns the number of threads for `rank`, which may use `cores` cores: a share of them if other ranks may use
/// exactly the same cores.
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
        // Each rank is bound to a separate core.
        let bound: Vec<Vec<u8>> = ["a 0", "a 1"].map(|text| text.as_bytes().to_vec()).to_vec();
        assert_eq!((share_of_cores(1, 0, &bound), share_of_cores(1, 1, &bound)), (1, 1));
        // More ranks than cores.
        assert_eq!(share_of_cores(2, 3, &vec![b"a 0-1".to_vec(); 4]), 1);
    }

    #[test]
    fn machines_are_numbered_as_they_appear() {
        assert_eq!(numbers(&[b"b".to_vec(), b"a".to_vec(), b"b".to_vec()]), [0, 1, 0]);
        assert!(!name(0).is_empty());
    }

    #[test]
    fn this_machine_is_described_alike_for_all_ranks() {
        assert!(!describe(0).is_empty());
        #[cfg(target_os = "linux")]
        assert_eq!(describe(0), describe(1));
    }
}
