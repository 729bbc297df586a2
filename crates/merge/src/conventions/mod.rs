//! Conventions: the meaning that readers attach to the datasets of an input, and the resulting rules for a merge.
//!
//! One module per convention implements a `Convention`: it recognises a file by its root attributes and structure,
//! returns a [`Rule`] for every dataset that must not simply be concatenated, and updates what depends on all inputs,
//! such as a shape in an attribute. Rules are applied elsewhere ([`crate::rules`]). Invariant: recognition uses only
//! what the scan has already read, so that a file without a convention costs a few comparisons.

pub(crate) mod anndata;
pub(crate) mod cf;
mod marks;
pub(crate) mod nexus;
pub(crate) mod nwb;
pub(crate) mod options;
pub(crate) mod pandas;
mod plain;
mod recognised;
mod refusal;
mod refused;
mod row_numbers;
pub(crate) mod tiling;
mod view;

pub use options::{Axis, Choice, ConcatAxis, ConventionOptions, MergePolicy, Overlap, Packing, Times, Units};
pub use recognised::Recognition;
pub use refusal::Refusal;
pub use tiling::Tiles;
pub use view::FileView;

use crate::rules::settling::DeclaredRule;
use crate::rules::{Rule, user};
use crate::schema::join::Difference;
use crate::schema::{Schema, display_path};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Convention that files can follow.
pub(crate) trait Convention: Sync {
    /// Returns the user's name for the convention.
    fn choice(&self) -> Choice;

    /// Returns the reason to recognise the file as following the convention; `None` if it does not.
    fn recognise(&self, file: &FileView<'_>) -> Option<String>;

    /// Returns the rules of the file's objects, with the numbers of their entries. Objects without a rule are
    /// concatenated along axis 0.
    ///
    /// # Errors
    /// If files of this kind cannot be merged. Returns the reason, and what to use instead.
    fn rules(&self, file: &FileView<'_>, options: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal>;

    /// Settles rules that involve several datasets. Returns the differences that cannot be reconciled.
    fn settle(&self, completion: &mut Completion<'_>) -> Vec<Difference> {
        let _ = completion;
        Vec::new()
    }

    /// Returns what users should know about a merge whose rules are settled.
    fn warnings(&self, completion: &Completion<'_>) -> Vec<Difference> {
        let _ = completion;
        Vec::new()
    }

    /// Updates attributes of a new file that depend on all inputs, such as sizes.
    fn complete(&self, completion: &mut Completion<'_>) {
        let _ = completion;
    }
}

/// Merged schema that is to be completed.
pub(crate) struct Completion<'a> {
    /// Schema, all of whose rules are settled.
    pub schema: &'a mut Schema,
    /// Rules of the schema's entries.
    pub declared: &'a [DeclaredRule],
    /// Number of inputs.
    pub inputs: u32,
    /// Paths of the inputs.
    pub paths: &'a [PathBuf],
    /// Source of the positions of tiles, if the inputs are tiles.
    pub tiles: Option<&'a Tiles>,
    /// Whether objects of the inputs may be left out, such as those along other dimensions.
    pub is_partial: bool,
    /// Whether the output is a new file. An append keeps the attributes of the file.
    pub is_new: bool,
    /// Paths of datasets to remove from the output.
    pub left_out: BTreeSet<Vec<u8>>,
}

/// Updates the attributes of files that follow no convention and were stacked along a new dimension.
pub(crate) fn complete_plain(completion: &mut Completion<'_>, options: &ConventionOptions) {
    plain::complete(completion, options);
}

/// Explains differences between datasets of files of no convention.
pub(crate) fn explain_plain(
    differences: &mut [Difference],
    schema: &Schema,
    declared: &[DeclaredRule],
    options: &ConventionOptions,
) {
    plain::explain(differences, schema, declared, options);
}

/// Renumbers netCDF dimensions in a union of files.
pub(crate) fn settle_union(schema: &mut Schema) {
    cf::dimensions::settle_union(schema);
}

/// All conventions, the most specific first, because an NWB file also looks like plain HDF5 with dimension scales.
const ALL: [&dyn Convention; 5] = [&anndata::Anndata, &nwb::Nwb, &nexus::Nexus, &pandas::Pandas, &cf::Cf];

/// Returns the convention that `choice` names.
pub(crate) fn of_choice(choice: Choice) -> Option<&'static dyn Convention> {
    ALL.into_iter().find(|convention| convention.choice() == choice)
}

/// Returns whether readers of the convention need all datasets of a file.
pub(crate) fn belongs_together(choice: Choice) -> bool {
    matches!(choice, Choice::Anndata | Choice::Nexus | Choice::Nwb | Choice::Pandas)
}

/// Returns the convention of a file whose readers need all of its datasets.
pub(crate) fn undivided(file: &FileView<'_>) -> Option<Choice> {
    let found = ALL.into_iter().filter(|convention| belongs_together(convention.choice()));
    found.filter_map(|convention| convention.recognise(file).map(|_| convention.choice())).next()
}

/// Returns the reason why some rows of a file cannot be selected: a dataset of row numbers that no rule describes, if
/// there is one.
pub(crate) fn unselectable(file: &FileView<'_>, options: &ConventionOptions) -> Option<Refusal> {
    let refused = row_numbers::refusal(file, &options.rules).filter(|_| options.convention.is_none())?;
    let reason = "holds row numbers, which a selection would have to change; leave it out with --exclude";
    Some(Refusal { reason: reason.to_owned(), ..refused })
}

/// Recognises a file and determines the rules of its objects. If it is the only input (`is_alone`), nothing is combined
/// and no rules are needed. A file is refused even then if a copy would not keep what its readers need.
pub(crate) fn recognise(file: &FileView<'_>, options: &ConventionOptions, is_alone: bool) -> Recognition {
    let mut recognised = Recognition::default();
    if is_alone {
        recognised.refusal = refused::refusal_of_copy(file);
        return recognised;
    }
    if options.convention.is_none()
        && let Some(refusal) = refused::refusal(file, &options.rules)
    {
        recognised.refusal = Some(refusal);
        return recognised;
    }
    let found = match options.convention {
        Some(Choice::None) => None,
        Some(choice) => of_choice(choice).map(|convention| (convention, "asked for".to_owned())),
        None => {
            let recognised = ALL.into_iter().find_map(|convention| Some((convention, convention.recognise(file)?)));
            let by_scales = || Some((&cf::Cf as &dyn Convention, plain::named_dimension(file, options)?));
            recognised.or_else(by_scales)
        }
    };
    if let Some((convention, because)) = found {
        recognised.choice = Some(convention.choice());
        recognised.because = because;
        match convention.rules(file, options) {
            Ok(rules) => {
                let records: BTreeSet<&[u8]> = rules.iter().filter_map(|(_, rule)| rule.record.as_deref()).collect();
                for record in records {
                    recognised.because += &format!(", records along {}", display_path(record));
                }
                recognised.rules = rules.into_iter().map(|(at, rule)| (at as u32, rule)).collect();
            }
            Err(refusal) => recognised.refusal = Some(refusal),
        }
    } else {
        match plain::rules(file, options) {
            Ok(rules) => recognised.rules = rules.into_iter().map(|(at, rule)| (at as u32, rule)).collect(),
            Err(refusal) => recognised.refusal = Some(refusal),
        }
    }
    if let Err(refusal) = user::apply(&options.rules, file, &mut recognised.rules) {
        recognised.refusal = Some(refusal);
    }
    recognised.rules.sort_by_key(|(at, _)| *at);
    recognised
}
