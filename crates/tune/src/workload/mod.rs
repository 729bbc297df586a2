//! Workloads: experiments, each with kernels and the settings to compare with their default.
//!
//! A workload is TOML (`text`), in a file or a preset; running it is left to others. Invariants: a workload that
//! [`Workload::parse`] accepts can run on a large enough machine; each candidate differs from the default of its case
//! in one setting, in all settings of a factorial design, or by a variant.

mod text;

use crate::error::{Result, TuneError, WorkloadFault};
use crate::kernel::{Kernel, Verify};
use crate::knob::{Knob, Settings, Value};
use crate::planned::Planned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Size of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A few megabytes: for checking that it works.
    Tiny,
    /// Tens of megabytes: some minutes on a workstation.
    Small,
    /// Sizes of the papers.
    Full,
    /// Size determined by a program, not by raddle.
    Own,
}

impl Scale {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Full => "full",
            Self::Own => "own",
        }
    }
}

/// A list of experiments to measure together.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Name of the workload.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Scale of the runs.
    pub scale: Scale,
    /// Index of the experiment whose winner becomes the profile.
    pub profile_from: usize,
    /// Experiments of the workload, in order.
    pub experiments: Vec<Experiment>,
    /// Tables of planned numbers, which are not measured.
    pub planned: Vec<Planned>,
    /// Names of the presets that were combined, if there are several.
    pub parts: Vec<String>,
}

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
    /// Values to try, by setting.
    pub knobs: BTreeMap<Knob, Vec<Value>>,
    /// Whether all combinations are tried, instead of one setting at a time.
    pub is_factorial: bool,
    /// Number of MPI ranks that share each run; 1 is a process without MPI.
    pub ranks: u32,
    /// Whether kernels were given as the work of one rank.
    pub is_per_rank: bool,
    /// The libhdf5 of the experiment's runs, if it names one.
    pub library: Option<PathBuf>,
}

/// A kernel and its default, which settings and variants of the same case are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Name; absent if it is the only case.
    pub name: Option<String>,
    /// Kernel to run.
    pub kernel: Kernel,
    /// Settings of the default.
    pub base: Settings,
    /// Variants compared with the default, by name.
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
pub(crate) const MAX_RANKS: u32 = 1 << 16;

/// Names and texts of the built-in workloads.
const PRESETS: [(&str, &str); 9] = [
    ("tables", include_str!("../../workloads/tables.toml")),
    ("nova-2021", include_str!("../../workloads/nova-2021.toml")),
    ("occam-2005", include_str!("../../workloads/occam-2005.toml")),
    ("pidx-sc12", include_str!("../../workloads/pidx-sc12.toml")),
    ("hep-cce-2023", include_str!("../../workloads/hep-cce-2023.toml")),
    ("battle-2021", include_str!("../../workloads/battle-2021.toml")),
    ("battle-layout", include_str!("../../workloads/battle-layout.toml")),
    ("battle-metadata", include_str!("../../workloads/battle-metadata.toml")),
    ("battle-apps", include_str!("../../workloads/battle-apps.toml")),
];

/// Returns the text of a preset.
fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// Names of the presets.
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

impl Workload {
    /// Returns the preset with this name, or reads the workload from the file with this name.
    ///
    /// # Errors
    /// If neither exists, or it is not a valid workload.
    pub fn named(name: &str, scale: Scale) -> Result<Self> {
        let path = Path::new(name);
        if let Some(text) = preset(name) {
            return Self::parse(path, text, scale);
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(path, &text, scale),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(TuneError::NoSuchWorkload { name: name.to_owned() })
            }
            Err(source) => Err(TuneError::Io { path: path.to_path_buf(), operation: "reading the workload", source }),
        }
    }

    /// Parses a workload; `path` is for messages.
    ///
    /// # Errors
    /// If it is not a valid workload.
    pub fn parse(path: &Path, text: &str, scale: Scale) -> Result<Self> {
        text::parse(path, text, scale)
    }

    /// Returns the maximum number of bytes that the largest run writes, without inflation.
    pub fn largest_run_len_bytes(&self) -> u64 {
        let candidates = self.experiments.iter().flat_map(Experiment::candidates);
        candidates.map(|candidate| candidate.kernel.len_bytes()).max().unwrap_or(0)
    }
}

