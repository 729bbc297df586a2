//! Options of [`WriteRequest`] that profiles hold: box, blocks per file and aggregators.

use crate::error::Error;
use crate::exit::Exit;
use crate::options::profile::ProfileChoice;
use raddle_core::output::folder_of;
use raddle_idx::request::WriteRequest;
use raddle_idx::targets::{format_of, has_option};
use raddle_tune::knob::SettingValue;
use raddle_tune::profile::IdxOption;
use std::num::NonZeroUsize;

/// Returns whether a request names an option.
pub fn has(request: &WriteRequest, option: IdxOption) -> bool {
    match option {
        IdxOption::Box => request.box_size.is_some(),
        IdxOption::BlocksPerFile => request.blocks.blocks_per_file.is_some(),
        IdxOption::Aggregators => request.aggregators.is_some(),
    }
}

/// Applies a value from a profile or trial, unless the request names the option.
///
/// # Errors
/// If the value is not one that the option takes.
pub fn set(request: &mut WriteRequest, option: IdxOption, value: &SettingValue) -> Result<(), Error> {
    let refused =
        || Error::new(Exit::InputRefused, &format!("the profile's [idx] {} cannot be {value}", option.name()));
    if has(request, option) {
        return Ok(());
    }
    match (option, value) {
        (IdxOption::Box, SettingValue::Text(text)) => request.box_size = Some(text.parse().map_err(|_| refused())?),
        (IdxOption::BlocksPerFile, SettingValue::Whole(count)) => request.blocks.blocks_per_file = Some(*count),
        (IdxOption::Aggregators, SettingValue::Whole(count)) => {
            let count = usize::try_from(*count).ok().and_then(NonZeroUsize::new);
            request.aggregators = Some(count.ok_or_else(refused)?);
        }
        _ => return Err(refused()),
    }
    Ok(())
}

/// Completes a request from a profile, with options that the request does not name and its format has.
///
/// # Errors
/// If the profile does not exist or is invalid.
pub fn complete_from_profile(request: &mut WriteRequest, choice: &ProfileChoice) -> Result<(), Error> {
    let (format, profile) = (format_of(request), choice.read(folder_of(&request.output))?);
    let options = profile.idx.iter().filter(|(option, _)| has_option(format, option.name()));
    options.into_iter().try_for_each(|(option, measured)| set(request, *option, &measured.value))
}
