//! Summary of a planned merge, as plain data.
//!
//! Its JSON is a stable interface: fields are added, but not renamed.

use raddle_codec::{Filter, KnownFilter};
use raddle_core::report::InputDifference;
use raddle_merge::plan::alignment::Alignment;
use raddle_merge::plan::asked_layout::ChunkSource;
use raddle_merge::plan::prediction::Prediction;
use raddle_merge::plan::regrouping::{RegroupedDataset, scratch_space_len_bytes};
use raddle_merge::plan::{ColumnPlan, MergePlan, PlannedInput, Route, Storage};
use raddle_merge::rules::Rule;
use raddle_merge::schema::join::{Difference, describe};
use raddle_merge::schema::{Role, display_path};
use raddle_merge::write::bridged;
use serde::Serialize;
use std::path::Path;

/// Summary of a planned merge.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Input files, in the order of their rows.
    pub inputs: Vec<Input>,
    /// Inputs that are left out because they cannot be read.
    pub skipped: Vec<SkippedFile>,
    /// Description of the output.
    pub output: OutputSummary,
    /// The convention that the inputs follow, if one was recognised.
    pub convention: Option<Convention>,
    /// Differences between inputs that the join resolves.
    pub differences: Vec<InputDifference>,
    /// Differences that the join resolves, with inputs given by number.
    #[serde(skip)]
    pub bridged: Vec<Difference>,
    /// Predicted cost of executing the plan, if available.
    pub predicted: Option<Prediction>,
    /// Whether options distinguish datasets, in which case their layouts differ.
    #[serde(skip)]
    pub is_by_dataset: bool,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// Wall time of scan and planning.
    pub elapsed_s: f64,
}

/// Convention that was recognised in the inputs.
#[derive(Debug, Serialize)]
pub struct Convention {
    /// Name of the convention, as for `--convention`.
    pub name: &'static str,
    /// Title of the convention.
    pub title: &'static str,
    /// Reason for the recognition.
    pub because: String,
}

/// An input file.
#[derive(Debug, Serialize)]
pub struct Input {
    /// Path of the file, as given.
    pub path: String,
    /// Length of the file.
    pub len_bytes: u64,
}

impl Input {
    /// Returns the inputs of `plan`.
    pub fn of(plan: &MergePlan) -> Vec<Self> {
        let of = |input: &PlannedInput| Self {
            path: input.path.to_string_lossy().into_owned(),
            len_bytes: input.identity.len_bytes,
        };
        plan.inputs.iter().map(of).collect()
    }
}

/// An input that is left out.
#[derive(Debug, Serialize)]
pub struct SkippedFile {
    /// Path of the file, as given.
    pub path: String,
    /// Reason why the file is left out.
    pub reason: String,
}

/// The planned output file.
#[derive(Debug, Serialize)]
pub struct OutputSummary {
    /// Uncompressed length of all datasets.
    pub logical_len_bytes: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of chunks of all inputs.
    pub input_chunks: u64,
    /// Number of groups.
    pub groups: u64,
    /// Arenas in which chunks are placed, if they are aligned.
    pub alignment: Option<Alignment>,
    /// Number of additional links to objects: soft, external and further hard links.
    pub links: u64,
    /// Datasets that are concatenated.
    pub datasets: Vec<DatasetSummary>,
    /// Datasets whose chunks are assembled in groups, because the chunks of the inputs extend over many of them.
    pub regrouped: Vec<RegroupedDataset>,
    /// Space that a scratch file for them needs at once.
    pub scratch_space_len_bytes: u64,
    /// Paths of scalar and null datasets, which are kept once.
    pub constants: Vec<String>,
}

/// A dataset of the output.
#[derive(Debug, Serialize)]
pub struct DatasetSummary {
    /// Path of the dataset.
    pub path: String,
    /// Description of the type.
    pub datatype: String,
    /// Dimensions of the dataset.
    pub dims: Vec<u64>,
    /// Way in which the values are stored.
    pub storage: &'static str,
    /// Chunk shape, if chunked.
    pub chunk_shape: Option<Vec<u64>>,
    /// Identifiers of the filters.
    pub filters: Vec<u16>,
    /// Filters with their levels, as text.
    pub pipeline: String,
    /// Origin of chunk shape and filters: layout rules, an option, or the inputs; `None` for the defaults.
    pub decided_by: Option<String>,
    /// Route by which its values get into the output.
    pub route: &'static str,
    /// Uncompressed length of the dataset.
    pub logical_len_bytes: u64,
    /// Rule for its values, if they are not simply concatenated along the first axis.
    pub rule: Option<String>,
}

