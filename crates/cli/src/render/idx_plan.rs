//! A simulated write of IDX, as data for JSON and as text.

use super::quantity::{counted, seconds, shape, size};
use super::spreads::SpreadTable;
use raddle_idx::write::simulate::{SimulatedMessages, Simulation};
use serde::Serialize;

/// Simulation of one box size.
#[derive(Debug, Serialize)]
pub struct SimulatedBox {
    /// Name of the box size.
    #[serde(rename = "box")]
    pub imposed: String,
    /// Result of the simulation.
    #[serde(flatten)]
    pub simulation: Simulation,
}

/// Planned write of an IDX dataset, with a simulation for each box size.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// Number of ranks along each axis, slowest first.
    pub grid: Vec<u64>,
    /// Number of samples of each rank, slowest axis first.
    pub per_rank: Vec<u64>,
    /// Sample types of the fields.
    pub fields: Vec<String>,
    /// Result for each box size.
    pub boxes: Vec<SimulatedBox>,
}

/// Formats the report: the part shared by all choices, then each of them.
pub fn text(plan: &Plan) -> String {
    let Some(first) = plan.boxes.first().map(|choice| &choice.simulation) else { return String::new() };
    let mut text = format!(
        "{} ({}) with {} samples each: {} in {} of {}\n",
        counted(first.ranks, "rank"),
        shape(&plan.grid),
        shape(&plan.per_rank),
        size(first.sample_len_bytes),
        counted(first.files, "file"),
        counted(first.blocks, "block"),
    );
    plan.boxes.iter().for_each(|choice| text.push_str(&of_choice(choice)));
    text
}

fn of_choice(choice: &SimulatedBox) -> String {
    let simulation = &choice.simulation;
    let mut text = match &simulation.imposed_counts {
        Some(counts) => {
            let mut counts = counts.to_vec();
            while counts.len() > 1 && counts.last() == Some(&1) {
                counts.pop();
            }
            counts.reverse();
            let boxes = counted(simulation.boxes, "box");
            format!(
                "\n{} boxes: {} samples, {boxes} on {}\n",
                choice.imposed,
                shape(&counts),
                counted(simulation.holders, "rank")
            )
        }
        None => "\nwithout restructuring\n".to_owned(),
    };
    let mut table = SpreadTable::new();
    let phases = [("restructure", &simulation.restructure), ("regroup", &simulation.aggregate)];
    for (name, messages) in phases.into_iter().filter(|(_, messages)| messages.rounds > 0) {
        table.count(&format!("{name}: messages"), messages.messages);
        table.bytes(&format!("{name}: bytes sent"), messages.len_bytes);
    }
    table.count("blocks made, by aggregators", simulation.aggregators.blocks);
    table.bytes("their bytes", simulation.aggregators.raw_len_bytes);
    table.bytes("memory: samples", simulation.memory.samples_len_bytes);
    table.bytes("memory: restructured", simulation.memory.restructure_len_bytes);
    table.bytes("memory: blocks", simulation.memory.engine_len_bytes);
    text.push_str(&table.render());
    text.push_str(&format!(
        "{}, imbalance {:.1} % of bytes; ",
        counted(simulation.aggregators.count, "aggregator"),
        simulation.aggregators.raw_len_bytes.imbalance() * 100.0
    ));
    let lengths = phases.into_iter().filter(|(_, messages)| messages.rounds > 0);
    let lengths: Vec<String> = lengths.map(|(name, messages)| format!("{name} {}", lengths_of(messages))).collect();
    text.push_str(&format!("lengths of messages: {}\n", lengths.join("; ")));
    let planner = &simulation.planner;
    let peak = planner.peak_rss_bytes.map(|bytes| format!(", {} resident", size(bytes))).unwrap_or_default();
    text.push_str(&format!(
        "planned here in {}{peak}: restructure {}, blocks {}, messages {}\n",
        seconds(planner.restructure_s + planner.blocks_s + planner.messages_s),
        seconds(planner.restructure_s),
        seconds(planner.blocks_s),
        seconds(planner.messages_s),
    ));
    text
}

/// Formats the median and maximum length of all messages, by powers of two.
fn lengths_of(messages: &SimulatedMessages) -> String {
    let all: u64 = messages.by_log2_len.iter().sum();
    let mut before = 0;
    let median = messages.by_log2_len.iter().position(|count| {
        before += count;
        2 * before >= all
    });
    match (median, messages.by_log2_len.len()) {
        (Some(median), 1..) if all > 0 => {
            format!("half below {}, all below {}", size(2 << median), size(1 << messages.by_log2_len.len()))
        }
        _ => "none".to_owned(),
    }
}
