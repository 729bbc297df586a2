//! A plan as text for people and as JSON for programs.
//!
//! The JSON is a stable interface: fields are added, but not renamed.

use super::table::{Align, Columns};
use super::{differences, escape, quantity};
use raddle_core::output::stripes::StripeSource;
use raddle_core::report::InputDifference;
use raddle_merge::plan::alignment::Alignment;
use raddle_merge::plan::prediction::{Prediction, SHORT_S};
use raddle_merge::plan::{MergePlan, PlannedInput, Route, Storage};
use raddle_merge::rules::Rule;
use raddle_merge::schema::join::{Difference, describe, parent_path};
use raddle_merge::schema::{Role, display_path};
use raddle_merge::write::bridged;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Level of detail of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// A line per group.
    Groups,
    /// A line per dataset.
    Datasets,
}

/// Maximum number of groups shown with [`Detail::Groups`], largest first; some files have thousands of groups.
const MAX_TABLE_ROWS: usize = 40;

/// Summary of a planned merge.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Input files, in the order of their rows.
    pub inputs: Vec<Input>,
    /// Inputs that are left out because they cannot be read.
    pub skipped: Vec<Skipped>,
    /// Description of the output.
    pub output: Output,
    /// The convention that the inputs follow, if one was recognised.
    pub convention: Option<Convention>,
    /// Differences between inputs that the join resolves.
    pub differences: Vec<InputDifference>,
    /// Differences that the join resolves, with inputs given by number.
    #[serde(skip)]
    pub bridged: Vec<Difference>,
    /// Predicted cost of executing the plan, if available.
    pub predicted: Option<Prediction>,
    /// Wall time of the scan.
    pub scan_s: f64,
    /// Wall time of scan and planning.
    pub elapsed_s: f64,
}

/// Convention that was recognised in the inputs.
#[derive(Debug, Serialize)]
pub struct Convention {
    /// Name, as for `--convention`.
    pub name: &'static str,
    /// Title.
    pub title: &'static str,
    /// Reason for the recognition.
    pub because: String,
}