impl Summary {
    /// Summarises `plan`.
    pub fn of(plan: &MergePlan, predicted: Option<Prediction>) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let skipped = plan.skipped.iter();
        let skipped = skipped.map(|bad| SkippedFile { path: text(&bad.path), reason: bad.error.to_string() });
        let roles = || plan.schema.entries.iter().map(|entry| &entry.role);
        let constants = plan.schema.entries.iter().filter(|entry| matches!(entry.role, Role::Constant { .. }));
        let regrouped = plan.regrouped();
        let output = OutputSummary {
            logical_len_bytes: plan.logical_len_bytes(),
            chunks: plan.chunk_count(),
            input_chunks: plan.input_chunk_count,
            alignment: plan.alignment,
            groups: roles().filter(|role| matches!(role, Role::Group { .. })).count() as u64,
            links: roles().filter(|role| is_link(role)).count() as u64,
            datasets: datasets(plan),
            scratch_space_len_bytes: scratch_space_len_bytes(&regrouped),
            regrouped,
            constants: constants.map(|entry| display_path(&entry.path)).collect(),
        };
        let (inputs, skipped) = (Input::of(plan), skipped.collect());
        let (scan_s, elapsed_s) = (plan.scan_s, plan.elapsed_s);
        let convention = plan.convention.map(|choice| Convention {
            name: choice.word(),
            title: choice.title(),
            because: plan.because.clone(),
        });
        let (differences, bridged) = (bridged(plan), plan.warnings.clone());
        let is_by_dataset = plan.options.is_by_dataset();
        Self { inputs, skipped, output, convention, differences, bridged, predicted, is_by_dataset, scan_s, elapsed_s }
    }
}

fn is_link(role: &Role) -> bool {
    matches!(role, Role::HardLink { .. } | Role::SoftLink(_) | Role::ExternalLink { .. } | Role::UserLink { .. })
}

/// Formats `shuffle, deflate 6`.
fn pipeline(filters: &[Filter]) -> String {
    let name = |filter: &Filter| match KnownFilter::from_id(filter.id) {
        Some(known @ (KnownFilter::Deflate | KnownFilter::Zstd)) => {
            let level = filter.parameters.first().map_or_else(String::new, |level| format!(" {level}"));
            format!("{}{level}", known.name())
        }
        Some(known) => known.name().to_owned(),
        None => format!("filter {}", filter.id),
    };
    filters.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Returns the options that determine the layout of a dataset, as on the command line.
fn decided_by(plan: &MergePlan, planned: &ColumnPlan) -> Option<String> {
    let rules = planned.layout.rules.iter();
    let mut all: Vec<String> = rules.map(|&rule| plan.options.layout_rules[rule as usize].to_string()).collect();
    match planned.layout.chunk {
        Some(ChunkSource::Option) => all.insert(0, "--chunk".to_owned()),
        Some(ChunkSource::Grid) => all.insert(0, format!("--for {}", plan.options.layout.word())),
        Some(ChunkSource::Stored) => all.insert(0, "stored chunks are moved".to_owned()),
        Some(ChunkSource::Policy | ChunkSource::Rule(_)) | None => {}
    }
    (!all.is_empty()).then(|| all.join("; "))
}

fn datasets(plan: &MergePlan) -> Vec<DatasetSummary> {
    let columns = plan.columns.iter().zip(&plan.schema.columns).enumerate();
    let dataset =
        |(index, (planned, column)): (usize, (&raddle_merge::plan::ColumnPlan, &raddle_merge::schema::Column))| {
            let class = &column.model().datatype.class;
            DatasetSummary {
                path: display_path(plan.schema.column_path(index as u32)),
                datatype: describe(class),
                dims: planned.file_dims().to_vec(),
                storage: match planned.storage {
                    Storage::Compact => "compact",
                    Storage::Contiguous => "contiguous",
                    Storage::Chunked(_) => "chunked",
                    Storage::Virtual => "virtual",
                },
                chunk_shape: planned.file_chunk_shape().map(<[u64]>::to_vec),
                filters: planned.filters.iter().map(|filter| filter.id).collect(),
                pipeline: pipeline(&planned.filters),
                decided_by: decided_by(plan, planned),
                route: match planned.route {
                    Route::Empty => "empty",
                    Route::Encoded { .. } => "encoded",
                    Route::Raw { .. } => "raw",
                    Route::Verbatim { .. } => "verbatim",
                    Route::Direct => "direct",
                    Route::FileLocal => "file_local",
                    Route::Linked => "linked",
                },
                logical_len_bytes: planned.logical_len_bytes(class.len_bytes()),
                rule: plan.rule_of(column.entry).filter(|rule| !rule.is_plain()).map(Rule::describe),
            }
        };
    columns.map(dataset).collect()
}