/// Returns the name of a program without its folder, which names the measurement.
fn name_of_command(command: &[String]) -> String {
    command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default().to_owned()
}

impl Workload {
    /// Creates the workload of a program with each of `knobs`; the best settings become the profile.
    ///
    /// # Errors
    /// If nothing is compared, or a value does not fit its setting.
    pub fn of_program(command: Vec<String>, verify: Verify, knobs: BTreeMap<Knob, Vec<Value>>) -> Result<Self> {
        let name = name_of_command(&command);
        let experiment = Experiment {
            name: "program".to_owned(),
            title: command.join(" "),
            knobs,
            ..Experiment::of_kernel(Kernel::Program { command, verify })
        };
        let title = "An unmodified program under different settings".to_owned();
        let checked = experiment.kernel().check().and_then(|()| experiment.check());
        checked.map_err(|fault| TuneError::Workload {
            path: PathBuf::from(&name),
            experiment: "program".to_owned(),
            fault,
        })?;
        Ok(Self {
            name,
            title,
            scale: Scale::Own,
            profile_from: 0,
            experiments: vec![experiment],
            planned: Vec::new(),
            parts: Vec::new(),
        })
    }
}

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
    /// If not, with the reason.
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
                return Err(WorkloadFault::Ranks);
            }
            kernel.check_ranks(*ranks)?;
            settings.check().map_err(|error| WorkloadFault::Setting(Box::new(error)))?;
            if let Some(Value::Shape(shape)) = settings.get(Knob::Chunk) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const TEXT: &str = r#"
