//! Entry point from command line to exit code: parses, dispatches, reports, and turns a panic into an internal error.

use crate::arguments::{Arguments, Command};
use crate::command;
use crate::exit::Exit;
use crate::kernels;
use crate::options::running::record_invocation;
use crate::print_error::{print_error, render};
use crate::ranks::{self, Ranks, print_from_root};
use crate::signals::OomAbortHandler;
use crate::standard_error;
use crate::versions;
use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser};
use raddle::Error;
use raddle::advice::AvailableOptions;
use raddle_hdf5::child::{self, READER_ARGUMENT};
use raddle_tune::worker::{self, WORKER_ARGUMENT};
use std::ffi::OsString;
use std::path::Path;

/// Runs the command given by `arguments`; the first is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments = with_help_option(arguments.into_iter().collect());
    if arguments.get(1).is_some_and(|first| first == READER_ARGUMENT) {
        return serve_reader();
    }
    if arguments.get(1).is_some_and(|first| first == WORKER_ARGUMENT) {
        return serve_worker(arguments.get(2).map(Path::new));
    }
    record_invocation(&arguments);
    let abort = OomAbortHandler::watch();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = abort.as_ref().inspect(|abort| abort.no_longer());
        report_panic(panic);
    }));
    guard(|| match Arguments::try_parse_from(&arguments) {
        Ok(Arguments { command: Some(command), .. }) => carry_out(command, arguments.get(1..).unwrap_or_default()),
        Ok(Arguments { verbose, command: None, .. }) => print_version(verbose),
        Err(error) => print_usage(&error, arguments.get(1..).unwrap_or_default()),
    })
    .unwrap_or(Exit::Internal)
}

