//! Errors of merges, appends, verifications and keys.

use super::hdf5::{errno_of, exit_of_hdf5};
use super::{Error, OTHER_OPTIONS};
use crate::advice::{Advice, remedy_of_io};
use crate::exit::Exit;
use crate::rechunk::FailedFile;
use crate::text::{differences, escape, key_faults, quantity};
use raddle_codec::CodecError;
use raddle_core::CoreError;
use raddle_idx::IdxError;
use raddle_merge::error::{BadInput, ChangedValues, MergeError};
use raddle_merge::write::SkippedInput;
use std::path::PathBuf;

impl Error {
    /// Creates the failure of a run over `all` files, some of which cannot be rewritten.
    pub(crate) fn of_failed_files(failed: &[FailedFile], all: usize) -> Self {
        let exits = |exit| failed.iter().all(|file| file.exit == exit);
        let exit = [Exit::Output, Exit::Limit, Exit::Locked]
            .into_iter()
            .find(|exit| exits(*exit))
            .unwrap_or(Exit::InputRefused);
        let first = failed.first().and_then(|file| file.errno);
        let errno = first.filter(|&errno| failed.iter().all(|file| file.errno == Some(errno)));
        let mut failure = match failed {
            [file] => Self::new(exit, &format!("{}: {}; nothing was written", escape::path(&file.path), file.reason)),
            failed => {
                let count = quantity::count(failed.len() as u64);
                Self::new(exit, &format!("{count} of {all} files cannot be rewritten; nothing was written"))
                    .details(differences::failed_files(failed))
            }
        };
        failure = failure.advise(Advice::one_of(&["leave them out with --skip-bad"]));
        let skipped_input = |file: &FailedFile| SkippedInput { path: file.path.clone(), reason: file.reason.clone() };
        failure.faults.bad_inputs = failed.iter().map(skipped_input).collect();
        failure.caused_by(errno)
    }

