//! `raddle man FOLDER`: writes manual pages for packagers.

use crate::exit::Exit;
use raddle::Error;
use std::path::{Path, PathBuf};

/// Options of `raddle man`.
#[derive(Debug, Clone, clap::Args)]
pub struct ManArgs {
    /// Folder for raddle.1, raddle-merge.1, ...
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Writes a page for `command`, the whole command line, and one for each of its subcommands.
pub fn run(arguments: &ManArgs, mut command: clap::Command) -> Result<Exit, Error> {
    std::fs::create_dir_all(&arguments.folder).map_err(|cause| Error::writing(&arguments.folder, &cause))?;
    command.build();
    write_pages(&arguments.folder, &command, "raddle")?;
    Ok(Exit::Done)
}

/// Writes the pages of a command and its subcommands.
fn write_pages(folder: &Path, command: &clap::Command, name: &str) -> Result<(), Error> {
    write_page(folder, command, name)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(folder, sub, &format!("{name}-{}", sub.get_name()))?;
    }
    Ok(())
}

fn write_page(folder: &Path, command: &clap::Command, name: &str) -> Result<(), Error> {
    let path = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("raddle ", env!("CARGO_PKG_VERSION")))
        .manual("raddle")
        .render(&mut page)
        .and_then(|()| std::fs::write(&path, &page))
        .map_err(|cause| Error::writing(&path, &cause))
}
