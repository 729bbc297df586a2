//! `raddle events convert`: events in another layout.

use super::output::{LeftOut, chosen, convert_options, open_all, shown, write};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::events::{EventLayoutArgs, SelectionArgs};
use crate::options::inputs::InputArgs;
use crate::options::running::RunningArgs;
use crate::render::events;
use crate::watching::Watching;
use raddle_events::readable::readable;
use std::ops::Range;
use std::path::PathBuf;

/// Options of `raddle events convert`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArgs {
    #[command(flatten)]
    inputs: InputArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Events with these numbers, counted from 0 over all inputs, for example 0..1000
    #[arg(long, value_name = "A..B", value_parser = parse_range, help_heading = "Inputs")]
    entries: Option<Range<u64>>,

    /// Leave out products that cannot be read, which takes reading everything twice; the run then ends with exit code 4
    #[arg(long, help_heading = "Inputs")]
    skip_bad: bool,

    /// File to write; it appears under this name only when it is complete
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,

    /// Replace the output if it exists
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    layout: EventLayoutArgs,

    #[command(flatten)]
    running: RunningArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events convert run1.root -o run1.h5                  a flat array for each leaf, for analysis and GPUs
  raddle events convert *.root -o all.h5 --products 'Muon_*' --products 'nMuon'
  raddle events convert run1.root -o run1.h5 --layout batch --batch 100
  raddle events convert run1.pds -o run1.h5 --layout event --compat cce --codec lz4
  raddle events convert run1.h5 -o run1.pds --layout pds

Inputs may be ROOT files (trees), packed data streams and HDF5 files of any of these layouts. Neither ROOT nor
dictionaries are needed. The output's bytes do not depend on the number of threads.";

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is no range: give the first event and the one behind the last, as in 0..1000");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |digits: &str| digits.trim().parse::<u64>().map_err(|_| wrong());
    let range = number(start)?..number(end)?;
    if range.start <= range.end { Ok(range) } else { Err(wrong()) }
}

/// Converts.
pub fn run(arguments: &ConvertArgs) -> Result<Exit, Failure> {
    let ConvertArgs { inputs, selection, entries, skip_bad, output, force, layout, running } = arguments;
    let inputs = inputs.expand(&mut std::io::stdin().lock())?;
    let watching = Watching::start(running, "events convert")?;
    watching.conclude(|watch| {
        raddle_merge::check_output(output, &inputs, *force).map_err(|error| Failure::of_merge(&error, &inputs))?;
        let failed = |error| Failure::of_events(&error, Some(output));
        let source = open_all(&inputs, selection, layout).map_err(failed)?;
        let mut options = convert_options(running);
        options.products = Some(chosen(source.as_ref(), &selection.products)?);
        options.entries.clone_from(entries);
        let mut left_out = Vec::new();
        if *skip_bad {
            let products = options.products.take().unwrap_or_default();
            let range = entries.clone().unwrap_or(0..source.len_entries());
            let found = readable(source.as_ref(), &products, range, options.unit_len_bytes, options.jobs, watch.cancel)
                .map_err(failed)?;
            for (product, error) in &found.bad {
                let product = source.schema().products[*product].name.clone();
                watching.warn(&format!("{} is left out: {error}", shown(&product)));
                left_out.push(LeftOut { product, reason: error.to_string() });
            }
            options.products = Some(found.products);
        }
        let mut written = write(source.as_ref(), output, *force, layout, options, watch)?;
        written.left_out = left_out;
        running.write_report(&written)?;
        if !running.telling.quiet {
            print(&events::written(&written))?;
        }
        Ok(if written.left_out.is_empty() { Exit::Done } else { Exit::InputsSkipped })
    })
}