/// An input file.
#[derive(Debug, Serialize)]
pub struct Input {
    /// Path as given.
    pub path: String,
    /// Length.
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
pub struct Skipped {
    /// Path as given.
    pub path: String,
    /// Reason.
    pub reason: String,
}

/// The planned output file.
#[derive(Debug, Serialize)]
pub struct Output {
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
    pub datasets: Vec<Dataset>,
    /// Paths of scalar and null datasets, which are kept once.
    pub constants: Vec<String>,
}

/// A dataset of the output.
#[derive(Debug, Serialize)]
pub struct Dataset {
    /// Path.
    pub path: String,
    /// Description of the type.
    pub datatype: String,
    /// Dimensions.
    pub dims: Vec<u64>,
    /// How the values are stored.
    pub storage: &'static str,
    /// Chunk shape, if chunked.
    pub chunk_shape: Option<Vec<u64>>,
    /// Identifiers of the filters.
    pub filters: Vec<u16>,
    /// Route by which its values get into the output.
    pub route: &'static str,
    /// Uncompressed bytes.
    pub logical_len_bytes: u64,
    /// Rule for its values, if they are not simply concatenated along the first axis.
    pub rule: Option<String>,
}

/// Formats a prediction in one line.
pub fn prediction(predicted: &Prediction) -> String {
    let output = if predicted.is_size_known() {
        let len_bytes = predicted.output_len_bytes();
        let against = len_bytes as f64 / predicted.input_len_bytes.max(1) as f64;
        format!("output {} ({:.0} % of the inputs)", quantity::size(len_bytes), against * 100.0)
    } else {
        let (least, most) = predicted.bounds_len_bytes();
        format!("output size unknown ({} to {})", quantity::size(least), quantity::size(most))
    };
    let time = match (predicted.elapsed_s, predicted.cpu_s) {
        _ if predicted.is_short => format!("less than {SHORT_S:.0} s"),
        (Some(elapsed_s), _) => format!("about {}", quantity::seconds(elapsed_s)),
        (None, Some(cpu_s)) => format!("time unknown ({} of processor time)", quantity::seconds(cpu_s)),
        (None, None) => "time unknown".to_owned(),
    };
    format!(
        "{output}, {} of buffers, {time} (from {} encoded on trial)",
        quantity::size(predicted.memory_len_bytes),
        quantity::size(predicted.sampled_len_bytes),
    )
}

/// Formats arenas in one line.
pub fn alignment(alignment: &Alignment) -> String {
    let Alignment { stripes, arenas } = alignment;
    let source = match stripes.source {
        StripeSource::Asked => "as requested",
        StripeSource::Lustre => "from Lustre",
        StripeSource::LustreDefault => "Lustre's default, because the folder has no layout",
        StripeSource::Gpfs => "from GPFS",
        StripeSource::Block => "block length of the file system",
    };
    let targets = match stripes.count {
        Some(count) => format!(", on {}", quantity::counted(count.into(), "target")),
        None => String::new(),
    };
    format!(
        "stripes of {} ({source}){targets}, arenas of {}, {}",
        quantity::size(arenas.stripe_len_bytes),
        quantity::size(arenas.arena_len_bytes),
        quantity::counted(arenas.lanes.into(), "lane"),
    )
}

impl Summary {
    /// Summarises `plan`.
    pub fn of(plan: &MergePlan, predicted: Option<Prediction>) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let skipped = plan.skipped.iter();
        let skipped = skipped.map(|bad| Skipped { path: text(&bad.path), reason: bad.error.to_string() });
        let roles = || plan.schema.entries.iter().map(|entry| &entry.role);
        let constants = plan.schema.entries.iter().filter(|entry| matches!(entry.role, Role::Constant { .. }));
        let output = Output {
            logical_len_bytes: plan.logical_len_bytes(),
            chunks: plan.chunk_count(),
            input_chunks: plan.input_chunk_count,
            alignment: plan.alignment,
            groups: roles().filter(|role| matches!(role, Role::Group { .. })).count() as u64,
            links: roles().filter(|role| is_link(role)).count() as u64,
            datasets: datasets(plan),
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
        Self { inputs, skipped, output, convention, differences, bridged, predicted, scan_s, elapsed_s }
    }

    /// Formats the summary.
    pub fn text(&self, detail: Detail) -> String {
        let output = &self.output;
        let input_len_bytes = self.inputs.iter().map(|input| input.len_bytes).sum();
        let empty = output.datasets.iter().filter(|dataset| dataset.dims.contains(&0)).count() as u64;
        let mut text = format!(
            "{}, {}, {}\n",
            quantity::counted(self.inputs.len() as u64, "input"),
            quantity::size(input_len_bytes),
            quantity::counted(output.input_chunks, "chunk"),
        );
        if !self.skipped.is_empty() {
            text.push_str(&format!("left out: {}\n", quantity::counted(self.skipped.len() as u64, "input")));
            for Skipped { path, reason } in &self.skipped {
                text.push_str(&format!("  {}: {}\n", escape::text(path), escape::text(reason)));
            }
        }
        if let Some(Convention { name, title, because }) = &self.convention {
            let because = escape::text(because);
            text.push_str(&format!("convention: {title} ({because}); --convention overrides {name}\n"));
        }
        let ruled = output.datasets.iter().filter_map(|dataset| Some((&dataset.path, dataset.rule.as_ref()?)));
        for (path, rule) in ruled.clone().take(MAX_TABLE_ROWS) {
            text.push_str(&format!("  {}: {}\n", escape::text(path), escape::text(rule)));
        }
        if let more @ 1.. = ruled.count().saturating_sub(MAX_TABLE_ROWS) {
            text.push_str(&format!("  … and {} more\n", quantity::count(more as u64)));
        }
        text.push_str(&format!(
            "output: {} in {} ({} empty), {} uncompressed, {}\n\n",
            quantity::counted(output.datasets.len() as u64, "dataset"),
            quantity::counted(output.groups, "group"),
            quantity::count(empty),
            quantity::size(output.logical_len_bytes),
            quantity::counted(output.chunks, "chunk"),
        ));
        text.push_str(&match detail {
            Detail::Groups => self.groups_table(),
            Detail::Datasets => self.datasets_table(),
        });
        if let Some(of_output) = &output.alignment {
            text.push_str(&format!("\naligned: {}\n", alignment(of_output)));
        }
        if let Some(predicted) = &self.predicted {
            text.push_str(&format!("\npredicted: {}\n", prediction(predicted)));
        }
        if !output.constants.is_empty() {
            text.push_str(&format!(
                "\nkept once (equal in all inputs): {}\n",
                escape::text(&output.constants.join(", "))
            ));
        }
        if !self.bridged.is_empty() {
            let paths: Vec<PathBuf> = self.inputs.iter().map(|input| input.path.clone().into()).collect();
            text.push_str(&format!(
                "\n{} that the join bridges\n",
                quantity::counted(self.bridged.len() as u64, "difference")
            ));
            text.push_str(&differences::table(&self.bridged, &paths));
        }
        text
    }

