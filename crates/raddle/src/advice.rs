//! Advice on errors: lists the remedies, restricted to those that the command supports.
//!
//! Error messages themselves are in [`crate::error`]. Invariant: advice restricted to [`AvailableOptions`] never names an
//! option, or a value of one, that the command does not accept.

use raddle_hdf5::Hdf5Error;
use raddle_merge::append::StackedScalars;
use raddle_merge::schema::join::{Difference, DifferenceKind};
use std::io::ErrorKind;
use std::path::Path;

/// Choice of an option that the table of differences names.
const BY_TABLE: &str = "choose an option from the table";
/// Choice of the objects that any input has.
const JOIN_OUTER: &str = "--join outer (objects of any input)";
/// Choice of the scalars of the first input.
const SCALARS_FIRST: &str = "--scalars first (the first input's)";
/// Choice of the attributes of the first input.
const ATTRIBUTES_FIRST: &str = "--attributes first (the first input's)";

/// Remedies for each of several problems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice(Vec<Clause>);

/// Alternative remedies for one problem.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Clause {
    /// Text that precedes the choices, for example `where scalars differ, choose `.
    lead: &'static str,
    choices: Vec<&'static str>,
}

impl Advice {
    /// Creates advice to choose one of these.
    pub fn one_of(choices: &[&'static str]) -> Self {
        Self(Vec::new()).and("", choices)
    }

    /// Adds advice on another problem.
    fn and(mut self, lead: &'static str, choices: &[&'static str]) -> Self {
        self.0.push(Clause { lead, choices: choices.to_vec() });
        self
    }

    /// Formats the advice; `None` if nothing is left.
    pub fn text(&self) -> Option<String> {
        let text = |Clause { lead, choices }: &Clause| match choices.as_slice() {
            [] => None,
            [choice] => Some(format!("{lead}{choice}")),
            [choices @ .., last] => Some(format!("{lead}{}, or {last}", choices.join(", "))),
        };
        let texts: Vec<String> = self.0.iter().filter_map(text).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// Keeps only the choices that the command supports.
    #[must_use]
    pub fn offered_by(mut self, offers: &AvailableOptions) -> Self {
        self.0.iter_mut().for_each(|clause| clause.choices.retain(|choice| offers.all_of(choice)));
        self
    }

    /// Returns the advice for an append with these differences to a file with `stacked` scalars. It lacks most of the
    /// options that the table of differences names, and cannot add objects to its file.
    #[must_use]
    pub fn for_append(mut self, differences: &[Difference], stacked: StackedScalars) -> Self {
        const MERGE_AGAIN: &str = "to merge all inputs into a new file";
        let has_extra = differences.iter().any(|difference| difference.kind == DifferenceKind::Extra);
        for choice in self.0.iter_mut().flat_map(|clause| &mut clause.choices) {
            match *choice {
                BY_TABLE => *choice = "merge all inputs into a new file with an option from the table",
                JOIN_OUTER if stacked == StackedScalars::Fixed => *choice = MERGE_AGAIN,
                JOIN_OUTER if has_extra => *choice = "to merge all inputs into a new file with an inner or outer join",
                JOIN_OUTER => {
                    *choice = "--join outer (objects of any input), unless the file was merged with an inner join"
                }
                SCALARS_FIRST if stacked != StackedScalars::No => *choice = MERGE_AGAIN,
                ATTRIBUTES_FIRST => {
                    *choice =
                        "--attributes first (the first input's), unless the file has only those that all inputs have"
                }
                _ => {}
            }
        }
        self
    }

    /// Removes the choices that name an option.
    #[must_use]
    pub fn without(mut self, option: &str) -> Self {
        self.0.iter_mut().for_each(|clause| clause.choices.retain(|choice| !choice.contains(option)));
        self
    }

    /// Returns advice on inputs that cannot be read for these reasons, before anything is written.
    pub fn on_bad_inputs<'a>(errors: impl Iterator<Item = &'a Hdf5Error>) -> Self {
        let mut choices = remedies(errors);
        choices.push("leave them out with --skip-bad");
        Self::one_of(&choices)
    }

    /// Returns advice on one of `inputs` inputs, in which the run found unreadable values; such inputs are not skipped.
    pub fn on_bad_values(error: &Hdf5Error, inputs: usize) -> Self {
        let mut choices = remedies(std::iter::once(error));
        if inputs > 1 {
            choices.push("leave the file out");
        }
        Self::one_of(&choices)
    }

    /// Returns advice on inputs that do not fit together.
    pub fn on_differences(differences: &[Difference]) -> Self {
        use DifferenceKind::{Attributes, Coordinate, Extra, Missing, Repeated, Scale, Value};
        let has = |kinds: &[DifferenceKind]| differences.iter().any(|difference| kinds.contains(&difference.kind));
        if has(&[Repeated]) {
            return Self::one_of(&[
                "rename or --exclude all but one of each",
                "--keep those that are equal",
                "merge without a union to concatenate",
            ]);
        }
        let is_decided = |difference: &Difference| {
            matches!(difference.kind, DifferenceKind::Meaning | DifferenceKind::Convention | DifferenceKind::Repetition)
                && difference.found.contains("; --")
        };
        let by_option = differences.iter().any(is_decided).then_some(BY_TABLE);
        let others = ["leave out these files", "exclude these objects with --exclude"];
        let choices: Vec<&str> = by_option.into_iter().chain(others).collect();
        let mut advice = Self::one_of(&choices);
        for (kinds, lead, choices) in [
            (
                &[Missing, Extra][..],
                "where objects are missing, choose ",
                &["--join inner (objects of all inputs)", JOIN_OUTER][..],
            ),
            (&[Value], "where scalars differ, choose ", &[SCALARS_FIRST, "--scalars stack (an element per input)"]),
            (&[Scale], "where values that are kept once differ, choose ", &[SCALARS_FIRST]),
            (
                &[Coordinate],
                "where coordinates differ, ",
                &[
                    "bring the files to the same ones before merging (in netCDF, cdo invertlat reverses latitudes, cdo remapbil interpolates)",
                ],
            ),
            (
                &[Attributes],
                "where attributes differ, choose ",
                &[
                    ATTRIBUTES_FIRST,
                    "--attributes identical (those that all have)",
                    "--attributes stack (a row per input)",
                ],
            ),
        ] {
            if has(kinds) {
                advice = advice.and(lead, choices);
            }
        }
        advice
    }
}

