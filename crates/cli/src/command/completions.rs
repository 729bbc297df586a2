//! `raddle completions SHELL`: writes a completion script, for users and packagers.

use crate::exit::Exit;
use raddle::Error;

/// Options of `raddle completions`.
#[derive(Debug, Clone, clap::Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Writes the script for `command`, the whole command line, to `out`.
pub fn run(
    arguments: &CompletionsArgs,
    mut command: clap::Command,
    out: &mut dyn std::io::Write,
) -> Result<Exit, Error> {
    // The generator panics on a failed write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "raddle", &mut script);
    out.write_all(&script).map_err(Error::standard_output)?;
    Ok(Exit::Done)
}
