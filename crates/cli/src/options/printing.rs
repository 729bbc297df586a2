//! Options for the text that a command prints when it writes a file.

/// Options for printing instead of writing, and for the form of the report.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct PrintArgs {
    /// Print what would be done without writing anything
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Print the report, or the failure, as JSON
    #[arg(long)]
    pub json: bool,
}
