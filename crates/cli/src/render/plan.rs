//! A plan as text for people.

use super::table::{CellAlign, Columns};
use super::{differences, escape, quantity};
use raddle::summary::{Convention, SkippedFile, Summary};
use raddle_core::output::stripes::StripeSource;
use raddle_merge::plan::alignment::Alignment;
use raddle_merge::plan::prediction::{Prediction, SHORT_S};
use raddle_merge::plan::regrouping::{RegroupedDataset, scratch_space_len_bytes};
use raddle_merge::schema::parent_path;
use std::collections::HashMap;
use std::path::PathBuf;

/// Level of detail of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// A line per group.
    Groups,
    /// A line per dataset.
    Datasets,
}

impl Detail {
    /// Returns the level at which the layout of `summary` can be checked.
    pub fn of(summary: &Summary) -> Self {
        if summary.is_by_dataset { Self::Datasets } else { Self::Groups }
    }
}

/// Maximum number of groups shown with [`Detail::Groups`], largest first; some files have thousands of groups.
const MAX_TABLE_ROWS: usize = 40;

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

/// Formats the datasets whose chunks are assembled in groups in one line; returns `None` if there are none.
fn regrouped(datasets: &[RegroupedDataset]) -> Option<String> {
    let chunks: u64 = datasets.iter().map(|dataset| dataset.chunks).sum();
    if chunks == 0 {
        return None;
    }
    let mean = |decodes: fn(&RegroupedDataset) -> f64| {
        let decoded: f64 = datasets.iter().map(|dataset| decodes(dataset) * dataset.chunks as f64).sum();
        decoded / chunks as f64
    };
    let scratch_len_bytes = datasets.iter().map(|dataset| dataset.scratch_len_bytes).sum();
    let through = match scratch_len_bytes {
        0 => String::new(),
        _ => format!(
            "; {} go through a scratch file of {}, which more --memory avoids",
            quantity::size(scratch_len_bytes),
            quantity::size(scratch_space_len_bytes(datasets)),
        ),
    };
    Some(format!(
        "regrouped: {} whose input chunks span many output chunks; each is decoded {:.1} times instead of {:.0}{through}",
        quantity::counted(datasets.len() as u64, "dataset"),
        mean(|dataset| dataset.decodes),
        mean(|dataset| dataset.decodes_by_tile),
    ))
}

/// Formats the summary.
pub fn text(summary: &Summary, detail: Detail) -> String {
    let output = &summary.output;
    let input_len_bytes = summary.inputs.iter().map(|input| input.len_bytes).sum();
    let empty = output.datasets.iter().filter(|dataset| dataset.dims.contains(&0)).count() as u64;
    let mut text = format!(
        "{}, {}, {}\n",
        quantity::counted(summary.inputs.len() as u64, "input"),
        quantity::size(input_len_bytes),
        quantity::counted(output.input_chunks, "chunk"),
    );
    if !summary.skipped.is_empty() {
        text.push_str(&format!("left out: {}\n", quantity::counted(summary.skipped.len() as u64, "input")));
        for SkippedFile { path, reason } in &summary.skipped {
            text.push_str(&format!("  {}: {}\n", escape::text(path), escape::text(reason)));
        }
    }
    if let Some(Convention { name, title, because }) = &summary.convention {
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
        Detail::Groups => groups_table(summary),
        Detail::Datasets => datasets_table(summary),
    });
    if let Some(line) = regrouped(&output.regrouped) {
        text.push_str(&format!("\n{line}\n"));
    }
    if let Some(of_output) = &output.alignment {
        text.push_str(&format!("\naligned: {}\n", alignment(of_output)));
    }
    if let Some(predicted) = &summary.predicted {
        text.push_str(&format!("\npredicted: {}\n", prediction(predicted)));
    }
    if !output.constants.is_empty() {
        text.push_str(&format!("\nkept once (equal in all inputs): {}\n", escape::text(&output.constants.join(", "))));
    }
    if !summary.bridged.is_empty() {
        let paths: Vec<PathBuf> = summary.inputs.iter().map(|input| input.path.clone().into()).collect();
        text.push_str(&format!(
            "\n{} that the join bridges\n",
            quantity::counted(summary.bridged.len() as u64, "difference")
        ));
        text.push_str(&differences::table(&summary.bridged, &paths));
    }
    text
}

