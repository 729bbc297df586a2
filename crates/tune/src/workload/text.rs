//! Workloads as TOML: the format of a file, and its expansion to experiments.
//!
//! One entry may expand to several experiments (`each`, `patterns`); experiments that are too large for a scale are
//! left out (`fits`). Experiments themselves are in [`super::Experiment`].

use super::experiment::MAX_RANKS;
use super::presets::preset;
use super::{Case, Experiment, Scale, Variant, Workload};
use crate::error::{Result, TuneError, WorkloadFault};
use crate::kernel::Kernel;
use crate::knob::{Knob, SettingValue, Settings, len_words};
use crate::planned::PlannedTable;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadText {
    name: String,
    title: String,
    profile_from: Option<String>,
    /// Presets whose experiments and tables come before those of this file.
    #[serde(default)]
    parts: Vec<String>,
    #[serde(default)]
    experiment: Vec<ExperimentText>,
    #[serde(default)]
    planned: Vec<PlannedTable>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentText {
    name: String,
    title: String,
    paper: Option<String>,
    kernel: toml::Table,
    /// Changes of the kernel at a scale.
    #[serde(default)]
    scale: BTreeMap<Scale, toml::Table>,
    /// Maximum file size at a scale, in bytes of values: larger values of `each` and `cases` are left out.
    #[serde(default)]
    fits: BTreeMap<Scale, u64>,
    #[serde(default)]
    base: Settings,
    #[serde(default)]
    knobs: BTreeMap<Knob, Vec<SettingValue>>,
    #[serde(default)]
    factorial: bool,
    /// Kernels and base settings that are measured next to each other.
    #[serde(default)]
    cases: Vec<CaseText>,
    /// Changes of the kernel for a variant, with its `library` and `ranks`.
    #[serde(default)]
    variants: BTreeMap<String, toml::Table>,
    #[serde(default = "one_rank")]
    ranks: u32,
    /// Whether the kernel is the work of each rank, not of all together.
    #[serde(default)]
    per_rank: bool,
    library: Option<PathBuf>,
    /// Values of kernel parameters, for each of which the experiment is repeated. `{}` in the title stands for the
    /// value.
    #[serde(default)]
    each: BTreeMap<String, Vec<i64>>,
    /// Number of patterns of [`Kernel::Random`] for which the experiment is repeated.
    patterns: Option<u32>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    name: String,
    /// Changes of the kernel.
    #[serde(default)]
    kernel: toml::Table,
    /// Base settings in addition to the base settings of all cases.
    #[serde(default)]
    base: Settings,
}

fn one_rank() -> u32 {
    1
}

/// Maximum number of patterns of an experiment.
const MAX_PATTERNS: u32 = 1000;

pub(super) fn parse(path: &Path, text: &str, scale: Scale) -> Result<Workload> {
    let of_form = |source| TuneError::Form { path: path.to_path_buf(), what: "workload", source: Box::new(source) };
    let WorkloadText { name, title, profile_from, parts, experiment, planned: planned_tables } =
        toml::from_str(text).map_err(of_form)?;
    let fault = |experiment: &str, fault| {
        let experiment = experiment.to_owned();
        TuneError::Workload { path: path.to_path_buf(), experiment, fault }
    };
    let mut names = BTreeSet::new();
    let (mut experiments, mut planned) = (Vec::new(), Vec::new());
    for part in &parts {
        let text = preset(part).ok_or_else(|| TuneError::NoSuchWorkload { name: part.clone() })?;
        let Workload { experiments: more, planned: tables, .. } = parse(Path::new(part), text, scale)?;
        for name in more.iter().map(|experiment| &experiment.name).chain(tables.iter().map(|table| &table.name)) {
            if !names.insert(name.clone()) {
                return Err(fault(name, WorkloadFault::Twice));
            }
        }
        experiments.extend(more);
        planned.extend(tables);
    }
    for text in experiment {
        for text in text.expanded().map_err(|found| fault(&text.name, found))? {
            let name = text.name.clone();
            if !names.insert(name.clone()) {
                return Err(fault(&name, WorkloadFault::Twice));
            }
            experiments.extend(text.experiment(scale).map_err(|found| fault(&name, found))?);
        }
    }
    for table in planned_tables {
        if !names.insert(table.name.clone()) {
            return Err(fault(&table.name, WorkloadFault::Twice));
        }
        planned.push(table);
    }
    let profile_from = match &profile_from {
        _ if experiments.is_empty() && planned.is_empty() => return Err(fault("1", WorkloadFault::None)),
        None => 0,
        Some(source) => {
            let place = experiments.iter().position(|experiment| experiment.name == *source);
            place.ok_or_else(|| fault(source, WorkloadFault::NoSource))?
        }
    };
    Ok(Workload { name, title, scale, profile_from, experiments, planned, parts })
}

/// Formats a kernel parameter for a name: `16KiB`; elements count 8 bytes each.
fn words(key: &str, value: i64) -> String {
    match u64::try_from(value) {
        Ok(value) if key.ends_with("len_bytes") => len_words(value),
        Ok(value) if key == "elements" => len_words(value.saturating_mul(8)),
        _ => value.to_string(),
    }
}

impl ExperimentText {
    /// Returns the entry itself, or one entry per value or pattern: `NAME-1`, `NAME-2` …
    fn expanded(&self) -> Result<Vec<Self>, WorkloadFault> {
        let mut each = self.each.clone();
        if let Some(patterns) = self.patterns {
            if patterns == 0 || patterns > MAX_PATTERNS {
                return Err(WorkloadFault::Size("patterns"));
            }
            each.insert("pattern".to_owned(), (1..=i64::from(patterns)).collect());
        }
        let mut all = vec![self.clone()];
        for (key, values) in &each {
            let of = |text: &Self, value: i64| {
                let (mut text, words) = (text.clone(), words(key, value));
                text.name = format!("{}-{words}", text.name);
                text.title = text.title.replacen("{}", &words, 1);
                text.kernel.insert(key.clone(), value.into());
                text
            };
            all = all.iter().flat_map(|text| values.iter().map(|value| of(text, *value))).collect();
        }
        Ok(all)
    }

    /// Returns the experiment at a scale; `None` if none of its cases fits.
    fn experiment(self, scale: Scale) -> Result<Option<Experiment>, WorkloadFault> {
        let no_change = toml::Table::new();
        let scaled = self.scale.get(&scale).unwrap_or(&no_change);
        let kernel_of = |changes: &[&toml::Table]| {
            let mut table = self.kernel.clone();
            for change in changes {
                table.extend(change.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            let kernel: Kernel = table.try_into().map_err(|error| WorkloadFault::Kernel(Box::new(error)))?;
            let kernel = if self.per_rank { kernel.for_each_of(self.ranks) } else { kernel };
            kernel.check().map(|()| kernel)
        };
        let variant_of = |case_kernel: &toml::Table, change: &toml::Table| {
            let mut change = change.clone();
            let library = match change.remove("library") {
                None => None,
                Some(toml::Value::String(library)) => Some(PathBuf::from(library)),
                Some(_) => return Err(WorkloadFault::Library),
            };
            let ranks = match change.remove("ranks") {
                None => None,
                Some(ranks) => Some(ranks.try_into().map_err(|_| WorkloadFault::Ranks { max: MAX_RANKS })?),
            };
            Ok(Variant { kernel: kernel_of(&[scaled, case_kernel, &change])?, library, ranks })
        };
        let case_of = |name: Option<String>, case_kernel: &toml::Table, base: &Settings| {
            let variants = self.variants.iter();
            let variants = variants.map(|(name, change)| Ok((name.clone(), variant_of(case_kernel, change)?)));
            let variants = variants.collect::<Result<_, WorkloadFault>>()?;
            Ok(Case { name, kernel: kernel_of(&[scaled, case_kernel])?, base: self.base.with(base), variants })
        };
        let names: BTreeSet<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
        if names.len() < self.cases.len() {
            return Err(WorkloadFault::Twice);
        }
        let mut cases = match self.cases.as_slice() {
            [] => vec![case_of(None, &no_change, &Settings::default())?],
            cases => cases
                .iter()
                .map(|case| case_of(Some(case.name.clone()), &case.kernel, &case.base))
                .collect::<Result<_, WorkloadFault>>()?,
        };
        if let Some(longest) = self.fits.get(&scale) {
            cases.retain(|case| case.kernel.len_bytes() <= *longest);
        }
        if cases.is_empty() {
            return Ok(None);
        }
        let experiment = Experiment {
            name: self.name.clone(),
            title: self.title.clone(),
            paper: self.paper.clone(),
            cases,
            knobs: self.knobs.clone(),
            is_factorial: self.factorial,
            ranks: self.ranks,
            is_per_rank: self.per_rank,
            library: self.library.clone(),
        };
        experiment.check().map(|()| Some(experiment))
    }
}
