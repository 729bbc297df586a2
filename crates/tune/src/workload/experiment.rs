//! Experiments: cases, and the candidates that are compared with the default of their case.

use crate::error::{Result, WorkloadFault};
use crate::kernel::Kernel;
use crate::knob::{Knob, SettingValue, Settings};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Cases, and the settings compared in each.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// The paper's result, shown next to the measured one.
    pub paper: Option<String>,
    /// Kernels measured under all settings, each with a separate default; at least one.
    pub cases: Vec<Case>,
    /// Values to try, indexed by setting.
    pub knobs: BTreeMap<Knob, Vec<SettingValue>>,
    /// Whether all combinations are tried, instead of one setting at a time.
    pub is_factorial: bool,
    /// Number of MPI ranks that share each run; 1 is a process without MPI.
    pub ranks: u32,
    /// Whether the workload describes kernels as the work of one rank.
    pub is_per_rank: bool,
    /// The libhdf5 of the experiment's runs, if it names one.
    pub library: Option<PathBuf>,
}

/// A kernel with default settings, and the variants that are compared with this default.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Name; absent if it is the only case.
    pub name: Option<String>,
    /// Kernel to run.
    pub kernel: Kernel,
    /// Settings of the default.
    pub base: Settings,
    /// Variants compared with the default, indexed by name.
    pub variants: BTreeMap<String, Variant>,
}

/// Another kernel, libhdf5 or number of ranks, or all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Kernel to run.
    pub kernel: Kernel,
    /// The libhdf5, if it differs from the default's.
    pub library: Option<PathBuf>,
    /// Number of ranks, if it differs from the default's; the kernel is then the same.
    pub ranks: Option<u32>,
}

/// One arm of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Name: the case, then the difference from its default.
    pub name: String,
    /// Case: arms are compared with its first arm, the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Setting that is swept; absent for the default, a variant or a combination.
    pub knob: Option<Knob>,
    /// Kernel to run.
    pub kernel: Kernel,
    /// All settings of the run.
    pub settings: Settings,
    /// Number of MPI ranks.
    pub ranks: u32,
    /// The libhdf5, if it differs from the one of the whole measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<PathBuf>,
}

/// Maximum number of ranks, which a machine can start in a minute.
pub(super) const MAX_RANKS: u32 = 1 << 16;

impl Experiment {
    /// Creates an experiment with a kernel and the defaults, on a single process, without anything to compare.
    pub fn of_kernel(kernel: Kernel) -> Self {
        let case = Case { name: None, kernel, base: Settings::default(), variants: BTreeMap::new() };
        Self {
            name: String::new(),
            title: String::new(),
            paper: None,
            cases: vec![case],
            knobs: BTreeMap::new(),
            is_factorial: false,
            ranks: 1,
            is_per_rank: false,
            library: None,
        }
    }

    /// Returns the kernel of the first case.
    pub fn kernel(&self) -> &Kernel {
        &self.cases[0].kernel
    }

    /// Returns the kernels of all cases and variants.
    fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        self.cases.iter_mut().flat_map(|case| {
            std::iter::once(&mut case.kernel).chain(case.variants.values_mut().map(|variant| &mut variant.kernel))
        })
    }

    /// Sets the number of ranks of each run. If the kernel is the work of one rank, the work grows with the number of
    /// ranks.
    pub fn set_ranks(&mut self, ranks: u32) {
        let (per_rank, before) = (self.is_per_rank, self.ranks);
        for kernel in self.kernels_mut().filter(|_| per_rank) {
            *kernel = kernel.clone().of_one_of(before).for_each_of(ranks);
        }
        self.ranks = ranks;
    }

    /// Compares `libraries` in each case with the default's, instead of the libraries that the experiment names.
    pub fn compare_libraries(&mut self, libraries: &[PathBuf]) {
        self.library = None;
        for case in &mut self.cases {
            // Variants with libraries named by the workload.
            case.variants.retain(|_, variant| variant.library.is_none());
            for library in libraries {
                let variant = Variant { kernel: case.kernel.clone(), library: Some(library.clone()), ranks: None };
                case.variants.insert(format!("hdf5={}", library.display()), variant);
            }
        }
    }

    /// Checks whether the workload can run.
    ///
    /// # Errors
    /// If it cannot, with the reason.
    pub fn check(&self) -> Result<(), WorkloadFault> {
        let candidates = self.candidates();
        if self.ranks == 0 || self.ranks > MAX_RANKS {
            return Err(WorkloadFault::Size("ranks"));
        }
        if candidates.len() <= self.cases.len() {
            return Err(WorkloadFault::NothingCompared);
        }
        for Candidate { settings, kernel, ranks, .. } in &candidates {
            if *ranks == 0 || *ranks > MAX_RANKS {
                return Err(WorkloadFault::Ranks { max: MAX_RANKS });
            }
            kernel.check_ranks(*ranks)?;
            settings.check().map_err(WorkloadFault::Setting)?;
            if let Some(SettingValue::Shape(shape)) = settings.get(Knob::Chunk) {
                let dims = kernel.dims();
                // HDF5 refuses chunks longer than a fixed dimension.
                if shape.len() != dims.len() || shape.iter().zip(&dims).any(|(chunk, dim)| chunk > dim) {
                    return Err(WorkloadFault::Chunk { shape: shape.clone(), dims });
                }
            }
        }
        Ok(())
    }

    /// Returns the default of each case, followed by the candidates that are compared with it.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.cases.iter().flat_map(|case| self.candidates_of(case)).collect()
    }

    /// Returns the number of ranks that share a run of `kernel`; some kernels define it.
    fn ranks_of(&self, kernel: &Kernel) -> u32 {
        kernel.local_processes().map_or(self.ranks, |processes| u32::try_from(processes).unwrap_or(u32::MAX))
    }

    fn candidates_of(&self, case: &Case) -> Vec<Candidate> {
        let arm = |name: String, knob, settings| Candidate {
            name: case.name.as_ref().map_or(name.clone(), |case| format!("{case}: {name}")),
            case: case.name.clone(),
            knob,
            kernel: case.kernel.clone(),
            settings,
            ranks: self.ranks_of(&case.kernel),
            library: self.library.clone(),
        };
        let mut all = vec![arm("default".to_owned(), None, case.base.clone())];
        if self.is_factorial {
            let mut combinations = vec![Settings::default()];
            for (knob, values) in &self.knobs {
                let others = combinations
                    .iter()
                    .flat_map(|combination| values.iter().map(|value| combination.clone().and(*knob, value.clone())));
                combinations.extend(others.collect::<Vec<_>>());
            }
            let others = combinations.into_iter().filter(|combination| *combination != Settings::default());
            all.extend(others.map(|combination| arm(combination.words(), None, case.base.with(&combination))));
        } else {
            for (knob, values) in &self.knobs {
                // The default value would be compared with itself.
                let others = values.iter().filter(|value| case.base.get(*knob) != Some(value));
                all.extend(others.map(|value| {
                    let settings = case.base.clone().and(*knob, value.clone());
                    arm(knob.assignment(value), Some(*knob), settings)
                }));
            }
        }
        all.extend(case.variants.iter().map(|(name, variant)| Candidate {
            kernel: variant.kernel.clone(),
            library: variant.library.clone().or_else(|| self.library.clone()),
            ranks: variant.ranks.unwrap_or_else(|| self.ranks_of(&variant.kernel)),
            ..arm(name.clone(), None, case.base.clone())
        }));
        all
    }
}
