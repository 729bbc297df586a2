//! A simulated merge as text.

use super::plan::alignment;
use super::quantity::{count, counted, seconds, size};
use super::spreads::SpreadTable;
use super::table::{CellAlign, Columns};
use raddle_merge::ReadBy;
use raddle_merge::simulate::{Rates, Simulation};

/// Formats the report.
pub fn text(simulation: &Simulation) -> String {
    let mut text = format!("{}\n", shape(simulation));
    if let Some(of_output) = &simulation.alignment {
        text.push_str(&format!("{}\n\n", alignment(of_output)));
    }
    text.push_str(&spreads(simulation));
    text.push_str(&format!("\n{}", loads(simulation)));
    if simulation.machine.ranks > 1 {
        text.push_str(&format!("\n{}", readings(simulation)));
    }
    text.push_str(&format!("\n{}{}", times(simulation), rates(&simulation.machine.rates)));
    text
}

/// Formats the merge and the ranks that it is divided among.
fn shape(simulation: &Simulation) -> String {
    let machine = &simulation.machine;
    let of_merge = format!(
        "{} of {}{}, {} uncompressed, {} × {} = {} pairs ({} with rows)\n",
        counted(simulation.files, "file"),
        size(simulation.input_len_bytes),
        simulation.statistic.map(|name| format!(" (statistics of {name})")).unwrap_or_default(),
        size(simulation.raw_len_bytes),
        count(simulation.files),
        counted(simulation.datasets, "dataset"),
        count(simulation.pairs),
        count(simulation.pairs_with_rows),
    );
    let of_ranks = format!(
        "{} × {}, {} each: {} in {}, {}\n",
        counted(machine.ranks as u64, "rank"),
        counted(machine.threads as u64, "thread"),
        size(machine.memory_limit_bytes),
        counted(simulation.tiles, "tile"),
        if simulation.batches == 1 { "1 batch".to_owned() } else { format!("{} batches", count(simulation.batches)) },
        counted(simulation.rounds, "round"),
    );
    of_merge + &of_ranks
}

/// Formats how evenly the ranks are loaded, and the messages and memory of each.
fn loads(simulation: &Simulation) -> String {
    let ranks = &simulation.ranks;
    let imbalance = format!(
        "imbalance of encode cost: {:.1} % by the rates, {:.1} % as assigned\n",
        ranks.encode_s.imbalance() * 100.0,
        ranks.dealt_cost.imbalance() * 100.0,
    );
    let messages = format!(
        "each rank receives {} of facts and {} of sizes; rank 0 receives {} of claims; {}\n",
        size(simulation.facts_len_bytes),
        size(simulation.sizes_len_bytes),
        size(simulation.claims_len_bytes),
        counted(simulation.collectives, "collective"),
    );
    let buffers = size(simulation.engine_len_bytes);
    format!("{imbalance}{messages}memory of a rank: {buffers} of buffers at most, in addition to the plan\n")
}

/// Formats the time that planning took here, and the time that the merge would take.
fn times(simulation: &Simulation) -> String {
    let Simulation { planner, predicted, .. } = simulation;
    let peak = planner.peak_rss_bytes.map(|bytes| format!(", {} resident", size(bytes))).unwrap_or_default();
    let planned = format!(
        "planned here in {}{peak}: join {}, plan {}, deal {} (inputs made in {})\n",
        seconds(planner.elapsed_s()),
        seconds(planner.join_s),
        seconds(planner.plan_s),
        seconds(planner.deal_s),
        seconds(planner.inputs_s),
    );
    let predicted = format!(
        "predicted: {} = scan {} + gather {} + plan {} + execute {} (including {} of waiting; commit {} in parallel)\n",
        seconds(predicted.elapsed_s),
        seconds(predicted.scan_s),
        seconds(predicted.gather_s),
        seconds(predicted.plan_s),
        seconds(predicted.execute_s),
        seconds(predicted.wait_s),
        seconds(predicted.commit_s),
    );
    planned + &predicted
}

/// Formats the rates that the simulation assumes.
fn rates(rates: &Rates) -> String {
    let rate = |bytes_per_s: f64| format!("{}/s", size(bytes_per_s as u64));
    let bound = |rate_of: Option<f64>| rate_of.map_or("unlimited".to_owned(), rate);
    format!(
        "rates of a core: columns inflate {}, deflate {}; maps inflate {}, deflate {}; file system: read {}, write {}, opens {}\n",
        rate(rates.narrow_inflate_bytes_per_s),
        rate(rates.narrow_deflate_bytes_per_s),
        rate(rates.wide_inflate_bytes_per_s),
        rate(rates.wide_deflate_bytes_per_s),
        bound(rates.read_bytes_per_s),
        bound(rates.write_bytes_per_s),
        rates.opens_per_s.map_or("unlimited".to_owned(), |rate| format!("{}/s", count(rate.round() as u64))),
    )
}

/// Formats the strategies of reading the inputs.
fn readings(simulation: &Simulation) -> String {
    let titles = [
        ("reading", CellAlign::Left),
        ("files per rank", CellAlign::Right),
        ("opens", CellAlign::Right),
        ("sent", CellAlign::Right),
        ("messages", CellAlign::Right),
        ("execute", CellAlign::Right),
        ("", CellAlign::Left),
    ];
    let mut columns = Columns::new(&titles);
    for way in &simulation.readings {
        columns.row(&[
            match way.by {
                ReadBy::Tiles => "by tiles".to_owned(),
                ReadBy::Files => format!("by files, {} ranks together", count(way.ranks_per_group as u64)),
            },
            count(way.inputs.mean.round() as u64),
            count(way.opens),
            size(way.sent_len_bytes),
            count(way.messages),
            seconds(way.execute_s),
            if way.is_chosen { "chosen".to_owned() } else { String::new() },
        ]);
    }
    columns.render()
}

/// Formats the minimum, mean and maximum work of ranks.
fn spreads(simulation: &Simulation) -> String {
    let ranks = &simulation.ranks;
    let mut table = SpreadTable::new();
    table.count("tiles", ranks.tiles);
    table.count("pieces read", ranks.pieces);
    table.count("files read", ranks.inputs);
    table.bytes("bytes read", ranks.read_len_bytes);
    table.bytes("bytes encoded, uncompressed", ranks.raw_len_bytes);
    table.row("decode and encode", ranks.encode_s, seconds);
    table.render()
}
