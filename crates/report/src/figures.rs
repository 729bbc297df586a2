//! Figures of a run and of its output file.

use crate::histogram::histogram;
use crate::phases;
use crate::quantity;
use crate::run::{DatasetResult, FileResult, Run};
use crate::svg::{Anchor, COLOURS, Figure, WIDTH};
use std::collections::BTreeMap;

/// Maximum number of ranks with a bar each; if there are more, an even selection by time is shown.
const MAX_RANKS: usize = 48;
/// Maximum number of bars in a list.
const MAX_BARS: usize = 20;
/// Maximum number of groups, and of datasets per group, with a box each.
const MAX_BOXES: usize = 12;

/// Returns all figures of `run` and, if available, its output file.
pub fn all(run: &Run, file: Option<&FileResult>) -> Vec<Figure> {
    let of_file = file.map(|file| [sizes(file), chunks(file), ratios(file)]);
    let of_run = [stages(run), phases::messages(run), phases::memory(run)];
    of_run.into_iter().chain(of_file.into_iter().flatten()).flatten().collect()
}

/// Returns the names of stages in order of their first appearance in a run.
fn stage_names(run: &Run) -> Vec<&str> {
    let mut names = Vec::new();
    for stage in run.all_stages() {
        if !names.contains(&stage.stage.as_str()) {
            names.push(stage.stage.as_str());
        }
    }
    const ORDER: [&str; 12] = [
        "scan",
        "plan",
        "create",
        "keys",
        "read",
        "decode",
        "restructure",
        "regroup",
        "encode",
        "place",
        "commit",
        "verify",
    ];
    names.sort_by_key(|name| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
    names
}

/// Draws the time per stage, as a stacked bar per rank.
pub fn stages(run: &Run) -> Option<Figure> {
    let names = stage_names(run);
    let mut ranks: BTreeMap<u32, BTreeMap<&str, f64>> = BTreeMap::new();
    for stage in run.all_stages() {
        *ranks.entry(stage.rank).or_default().entry(&stage.stage).or_default() += stage.wall_s.max(0.0);
    }
    let total = |stages: &BTreeMap<&str, f64>| stages.values().sum::<f64>();
    let longest = ranks.values().map(total).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let count = ranks.len();
    let mut rows: Vec<(u32, BTreeMap<&str, f64>)> = ranks.into_iter().collect();
    let mut caption = "Time that the threads of each rank spent in each stage, summed over threads.".to_owned();
    if count > MAX_RANKS {
        rows.sort_by(|a, b| total(&b.1).total_cmp(&total(&a.1)));
        rows = (0..MAX_RANKS).map(|at| rows[at * (count - 1) / (MAX_RANKS - 1)].clone()).collect();
        caption.push_str(&format!(
            " {MAX_RANKS} of {} ranks, from the busiest to the least busy.",
            quantity::count(count as u64)
        ));
    }
    let mut figure = Figure::new("stages", "Time by stage", caption);
    let (left, right) = (if count > 1 { 72.0 } else { 0.0 }, WIDTH - 80.0);
    let height = if rows.len() > 16 { 10.0 } else { 22.0 };
    for (at, (rank, stages)) in rows.iter().enumerate() {
        let (mut x, y) = (left, at as f64 * (height + 4.0));
        for (place, name) in names.iter().enumerate() {
            let Some(&wall_s) = stages.get(name) else { continue };
            let width = wall_s / longest * (right - left);
            let what = format!(
                "{name}: {} ({:.0} %)",
                quantity::seconds(wall_s),
                100.0 * wall_s / total(stages).max(f64::MIN_POSITIVE)
            );
            figure.rectangle([x, y, width, height], COLOURS[place % COLOURS.len()], &what);
            x += width;
        }
        let foot = y + height / 2.0 + 4.0;
        if count > 1 {
            figure.text(0.0, foot, Anchor::Start, 70.0, &format!("rank {rank}"));
        }
        figure.text(WIDTH, foot, Anchor::End, 80.0, &quantity::seconds(total(stages)));
    }
    let entries: Vec<(String, &str)> =
        names.iter().enumerate().map(|(place, name)| ((*name).to_owned(), COLOURS[place % COLOURS.len()])).collect();
    figure.legend(&entries);
    Some(figure)
}

/// Draws where the file's bytes are: file, groups and datasets as boxes whose heights are their shares.
pub fn sizes(file: &FileResult) -> Option<Figure> {
    const HEIGHT: f64 = 400.0;
    let mut groups: BTreeMap<&str, Vec<&DatasetResult>> = BTreeMap::new();
    for dataset in file.user_datasets().filter(|dataset| dataset.stored_len_bytes > 0) {
        let group = dataset.path.rsplit_once('/').map_or("", |(group, _)| group);
        groups.entry(if group.is_empty() { "/" } else { group }).or_default().push(dataset);
    }
    let whole = file.file_len_bytes.max(file.stored_len_bytes);
    if groups.is_empty() || whole == 0 {
        return None;
    }
    let stored = |datasets: &[&DatasetResult]| datasets.iter().map(|dataset| dataset.stored_len_bytes).sum::<u64>();
    let mut groups: Vec<(&str, Vec<&DatasetResult>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, datasets)| std::cmp::Reverse(stored(datasets)));
    let mut figure = Figure::new(
        "sizes",
        "Where the bytes are",
        "The file, its groups and their datasets; heights are proportional to stored bytes.".to_owned(),
    );
    let column = WIDTH / 3.0;
    let mut add = |level: usize, from: u64, len_bytes: u64, colour: &str, name: &str| {
        let (y, height) = (from as f64 / whole as f64 * HEIGHT, len_bytes as f64 / whole as f64 * HEIGHT);
        let what = format!("{name}: {} ({})", quantity::size(len_bytes), quantity::share(len_bytes, whole));
        let x = level as f64 * column;
        figure.rectangle([x, y, column - 2.0, (height - 1.0).max(0.3)], colour, &what);
        if height >= 14.0 {
            figure.coloured_text([x + 4.0, y + 12.0], Anchor::Start, column - 8.0, name, "#000");
        }
        if height >= 30.0 {
            figure.coloured_text([x + 4.0, y + 27.0], Anchor::Start, column - 8.0, &quantity::size(len_bytes), "#000");
        }
    };
    const DATA: &str = "#a9c6e0";
    const OTHERS: &str = "#c4c4c4";
    let data: u64 = groups.iter().map(|(_, datasets)| stored(datasets)).sum();
    add(0, 0, data.min(whole), DATA, "data");
    let provenance_len_bytes = file.provenance_len_bytes().min(whole - data.min(whole));
    if provenance_len_bytes > 0 {
        add(0, data.min(whole), provenance_len_bytes, OTHERS, "provenance (/_raddle)");
    }
    let others = data.min(whole) + provenance_len_bytes;
    add(0, others, whole - others, OTHERS, "metadata and gaps");
    let mut from = 0;
    for (place, (name, datasets)) in groups.iter().enumerate() {
        let len_bytes = stored(datasets);
        if place == MAX_BOXES {
            add(1, from, data - from, OTHERS, "other groups");
            break;
        }
        let colour = ["#f0b9a3", "#a8dccd", "#e6cf94", "#cfb3dd"][place % 4];
        add(1, from, len_bytes, colour, name);
        let mut largest = datasets.clone();
        largest.sort_by_key(|dataset| std::cmp::Reverse(dataset.stored_len_bytes));
        let mut within = from;
        for (at, dataset) in largest.iter().enumerate() {
            if at == MAX_BOXES {
                add(2, within, from + len_bytes - within, OTHERS, "others");
                break;
            }
            let name = dataset.path.rsplit('/').next().unwrap_or_default();
            add(2, within, dataset.stored_len_bytes, colour, name);
            within += dataset.stored_len_bytes;
        }
        from += len_bytes;
    }
    Some(figure)
}

