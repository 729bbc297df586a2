//! Text on standard error: messages, progress and errors.
//!
//! Invariant: a run does not end because its text cannot be written, for example to a log on a full disk.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a string. If it cannot be written, it is lost.
pub fn print(text: Arguments<'_>) {
    let _ = anstream::stderr().lock().write_fmt(text);
}

/// Prints a line. If it cannot be written, it is lost.
pub fn print_line(line: Arguments<'_>) {
    print(format_args!("{line}\n"));
}