    fn datasets_table(&self) -> String {
        let titles = [
            ("dataset", Align::Left),
            ("type", Align::Left),
            ("shape", Align::Left),
            ("stored", Align::Left),
            ("raw", Align::Right),
        ];
        let mut columns = Columns::new(&titles);
        for dataset in &self.output.datasets {
            let stored = dataset
                .chunk_shape
                .as_ref()
                .map_or(dataset.storage.to_owned(), |shape| format!("chunks of {}", product(shape)));
            columns.row(&[
                escape::shorten(&dataset.path).into_owned(),
                escape::shorten(&dataset.datatype).into_owned(),
                product(&dataset.dims),
                stored,
                quantity::size(dataset.logical_len_bytes),
            ]);
        }
        columns.render()
    }

    fn groups_table(&self) -> String {
        let mut groups = self.groups();
        let titles = [
            ("group", Align::Left),
            ("datasets", Align::Right),
            ("empty", Align::Right),
            ("rows", Align::Right),
            ("rows per chunk", Align::Right),
            ("raw", Align::Right),
        ];
        let mut columns = Columns::new(&titles);
        let count = groups.len();
        if count > MAX_TABLE_ROWS {
            groups.sort_by_key(|group| std::cmp::Reverse(group.logical_len_bytes));
        }
        for group in groups.iter().take(MAX_TABLE_ROWS) {
            columns.row(&[
                escape::shorten(&group.path).into_owned(),
                quantity::count(group.datasets),
                quantity::count(group.empty),
                span(group.rows),
                span(group.chunk_rows),
                quantity::size(group.logical_len_bytes),
            ]);
        }
        let rest = match count.checked_sub(MAX_TABLE_ROWS) {
            Some(more @ 1..) => format!(" … and {} smaller groups\n", quantity::count(more as u64)),
            _ => String::new(),
        };
        columns.render() + &rest
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<&[u8], usize> = HashMap::new();
        for dataset in &self.output.datasets {
            let parent = parent_path(dataset.path.as_bytes());
            let place = *places.entry(parent).or_insert(groups.len());
            if place == groups.len() {
                let path = String::from_utf8_lossy(parent).into_owned();
                groups.push(Group { path, ..Group::default() });
            }
            let group = &mut groups[place];
            let rows = dataset.dims.first().copied().unwrap_or(0);
            group.datasets += 1;
            group.empty += u64::from(dataset.dims.contains(&0));
            group.rows = widen(group.rows, rows);
            if let (Some(shape), false) = (&dataset.chunk_shape, dataset.dims.contains(&0)) {
                group.chunk_rows = widen(group.chunk_rows, shape[0]);
            }
            group.logical_len_bytes = group.logical_len_bytes.saturating_add(dataset.logical_len_bytes);
        }
        groups
    }
}

/// Sums over the datasets of a group.
#[derive(Debug, Default)]
struct Group {
    path: String,
    datasets: u64,
    empty: u64,
    /// Minimum and maximum number of rows.
    rows: Option<(u64, u64)>,
    /// Minimum and maximum number of rows per chunk.
    chunk_rows: Option<(u64, u64)>,
    logical_len_bytes: u64,
}

fn widen(range: Option<(u64, u64)>, value: u64) -> Option<(u64, u64)> {
    range.map_or(Some((value, value)), |(least, most)| Some((least.min(value), most.max(value))))
}

/// Formats `9,810` or `128 to 9,810`; `-` for none.
fn span(range: Option<(u64, u64)>) -> String {
    match range {
        None => "-".to_owned(),
        Some((least, most)) if least == most => quantity::count(most),
        Some((least, most)) => format!("{} to {}", quantity::count(least), quantity::count(most)),
    }
}

/// Formats `9,810 x 1`.
fn product(dims: &[u64]) -> String {
    dims.iter().map(|&dim| quantity::count(dim)).collect::<Vec<_>>().join(" x ")
}

fn is_link(role: &Role) -> bool {
    matches!(role, Role::HardLink { .. } | Role::SoftLink(_) | Role::ExternalLink { .. } | Role::UserLink { .. })
}

fn datasets(plan: &MergePlan) -> Vec<Dataset> {
    let columns = plan.columns.iter().zip(&plan.schema.columns).enumerate();
    let dataset =
        |(index, (planned, column)): (usize, (&raddle_merge::plan::ColumnPlan, &raddle_merge::schema::Column))| {
            let class = &column.model().datatype.class;
            Dataset {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(path: &str, dims: &[u64], chunk_shape: Option<Vec<u64>>) -> Dataset {
        Dataset {
            path: path.to_owned(),
            datatype: "int32 little-endian".to_owned(),
            dims: dims.to_vec(),
            storage: if chunk_shape.is_some() { "chunked" } else { "contiguous" },
            chunk_shape,
            filters: vec![1],
            route: "encoded",
            logical_len_bytes: dims.iter().product::<u64>() * 4,
            rule: None,
        }
    }

    fn summary() -> Summary {
        let datasets = vec![
            dataset("/spill/run", &[9810, 1], Some(vec![9810, 1])),
            dataset("/spill/evt", &[9810, 1], Some(vec![9810, 1])),
            dataset("/rec/empty", &[0, 1], None),
        ];
        Summary {
            inputs: vec![
                Input { path: "a.h5".to_owned(), len_bytes: 2048 },
                Input { path: "b.h5".to_owned(), len_bytes: 2048 },
            ],
            skipped: Vec::new(),
            output: Output {
                logical_len_bytes: 78_480,
                chunks: 2,
                input_chunks: 160,
                groups: 3,
                alignment: None,
                links: 0,
                datasets,
                constants: Vec::new(),
            },
            convention: None,
            differences: Vec::new(),
            bridged: Vec::new(),
            predicted: None,
            scan_s: 0.0,
            elapsed_s: 0.5,
        }
    }

    #[test]
    fn groups_are_summed_up() {
        let expected = "\
2 inputs, 4.00 KiB, 160 chunks
output: 3 datasets in 3 groups (1 empty), 76.6 KiB uncompressed, 2 chunks

 group   datasets  empty   rows  rows per chunk       raw
 /spill         2      0  9,810           9,810  76.6 KiB
 /rec           1      1      0               -       0 B
";
        assert_eq!(summary().text(Detail::Groups), expected);
    }

    #[test]
    fn every_dataset_can_be_listed() {
        let text = summary().text(Detail::Datasets);
        assert!(text.contains("/spill/evt  int32 little-endian  9,810 x 1  chunks of 9,810 x 1"), "{text}");
        assert!(text.contains("contiguous"), "{text}");
    }
}