/// Returns the remedies for these errors, grouped by kind.
fn remedies<'a>(errors: impl Iterator<Item = &'a Hdf5Error>) -> Vec<&'static str> {
    let mut remedies = Vec::new();
    for remedy in errors.map(remedy) {
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    remedies
}

/// Returns the remedy for an error of the operating system.
pub fn remedy_of_io(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput => "check the names",
        ErrorKind::PermissionDenied => "check the permissions",
        _ => "make the files readable",
    }
}

/// Returns the remedy for an error of the operating system about `path`, which may not be meant as a path.
fn remedy_of_name(path: &Path, error: &std::io::Error) -> &'static str {
    let name = path.to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory if name.contains("://") => {
            "download the files first, because raddle reads files of this machine"
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory if name.contains(":/") => {
            "name whole files, without the path of an object in them"
        }
        ErrorKind::NotFound if name.starts_with('~') => {
            "write the path of the home folder instead of ~, which only a shell replaces"
        }
        _ => remedy_of_io(error),
    }
}

fn remedy(error: &Hdf5Error) -> &'static str {
    match error {
        Hdf5Error::InObject { source, .. } => remedy(source),
        Hdf5Error::Io { path, source, .. } => remedy_of_name(path, source),
        Hdf5Error::NotHdf5 { format: Some(format), .. } => format.remedy(),
        Hdf5Error::Unsupported { .. } => "rewrite the files without the unsupported features",
        Hdf5Error::Dangling { .. } => {
            "leave out the references with --exclude, or set those to deleted objects to null"
        }
        Hdf5Error::LeftOut { .. } => {
            "include the referenced objects as well, or leave out the references with --exclude"
        }
        Hdf5Error::ForeignFile { .. } => "allow reading outside of the files' folders with --follow-foreign-files",
        Hdf5Error::ReplacedSource { .. } => "name another output",
        Hdf5Error::MissingSource { .. } => "put the missing files where they are expected",
        Hdf5Error::ChangedSource { .. } => "make the view again from the changed files",
        Hdf5Error::ReaderNotStarted { .. } => "check that this program can run here, and runs raddle with its argument",
        Hdf5Error::OpenForWriting { .. } => "close the files in the programs that write them",
        Hdf5Error::InUse { .. } | Hdf5Error::Changed { .. } | Hdf5Error::Stale { .. } => {
            "wait until no program writes the files"
        }
        _ => "copy the files again from their source",
    }
}

/// Options that a caller can choose, with their values if these are listed.
#[derive(Debug, Clone, Default)]
pub struct AvailableOptions(Vec<(String, Vec<String>)>);

impl AvailableOptions {
    /// Creates the list from names of options, without dashes, and their values.
    pub fn new(options: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        Self(options.into_iter().collect())
    }

    /// Returns whether the command has all options that `text` names, with the values given there.
    fn all_of(&self, text: &str) -> bool {
        let plain = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-').to_owned();
        let words: Vec<String> = text.split_whitespace().map(plain).collect();
        words.iter().enumerate().all(|(at, word)| {
            let Some(name) = word.strip_prefix("--") else { return true };
            let Some((_, values)) = self.0.iter().find(|(known, _)| known == name) else { return false };
            // An option without listed values may be followed by an ordinary word.
            values.is_empty() || words.get(at + 1).is_none_or(|value| values.contains(value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(kind: DifferenceKind) -> Difference {
        Difference { path: "/x".into(), kind, expected: String::new(), found: String::new(), inputs: vec![1] }
    }

    #[test]
    fn advice_names_available_options_and_values_only() {
        use DifferenceKind::{Attributes, Missing, Value};
        let differences = [Missing, Value, Attributes].map(difference);
        let values = |values: &[&str]| values.iter().map(ToString::to_string).collect();
        let available = AvailableOptions::new([
            ("join".to_owned(), values(&["exact", "outer"])),
            ("scalars".to_owned(), values(&["equal", "first"])),
        ]);
        assert_eq!(
            Advice::on_differences(&differences).offered_by(&available).text().unwrap(),
            "leave out these files; where objects are missing, choose --join outer (objects of any input); \
             where scalars differ, choose --scalars first (the first input's)"
        );
    }

    #[test]
    fn remedies_are_those_of_the_errors() {
        let io = |kind: ErrorKind| Hdf5Error::Io { path: "a".into(), operation: "open".into(), source: kind.into() };
        let (missing, denied) = (io(ErrorKind::NotFound), io(ErrorKind::PermissionDenied));
        let foreign = Hdf5Error::ForeignFile { path: "a".into(), foreign: "/b".into() }.in_object("/x");
        assert!(Advice::on_bad_inputs([&foreign].into_iter()).text().unwrap().contains("--follow-foreign-files"));
        let text = Advice::on_bad_inputs([&missing, &missing, &denied].into_iter()).text().unwrap();
        assert_eq!(text, "check the names, check the permissions, or leave them out with --skip-bad");
        assert!(Advice::on_bad_values(&foreign, 2).text().unwrap().contains("--follow-foreign-files"));
    }
}
