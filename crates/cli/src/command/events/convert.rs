//! `raddle events convert`: writes events in another layout.

use super::output::{LeftOut, WrittenEvents, chosen, convert_options, open_all, print_needs, shown, write};
use crate::command::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::events::{EventLayoutArgs, SelectionArgs};
use crate::options::inputs::StandardInputArgs;
use crate::options::running::RuntimeArgs;
use crate::ranks::Ranks;
use crate::render::{events, json};
use crate::session::Session;
use raddle::options::Inputs;
use raddle::options::output::check_output;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::{Event, Severity};
use raddle_events::sources::readable::readable;
use raddle_events::{ConvertOptions, EventsError, Source};
use raddle_merge::options::Watch;
use raddle_merge::published_path;
use std::ops::Range;
use std::path::PathBuf;

/// Options of `raddle events convert`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArgs {
    /// Files to convert.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Option for a list on standard input.
    #[command(flatten)]
    pub standard_input: StandardInputArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Range of events, counted from 0 over all inputs: 0..1000, or 1000.. for the rest
    #[arg(
        long, value_name = "A..B", value_parser = parse_range, default_value = "..", hide_default_value = true,
        help_heading = "Inputs"
    )]
    entries: EntryRange,

    /// Leave out products that cannot be read; reads everything twice, and the run then ends with exit code 4
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
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle events convert run1.root -o run1.h5                  a flat array for each leaf, for analysis and GPUs
  raddle events convert *.root -o all.h5 --products 'Muon_*' --products 'nMuon'
  raddle events convert run1.root -o run1.h5 --layout batch --batch 100
  raddle events convert run1.pds -o run1.h5 --layout event --compat cce --codec lz4
  raddle events convert run1.h5 -o run1.pds --layout pds
  raddle events convert run1.root -o new.root --layout rntuple --codec lz4
  mpirun -n 4 raddle events convert *.root -o all.h5          ranks share the work; the bytes are the same

Inputs may be ROOT files (trees, RNTuples), packed data streams and HDF5 files of any of these layouts. Neither ROOT nor \
dictionaries are needed. The output's bytes do not depend on the number of threads and ranks.";

/// Requested range of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryRange {
    start: u64,
    /// End of the range; `None` for the end of the source.
    end: Option<u64>,
}

impl EntryRange {
    /// Resolves the range for a source of `len_entries` events. A start past the end is kept, and reading then refuses
    /// it.
    pub(super) fn of(self, len_entries: u64) -> Range<u64> {
        self.start..self.end.unwrap_or(len_entries.max(self.start))
    }
}

pub(super) fn parse_range(text: &str) -> Result<EntryRange, String> {
    let wrong = || {
        format!(
            "{text:?} is not a range: give the first event and the one after the last, as in 0..1000, or one of them"
        )
    };
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |digits: &str| match digits.trim() {
        "" => Ok(None),
        digits => digits.parse::<u64>().map(Some).map_err(|_| wrong()),
    };
    let (start, end) = (number(start)?.unwrap_or(0), number(end)?);
    if end.is_none_or(|end| start <= end) { Ok(EntryRange { start, end }) } else { Err(wrong()) }
}

/// Collective. Converts the inputs.
pub fn run(arguments: &ConvertArgs, team: &Ranks) -> Result<Exit, Failure> {
    let ConvertArgs { running, .. } = arguments;
    let inputs = team.paths_of_first(|| arguments.standard_input.expand(&arguments.inputs))?;
    let watching =
        Session::start_collective(team, running, "events convert", inputs.iter().chain([&arguments.output]))?;
    watching.conclude(|watch| {
        let written = arguments.convert(&inputs, watch, team.ranks(), team.default_jobs())?;
        if team.leads() {
            running.write_report(&written)?;
            if !running.telling.quiet {
                print(&events::written(&written))?;
            }
        }
        Ok(if written.left_out.is_empty() { Exit::Done } else { Exit::InputsSkipped })
    })
}