    /// Converts the error of a merge, rechunk or verification of `inputs`.
    pub fn of_merge(error: &MergeError, inputs: &[PathBuf]) -> Self {
        if let MergeError::Resumable { source, path, kept } = error {
            let path = escape::path(path);
            let what = match kept.tiles {
                0 => format!("the partial output of an earlier run is still in {path}"),
                _ => format!("{} of finished chunks are kept in {path}", quantity::size(kept.stored_len_bytes)),
            };
            return Self::of_merge(source, inputs)
                .hint(&format!("{what}: the same command resumes from there (--no-resume starts over)"));
        }
        let failure = Self::new(exit_of(error, inputs), &error.to_string());
        match error {
            MergeError::BadInputs { bad } => {
                let count = quantity::count(bad.len() as u64);
                let what = format!("{count} of {} inputs cannot be read; nothing was written", inputs.len());
                let first = bad.first().and_then(|bad| errno_of(&bad.error));
                let errno = first.filter(|&errno| bad.iter().all(|bad| errno_of(&bad.error) == Some(errno)));
                let failure = match bad.as_slice() {
                    [bad] => {
                        let (path, reason) = (escape::path(&bad.path), differences::reason(bad));
                        Self::new(failure.exit, &format!("{path}: {reason}; nothing was written"))
                    }
                    bad => Self::new(failure.exit, &what).details(differences::bad_inputs(bad)),
                };
                let mut failure = failure.advise(Advice::on_bad_inputs(bad.iter().map(|bad| &bad.error)));
                let skipped_input = |bad: &BadInput| SkippedInput { path: bad.path.clone(), reason: bad.error.to_string() };
                failure.faults.bad_inputs = bad.iter().map(skipped_input).collect();
                failure.caused_by(errno)
            }
            MergeError::SortKeys { missing } => {
                let count = quantity::count(missing.len() as u64);
                let what = format!("{count} of {} inputs have no value to sort by; nothing was written", inputs.len());
                Self::new(failure.exit, &what)
                    .details(differences::missing_keys(missing))
                    .hint("leave these inputs out, or sort by datasets that all inputs have")
            }
            MergeError::Differences { differences } => {
                let count = quantity::counted(differences.len() as u64, "difference");
                let what = format!("the inputs do not fit together: {count}; nothing was written");
                let mut failure = Self::new(failure.exit, &what)
                    .details(differences::table(differences, inputs))
                    .advise(Advice::on_differences(differences));
                failure.faults.table_with_keywords = Some(differences::table_with_keywords(differences, inputs));
                failure.faults.differences = differences.iter().map(|difference| difference.of_inputs(inputs)).collect();
                failure
            }
            MergeError::Repeated { repeated, .. } => {
                let count = quantity::count(repeated.len() as u64);
                let what = format!("{count} of {} inputs are in the file already; nothing was written", inputs.len());
                Self::new(failure.exit, &what)
                    .details(differences::repeated(repeated))
                    .advise(Advice::one_of(&["leave them out", "append their rows again with --again"]))
            }
            error if error.is_secondary() => failure.echo(),
            MergeError::Input { source, .. } => {
                failure.advise(Advice::one_of(&[remedy_of_io(source)])).caused_by(source.raw_os_error())
            }
            MergeError::Hdf5(source) => {
                let errno = errno_of(source);
                match failure.exit {
                    Exit::InputRefused => failure.advise(Advice::on_bad_values(source, inputs.len())).caused_by(errno),
                    _ => failure.caused_by(errno),
                }
            }
            MergeError::PartDiffers { .. } => failure.hint(
                "give every part the same inputs and options, or start over with --no-resume, which removes parts of other merges",
            ),
            // The only tile observer is the preview, made by the IDX writer.
            MergeError::TileObserver { source } => {
                source.downcast_ref::<IdxError>().map_or(failure, Self::of_idx)
            }
            MergeError::InUse { .. } => failure.hint("close the file there and run the same command again"),
            MergeError::ChangedValues(ChangedValues { inputs, .. }) => failure.advise(Advice::one_of(&[
                match inputs.len() {
                    1 => "restore the file",
                    _ => "find the file with `raddle verify FILE` and restore it",
                },
                "accept the values with --ignore-digests if the change was intended",
            ])),
            MergeError::KeyFaults { faults } => {
                let count = quantity::counted(faults.len() as u64, "table");
                Self::new(failure.exit, &format!("{count} cannot get keys; nothing was written"))
                    .details(key_faults::table(faults))
                    .hint(key_faults::advice(faults))
            }
            MergeError::Core(CoreError::PlansDiffer { .. }) => failure.hint(OTHER_OPTIONS),
            MergeError::Core(CoreError::Memory { purpose, needed_bytes, limit_bytes, .. }) => {
                let (needed, limit) = (quantity::size(*needed_bytes), quantity::size(*limit_bytes));
                let what = format!("{purpose} needs {needed} of memory; the budget is {limit}");
                Self::new(failure.exit, &what).advise(Advice::one_of(&[
                    "raise --memory",
                    "use fewer --jobs",
                    "make smaller chunks (--for random, --chunk)",
                ]))
            }
            MergeError::Oversized { .. } => failure.advise(Advice::one_of(&[
                "check the dimensions of the dataset in that file",
                "leave it out with --exclude",
            ])),
            MergeError::LongChunks { object, input, chunk_len_bytes, needed, limit } => {
                let [chunk, needed, limit] = [*chunk_len_bytes, *needed, *limit].map(quantity::size);
                let message = format!(
                    "{object}: its chunks in {} are {chunk} each, and reading them needs {needed} of memory; the budget is {limit}",
                    escape::path(input)
                );
                Self::new(failure.exit, &message).advise(Advice::one_of(&["raise --memory", "check that file"]))
            }
            MergeError::Tiles { object, tiles, tile_len_bytes, needed, limit } => {
                let [tile, needed, limit] = [*tile_len_bytes, *needed, *limit].map(quantity::size);
                let chunks = match tiles {
                    1 => format!("chunk of {tile}"),
                    _ => format!("{} chunks, {tile} each,", quantity::count(*tiles)),
                };
                let message =
                    format!("{object}: writing its {chunks} needs {needed} of memory; the budget is {limit}");
                Self::new(failure.exit, &message).advise(Advice::one_of(&[
                    "raise --memory",
                    "choose chunks of another length (--for random, --chunk)",
                ]))
            }
            MergeError::ByFiles { purpose, needed, left, limit } => {
                let [needed, left, limit] = [*needed, *left, *limit].map(quantity::size);
                let message =
                    format!("reading by files: {purpose} needs {needed} of memory; {left} of {limit} are left");
                let choices = ["leave out --strategy files", "raise --memory", "use fewer --jobs"];
                Self::new(failure.exit, &message).advise(Advice::one_of(&choices))
            }
            MergeError::OutputTooLong { object, input, needed, limit } => {
                let (needed, limit) = (quantity::size(*needed), quantity::size(*limit));
                let input = input.display();
                let message =
                    format!("{object} of {input} and the others claim {needed} uncompressed, but the limit is {limit}");
                Self::new(failure.exit, &message).advise(Advice::one_of(&[
                    "check that file",
                    "raise --max-output if its dimensions are meant to be that large",
                ]))
            }
            _ => failure,
        }
    }
}

