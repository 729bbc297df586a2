//! `raddle keys partition`: assigns rows of every table to each of several readers.

use crate::command::print;
use crate::exit::Exit;
use crate::options::keys::KeyedFileArgs;
use crate::options::running::RuntimeArgs;
use crate::render::{escape, keys};
use crate::session::Session;
use raddle::Error;
use raddle_merge::keys::partition::KeyedFile;
use raddle_merge::keys::shared_chunks::shared_chunks;
use raddle_merge::options::MergeOptions;
use raddle_merge::schema::display_path;
use serde::Serialize;
use std::num::NonZeroU64;

/// Options of `raddle keys partition`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PartitionArgs {
    #[command(flatten)]
    keyed: KeyedFileArgs,

    /// Number of readers
    #[arg(short = 'n', long, value_name = "N")]
    size: NonZeroU64,

    /// Print only the share of this reader, counted from 0
    #[arg(long, value_name = "RANK")]
    rank: Option<u64>,

    /// Print how many chunks more than one reader would read, instead of the shares
    #[arg(long, conflicts_with = "rank")]
    chunks: bool,

    /// Print the shares as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    running: RuntimeArgs,
}

const EXAMPLES: &str = "\
Examples:
  raddle keys partition all.h5 -n 8
      the events and rows of each of 8 readers
  raddle keys partition all.h5 -n 1600 --rank 7 --json
      those of one reader, for a program
  raddle keys partition all.h5 -n 1600 --chunks
      the number of chunks read by several readers";

/// Report of a partition.
#[derive(Debug, Serialize)]
struct Shares<'a, T> {
    shares: &'a [T],
}

/// Report of `--chunks`.
#[derive(Debug, Serialize)]
struct Chunks<'a, T> {
    chunks: &'a [T],
}

/// Computes the shares and prints them.
pub fn run(arguments: &PartitionArgs) -> Result<Exit, Error> {
    let size = arguments.size.get();
    let ranks = match arguments.rank {
        Some(rank) if rank >= size => {
            return Err(Error::usage(&format!("--rank {rank}: readers are counted from 0 to {}", size - 1)));
        }
        Some(rank) => rank..rank + 1,
        None => 0..size,
    };
    let mut options = MergeOptions::new("");
    arguments.running.apply(&mut options);
    let session = Session::start(&arguments.running.verbosity, "keys partition", [&arguments.keyed.file])?;
    session.conclude(|watch| {
        let failed = |error| Error::of_merge(&error, std::slice::from_ref(&arguments.keyed.file));
        let file = KeyedFile::open(&arguments.keyed.file, &arguments.keyed.key, &options, watch).map_err(failed)?;
        for group in file.unordered() {
            let group = display_path(group);
            session.warn(&format!(
                "{}: its events do not ascend, so its rows are not divided among readers",
                escape::text(&group)
            ));
        }
        let shares = ranks.map(|rank| file.share(rank, size)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        if arguments.chunks {
            let chunks = shared_chunks(&arguments.keyed.file, &file, &shares, &options, watch).map_err(failed)?;
            arguments.running.write_report(&Chunks { chunks: &chunks })?;
            print(&if arguments.json { crate::render::json(&chunks) } else { keys::shared_chunks(&chunks) })?;
            return Ok(Exit::Done);
        }
        arguments.running.write_report(&Shares { shares: &shares })?;
        print(&if arguments.json { crate::render::json(&shares) } else { keys::shares(&shares) })?;
        Ok(Exit::Done)
    })
}
