//! Options of calls as command lines, parsed by the command's own parser with its names, defaults and checks.

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use raddle::Error as Failure;
use std::ffi::{OsStr, OsString};
use std::iter;

/// Parses options and arguments, without the command's name.
pub fn parse<T: Parser>(arguments: &[OsString]) -> Result<T, Failure> {
    let line = iter::once(OsStr::new("raddle")).chain(arguments.iter().map(OsString::as_os_str));
    T::try_parse_from(line).map_err(|error| of_parser(&error))
}

/// Converts an error of the parser, without the parts that only apply to the command line: usage, and where to find
/// help.
pub fn of_parser(error: &clap::Error) -> Failure {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let keyword = |option: &str| option.trim_start_matches('-').replace('-', "_");
    if let (ErrorKind::UnknownArgument, Some(option)) = (error.kind(), context(ContextKind::InvalidArg)) {
        let name = keyword(option.split('=').next().unwrap_or_default());
        let failure = Failure::usage(&format!("there is no option {name}"));
        return match context(ContextKind::SuggestedArg) {
            Some(known) => failure.hint(&format!("perhaps {} is meant", keyword(&known))),
            None => failure,
        };
    }
    let text = error.to_string();
    let lines = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").lines();
    Failure::usage(&lines.map(str::trim).collect::<Vec<_>>().join(" "))
}