name = "mine"
title = "A test"
[[experiment]]
name = "one"
title = "One dataset"
kernel = { kind = "occam", levels = 2, rows = 8, longitudes = 16, rows_per_write = 4 }
scale.small = { rows = 16 }
base = { gzip = 1, chunk = [2, 4, 16] }
knobs = { gzip = [0, 1, 9], chunk_cache = [0, 65536] }
variants.converted = { converts = true }
"#;

    fn parse(text: &str) -> Result<Workload> {
        Workload::parse(Path::new("mine.toml"), text, Scale::Tiny)
    }

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn candidates_differ_from_the_default_in_one_thing() {
        let workload = parse(TEXT).unwrap();
        let names: Vec<String> = workload.experiments[0].candidates().into_iter().map(|arm| arm.name).collect();
        assert_eq!(names, ["default", "chunk_cache=0", "chunk_cache=64KiB", "gzip=0", "gzip=9", "converted"]);
        assert_eq!(workload.largest_run_len_bytes(), 2 * 8 * 16 * 4);
        let small = Workload::parse(Path::new("mine.toml"), TEXT, Scale::Small).unwrap();
        assert_eq!(small.largest_run_len_bytes(), 2 * 16 * 16 * 4);
    }

    #[test]
    fn a_factorial_design_has_all_combinations() {
        let factorial = TEXT.replace("base =", "factorial = true\nbase =").replace("[0, 1, 9]", "[9]");
        let candidates = parse(&factorial).unwrap().experiments[0].candidates();
        // (1 + 2 values) x (1 + 1 value), and a variant.
        assert_eq!(candidates.len(), 7);
        let distinct: BTreeSet<&str> = candidates.iter().map(|arm| arm.name.as_str()).collect();
        assert!(distinct.len() == 7 && distinct.contains("chunk_cache=0 gzip=9"), "{distinct:?}");
    }

    #[test]
    fn every_problem_is_reported() {
        assert!(refused("name = 1").contains("mine.toml: not a workload"));
        assert!(refused("name = \"a\"\ntitle = \"b\"\nexperiment = []").contains("at least one"));
        assert!(refused(&TEXT.replace("rows_per_write = 4", "rows_per_write = 3")).contains("rows_per_write"));
        assert!(refused(&TEXT.replace("levels = 2", "levels = 0")).contains("levels is out of range"));
        assert!(refused(&TEXT.replace("levels = 2", "levels = 9223372036854775807")).contains("out of range"));
        assert!(refused(&TEXT.replace("\"occam\"", "\"ocean\"")).contains("occam"));
        assert!(refused(&TEXT.replace("[0, 1, 9]", "[12]")).contains("gzip cannot be 12"));
        assert!(refused(&TEXT.replace("[2, 4, 16]", "[2, 4]")).contains("does not fit"));
        assert!(refused(&TEXT.replace("[2, 4, 16]", "[2, 4, 17]")).contains("does not fit"));
        assert!(refused(&TEXT.replace("gzip = [", "gzap = [")).contains("gzap"));
        assert!(refused(&format!("profile_from = \"two\"\n{TEXT}")).contains("experiment two"));
        let alone = TEXT.lines().filter(|line| !line.starts_with("knobs") && !line.starts_with("variants"));
        assert!(refused(&alone.collect::<Vec<_>>().join("\n")).contains("nothing is compared"));
        assert!(Workload::named("absent", Scale::Tiny).unwrap_err().to_string().contains("occam-2005"));
    }

    #[test]
    fn ranks_and_patterns_are_of_kernels_that_have_them() {
        let text = TEXT.replace("title = \"One dataset\"", "title = \"One dataset\"\nranks = 2");
        assert!(refused(&text).contains("occam runs on a single process"));
        let random = "name = \"mine\"\ntitle = \"A test\"\n[[experiment]]\nname = \"bursts\"\ntitle = \"Bursts\"\npatterns = 3\n\
                      ranks = 2\nkernel = { kind = \"random\", longest_len_bytes = 8192, datasets = 2 }\nknobs.sieve = [1024]\n";
        let workload = parse(random).unwrap();
        let names: Vec<&str> = workload.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        assert_eq!(names, ["bursts-1", "bursts-2", "bursts-3"]);
        assert!(matches!(workload.experiments[2].kernel(), Kernel::Random { pattern: 3, .. }));
        assert!(workload.experiments.iter().all(|experiment| experiment.candidates()[1].ranks == 2));
        assert!(refused(&random.replace("patterns = 3", "patterns = 0")).contains("patterns"));
        let together = random.replace("patterns = 3\n", "").replace(
            "kind = \"random\", longest_len_bytes = 8192, datasets = 2",
            "kind = \"ior\", api = \"hdf5\", burst_len_bytes = 8, bursts = 3, collective = true",
        );
        assert!(refused(&together).contains("must be a multiple of the ranks"), "{}", refused(&together));
    }

    const BURSTS: &str = r#"
