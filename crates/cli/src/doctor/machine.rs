//! The sections about processor and memory, with the defaults that follow from them.

use super::{Check, Section};
use crate::exit::Exit;
use crate::ranks::Ranks;
use crate::render::{escape, quantity};
use clap::Parser;
use raddle::options::ExecutionOptions;
use raddle_core::machine::{self, Cores, Memory};
use raddle_merge::options::MergeOptions;

/// Options of a command that processes data, parsed from an empty command line: the environment and the defaults
/// remain.
#[derive(clap::Parser)]
#[command(name = "raddle", no_binary_name = true)]
struct Defaults {
    #[command(flatten)]
    execution: ExecutionOptions,
}

/// Returns the options of a merge without options on its command line.
///
/// # Errors
/// If an environment variable is not valid. The text names it and the reason.
fn defaults(default_jobs: usize) -> Result<MergeOptions, String> {
    let parsed = Defaults::try_parse_from(std::iter::empty::<&str>()).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })?;
    let mut options = MergeOptions::new("");
    parsed.execution.apply(&mut options, default_jobs);
    Ok(options)
}

/// Creates the check of a variable with which every command fails.
fn refused(name: &str, complaint: &str) -> Check {
    Check::broken(name, escape::text(complaint), Exit::Usage)
        .remedy("correct or unset RADDLE_JOBS and RADDLE_MEMORY in the environment")
}

/// Makes the section about the processor.
pub(super) fn processor(team: &Ranks) -> Section {
    let (model, cores) = (machine::processor(), machine::cores());
    let mut checks = vec![Check::ok("model", escape::text(&model)).value(model)];
    checks.extend(of_cores(&cores));
    let is_set = std::env::var_os("RADDLE_JOBS").is_some();
    checks.push(match defaults(team.default_jobs()) {
        Ok(options) => {
            let (jobs, whence) = (options.jobs as u64, if is_set { "RADDLE_JOBS" } else { "default" });
            Check::ok("--jobs", format!("{} by {whence}", quantity::counted(jobs, "thread"))).value(jobs)
        }
        Err(complaint) => refused("--jobs", &complaint),
    });
    Section::new("processor", checks)
}

fn of_cores(cores: &Cores) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(online) = cores.online {
        checks.push(Check::ok("cores", quantity::count(online.into())).value(online));
    }
    match (cores.bound, cores.online) {
        (Some(bound), Some(online)) if bound < online => {
            let found = format!("bound to {} of them", quantity::count(bound.into()));
            checks.push(Check::note("affinity", found).value(bound));
        }
        (Some(bound), _) => checks.push(Check::ok("affinity", "all of them").value(bound)),
        (None, _) => {}
    }
    if let Some(quota) = cores.quota {
        let found = format!("the time of {} cores, by the control group", quantity::number(quota));
        checks.push(Check::note("quota", found).value(quota));
    }
    checks
}

/// Makes the section about memory.
pub(super) fn memory() -> Section {
    let memory = machine::memory();
    let mut checks = of_memory(&memory);
    let is_set = std::env::var_os("RADDLE_MEMORY").is_some();
    checks.push(match defaults(1) {
        Ok(options) => of_budget(options.memory_limit_bytes, is_set, &memory),
        Err(complaint) => refused("--memory", &complaint),
    });
    Section::new("memory", checks)
}

fn of_memory(memory: &Memory) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(total_bytes) = memory.total_bytes {
        checks.push(Check::ok("total", quantity::size(total_bytes)).value(total_bytes));
    }
    if let Some(available_bytes) = memory.available_bytes {
        checks.push(Check::ok("available", quantity::size(available_bytes)).value(available_bytes));
    }
    checks.push(match (memory.limit_bytes, memory.used_bytes) {
        (None, _) => Check::ok("limit", "none by a control group"),
        (Some(limit_bytes), used_bytes) => {
            let used = used_bytes.map(|used_bytes| format!(", of which {} are used", quantity::size(used_bytes)));
            let found = format!("{} by the control group{}", quantity::size(limit_bytes), used.unwrap_or_default());
            Check::note("limit", found).value(limit_bytes)
        }
    });
    checks
}

/// Describes the memory that a merge takes for buffers, and whether there is room for it.
fn of_budget(budget_bytes: u64, is_set: bool, memory: &Memory) -> Check {
    let within_limit =
        memory.limit_bytes.map(|limit_bytes| limit_bytes - memory.used_bytes.unwrap_or(0).min(limit_bytes));
    let room_bytes = [memory.available_bytes, within_limit].into_iter().flatten().min();
    let whence = if is_set { "RADDLE_MEMORY" } else { "default" };
    let found = format!("{} for buffers by {whence}", quantity::size(budget_bytes));
    match room_bytes {
        Some(room_bytes) if room_bytes < budget_bytes => {
            // Metadata and code need the other half.
            let less_mib = ((room_bytes / 2) >> 20).max(1);
            Check::note("--memory", format!("{found}, but only {} are free", quantity::size(room_bytes)))
                .remedy(&format!("export RADDLE_MEMORY={less_mib}MiB"))
        }
        _ => Check::ok("--memory", found),
    }
    .value(budget_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn limits_on_cores_are_noted() {
        let free = Cores { online: Some(4), bound: Some(4), quota: None };
        assert!(of_cores(&free).iter().all(|check| check.mark == Mark::Ok));
        let limited = of_cores(&Cores { bound: Some(1), quota: Some(1.5), ..free });
        let found: Vec<&str> = limited.iter().map(|check| check.found.as_str()).collect();
        assert_eq!(found, ["4", "bound to 1 of them", "the time of 1.5 cores, by the control group"]);
        assert!(of_cores(&Cores::default()).is_empty());
    }

    #[test]
    fn a_budget_beyond_the_free_memory_is_noted() {
        let memory = |available_bytes, limit_bytes, used_bytes| Memory {
            total_bytes: Some(8 << 30),
            available_bytes: Some(available_bytes),
            limit_bytes,
            used_bytes,
        };
        let mark = |memory| of_budget(1 << 30, false, &memory).mark;
        assert_eq!(mark(memory(2 << 30, None, None)), Mark::Ok);
        assert_eq!(mark(memory(1 << 29, None, None)), Mark::Note);
        assert_eq!(mark(memory(2 << 30, Some(2 << 30), Some(1 << 20))), Mark::Ok);
        // The use may be higher than the limit for a moment.
        assert_eq!(mark(memory(2 << 30, Some(2 << 30), Some(3 << 30))), Mark::Note);
        assert_eq!(mark(Memory::default()), Mark::Ok);
        let check = of_budget(1 << 30, true, &memory(1 << 29, None, None));
        assert_eq!(check.found, "1.00 GiB for buffers by RADDLE_MEMORY, but only 512 MiB are free");
        assert_eq!(check.remedy.as_deref(), Some("export RADDLE_MEMORY=256MiB"));
    }

    #[test]
    fn the_defaults_are_those_of_a_merge() {
        let options = defaults(3).unwrap();
        if std::env::var_os("RADDLE_JOBS").is_none() {
            assert_eq!(options.jobs, 3);
        }
        if std::env::var_os("RADDLE_MEMORY").is_none() {
            assert_eq!(options.memory_limit_bytes, MergeOptions::new("").memory_limit_bytes);
        }
    }
}
