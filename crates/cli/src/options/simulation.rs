//! The machine that `raddle plan --simulate` simulates, given as keys and values on the command line.

use super::io::strategy;
use super::size::Size;
use raddle::Error;
use raddle_merge::Strategy;
use raddle_merge::simulate::{Rates, SimulatedMachine, Statistic};

/// Options of a simulation.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Simulation")]
pub struct SimulationArgs {
    /// Show what each of many ranks would do, without doing it: ranks=1600 files=6400 threads=1 memory=1GiB
    ///
    /// Only ranks is required. The inputs are repeated up to the number of files. Rates are measured on this machine
    /// unless given: narrow-inflate, narrow-deflate, wide-inflate, wide-deflate (uncompressed bytes per second of one
    /// core), read and write (bytes per second of the file system, all ranks together), opens (files opened per second,
    /// all ranks together), network (bytes per second of a rank), message, scan, dataset, chunk (seconds per message,
    /// scanned object, created dataset and indexed chunk). per-machine is the number of ranks that share a machine;
    /// strategy is that of raddle merge.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_delimiter = ',')]
    pub simulate: Vec<String>,

    /// Simulate the published statistics of files instead of inputs: NOvA-FD or NOvA-ND
    #[arg(long, value_name = "NAME", requires = "simulate", conflicts_with = "inputs", conflicts_with = "lists")]
    pub stat: Option<String>,
}

/// Parameters of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulationParameters {
    /// The machine, with default rates where none were given.
    pub machine: SimulatedMachine,
    /// Number of files, if given.
    pub files: Option<u32>,
    /// Strategy for reading the inputs.
    pub strategy: Strategy,
}

impl SimulationArgs {
    /// Returns the requested statistic, if any.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn statistic(&self) -> Result<Option<Statistic>, Error> {
        let Some(name) = &self.stat else { return Ok(None) };
        let known = || Statistic::ALL.map(|statistic| statistic.name).join(", ");
        let found = Statistic::named(name);
        found.map(Some).ok_or_else(|| Error::usage(&format!("unknown statistic {name:?}; available: {}", known())))
    }

    /// Returns the parameters of the simulation, with `rates` as defaults.
    ///
    /// # Errors
    /// If a key or a value is invalid.
    pub fn simulated(&self, rates: Rates) -> Result<SimulationParameters, Error> {
        let machine =
            SimulatedMachine { ranks: 0, threads: 1, ranks_per_machine: 0, memory_limit_bytes: 1 << 30, rates };
        let mut simulated = SimulationParameters { machine, files: None, strategy: Strategy::Auto };
        for pair in &self.simulate {
            let Some((key, value)) = pair.split_once('=') else {
                let failure = Error::usage(&format!("--simulate takes KEY=VALUE, not {pair:?}"));
                return Err(failure.hint("name inputs before --simulate"));
            };
            let refuse = || Error::usage(&format!("--simulate {key}: {value:?} is not a valid value"));
            set(&mut simulated, key, value).ok_or_else(refuse)?;
        }
        if simulated.machine.ranks == 0 {
            return Err(Error::usage("--simulate needs a number of ranks, for example ranks=1600"));
        }
        Ok(simulated)
    }
}

/// Sets one key; `None` if key or value is invalid.
fn set(simulated: &mut SimulationParameters, key: &str, value: &str) -> Option<()> {
    let SimulatedMachine { ranks, threads, ranks_per_machine, memory_limit_bytes, rates } = &mut simulated.machine;
    let count = || value.parse::<u32>().ok().filter(|count| *count > 0);
    let len_bytes = || value.parse::<Size>().ok().map(|size| size.0);
    let rate = || len_bytes().map(|len_bytes| len_bytes as f64);
    let time_s = || value.parse::<f64>().ok().filter(|time_s| time_s.is_finite() && *time_s >= 0.0);
    match key {
        "ranks" => *ranks = count()? as usize,
        "threads" => *threads = count()? as usize,
        "per-machine" => *ranks_per_machine = count()? as usize,
        "files" => simulated.files = Some(count()?),
        "strategy" => simulated.strategy = strategy(value).ok()?,
        "memory" => *memory_limit_bytes = len_bytes()?,
        "narrow-inflate" => rates.narrow_inflate_bytes_per_s = rate()?,
        "narrow-deflate" => rates.narrow_deflate_bytes_per_s = rate()?,
        "wide-inflate" => rates.wide_inflate_bytes_per_s = rate()?,
        "wide-deflate" => rates.wide_deflate_bytes_per_s = rate()?,
        "read" => rates.read_bytes_per_s = Some(rate()?),
        "write" => rates.write_bytes_per_s = Some(rate()?),
        "opens" => rates.opens_per_s = Some(value.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0)?),
        "network" => rates.network_bytes_per_s = rate()?,
        "message" => rates.message_s = time_s()?,
        "scan" => rates.scan_object_s = time_s()?,
        "dataset" => rates.commit_dataset_s = time_s()?,
        "chunk" => rates.commit_chunk_s = time_s()?,
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> Rates {
        Rates {
            narrow_inflate_bytes_per_s: 4e8,
            narrow_deflate_bytes_per_s: 1e8,
            wide_inflate_bytes_per_s: 4e9,
            wide_deflate_bytes_per_s: 4e9,
            read_bytes_per_s: None,
            write_bytes_per_s: None,
            opens_per_s: None,
            network_bytes_per_s: 1e9,
            message_s: 1e-5,
            scan_object_s: 1e-5,
            commit_dataset_s: 1e-5,
            commit_chunk_s: 1e-6,
        }
    }

    fn simulated(pairs: &[&str]) -> Result<SimulationParameters, Error> {
        let simulate = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        SimulationArgs { simulate, stat: None }.simulated(rates())
    }

    #[test]
    fn keys_set_what_they_name() {
        let pairs = ["ranks=1600", "files=6400", "threads=4", "memory=2GiB", "read=100GB", "message=2e-6"];
        let SimulationParameters { machine, files, .. } = simulated(&pairs).unwrap();
        assert_eq!((machine.ranks, machine.threads, files), (1600, 4, Some(6400)));
        assert_eq!((machine.memory_limit_bytes, machine.rates.read_bytes_per_s), (2 << 30, Some(1e11)));
        assert_eq!(machine.rates.message_s, 2e-6);
        assert_eq!(machine.rates.narrow_deflate_bytes_per_s, 1e8);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for pairs in [&["ranks=0"][..], &["ranks=many"], &["files=3"], &["ranks=2", "colour=red"], &["ranks=2", "a.h5"]]
        {
            assert!(simulated(pairs).is_err(), "{pairs:?}");
        }
    }
}
