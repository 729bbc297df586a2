//! Joining of the inputs' structures by path: finds common objects and differences, and determines the objects of the
//! output.
//!
//! The first input that has a path is its model. Other inputs are compared with the model: differences that
//! concatenation cannot bridge are collected as [`Difference`] values and reported together; differing attributes are
//! warnings. Invariant: the joined schema does not depend on the order in which inputs were scanned, only on the input
//! order.

mod added;
mod attribute_rows;
mod attributes;
mod compare;
mod comparison;
mod contrast;
mod describe;
mod describe_value;
mod difference;
mod fill;
mod finish;
mod found;
mod joined_entry;
mod of_inputs;
mod policy;
mod series;
mod stack_dimension;

pub use added::AddedColumn;
pub(crate) use attributes::defines_scale;
pub use describe::describe;
pub(crate) use describe::describe_both;
pub(crate) use describe_value::describe_value;
pub use difference::{Difference, DifferenceKind};
pub use policy::{AttributePolicy, Join, JoinOptions, ScalarPolicy};

use crate::conventions::{Choice, Recognition, Refusal};
use crate::inputs::paths::Paths;
use crate::keys::DerivedSpec;
use crate::rules::Placement;
use crate::rules::pick::UncountedElements;
use crate::rules::settling::DeclaredRule;
use crate::scan::scale_lists::REFERENCE_LIST;
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::attribute::marks_table_index;
use crate::schema::{EntryIndex, Role, Schema, display_path};
use comparison::Comparison;
use found::FoundDifferences;
use joined_entry::JoinedEntry;
use of_inputs::GatheredValues;
use std::collections::{BTreeSet, HashMap};

/// Result of a join.
#[derive(Debug, Default)]
pub(crate) struct JoinResult {
    /// Structure of the output.
    pub schema: Schema,
    /// Differences that cannot be bridged under the requested policies.
    pub differences: Vec<Difference>,
    /// Differences that were bridged and should be reported.
    pub warnings: Vec<Difference>,
    /// Elements that must be counted before the output can be planned.
    pub(crate) uncounted: Vec<UncountedElements>,
    /// Rules of entries, indexed by entry number.
    pub(crate) declared: Vec<DeclaredRule>,
    /// Convention that the inputs were recognised as.
    pub(crate) convention: Option<Choice>,
    /// Reason why the convention was recognised.
    pub(crate) because: String,
}

impl JoinResult {
    /// Removes the datasets at these paths.
    pub(crate) fn leave_out(&mut self, paths: &BTreeSet<Vec<u8>>) {
        if paths.is_empty() {
            return;
        }
        let of_declared: Vec<Vec<u8>> =
            self.declared.iter().map(|declared| self.schema.entries[declared.entry as usize].path.clone()).collect();
        self.schema.remove_columns(|path| paths.contains(path));
        let numbers: HashMap<&[u8], EntryIndex> =
            (0..).zip(&self.schema.entries).map(|(number, entry)| (entry.path.as_slice(), number)).collect();
        let mut of_declared = of_declared.iter();
        self.declared.retain_mut(|declared| {
            let number = of_declared.next().and_then(|path| numbers.get(path.as_slice()));
            declared.entry = number.copied().unwrap_or(declared.entry);
            number.is_some()
        });
    }
}

/// A join of inputs, which are added one by one; see `Joiner::add`.
#[derive(Debug)]
pub(crate) struct Joiner {
    options: JoinOptions,
    entries: Vec<JoinedEntry>,
    by_path: foldhash::HashMap<Vec<u8>, usize>,
    /// Differences from the models.
    found: FoundDifferences,
    inputs: u32,
    expected_inputs: usize,
    /// Whether the output has all rows of the only input, in which case PyTables indexes remain valid.
    keeps_indexes: bool,
    /// Whether the output has only some objects of the inputs. Dimension scales then drop the others from their lists.
    has_some_objects: bool,
    /// Whether the first input is a file to which the others are appended.
    grows: bool,
    /// Columns that are computed in the output, whatever the inputs hold at their paths.
    derived: Vec<DerivedSpec>,
    /// Attributes that become columns.
    gathered: GatheredValues,
    /// Convention that the first input was recognised as.
    convention: Option<Option<Choice>>,
    /// Reason why the convention was recognised.
    because: String,
    /// Whether datasets are refused if their attributes change the meaning of values.
    guards_meaning: bool,
}

impl Joiner {
    /// Creates a joiner without inputs that expects `expected_inputs`. With `guards_meaning`, datasets are refused if
    /// their attributes change the meaning of values.
    pub fn new(options: JoinOptions, guards_meaning: bool, expected_inputs: usize) -> Self {
        Self {
            options,
            guards_meaning,
            entries: Vec::new(),
            by_path: foldhash::HashMap::default(),
            found: FoundDifferences::default(),
            inputs: 0,
            expected_inputs,
            keeps_indexes: expected_inputs == 1,
            has_some_objects: false,
            grows: false,
            derived: Vec::new(),
            gathered: GatheredValues::default(),
            convention: None,
            because: String::new(),
        }
    }

