//! Options of the output of `raddle idx write`.

use crate::options::running::RuntimeArgs;
use raddle::Error;
use raddle::options::profile::ProfileChoice;
use raddle::tuned::idx::complete_from_profile;
use raddle_idx::request::WriteRequest;

/// Options about the output.
#[derive(Debug, Clone, clap::Args)]
pub struct TargetArgs {
    #[command(flatten)]
    pub(super) request: WriteRequest,

    /// Use a profile for options not given on the command line; auto: the newest for this machine and file system
    ///
    /// The profile holds box, blocks per file and aggregators, as found by --tune of idx write.
    #[arg(long, value_name = "PROFILE", help_heading = "Layout")]
    profile: Option<ProfileChoice>,
}

impl TargetArgs {
    /// Returns the request, with options that were not given taken from the profile, if one is named.
    ///
    /// # Errors
    /// If the profile does not exist or is invalid.
    pub fn request(&self, running: &RuntimeArgs) -> Result<WriteRequest, Error> {
        let (jobs, memory) = (running.execution.jobs, running.execution.memory);
        let mut request = WriteRequest { jobs, memory, ..self.request.clone() };
        if let Some(choice) = &self.profile {
            complete_from_profile(&mut request, choice)?;
        }
        Ok(request)
    }
}