fn exit_of(error: &MergeError, inputs: &[PathBuf]) -> Exit {
    match error {
        MergeError::Resumable { source, .. } => exit_of(source, inputs),
        MergeError::Pattern { .. } => Exit::Usage,
        MergeError::NoInputs { .. }
        | MergeError::Input { .. }
        | MergeError::Duplicate { .. }
        | MergeError::Unlistable { .. }
        | MergeError::NothingIncluded { .. }
        | MergeError::NothingLeft
        | MergeError::SortKeys { .. }
        | MergeError::Differences { .. }
        | MergeError::Repeated { .. }
        | MergeError::Contradiction { .. }
        | MergeError::KeyFaults { .. }
        | MergeError::NoDigests { .. }
        | MergeError::DigestsNewer { .. }
        | MergeError::DigestsDamaged { .. }
        | MergeError::ChangedValues(_)
        | MergeError::Object { .. }
        | MergeError::Inexact { .. }
        | MergeError::Oversized { .. }
        | MergeError::PartDiffers { .. } => Exit::InputRefused,
        MergeError::Output { .. } | MergeError::Write { .. } | MergeError::Unaccompanied { .. } => Exit::Output,
        MergeError::Locked { .. } | MergeError::InUse { .. } => Exit::Locked,
        MergeError::BadInputs { bad } => {
            let exits = |exit| bad.iter().all(|bad| exit_of_hdf5(&bad.error, None) == exit);
            [Exit::Output, Exit::Limit, Exit::Locked]
                .into_iter()
                .find(|exit| exits(*exit))
                .unwrap_or(Exit::InputRefused)
        }
        MergeError::OutputTooLong { .. }
        | MergeError::LongChunks { .. }
        | MergeError::Tiles { .. }
        | MergeError::ByFiles { .. } => Exit::Limit,
        MergeError::Cancelled => Exit::Interrupted,
        MergeError::Hdf5(error) => exit_of_hdf5(error, Some(inputs)),
        MergeError::Codec { source: CodecError::OutOfMemory { .. }, .. } => Exit::Limit,
        MergeError::Core(CoreError::Memory { .. } | CoreError::Threads { .. }) => Exit::Limit,
        MergeError::Core(CoreError::PlansDiffer { .. }) => Exit::Usage,
        _ => Exit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_codec::KnownFilter;
    use raddle_hdf5::Hdf5Error;

    #[test]
    fn a_filter_without_memory_reaches_a_limit() {
        let source = || CodecError::OutOfMemory { filter: KnownFilter::Deflate };
        let object = "/x".to_owned();
        let (path, len_bytes) = (PathBuf::from("in.h5"), 8);
        let chunk = Hdf5Error::Chunk { path, address: 96, len_bytes, source: source() };
        let encoding = MergeError::Codec { object: object.clone(), source: source() };
        let decoding = MergeError::Hdf5(Hdf5Error::InObject { object, source: Box::new(chunk) });
        for error in [encoding, decoding] {
            assert_eq!(Error::of_merge(&error, &[]).exit, Exit::Limit, "{error}");
        }
    }
}