name = "mine"
title = "A test"
[[experiment]]
name = "bursts"
title = "Bursts of {}"
kernel = { kind = "ior", api = "hdf5", bursts = 1 }
each.burst_len_bytes = [1024, 1048576]
fits.tiny = 65536
knobs.alignment = [4096]
"#;

    #[test]
    fn one_entry_is_an_experiment_for_each_value_that_fits() {
        let of = |scale| {
            let workload = Workload::parse(Path::new("mine.toml"), BURSTS, scale).unwrap();
            let all = workload.experiments.iter();
            all.map(|one| (one.name.clone(), one.title.clone(), one.kernel().len_bytes())).collect::<Vec<_>>()
        };
        let [kib, mib] = [("1KiB", 1024), ("1MiB", 1 << 20)]
            .map(|(words, len)| (format!("bursts-{words}"), format!("Bursts of {words}"), len));
        assert_eq!(of(Scale::Tiny), std::slice::from_ref(&kib));
        assert_eq!(of(Scale::Full), [kib, mib]);
        assert!(refused(&BURSTS.replace("65536", "1000")).contains("at least one"));
        assert!(refused(&BURSTS.replace("[1024,", "[1024, 1024,")).contains("another experiment has the same name"));
    }

    #[test]
    fn the_work_of_each_rank_grows_with_the_ranks() {
        let text = BURSTS.replace("fits.tiny = 65536", "ranks = 2\nper_rank = true");
        let mut experiment = parse(&text).unwrap().experiments.remove(0);
        assert_eq!(experiment.kernel().len_bytes(), 2048);
        experiment.set_ranks(5);
        let candidates = experiment.candidates();
        assert!(candidates.iter().all(|arm| (arm.kernel.len_bytes(), arm.ranks) == (5120, 5)), "{candidates:?}");
        // Without it, ranks share the work.
        let mut shared = parse(&text.replace("per_rank = true", "")).unwrap().experiments.remove(0);
        shared.set_ranks(5);
        assert_eq!(shared.kernel().len_bytes(), 1024);
        let divided = |blocks: u64| {
            let kernel = format!("bursts = 1, divided = true, blocks_per_burst = {blocks}");
            parse(&text.replace("bursts = 1", &kernel).replace("per_rank = true", ""))
        };
        // 128 numbers for two ranks.
        assert!(divided(64).is_ok());
        assert!(divided(65).unwrap_err().to_string().contains("blocks_per_burst (with the ranks"));
    }

    const CASES: &str = r#"
