//! From the command line to the exit code: parses, dispatches, reports, and turns a panic into an internal error.

use crate::arguments::{Arguments, Command};
use crate::command;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::signals::AbortIsMemory;
use clap::Parser;
use raddle_hdf5::child::{self, READER_ARGUMENT};
use std::ffi::OsString;

/// Runs the command that `arguments` (the first is the program's name) ask for.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == READER_ARGUMENT) {
        return serve_reader();
    }
    let abort = AbortIsMemory::watch();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = abort.as_ref().inspect(|abort| abort.no_longer());
        tell_panic(panic);
    }));
    guard(|| match Arguments::try_parse_from(arguments) {
        Ok(arguments) => conclude(dispatch(arguments.command)),
        Err(error) => tell_usage(&error),
    })
}

/// The exit code of `work`; a panic is an internal error, already told by the hook.
fn guard(work: impl FnOnce() -> Exit) -> Exit {
    // After a panic nothing of `work` is looked at again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(Exit::Internal)
}

/// Reads one untrusted file with libhdf5 for the process that started this one, and may die over it.
fn serve_reader() -> Exit {
    // The parent hears of a failure by the closed socket and says what there is to say.
    child::serve().map_or(Exit::Internal, |()| Exit::Done)
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    let out = &mut anstream::stdout();
    match command {
        Command::Plan(arguments) => command::plan::run(&arguments),
        Command::Merge(arguments) => command::merge::run(&arguments),
        Command::Append(arguments) => command::append::run(&arguments),
        Command::Rechunk(arguments) => command::rechunk::run(&arguments),
        Command::Verify(arguments) => command::verify::run(&arguments),
        Command::Inspect(arguments) => command::inspect::run(&arguments),
        Command::Keys { command } => command::keys::run(&command),
        Command::Demo(arguments) => command::demo::run(&arguments),
        Command::Completions(arguments) => command::completions::run(&arguments, out),
        Command::Man(arguments) => command::man::run(&arguments),
    }
}

/// The exit code of a result; a failure is told on standard error.
fn conclude(result: Result<Exit, Failure>) -> Exit {
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            anstream::eprint!("{}", failure.render());
            failure.exit
        }
    }
}

/// Help, version or a usage error.
fn tell_usage(error: &clap::Error) -> Exit {
    // Nothing can be said if standard output and error are gone; the exit code still tells.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
    let what = panic.payload_as_str().unwrap_or("unknown cause");
    let failure = Failure::new(Exit::Internal, &format!("internal error: {what}{place}"));
    let failure = failure.hint("this is a defect of raddle; please report it with the command line and this message");
    anstream::eprint!("{}", failure.render());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        assert_eq!(guard(|| Exit::Done), Exit::Done);
        assert_eq!(guard(|| panic!("a defect")).code(), 1);
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