impl ConvertArgs {
    /// Collective. Converts the inputs; also warns about everything that is left out.
    ///
    /// # Errors
    /// If an input cannot be read, the layout cannot hold a product, or the output cannot be written.
    pub fn convert(
        &self,
        inputs: &[PathBuf],
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
        cores: usize,
    ) -> Result<WrittenEvents, Failure> {
        let Self { selection, entries, force, layout, running, .. } = self;
        let output = &published_path(&self.output);
        let failed = |error| Failure::of_events(&error, Some(output));
        let opened = check_output(&self.output, inputs, *force)
            .and_then(|()| open_all(inputs, selection, layout).map_err(failed))
            .and_then(|(source, lacking)| Ok((chosen(source.as_ref(), &selection.products, layout)?, source, lacking)));
        let (products, source, lacking) = ranks.agree("open the inputs", opened)?;
        tell(&lacking, watch);
        print_needs(layout, watch, ranks);
        let mut options = convert_options(running, cores);
        options.entries = Some(entries.of(source.len_entries()));
        let bad = match self.skip_bad {
            true => self.bad_products(source.as_ref(), &products, &options, watch, ranks)?,
            false => Vec::new(),
        };
        let is_good = |product: &usize| {
            let name = &source.schema().products[*product].name;
            !bad.iter().any(|left| left.product == *name)
        };
        options.products = Some(products.into_iter().filter(is_good).collect());
        let mut written = write(source.as_ref(), output, *force, layout, options, watch, ranks)?;
        written.left_out = [lacking, bad].concat();
        Ok(written)
    }

    /// Collective. Returns the products that cannot be read; each rank reads some of them.
    fn bad_products(
        &self,
        source: &dyn Source,
        products: &[usize],
        options: &ConvertOptions,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<Vec<LeftOut>, Failure> {
        let own: Vec<usize> = products.iter().skip(ranks.rank()).step_by(ranks.size()).copied().collect();
        let range = self.entries.of(source.len_entries());
        let found = readable(source, &own, range, options.batch_len_bytes, options.jobs, watch.cancel)
            .map_err(|error| Failure::of_events(&error, Some(&self.output)));
        let found = ranks.agree("look for what cannot be read", found)?;
        let left_out = |(product, error): (usize, EventsError)| LeftOut {
            product: source.schema().products[product].name.clone(),
            reason: error.to_string(),
        };
        let own: Vec<LeftOut> = found.bad.into_iter().map(left_out).collect();
        let received =
            ranks.all_gather_bytes(json(&own).as_bytes()).map_err(|error| Failure::of_events(&error.into(), None))?;
        // The message was encoded by `json` on another rank.
        let mut all: Vec<LeftOut> =
            received.iter().flat_map(|text| serde_json::from_slice::<Vec<_>>(text).unwrap_or_default()).collect();
        all.sort_by_key(|left| source.schema().position(&left.product));
        tell(&all, watch);
        Ok(all)
    }
}

/// Warns about products that were left out.
fn tell(left_out: &[LeftOut], watch: &Watch<'_>) {
    for LeftOut { product, reason } in left_out {
        let text = format!("{} is left out: {reason}", shown(product));
        watch.observer.event(&Event::Message { severity: Severity::Warning, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_be_open() {
        let range = |text: &str| parse_range(text).map(|range| range.of(10));
        for (text, expected) in [
            ("2..5", 2..5),
            ("3..", 3..10),
            ("..4", 0..4),
            ("..", 0..10),
            (" 2 .. 2 ", 2..2),
            ("12..", 12..12),
            ("5..99", 5..99),
        ] {
            assert_eq!(range(text), Ok(expected), "{text}");
        }
        for text in ["", "5", "5..3", "a..b", "-1..3", "1..2..3", "1...3", "18446744073709551616.."] {
            assert!(range(text).is_err_and(|why| why.contains("is not a range")), "{text}");
        }
    }
}