fn datasets_table(summary: &Summary) -> String {
    let mut titles = vec![
        ("dataset", CellAlign::Left),
        ("type", CellAlign::Left),
        ("shape", CellAlign::Left),
        ("stored", CellAlign::Left),
        ("filters", CellAlign::Left),
        ("raw", CellAlign::Right),
    ];
    let is_decided = summary.output.datasets.iter().any(|dataset| dataset.decided_by.is_some());
    if is_decided {
        titles.push(("decided by", CellAlign::Left));
    }
    let mut columns = Columns::new(&titles);
    let or_dash =
        |text: Option<&str>| text.filter(|text| !text.is_empty()).map_or("-".into(), escape::shorten).into_owned();
    for dataset in &summary.output.datasets {
        let stored = dataset
            .chunk_shape
            .as_ref()
            .map_or(dataset.storage.to_owned(), |shape| format!("chunks of {}", quantity::shape(shape)));
        let mut cells = vec![
            escape::shorten(&dataset.path).into_owned(),
            escape::shorten(&dataset.datatype).into_owned(),
            quantity::shape(&dataset.dims),
            stored,
            or_dash(Some(&dataset.pipeline)),
            quantity::size(dataset.logical_len_bytes),
        ];
        if is_decided {
            cells.push(or_dash(dataset.decided_by.as_deref()));
        }
        columns.row(&cells);
    }
    columns.render()
}

fn groups_table(summary: &Summary) -> String {
    let mut groups = groups(summary);
    let titles = [
        ("group", CellAlign::Left),
        ("datasets", CellAlign::Right),
        ("empty", CellAlign::Right),
        ("rows", CellAlign::Right),
        ("rows per chunk", CellAlign::Right),
        ("raw", CellAlign::Right),
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

fn groups(summary: &Summary) -> Vec<GroupSums> {
    let mut groups: Vec<GroupSums> = Vec::new();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    for dataset in &summary.output.datasets {
        let parent = parent_path(dataset.path.as_bytes());
        let place = *places.entry(parent).or_insert(groups.len());
        if place == groups.len() {
            let path = String::from_utf8_lossy(parent).into_owned();
            groups.push(GroupSums { path, ..GroupSums::default() });
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
/// Sums over the datasets of a group.
#[derive(Debug, Default)]
struct GroupSums {
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

#[cfg(test)]
mod tests {
    use super::*;
    use raddle::summary::{DatasetSummary, Input, OutputSummary};

    fn dataset(path: &str, dims: &[u64], chunk_shape: Option<Vec<u64>>) -> DatasetSummary {
        DatasetSummary {
            path: path.to_owned(),
            datatype: "int32 little-endian".to_owned(),
            dims: dims.to_vec(),
            storage: if chunk_shape.is_some() { "chunked" } else { "contiguous" },
            chunk_shape,
            filters: vec![1],
            pipeline: "deflate 6".to_owned(),
            decided_by: None,
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
            output: OutputSummary {
                logical_len_bytes: 78_480,
                chunks: 2,
                input_chunks: 160,
                groups: 3,
                alignment: None,
                links: 0,
                datasets,
                regrouped: Vec::new(),
                scratch_space_len_bytes: 0,
                constants: Vec::new(),
            },
            convention: None,
            differences: Vec::new(),
            bridged: Vec::new(),
            predicted: None,
            is_by_dataset: false,
            scan_s: 0.0,
            elapsed_s: 0.5,
        }
    }

    #[test]
    fn regrouped_datasets_take_one_line() {
        let dataset = |chunks, decodes, decodes_by_tile, scratch_len_bytes| RegroupedDataset {
            path: "/x".to_owned(),
            chunks,
            decodes,
            decodes_by_tile,
            passes: if scratch_len_bytes > 0 { 2 } else { 1 },
            scratch_len_bytes,
        };
        assert_eq!(regrouped(&[]), None);
        assert_eq!(
            regrouped(&[dataset(400, 1.0, 200.0, 0)]).unwrap(),
            "regrouped: 1 dataset whose input chunks span many output chunks; each is decoded 1.0 times instead of 200"
        );
        // Chunks count, not datasets.
        let two = regrouped(&[dataset(300, 1.0, 10.0, 0), dataset(100, 2.0, 50.0, 3 << 20)]).unwrap();
        assert!(
            two.starts_with("regrouped: 2 datasets") && two.contains("decoded 1.2 times instead of 20; 3.00 MiB"),
            "{two}"
        );
        // One dataset is in the file at a time.
        let both = regrouped(&[dataset(300, 1.0, 10.0, 1 << 20), dataset(100, 1.0, 50.0, 3 << 20)]).unwrap();
        assert!(both.contains("; 4.00 MiB go through a scratch file of 3.00 MiB,"), "{both}");
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
        assert_eq!(text(&summary(), Detail::Groups), expected);
    }

    #[test]
    fn every_dataset_can_be_listed() {
        let text = text(&summary(), Detail::Datasets);
        assert!(text.contains("/spill/evt  int32 little-endian  9,810 x 1  chunks of 9,810 x 1"), "{text}");
        assert!(text.contains("contiguous"), "{text}");
    }
}
