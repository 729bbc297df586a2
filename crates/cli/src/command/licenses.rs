//! `raddle licenses`: prints the licences of the software that the program contains.

use crate::exit::Exit;
use raddle::Error;
use std::io::Write;

/// Made by `scripts/licenses.py`.
const LICENSES: &str = include_str!("../../LICENSES-THIRD-PARTY.txt");

/// Writes the licences to `out`.
pub fn run(out: &mut dyn Write) -> Result<Exit, Error> {
    out.write_all(LICENSES.as_bytes()).map_err(Error::standard_output)?;
    Ok(Exit::Done)
}
