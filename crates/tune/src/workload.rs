//! A workload: experiments, each a kernel and the settings that are compared with its default.
//!
//! TOML, in a file or one of the presets. Not for running it. Invariants: what [`Workload::parse`] accepts can be run on a
//! large enough machine; each candidate differs from its experiment's base in one setting, or in all settings of a
//! factorial design.

use crate::error::{Result, TuneError, WorkloadFault};
use crate::kernel::{Kernel, Verify};
use crate::knob::{Knob, Settings, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How large runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// A few megabytes: to see that it works.
    Tiny,
    /// Tens of megabytes: a workstation, minutes.
    Small,
    /// As in the papers.
    Full,
    /// That of a program, which is not raddle's to choose.
    Own,
}

impl Scale {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Full => "full",
            Self::Own => "own",
        }
    }
}

/// Experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// Name.
    pub name: String,
    /// One line on it.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
    /// Place of the experiment whose winner becomes the profile.
    pub profile_from: usize,
    /// Experiments.
    pub experiments: Vec<Experiment>,
}

/// A kernel and what is compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    /// Name.
    pub name: String,
    /// One line on it.
    pub title: String,
    /// What a paper found, to set beside what is found here.
    pub paper: Option<String>,
    /// Kernel.
    pub kernel: Kernel,
    /// Settings of the default that all candidates are compared with.
    pub base: Settings,
    /// Values to try, by setting.
    pub knobs: BTreeMap<Knob, Vec<Value>>,
    /// Whether all combinations are tried, not one setting after the other.
    pub is_factorial: bool,
    /// Other kernels to compare with, by name.
    pub variants: BTreeMap<String, Kernel>,
    /// Ranks of MPI that share each run; 1 is a process without MPI.
    pub ranks: u32,
}

/// One arm of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Name: what differs from the default.
    pub name: String,
    /// Setting that is swept; none for the default, a variant or a combination.
    pub knob: Option<Knob>,
    /// Kernel.
    pub kernel: Kernel,
    /// All settings.
    pub settings: Settings,
    /// Ranks of MPI.
    pub ranks: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadText {
    name: String,
    title: String,
    profile_from: Option<String>,
    experiment: Vec<ExperimentText>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentText {
    name: String,
    title: String,
    paper: Option<String>,
    kernel: toml::Table,
    /// What differs in the kernel at a scale.
    #[serde(default)]
    scale: BTreeMap<Scale, toml::Table>,
    #[serde(default)]
    base: Settings,
    #[serde(default)]
    knobs: BTreeMap<Knob, Vec<Value>>,
    #[serde(default)]
    factorial: bool,
    /// What differs in the kernel of a variant.
    #[serde(default)]
    variants: BTreeMap<String, toml::Table>,
    #[serde(default = "one_rank")]
    ranks: u32,
    /// The experiment once for each of so many patterns of [`Kernel::Random`].
    patterns: Option<u32>,
}

fn one_rank() -> u32 {
    1
}

/// Most ranks: what a machine can start for a minute.
const MOST_RANKS: u32 = 1 << 16;
/// Most patterns of an experiment.
const MOST_PATTERNS: u32 = 1000;

/// Names and texts of the workloads that raddle has with it.
const PRESETS: [(&str, &str); 5] = [
    ("tables", include_str!("../workloads/tables.toml")),
    ("occam-2005", include_str!("../workloads/occam-2005.toml")),
    ("battle-layout", include_str!("../workloads/battle-layout.toml")),
    ("battle-metadata", include_str!("../workloads/battle-metadata.toml")),
    ("battle-apps", include_str!("../workloads/battle-apps.toml")),
];

/// Names of the presets.
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.iter().map(|(name, _)| *name).collect()
}

