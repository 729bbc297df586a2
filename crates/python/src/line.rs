//! Options of calls as command lines: parsed by the command's own parser, with its names, defaults and checks.

use clap::Parser;
use raddle_cli::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::iter;

/// Parses options and arguments, without the command's name.
pub fn parse<T: Parser>(arguments: &[OsString]) -> Result<T, Failure> {
    let line = iter::once(OsStr::new("raddle")).chain(arguments.iter().map(OsString::as_os_str));
    T::try_parse_from(line).map_err(|error| Failure::usage(error.to_string().trim()))
}