    /// Configures the joiner for an output with only some rows of the inputs.
    #[must_use]
    pub(crate) fn with_some_rows(self) -> Self {
        Self { keeps_indexes: false, ..self }
    }

    /// Configures the joiner for an output with only some objects of the inputs.
    #[must_use]
    pub(crate) fn with_some_objects(self) -> Self {
        Self { has_some_objects: true, ..self }
    }

    /// Configures the joiner for an output in which `derived` columns are computed.
    #[must_use]
    pub(crate) fn computing(self, derived: &[DerivedSpec]) -> Self {
        Self { derived: derived.to_vec(), ..self }
    }

    /// Configures the joiner for an append to the first input. The other inputs need not have its computed columns.
    #[must_use]
    pub(crate) fn growing(self) -> Self {
        Self { grows: true, ..self }
    }

    /// Adds the next input, in input order: its entries at each of `paths`, and the convention that it was recognised
    /// as.
    pub(crate) fn add(&mut self, paths: &Paths, scanned: Vec<ScannedEntry>, recognised: &Recognition) {
        let input = self.inputs;
        self.inputs += 1;
        self.compare_conventions(recognised, input);
        self.gathered.add(&self.options.add_columns, |wanted| {
            let found = paths.iter().zip(&scanned).find(|(path, _)| *path == wanted);
            found.map(|(_, entry)| &*entry.attributes)
        });
        let mut cursor = 0;
        if input == 0 {
            self.entries.reserve(scanned.len());
            self.by_path.reserve(scanned.len());
        }
        // Inputs of one kind list their objects in the same order: the entry after the last match nearly always
        // follows.
        let mut expected = 0;
        let mut left_out: Option<&[u8]> = None;
        for (at, (path, entry)) in paths.iter().zip(scanned).enumerate() {
            let rule = recognised.rule(at, &mut cursor);
            if rule.is_some_and(|rule| rule.placement == Placement::LeftOut) {
                left_out = Some(path);
                continue;
            }
            if left_out.is_some_and(|group| path.strip_prefix(group).is_some_and(|inside| inside.starts_with(b"/"))) {
                continue;
            }
            if !self.keeps_indexes && is_table_index(&entry) {
                left_out = Some(path);
                let found = "a PyTables index, left out".to_owned();
                self.found.add(path, DifferenceKind::Index, "none".to_owned(), found, input);
                continue;
            }
            let is_dropped = |attribute: &[u8]| self.has_some_objects && attribute == REFERENCE_LIST.as_bytes();
            for (attribute, count) in entry.dangling.iter().filter(|(attribute, _)| !is_dropped(attribute)) {
                let found = format!("{count} in attribute {}, written as null", display_path(attribute));
                self.found.add(path, DifferenceKind::Dangling, "references to objects".to_owned(), found, input);
            }
            let hit = self.entries.get(expected).is_some_and(|joined| joined.entry.path == path);
            let index = if hit { Some(expected) } else { self.by_path.get(path).copied() };
            match index {
                Some(index) => {
                    expected = index + 1;
                    let comparison = Comparison {
                        joined: &mut self.entries[index],
                        found: &mut self.found,
                        options: &self.options,
                        guards_meaning: self.guards_meaning,
                        grows: self.grows,
                        input,
                    };
                    comparison.run(entry, rule);
                }
                None => {
                    self.by_path.insert(path.to_vec(), self.entries.len());
                    self.entries.push(JoinedEntry::of_model(path, entry, rule, input, self.expected_inputs));
                }
            }
        }
    }

    /// Reports an input that follows a different convention than the first one, or one that cannot be merged.
    fn compare_conventions(&mut self, recognised: &Recognition, input: u32) {
        if let Some(Refusal { object, reason }) = &recognised.refusal {
            let expected = "files that can be merged".to_owned();
            self.found.add(object.as_bytes(), DifferenceKind::Convention, expected, reason.clone(), input);
            return;
        }
        if self.convention.is_none() {
            self.because.clone_from(&recognised.because);
        }
        let choice = *self.convention.get_or_insert(recognised.choice);
        if choice != recognised.choice {
            let title = |choice: Option<Choice>| choice.unwrap_or(Choice::None).title().to_owned();
            let found = format!("{}; use --convention to choose one", title(recognised.choice));
            self.found.add(b"/", DifferenceKind::Convention, title(choice), found, input);
        }
    }
}

/// Returns whether the group is a PyTables index over columns of a table, which refers to rows by their numbers in
/// one file.
fn is_table_index(entry: &ScannedEntry) -> bool {
    matches!(entry.role, ScannedRole::Other(Role::Group { .. })) && marks_table_index(&entry.attributes)
}
