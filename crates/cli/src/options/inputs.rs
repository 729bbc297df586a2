//! Inputs that are listed on standard input.

use raddle::Error;
use raddle::options::{Inputs, ListingOptions};
use raddle_merge::inputs::parse_list;
use std::io::Read;
use std::path::PathBuf;

/// Option for a list on standard input.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct StandardInputArgs {
    /// Paths on standard input are NUL-terminated (`find -print0`)
    #[arg(short = '0', long)]
    pub null: bool,
}

impl StandardInputArgs {
    /// Returns the files that `inputs` name, in order. Standard input is read if a name is `-`.
    ///
    /// # Errors
    /// If standard input cannot be read, or an input cannot be listed.
    pub fn expand(self, inputs: &Inputs) -> Result<Vec<PathBuf>, Error> {
        self.expand_names(&inputs.inputs, &inputs.listing)
    }

    /// Returns the files that `names` and the lists name, in order. Standard input is read if a name is `-`.
    ///
    /// # Errors
    /// As for [`StandardInputArgs::expand`].
    pub fn expand_names(self, names: &[PathBuf], listing: &ListingOptions) -> Result<Vec<PathBuf>, Error> {
        if !ListingOptions::is_on_standard_input(names) {
            return listing.expand(names);
        }
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(|cause| Error::standard_input(&cause))?;
        let listing = ListingOptions { listed: parse_list(&bytes, self.null), ..listing.clone() };
        listing.expand(names)
    }
}