name = "mine"
title = "A test"
[[experiment]]
name = "counts"
title = "Datasets"
library = "serial.so"
kernel = { kind = "many", datasets = 1, elements = 8, attributes = 0 }
cases = [
    { name = "D=8", kernel = { datasets = 8 } },
    { name = "D=2", kernel = { datasets = 2 }, base = { sieve = 1024 } },
]
base = { meta_block = 4096 }
knobs.alignment = [4096]
variants.parallel = { library = "parallel.so", attributes = 3 }
"#;

    #[test]
    fn each_case_has_a_default_and_all_that_is_compared_with_it() {
        let candidates = parse(CASES).unwrap().experiments[0].candidates();
        let names: Vec<&str> = candidates.iter().map(|arm| arm.name.as_str()).collect();
        let of_case = |case: &str| ["default", "alignment=4KiB", "parallel"].map(|name| format!("{case}: {name}"));
        assert_eq!(names, [of_case("D=8"), of_case("D=2")].concat());
        assert!(matches!(candidates[3].kernel, Kernel::Many { datasets: 2, attributes: 0, .. }));
        assert!(matches!(candidates[5].kernel, Kernel::Many { datasets: 2, attributes: 3, .. }));
        assert_eq!(candidates[4].settings.words(), "alignment=4KiB meta_block=4KiB sieve=1KiB");
        assert_eq!(candidates[1].settings.words(), "alignment=4KiB meta_block=4KiB");
        let cases: Vec<Option<&str>> = candidates.iter().map(|arm| arm.case.as_deref()).collect();
        assert_eq!(cases, [[Some("D=8"); 3], [Some("D=2"); 3]].concat());
        assert!(refused(&CASES.replace("D=2", "D=8")).contains("another experiment has the same name"));
        assert!(refused(&CASES.replace("datasets = 2 }", "datasets = 0 }")).contains("datasets is out of range"));
        let none = CASES.replace("knobs.alignment = [4096]", "").replace("variants.parallel = ", "scale.full = ");
        assert!(refused(&none.replace("library = \"parallel.so\", ", "")).contains("nothing is compared"));
    }

    #[test]
    fn variants_name_libraries_and_the_user_may_name_others() {
        let library = |arm: &Candidate| arm.library.as_ref().map(|path| path.display().to_string());
        let mut experiment = parse(CASES).unwrap().experiments.remove(0);
        let libraries: Vec<Option<String>> = experiment.candidates()[..3].iter().map(library).collect();
        assert_eq!(libraries, ["serial.so", "serial.so", "parallel.so"].map(|name| Some(name.to_owned())));
        experiment.compare_libraries(&["a.so".into(), "b.so".into()]);
        let candidates = experiment.candidates();
        let found: Vec<(&str, Option<String>)> =
            candidates[4..].iter().map(|arm| (arm.name.as_str(), library(arm))).collect();
        let other = |name: &str| Some(name.to_owned());
        let expected = [
            ("D=2: default", None),
            ("D=2: alignment=4KiB", None),
            ("D=2: hdf5=a.so", other("a.so")),
            ("D=2: hdf5=b.so", other("b.so")),
        ];
        assert_eq!(found, expected);
        assert!(refused(&CASES.replace("\"parallel.so\"", "1")).contains("library must be a string"));
    }

    #[test]
    fn a_variant_may_have_other_ranks() {
        let with = |ranks: &str| CASES.replace("library = \"parallel.so\"", &format!("ranks = {ranks}"));
        let candidates = parse(&with("3")).unwrap().experiments[0].candidates();
        let ranks: Vec<u32> = candidates[..3].iter().map(|arm| arm.ranks).collect();
        assert_eq!((ranks, candidates[2].name.as_str()), (vec![1, 1, 3], "D=8: parallel"));
        for unfit in ["0", "65537", "-1", "\"two\""] {
            assert!(refused(&with(unfit)).contains("a whole number from 1"), "{unfit}");
        }
    }

    #[test]
    fn inputs_are_dealt_to_ranks_that_have_some() {
        let with = |more: &str| {
            format!(
                "name = \"mine\"\ntitle = \"A test\"\n[[experiment]]\nname = \"a\"\ntitle = \"A\"\nranks = 2\n\
                 kernel = {{ kind = \"nova\", inputs = 2, datasets = 1, rows = 4, columns = 1{more} }}\nknobs.gzip = [1]\n\
                 base = {{ chunk = [8, 1] }}\n"
            )
        };
        assert!(parse(&with(", creation = \"single\"")).is_ok());
        let weak = parse(&with("").replace("ranks = 2", "ranks = 3\nper_rank = true")).unwrap();
        assert!(matches!(weak.experiments[0].kernel(), Kernel::Nova(nova) if nova.inputs == 6));
        assert!(refused(&with("").replace("ranks = 2", "ranks = 3")).contains("fewer inputs than ranks"));
        assert!(refused(&with(", creation = \"single\"").replace("ranks = 2", "ranks = 1")).contains("takes ranks"));
        assert!(refused(&with(", in_memory = true, partition = \"datasets\"")).contains("leave partition out"));
        assert!(refused(&with(", creation = \"single\", only = \"collect\"")).contains("leave creation out"));
        assert!(refused(&with(", layers = 3")).contains("layers"));
        assert!(refused(&with("").replace("[8, 1]", "[9, 1]")).contains("does not fit"));
    }

    #[test]
    fn a_program_is_a_workload_of_its_own() {
        let knobs = |values: Vec<Value>| BTreeMap::from([(Knob::Sieve, values)]);
        let of = |command: &[&str], knobs| {
            Workload::of_program(command.iter().map(|word| (*word).to_owned()).collect(), Verify::Auto, knobs)
        };
        let workload = of(&["/opt/sim", "a.nml"], knobs(vec![Value::Whole(1024)])).unwrap();
        assert_eq!((workload.name.as_str(), workload.scale), ("sim", Scale::Own));
        assert_eq!(workload.experiments[0].candidates().len(), 2);
        assert!(of(&[], knobs(vec![Value::Whole(1)])).is_err());
        assert!(of(&["sim"], knobs(vec![])).unwrap_err().to_string().contains("nothing is compared"));
    }

    #[test]
    fn presets_are_workloads_at_every_scale() {
        for name in preset_names() {
            let sizes = [Scale::Tiny, Scale::Small, Scale::Full].map(|scale| {
                let workload = Workload::named(name, scale).unwrap();
                assert_eq!(workload.name, name);
                workload.largest_run_len_bytes()
            });
            assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{name}: {sizes:?}");
            assert!(sizes[0] <= 16 << 20, "{name}: {sizes:?}");
        }
    }
}