impl Workload {
    /// The preset of this name, or the workload in the file of this name.
    ///
    /// # Errors
    /// If there is neither, or it is no workload.
    pub fn named(name: &str, scale: Scale) -> Result<Self> {
        let path = Path::new(name);
        if let Some((_, text)) = PRESETS.iter().find(|(preset, _)| *preset == name) {
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

    /// The workload that `text` is; `path` is for messages.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(path: &Path, text: &str, scale: Scale) -> Result<Self> {
        let of_form = |source| TuneError::Form { path: path.to_path_buf(), what: "workload", source: Box::new(source) };
        let WorkloadText { name, title, profile_from, experiment } = toml::from_str(text).map_err(of_form)?;
        let fault = |experiment: &str, fault| {
            let experiment = experiment.to_owned();
            TuneError::Workload { path: path.to_path_buf(), experiment, fault }
        };
        let mut names = BTreeSet::new();
        let mut experiments = Vec::new();
        for text in experiment {
            for text in text.each_pattern().map_err(|found| fault(&text.name, found))? {
                let name = text.name.clone();
                if !names.insert(name.clone()) {
                    return Err(fault(&name, WorkloadFault::Twice));
                }
                experiments.push(Experiment::of_text(text, scale).map_err(|found| fault(&name, found))?);
            }
        }
        let profile_from = match &profile_from {
            _ if experiments.is_empty() => return Err(fault("1", WorkloadFault::None)),
            None => 0,
            Some(source) => {
                let place = experiments.iter().position(|experiment| experiment.name == *source);
                place.ok_or_else(|| fault(source, WorkloadFault::NoSource))?
            }
        };
        Ok(Self { name, title, scale, profile_from, experiments })
    }

    /// Bytes that its largest run writes, at most and without inflation.
    pub fn largest_run_len_bytes(&self) -> u64 {
        let kernels = self
            .experiments
            .iter()
            .flat_map(|experiment| std::iter::once(&experiment.kernel).chain(experiment.variants.values()));
        kernels.map(Kernel::len_bytes).max().unwrap_or(0)
    }
}

impl ExperimentText {
    /// Itself, or one of each pattern: `NAME-1`, `NAME-2` …
    fn each_pattern(&self) -> Result<Vec<Self>, WorkloadFault> {
        let Some(patterns) = self.patterns else { return Ok(vec![self.clone()]) };
        if patterns == 0 || patterns > MOST_PATTERNS {
            return Err(WorkloadFault::Size("patterns"));
        }
        let of = |pattern: u32| {
            let mut text = self.clone();
            text.name = format!("{}-{pattern}", self.name);
            text.kernel.insert("pattern".to_owned(), i64::from(pattern).into());
            text
        };
        Ok((1..=patterns).map(of).collect())
    }
}

/// A program's name without its folder, as the name of what is measured.
fn name_of_command(command: &[String]) -> String {
    command.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default().to_owned()
}

impl Workload {
    /// A program's run with each of `knobs`, whose best becomes the profile.
    ///
    /// # Errors
    /// If nothing is compared, or a value is none of its setting's.
    pub fn of_program(command: Vec<String>, verify: Verify, knobs: BTreeMap<Knob, Vec<Value>>) -> Result<Self> {
        let name = name_of_command(&command);
        let experiment = Experiment {
            name: "program".to_owned(),
            title: command.join(" "),
            paper: None,
            kernel: Kernel::Program { command, verify },
            base: Settings::default(),
            knobs,
            is_factorial: false,
            variants: BTreeMap::new(),
            ranks: 1,
        };
        let title = "A program under settings that it knows nothing of".to_owned();
        let checked = experiment.kernel.check().and_then(|()| experiment.check());
        checked.map_err(|fault| TuneError::Workload {
            path: PathBuf::from(&name),
            experiment: "program".to_owned(),
            fault,
        })?;
        Ok(Self { name, title, scale: Scale::Own, profile_from: 0, experiments: vec![experiment] })
    }
}

impl Experiment {
    fn of_text(text: ExperimentText, scale: Scale) -> Result<Self, WorkloadFault> {
        let kernel_of = |changes: &[&toml::Table]| {
            let mut table = text.kernel.clone();
            for change in changes {
                table.extend(change.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            let kernel: Kernel = table.try_into().map_err(|error| WorkloadFault::Kernel(Box::new(error)))?;
            kernel.check().map(|()| kernel)
        };
        let no_change = toml::Table::new();
        let scaled = text.scale.get(&scale).unwrap_or(&no_change);
        let kernel = kernel_of(&[scaled])?;
        let variants = text.variants.iter();
        let variants = variants.map(|(name, change)| Ok((name.clone(), kernel_of(&[scaled, change])?)));
        let experiment = Self {
            name: text.name.clone(),
            title: text.title.clone(),
            paper: text.paper.clone(),
            kernel,
            base: text.base.clone(),
            knobs: text.knobs.clone(),
            is_factorial: text.factorial,
            variants: variants.collect::<Result<_, WorkloadFault>>()?,
            ranks: text.ranks,
        };
        experiment.check().map(|()| experiment)
    }

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// If not, with what is wrong.
    pub fn check(&self) -> Result<(), WorkloadFault> {
        let candidates = self.candidates();
        if self.ranks == 0 || self.ranks > MOST_RANKS {
            return Err(WorkloadFault::Size("ranks"));
        }
        if let Some(alone) = candidates.iter().find(|arm| self.ranks > 1 && !arm.kernel.is_for_ranks()) {
            return Err(WorkloadFault::NotForRanks(alone.kernel.name()));
        }
        let is_uneven = |kernel: &Kernel| match *kernel {
            Kernel::Ior { blocks, collective, .. } => collective && blocks % u64::from(self.ranks) != 0,
            _ => false,
        };
        if candidates.iter().any(|arm| is_uneven(&arm.kernel)) {
            return Err(WorkloadFault::Size("blocks, or no multiple of the ranks that write them together,"));
        }
        if candidates.len() < 2 {
            return Err(WorkloadFault::NothingCompared);
        }
        for Candidate { settings, kernel, .. } in &candidates {
            settings.check().map_err(|error| WorkloadFault::Setting(Box::new(error)))?;
            if let Some(Value::Shape(shape)) = settings.get(Knob::Chunk) {
                let dims = kernel.dims();
                // HDF5 refuses chunks beyond a dimension that is fixed.
                if shape.len() != dims.len() || shape.iter().zip(&dims).any(|(chunk, dim)| chunk > dim) {
                    return Err(WorkloadFault::Chunk { shape: shape.clone(), dims });
                }
            }
        }
        Ok(())
    }

    /// The default, then all that is compared with it.
    pub fn candidates(&self) -> Vec<Candidate> {
        let ranks = self.ranks;
        let arm = |name: String, knob, settings| Candidate { name, knob, kernel: self.kernel.clone(), settings, ranks };
        let mut all = vec![arm("default".to_owned(), None, self.base.clone())];
        if self.is_factorial {
            let mut combinations = vec![Settings::default()];
            for (knob, values) in &self.knobs {
                let others = combinations
                    .iter()
                    .flat_map(|combination| values.iter().map(|value| combination.clone().and(*knob, value.clone())));
                combinations.extend(others.collect::<Vec<_>>());
            }
            let others = combinations.into_iter().filter(|combination| *combination != Settings::default());
            all.extend(others.map(|combination| arm(combination.words(), None, self.base.with(&combination))));
        } else {
            for (knob, values) in &self.knobs {
                // What is the default already would be compared with itself.
                let others = values.iter().filter(|value| self.base.get(*knob) != Some(value));
                all.extend(others.map(|value| {
                    let settings = self.base.clone().and(*knob, value.clone());
                    arm(knob.assignment(value), Some(*knob), settings)
                }));
            }
        }
        all.extend(self.variants.iter().map(|(name, kernel)| Candidate {
            name: name.clone(),
            knob: None,
            kernel: kernel.clone(),
            settings: self.base.clone(),
            ranks,
        }));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_is_wrong_is_said() {
        assert!(refused("name = 1").contains("mine.toml: not a workload"));
        assert!(refused("name = \"a\"\ntitle = \"b\"\nexperiment = []").contains("at least one"));
        assert!(refused(&TEXT.replace("rows_per_write = 4", "rows_per_write = 3")).contains("rows_per_write"));
        assert!(refused(&TEXT.replace("levels = 2", "levels = 0")).contains("levels is 0"));
        assert!(refused(&TEXT.replace("levels = 2", "levels = 9223372036854775807")).contains("too large"));
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
        assert!(refused(&text).contains("occam is for one process"));
        let random = "name = \"mine\"\ntitle = \"A test\"\n[[experiment]]\nname = \"bursts\"\ntitle = \"Bursts\"\npatterns = 3\n\
                      ranks = 2\nkernel = { kind = \"random\", longest_len_bytes = 8192, datasets = 2 }\nknobs.sieve = [1024]\n";
        let workload = parse(random).unwrap();
        let names: Vec<&str> = workload.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        assert_eq!(names, ["bursts-1", "bursts-2", "bursts-3"]);
        assert!(matches!(workload.experiments[2].kernel, Kernel::Random { pattern: 3, .. }));
        assert!(workload.experiments.iter().all(|experiment| experiment.candidates()[1].ranks == 2));
        assert!(refused(&random.replace("patterns = 3", "patterns = 0")).contains("patterns"));
        let together = random.replace("patterns = 3\n", "").replace(
            "kind = \"random\", longest_len_bytes = 8192, datasets = 2",
            "kind = \"ior\", api = \"hdf5\", transfer_len_bytes = 8, blocks = 3, collective = true",
        );
        assert!(refused(&together).contains("no multiple of the ranks"), "{}", refused(&together));
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