/// Returns the command line with `help COMMAND…` as `COMMAND… --help`.
fn with_help_option(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

/// Returns the result of `work`; `None` after a panic, which is an internal error already reported by the hook.
fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    // After a panic, no state of `work` is used again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

/// Prints the version, or all that is known of this build.
fn print_version(is_verbose: bool) -> Exit {
    let text = if is_verbose { versions::verbose() } else { versions::brief() };
    let mut exit = Exit::Done;
    print_from_root(|| exit = command::print(&text).map_or_else(|failure| print_error(&failure), |()| Exit::Done));
    exit
}

/// Executes a command with the ranks that were started for it and returns its exit code; `words` is its command line.
fn carry_out(command: Command, words: &[OsString]) -> Exit {
    let answers_json = answers_json(words);
    // Defined before the run: after a failed allocation, the deep stack that this needs may not be available.
    let (name, definition) = command_of(words);
    match Ranks::gather(&name, command.rank_use()) {
        Ok(team) => {
            let offered = |failure: Error| failure.offered_by(&available_options(&definition));
            let result = guard(|| dispatch(command, &team).map_err(offered));
            team.end(result, answers_json)
        }
        Err(failure) => {
            print_from_root(|| {
                ranks::answer(answers_json, &failure.json());
                standard_error::print(format_args!("{}", render(&failure)));
            });
            failure.exit
        }
    }
}

/// Looks up the command with which `words`, the command line without the program's name, begins; returns its name, such
/// as `keys add`, and its definition.
fn command_of(words: &[OsString]) -> (String, clap::Command) {
    let (mut names, mut command) = (Vec::new(), Arguments::command());
    for word in words {
        let Some(inner) = word.to_str().and_then(|word| command.find_subcommand(word)) else { break };
        command = inner.clone();
        names.push(command.get_name().to_owned());
    }
    (names.join(" "), command)
}

/// Returns the options of a command.
fn available_options(command: &clap::Command) -> AvailableOptions {
    let values = |argument: &clap::Arg| match argument.get_action().takes_values() {
        true => argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        false => Vec::new(),
    };
    let options = command.get_arguments().filter_map(|argument| Some((argument.get_long()?, argument)));
    AvailableOptions::new(options.map(|(name, argument)| (name.to_owned(), values(argument))))
}

/// Reads one untrusted file with libhdf5 for the parent process; this process may crash.
fn serve_reader() -> Exit {
    // The parent notices a failure by the closed socket and reports it.
    child::serve().map_or(Exit::Internal, |()| Exit::Done)
}

/// Executes one measured run for the parent process.
fn serve_worker(file: Option<&Path>) -> Exit {
    let serve = || {
        let request = worker::request(file)?;
        match request.kernel.local_processes() {
            Some(_) => kernels::serve(&request, file),
            None => worker::serve(&request, file),
        }
    };
    // The parent reports the failure: it prints standard error of a worker that sends no answer.
    serve().map_or_else(|error| print_error(&Error::of_tune(&error)), |()| Exit::Done)
}

fn dispatch(command: Command, team: &Ranks) -> Result<Exit, Error> {
    let out = &mut anstream::stdout();
    match command {
        Command::Plan(arguments) => command::plan::run(&arguments, team),
        Command::Merge(arguments) => command::merge::run(&arguments, team),
        Command::Append(arguments) => command::append::run(&arguments, team),
        Command::Rechunk(arguments) => command::rechunk::run(&arguments, team),
        Command::Split(arguments) => command::split::run(&arguments, team),
        Command::Select(arguments) => command::select::run(&arguments, team),
        Command::Verify(arguments) => command::verify::run(&arguments, team),
        Command::Inspect(arguments) => command::inspect::run(&arguments, team),
        Command::Index(arguments) => command::index::run(&arguments, team),
        Command::Sql(_) => command::sql::run(),
        Command::Keys { command } => command::keys::run(&command, team),
        Command::Idx { command } => command::idx::run(&command, team),
        Command::Events { command } => command::events::run(&command, team),
        Command::Bench(arguments) => command::bench::run(&arguments),
        Command::Tune(arguments) => command::tune::run(&arguments),
        Command::Apply(arguments) => command::apply::run(&arguments),
        Command::Report(arguments) => command::report::run(&arguments),
        Command::Demo(arguments) => command::demo::run(&arguments),
        Command::Doctor(arguments) => command::doctor::run(&arguments, team),
        Command::SelfTest(arguments) => command::self_test::run(&arguments),
        Command::Completions(arguments) => command::completions::run(&arguments, Arguments::command(), out),
        Command::Man(arguments) => command::man::run(&arguments, Arguments::command()),
        Command::Licenses => command::licenses::run(out),
    }
}

/// Returns whether the command should answer with JSON.
fn answers_json(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Prints help, version or a usage error.
fn print_usage(error: &clap::Error, words: &[OsString]) -> Exit {
    print_from_root(|| {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let mut failure = Error::usage(message);
        let advice = advice_on_usage(error, words);
        if let Some(advice) = advice {
            failure = failure.hint(advice);
        }
        ranks::answer(error.use_stderr() && answers_json(words), &failure.json());
        // If standard output and error are gone, nothing can be printed; the exit code still indicates the error.
        error.print().unwrap_or_default();
        if let Some(advice) = advice {
            standard_error::print_line(format_args!("\n\x1b[1mwhat to do:\x1b[0m {advice}"));
        }
    });
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

/// Returns advice on words that a command does not take, but that belong to one of its options.
fn advice_on_usage(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    let found = error.get(ContextKind::InvalidArg)?.to_string();
    if error.kind() != ErrorKind::UnknownArgument || found.starts_with('-') {
        return None;
    }
    match words.first()?.to_str()? {
        "verify" => Some("name the inputs after --against: raddle verify all.h5 --against run*.h5"),
        "apply" => Some(command::apply::BEFORE_PROGRAM),
        _ => None,
    }
}

fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
    let what = panic.payload_as_str().unwrap_or("unknown cause");
    let failure = Error::new(Exit::Internal, &format!("internal error: {what}{place}"));
    let failure = failure.hint("this is a defect of raddle; please report it with the command line and this message");
    standard_error::print(format_args!("{}", render(&failure)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        assert_eq!(guard(|| Exit::Done), Some(Exit::Done));
        let result = guard(|| -> Result<Exit, Error> { panic!("a defect") });
        assert_eq!(Ranks::alone().end(result, false).code(), 1);
    }

    #[test]
    fn advice_is_restricted_to_options_of_the_command() {
        let advice = raddle::advice::Advice::one_of(&["--skip-bad", "--scalars stack", "--again"]);
        let text = |command: &str| {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            advice.clone().offered_by(&available_options(&command_of(&words).1)).text().unwrap_or_default()
        };
        assert_eq!(text("merge"), "--skip-bad, or --scalars stack");
        assert_eq!(text("append"), "--skip-bad, or --again");
        assert_eq!(text("verify"), "--skip-bad, or --scalars stack");
        assert_eq!((text("rechunk").as_str(), text("keys sort").as_str()), ("--skip-bad", ""));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