/// Draws the number of chunks by size.
pub fn chunks(file: &FileResult) -> Option<Figure> {
    let caption = "Chunks by size, from each power of two to the next: before compression, and as stored.".to_owned();
    let series = [(&file.chunks.by_logical_len[..], "before compression"), (&file.chunks.by_stored_len[..], "stored")];
    histogram(Figure::new("chunks", "Sizes of chunks", caption), series)
}

/// Draws the compression ratios of the largest datasets.
pub fn ratios(file: &FileResult) -> Option<Figure> {
    let mut largest: Vec<&DatasetResult> =
        file.user_datasets().filter(|dataset| dataset.stored_len_bytes > 0).collect();
    largest.sort_by_key(|dataset| std::cmp::Reverse(dataset.stored_len_bytes));
    let count = largest.len();
    largest.truncate(MAX_BARS);
    let ratio = |dataset: &DatasetResult| dataset.logical_len_bytes as f64 / dataset.stored_len_bytes as f64;
    let most = largest.iter().map(|dataset| ratio(dataset)).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let of = if count > MAX_BARS {
        format!("The {MAX_BARS} of {} datasets", quantity::count(count as u64))
    } else {
        "The datasets".to_owned()
    };
    let caption = format!("{of} with the most stored bytes: uncompressed bytes per stored byte.");
    let mut figure = Figure::new("ratios", "Compression of datasets", caption);
    for (at, dataset) in largest.iter().enumerate() {
        let y = at as f64 * 30.0;
        figure.text(0.0, y + 12.0, Anchor::Start, WIDTH - 150.0, &dataset.path);
        let reported = format!(
            "{} · {}",
            quantity::ratio(dataset.logical_len_bytes, dataset.stored_len_bytes),
            quantity::size(dataset.stored_len_bytes)
        );
        figure.text(WIDTH, y + 12.0, Anchor::End, 150.0, &reported);
        let width = (ratio(dataset) / most * WIDTH).max(1.0);
        figure.rectangle([0.0, y + 16.0, width, 8.0], COLOURS[2], &format!("{}: {reported}", dataset.path));
    }
    Some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Bucket, Chunks, StageResult};

    fn stage(rank: u32, stage: &str, wall_s: f64) -> StageResult {
        StageResult { rank, stage: stage.to_owned(), wall_s, cpu_s: 0.0, bytes: 0, calls: 0 }
    }

    fn widths(figure: &Figure) -> Vec<f64> {
        let text = figure.inline();
        let parts = text
            .split("<rect ")
            .skip(1)
            .filter_map(|part| part.split("width=\"").nth(1)?.split('"').next()?.parse().ok());
        parts.collect()
    }

    #[test]
    fn bars_are_in_proportion_to_time() {
        let run = Run {
            stages: vec![stage(0, "encode", 3.0), stage(0, "scan", 1.0), stage(1, "encode", 2.0)],
            ..Run::default()
        };
        let figure = stages(&run).unwrap();
        let widths = widths(&figure);
        // The scan comes first although it is reported last; then encoding; then the other rank's encoding; then two of
        // the legend.
        assert_eq!(widths.len(), 5);
        assert!((widths[1] / widths[0] - 3.0).abs() < 0.01 && (widths[2] / widths[0] - 2.0).abs() < 0.01);
        assert!(figure.inline().contains("encode: 3.00 s (75 %)"));
    }

    #[test]
    fn many_ranks_are_thinned_with_a_note() {
        let run =
            Run { stages: (0..1000).map(|rank| stage(rank, "read", f64::from(rank))).collect(), ..Run::default() };
        let figure = stages(&run).unwrap();
        assert_eq!(widths(&figure).len(), MAX_RANKS + 1);
        assert!(figure.caption.contains("48 of 1,000 ranks"));
        let text = figure.inline();
        assert!(text.contains("rank 999<") && text.contains("rank 0<"), "{text}");
    }

    #[test]
    fn a_file_without_data_has_no_figures() {
        assert!(all(&Run::default(), Some(&FileResult::default())).is_empty());
        let negative = Run { stages: vec![stage(0, "read", -1.0)], ..Run::default() };
        assert!(stages(&negative).is_none());
    }

    #[test]
    fn sizes_and_chunks_show_every_byte_and_chunk() {
        let dataset = |path: &str, stored| DatasetResult {
            path: path.to_owned(),
            logical_len_bytes: 2 * stored,
            stored_len_bytes: stored,
        };
        let datasets: Vec<DatasetResult> = (0..40).map(|at| dataset(&format!("/g{}/d{at}", at % 20), 100)).collect();
        let bucket = |from_len_bytes, count| Bucket { from_len_bytes, count };
        let chunks_of =
            Chunks { by_logical_len: vec![bucket(0, 1), bucket(1 << 20, 7)], by_stored_len: vec![bucket(1 << 40, 3)] };
        let file = FileResult { file_len_bytes: 5000, stored_len_bytes: 4000, chunks: chunks_of, datasets };
        let text = sizes(&file).unwrap().inline();
        assert!(text.contains("data: 3.91 KiB (80 %)") && text.contains("metadata and gaps: 1000 B (20 %)"), "{text}");
        assert!(text.contains("other groups: 1.56 KiB (32 %)"), "{text}");
        let text = chunks(&file).unwrap().inline();
        assert!(
            text.contains("before compression, 1.00 MiB or more: 7") && text.contains("stored, 1.00 TiB or more: 3"),
            "{text}"
        );
        let text = ratios(&file).unwrap().inline();
        assert!(text.contains("2.00x · 100 B"));
        // Datasets that raddle records are not the user's.
        let mut recorded = file.clone();
        recorded.datasets.push(dataset("/_raddle/inputs/path", 500));
        let (text, reported) = (ratios(&recorded).unwrap().inline(), sizes(&recorded).unwrap().inline());
        assert!(!text.contains("_raddle") && !reported.contains("inputs"), "{text}\n{reported}");
        assert!(reported.contains("provenance (/_raddle): 500 B (10 %)"), "{reported}");
        assert!(reported.contains("metadata and gaps: 500 B (10 %)"), "{reported}");
    }
}
