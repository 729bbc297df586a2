//! Printing of errors on the terminal.

use crate::exit::Exit;
use crate::standard_error;
use raddle::Error;
pub use raddle::error::ErrorRecord;

/// Prints an error on standard error and returns its exit code.
pub fn print_error(error: &Error) -> Exit {
    standard_error::print(format_args!("{}", render(error)));
    error.exit
}

/// Formats an error for the terminal: `error: ...`, details, advice. Empty for an error without a message.
pub fn render(error: &Error) -> String {
    let message = error.message();
    if message.is_empty() {
        return String::new();
    }
    let (details, hint) = error.explanation();
    let (red, bold, off) = ("\x1b[1;31m", "\x1b[1m", "\x1b[0m");
    let mut text = format!("{red}error:{off} {message}\n");
    if let Some(details) = details {
        text.push_str(details);
        if !details.ends_with('\n') {
            text.push('\n');
        }
    }
    if let Some(hint) = hint {
        text.push_str(&format!("{bold}what to do:{off} {hint}\n"));
    }
    text
}
