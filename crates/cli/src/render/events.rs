//! Events as text: written files, contents of files, measurements.

use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle_events::ConversionReport;
use raddle_events::formats::WrittenEvents;
use raddle_events::request::{EventsInspection, MeasuredConversion};

/// Formats the result of a conversion or merge.
pub fn written(written: &WrittenEvents) -> String {
    let (events, products) =
        (quantity::counted(written.events, "event"), quantity::counted(written.products, "product"));
    let mut text = format!("{}: {events} of {products}, layout {}", escape::path(&written.output), written.layout);
    let size = quantity::size(written.len_bytes);
    match (written.datasets, written.chunks) {
        (Some(datasets), Some(chunks)) => {
            let (datasets, chunks) = (quantity::counted(datasets, "dataset"), quantity::counted(chunks, "chunk"));
            text.push_str(&format!("\n  {size} in {datasets}, {chunks}"));
        }
        _ => text.push_str(&format!("\n  {size}")),
    }
    let elapsed_s = written.converted.elapsed_s;
    let raw = written.converted.block_len_bytes;
    text.push_str(&format!(", {}", quantity::seconds(elapsed_s)));
    if raw > 0 {
        text.push_str(&format!(" ({} of {} in memory)", quantity::rate(raw, elapsed_s), quantity::size(raw)));
    }
    text.push('\n');
    if !written.left_out.is_empty() {
        let count = quantity::counted(written.left_out.len() as u64, "product");
        text.push_str(&format!("  {count} left out\n"));
    }
    text
}

/// Formats the contents of a file.
pub fn inspection(inspection: &EventsInspection) -> String {
    let mut text = format!(
        "{}: {}\n  {} of {}, {} an event in memory\n",
        escape::text(&inspection.file),
        escape::text(&inspection.format),
        quantity::counted(inspection.events, "event"),
        quantity::counted(inspection.products.len() as u64, "product"),
        quantity::size(inspection.mean_len_bytes),
    );
    let has_sizes = inspection.products.iter().any(|product| product.len_bytes.is_some());
    let mut titles = vec![("product", CellAlign::Left), ("class", CellAlign::Left), ("type", CellAlign::Left)];
    if has_sizes {
        titles.extend([("mean", CellAlign::Right), ("share", CellAlign::Right)]);
    }
    let mut columns = Columns::new(&titles);
    let total: u64 = inspection.products.iter().filter_map(|product| product.len_bytes).sum();
    for inspected in &inspection.products {
        let mut cells = vec![
            escape::text(&inspected.product.name).into_owned(),
            escape::text(&inspected.product.class).into_owned(),
            escape::text(&inspected.r#type).into_owned(),
        ];
        if has_sizes {
            let len_bytes = inspected.len_bytes.unwrap_or(0);
            cells.push(quantity::size(len_bytes / inspection.events.max(1)));
            cells.push(quantity::share(len_bytes, total));
        }
        columns.row(&cells);
    }
    if !columns.is_empty() {
        text.push_str(&columns.render());
    }
    for inspected in &inspection.products {
        if let Some(why) = &inspected.as_bytes {
            let (name, why) = (escape::text(&inspected.product.name), escape::text(why));
            text.push_str(&format!("{name} is read as bytes: {why}\n"));
        }
    }
    for path in &inspection.unread {
        text.push_str(&format!("not read: {}\n", escape::text(path)));
    }
    text
}

/// Formats the table of a measurement.
pub fn bench(measured: &[MeasuredConversion]) -> String {
    let titles = [
        ("layout", CellAlign::Left),
        ("threads", CellAlign::Right),
        ("time", CellAlign::Right),
        ("events/s", CellAlign::Right),
        ("in memory", CellAlign::Right),
        ("file", CellAlign::Right),
        ("read", CellAlign::Right),
        ("prepare", CellAlign::Right),
        ("encode", CellAlign::Right),
        ("write", CellAlign::Right),
        ("metadata", CellAlign::Right),
        ("other", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    for MeasuredConversion { sink, number_of_ranks, threads, len_bytes, converted } in measured {
        let elapsed_s = converted.elapsed_s;
        let all_s = elapsed_s * (number_of_ranks * threads) as f64;
        let share = |part_s: f64| format!("{:.0} %", 100.0 * part_s / all_s.max(f64::MIN_POSITIVE));
        let ConversionReport { read_s, prepare_s, encode_s, commit_s, metadata_s, .. } = *converted;
        let known_s = read_s + prepare_s + encode_s + commit_s + metadata_s;
        columns.row(&[
            sink.clone(),
            threads.to_string(),
            quantity::seconds(elapsed_s),
            quantity::count((converted.entries as f64 / elapsed_s.max(f64::MIN_POSITIVE)) as u64),
            quantity::rate(converted.block_len_bytes, elapsed_s),
            if *len_bytes == 0 { "-".to_owned() } else { quantity::size(*len_bytes) },
            share(read_s),
            share(prepare_s),
            share(encode_s),
            share(commit_s),
            share(metadata_s),
            share((all_s - known_s).max(0.0)),
        ]);
    }
    columns.render() + &ranks(measured)
}

/// Formats the work of each rank; empty for a single rank.
fn ranks(measured: &[MeasuredConversion]) -> String {
    let titles = [
        ("layout", CellAlign::Left),
        ("threads", CellAlign::Right),
        ("rank", CellAlign::Right),
        ("events", CellAlign::Right),
        ("read", CellAlign::Right),
        ("prepare", CellAlign::Right),
        ("encode", CellAlign::Right),
        ("write", CellAlign::Right),
        ("messages", CellAlign::Right),
        ("of its time", CellAlign::Right),
    ];
    let mut columns = Columns::new(&titles);
    let rows = measured.iter().flat_map(|case| case.converted.ranks.iter().enumerate().map(move |rank| (case, rank)));
    let mut has_rows = false;
    for (MeasuredConversion { sink, threads, .. }, (rank, work)) in rows {
        has_rows = true;
        columns.row(&[
            sink.clone(),
            threads.to_string(),
            rank.to_string(),
            quantity::count(work.entries),
            quantity::seconds(work.read_s),
            quantity::seconds(work.prepare_s),
            quantity::seconds(work.encode_s),
            quantity::seconds(work.commit_s),
            quantity::seconds(work.message_s),
            format!("{:.0} %", 100.0 * work.message_s / work.elapsed_s.max(f64::MIN_POSITIVE)),
        ]);
    }
    if has_rows { format!("\n{}", columns.render()) } else { String::new() }
}
