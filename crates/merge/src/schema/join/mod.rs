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
mod bounded;
mod compare;
mod contrast;
mod describe;
mod describe_value;
mod difference;
mod fill;
mod of_inputs;
mod policy;

pub use added::AddedColumn;
pub use describe::describe;
pub(crate) use describe_value::describe_value;
pub use difference::{Difference, DifferenceKind};
pub use policy::{AttributePolicy, Join, JoinOptions, ScalarPolicy};

use crate::conventions::{Choice, Recognition, Refusal};
use crate::inputs::paths::Paths;
use crate::keys::DerivedSpec;
use crate::rules::once::OTHER_VALUES;
use crate::rules::pick::UncountedElements;
use crate::rules::settling::DeclaredRule;
use crate::rules::{Placement, Rule, ValueMeaning};
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::extents::InputExtents;
use crate::schema::stacked_scalars::StackedScalars;
use crate::schema::{
    ABSENT, AttributeValue, Column, EntryIndex, InputExtent, Role, Schema, SchemaEntry, display_path, parent_path,
};
use attributes::{Guard, compare_attributes, unite_attributes};
use compare::{compare_datasets, compare_roles};
use fill::{AmbiguousFill, fill_absent_rows};
use of_inputs::GatheredValues;
use raddle_hdf5::model::{Dataset, Dataspace};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Result of a join.
#[derive(Debug, Default)]
pub struct JoinResult {
    /// Structure of the output.
    pub schema: Schema,
    /// Differences that cannot be bridged under the requested policies.
    pub differences: Vec<Difference>,
    /// Differences that were bridged and should be reported.
    pub warnings: Vec<Difference>,
    /// Elements that must be counted before the output can be planned.
    pub(crate) uncounted: Vec<UncountedElements>,
    /// Rules of entries, by entry number in the schema.
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
pub struct Joiner {
    options: JoinOptions,
    entries: Vec<JoinedEntry>,
    by_path: foldhash::HashMap<Vec<u8>, usize>,
    found: BTreeMap<FoundDifference, Vec<u32>>,
    inputs: u32,
    expected_inputs: usize,
    /// Whether the first input is a file to which the others are appended.
    grows: bool,
    /// Columns that are computed in that file.
    derived: Vec<DerivedSpec>,
    /// Attributes that become columns.
    gathered: GatheredValues,
    /// Convention that the first input was recognised as.
    convention: Option<Option<Choice>>,
    /// Reason why the convention was recognised.
    because: String,
    /// Whether datasets are refused if their attributes give values another meaning.
    guards_meaning: bool,
}

#[derive(Debug)]
struct JoinedEntry {
    entry: SchemaEntry,
    column: Option<Column>,
    /// Whether any input so far has rows of the column. Cached, because summing over all inputs for each input would be
    /// quadratic.
    has_rows: bool,
    /// Digest of a dataset that is stored once.
    kept: Option<u64>,
    /// Runs of inputs that have the object, ascending; nearly always a single run.
    present: Vec<Range<u32>>,
    dropped_attributes: HashSet<Vec<u8>>,
    /// Attributes of inputs that differ from the first input's, if they are stacked; by input number.
    other_attributes: Vec<(u32, Arc<[AttributeValue]>)>,
    /// Values of a scalar that differ from the first one.
    differing: StackedScalars,
    /// Facts about the inputs that a rule needs; `None` if no rule applies.
    declared: Option<Box<DeclaredRule>>,
    /// Whether inputs have different rules for the object; the rule is then not settled.
    is_disputed: bool,
}

impl JoinedEntry {
    /// Returns the number of inputs that have it.
    fn holders(&self) -> u32 {
        self.present.iter().map(|run| run.end - run.start).sum()
    }

    /// Whether it is a text-length dimension, which may have a different name in each input.
    fn is_widest(&self) -> bool {
        self.declared.as_ref().is_some_and(|declared| declared.rule.placement == Placement::Widest)
    }

    /// Removes attributes that are not the same in all inputs; returns whether there were any.
    fn drop_attributes(&mut self) -> bool {
        let (dropped, attributes) = (&self.dropped_attributes, &mut self.entry.attributes);
        let is_any = attributes.iter().any(|attribute| dropped.contains(&attribute.name));
        if is_any {
            let kept = attributes.iter().filter(|attribute| !dropped.contains(&attribute.name));
            *attributes = kept.cloned().collect();
        }
        is_any
    }

    /// Returns the number of rows in each input, `None` if it is absent or not a column.
    fn lengths(&self) -> Vec<Option<u64>> {
        let facts = self.column.iter().flat_map(|column| column.facts.iter());
        facts.map(|fact| (fact.template != ABSENT).then_some(fact.rows)).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FoundDifference {
    path: Vec<u8>,
    kind: DifferenceKind,
    expected: String,
    found: String,
}

impl Joiner {
    /// Creates a joiner without inputs that expects `expected_inputs`. With `guards_meaning`, datasets are refused if
    /// their attributes give values another meaning.
    pub fn new(options: JoinOptions, guards_meaning: bool, expected_inputs: usize) -> Self {
        Self {
            options,
            guards_meaning,
            entries: Vec::new(),
            by_path: foldhash::HashMap::default(),
            found: BTreeMap::new(),
            inputs: 0,
            expected_inputs,
            grows: false,
            derived: Vec::new(),
            gathered: GatheredValues::default(),
            convention: None,
            because: String::new(),
        }
    }

    /// Configures the joiner for an append to the first input. The other inputs need not have the columns that
    /// `derived` computes.
    #[must_use]
    pub(crate) fn growing(self, derived: &[DerivedSpec]) -> Self {
        Self { grows: true, derived: derived.to_vec(), ..self }
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
            if self.expected_inputs > 1 && is_table_index(&entry) {
                left_out = Some(path);
                let (path, kind) = (path.to_vec(), DifferenceKind::Index);
                let (expected, found) = ("none".to_owned(), "an index of PyTables, left out".to_owned());
                self.found.entry(FoundDifference { path, kind, expected, found }).or_default().push(input);
                continue;
            }
            for (attribute, count) in &entry.dangling {
                let (path, kind, name) = (path.to_vec(), DifferenceKind::Dangling, display_path(attribute));
                let found = format!("{count} in attribute {name}, written as null");
                let found = FoundDifference { path, kind, expected: "references to objects".to_owned(), found };
                self.found.entry(found).or_default().push(input);
            }
            let hit = self.entries.get(expected).is_some_and(|joined| joined.entry.path == path);
            let index = if hit { Some(expected) } else { self.by_path.get(path).copied() };
            match index {
                Some(index) => {
                    expected = index + 1;
                    self.compare(index, entry, rule, input);
                }
                None => self.insert(path, entry, rule, input),
            }
        }
    }

    /// Reports an input that follows a different convention than the first one, or one that cannot be merged.
    fn compare_conventions(&mut self, recognised: &Recognition, input: u32) {
        if let Some(Refusal { object, reason }) = &recognised.refusal {
            let found = FoundDifference {
                path: object.clone().into_bytes(),
                kind: DifferenceKind::Convention,
                expected: "files that can be merged".to_owned(),
                found: reason.clone(),
            };
            self.found.entry(found).or_default().push(input);
            return;
        }
        if self.convention.is_none() {
            self.because.clone_from(&recognised.because);
        }
        let choice = *self.convention.get_or_insert(recognised.choice);
        if choice != recognised.choice {
            let title = |choice: Option<Choice>| choice.unwrap_or(Choice::None).title().to_owned();
            let found = FoundDifference {
                path: b"/".to_vec(),
                kind: DifferenceKind::Convention,
                expected: title(choice),
                found: format!("{}; use --convention to choose one", title(recognised.choice)),
            };
            self.found.entry(found).or_default().push(input);
        }
    }

    fn insert(&mut self, path: &[u8], scanned: ScannedEntry, rule: Option<&Rule>, input: u32) {
        let mut kept = None;
        let mut first_values = None;
        let (role, column) = match scanned.role {
            ScannedRole::Column { template, fact, committed, kept: digest, values } => {
                // Tiles are not copies of each other, whatever their values are needed for.
                kept = digest.filter(|_| rule.is_none_or(|rule| rule.tiled.is_empty()));
                first_values = values;
                let facts = InputExtents::expecting(self.expected_inputs);
                let mut column = Column::new(template, committed, facts);
                column.axis = rule.map_or(0, Rule::axis);
                column.is_lifted = rule.is_some_and(|rule| rule.is_lifted);
                column.facts.fill_to(input as usize, InputExtent::absent(0));
                column.facts.push(fact);
                (Role::Column(0), Some(column))
            }
            ScannedRole::Other(role) => (role, None),
        };
        let declared = rule.map(|rule| {
            Box::new(DeclaredRule {
                entry: 0,
                rule: rule.clone(),
                first: Arc::clone(&scanned.attributes),
                attributes: Vec::new(),
                values: first_values.into_iter().map(|values| (input, values)).collect(),
            })
        });
        let entry = SchemaEntry {
            path: path.to_vec(),
            utf8: scanned.utf8,
            role,
            attributes: scanned.attributes,
            attribute_order: scanned.attribute_order,
            comment: scanned.comment,
        };
        self.by_path.insert(path.to_vec(), self.entries.len());
        let has_rows = column.as_ref().is_some_and(|column| column.rows() > 0);
        self.entries.push(JoinedEntry {
            entry,
            column,
            has_rows,
            kept,
            present: std::iter::once(input..input + 1).collect(),
            dropped_attributes: HashSet::new(),
            other_attributes: Vec::new(),
            differing: StackedScalars::default(),
            declared,
            is_disputed: false,
        });
    }

    fn compare(&mut self, index: usize, mut scanned: ScannedEntry, rule: Option<&Rule>, input: u32) {
        let joined = &mut self.entries[index];
        match joined.present.last_mut() {
            Some(run) if run.end == input => run.end += 1,
            _ => joined.present.push(input..input + 1),
        }
        let known_rule = joined.declared.as_ref().map(|declared| &declared.rule);
        if known_rule != rule {
            let words = |rule: Option<&Rule>| rule.map_or_else(|| Rule::default().describe(), Rule::describe);
            let (path, kind) = (joined.entry.path.clone(), DifferenceKind::Meaning);
            let option = [known_rule, rule].into_iter().flatten().find_map(Rule::option);
            let decides = option.map_or_else(String::new, |option| {
                format!("; --rule '{}: {option}' holds for all inputs", display_path(&path))
            });
            let found = FoundDifference { path, kind, expected: words(known_rule), found: words(rule) + &decides };
            self.found.entry(found).or_default().push(input);
            joined.is_disputed = true;
            return;
        }
        let mut report = |kind, expected: String, found: String| {
            let found = FoundDifference { path: joined.entry.path.clone(), kind, expected, found }.bounded(&self.found);
            self.found.entry(found).or_default().push(input);
        };
        let has_no_rows = matches!(&scanned.role, ScannedRole::Column { fact, .. } if fact.rows == 0);
        let guard = match &joined.entry.role {
            // Without values, their meaning does not matter.
            _ if !self.guards_meaning || has_no_rows => Guard::Nothing,
            Role::Column(_) if !joined.has_rows => Guard::OtherMeaning,
            Role::Column(_) | Role::Constant { .. } => Guard::Meaning,
            _ => Guard::Nothing,
        };
        let is_shared = joined.kept.is_some() || matches!(joined.entry.role, Role::Group { .. });
        let stacks = self.options.attributes == AttributePolicy::Stack && self.options.join != Join::Union;
        if stacks {
            // All differences are examined together at the end.
            if !Arc::ptr_eq(&joined.entry.attributes, &scanned.attributes)
                && *joined.entry.attributes != *scanned.attributes
            {
                joined.other_attributes.push((input, Arc::clone(&scanned.attributes)));
            }
        }
        // Stacked attributes are not reported as differences.
        let mut ignore = |_, _, _| {};
        let of_attributes: &mut dyn FnMut(DifferenceKind, String, String) =
            if stacks { &mut ignore } else { &mut report };
        if self.options.join == Join::Union && is_shared {
            let (known, found) = (&mut joined.entry.attributes, &scanned.attributes);
            unite_attributes(known, found, guard, &mut joined.dropped_attributes, of_attributes);
        } else if !Arc::ptr_eq(&joined.entry.attributes, &scanned.attributes) {
            let (expected, found) = (&joined.entry.attributes, &scanned.attributes);
            match &mut joined.declared {
                Some(declared) if **expected != **found => {
                    let is_handled = |attribute: &&AttributeValue| declared.rule.accounts_for(&attribute.name);
                    let others = |list: &[AttributeValue]| -> Vec<AttributeValue> {
                        list.iter().filter(|attribute| !is_handled(attribute)).cloned().collect()
                    };
                    let (expected, others) = (others(expected), others(found));
                    compare_attributes(&expected, &others, guard, &mut joined.dropped_attributes, of_attributes);
                    declared.attributes.push((input, Arc::clone(found)));
                }
                Some(_) => {}
                None => compare_attributes(expected, found, guard, &mut joined.dropped_attributes, of_attributes),
            }
        }
        if let (ScannedRole::Column { values: values @ Some(_), kept, .. }, Some(declared)) =
            (&mut scanned.role, &mut joined.declared)
            && *kept != joined.kept
        {
            declared.values.extend(values.take().map(|values| (input, values)));
        }
        match (scanned.role, &mut joined.column) {
            (ScannedRole::Column { template, mut fact, kept, .. }, Some(column)) => {
                let is_settled = |kind| joined.declared.as_ref().is_some_and(|declared| settles(&declared.rule, kind));
                if !Arc::ptr_eq(&column.templates[0], &template)
                    && let Some((kind, expected, found)) = compare_datasets(column.model(), &template, column.axis)
                    && !is_settled(kind)
                {
                    report(kind, expected, found);
                }
                if let Some(digest) = joined.kept {
                    let differs = kept != Some(digest) || column.facts.iter().all(|known| known.rows != fact.rows);
                    if differs && !is_settled(DifferenceKind::Scale) {
                        let is_strict = joined.declared.as_ref().is_some_and(|declared| declared.rule.is_strict);
                        let kind = if is_strict { DifferenceKind::Meaning } else { DifferenceKind::Scale };
                        report(kind, "the first input's".to_owned(), OTHER_VALUES.to_owned());
                    }
                    fact.rows = 0;
                } else if self.options.join == Join::Union {
                    report(DifferenceKind::Repeated, "in one input".to_owned(), "another".to_owned());
                }
                // Addresses are compared first, because equal templates are usually shared in memory.
                let is_same = |known: &Arc<Dataset>| Arc::ptr_eq(known, &template) || *known == template;
                fact.template = match column.templates.iter().position(is_same) {
                    Some(known) => known as u32,
                    None => {
                        column.templates.push(template);
                        column.templates.len() as u32 - 1
                    }
                };
                joined.has_rows |= fact.rows > 0;
                column.facts.fill_to(input as usize, InputExtent::absent(0));
                column.facts.push(fact);
            }
            (ScannedRole::Other(role), None) => match (compare_roles(&joined.entry.role, &role), role) {
                (Some((DifferenceKind::Value, expected, found)), _)
                    if joined.declared.as_ref().is_some_and(|declared| declared.rule.is_strict) =>
                {
                    report(DifferenceKind::Meaning, expected, found);
                }
                (Some((kind @ DifferenceKind::Value, ..)), Role::Constant { value, .. })
                    if self.options.scalars == ScalarPolicy::Stack =>
                {
                    report(kind, "one value".to_owned(), "other values: stacked, one per input".to_owned());
                    joined.differing.push(input, value);
                }
                (Some((kind, expected, found)), _) => report(kind, expected, found),
                (None, _) => {}
            },
            (ScannedRole::Other(Role::Constant { dataset, value, .. }), Some(column))
                if self.grows
                    && self.options.scalars == ScalarPolicy::Stack
                    && dataset.dataspace == Dataspace::Scalar
                    && column.model().dataspace.dims().len() == 1
                    && dataset.datatype == column.model().datatype =>
            {
                joined.differing.push(input, value);
                column.facts.fill_to(input as usize, InputExtent::absent(0));
                column.facts.push(InputExtent::absent(1));
            }
            (ScannedRole::Other(role), Some(_)) => {
                report(DifferenceKind::Kind, "dataset".to_owned(), role.word().to_owned());
            }
            (ScannedRole::Column { .. }, None) => {
                report(DifferenceKind::Kind, joined.entry.role.word().to_owned(), "dataset".to_owned());
            }
        }
    }

    /// Completes the join.
    pub fn finish(mut self) -> JoinResult {
        let inputs = self.inputs;
        self.adopt_grown();
        self.report_absences();
        if self.options.join == Join::Inner {
            let derived = &self.derived;
            let stays =
                |joined: &JoinedEntry| joined.is_widest() || derived.iter().any(|spec| spec.makes(&joined.entry.path));
            self.entries.retain(|joined| joined.holders() == inputs || stays(joined));
        }
        // A file that is appended to keeps its attributes.
        let mut stuck = HashSet::new();
        for joined in &mut self.entries {
            let is_once = joined.kept.is_some() || joined.is_widest();
            if let Some(column) = &mut joined.column {
                column.is_once = is_once;
                column.facts.fill_to(inputs as usize, InputExtent::absent(0));
            }
            if self.options.attributes == AttributePolicy::Identical && joined.drop_attributes() {
                stuck.extend(self.grows.then(|| joined.entry.path.clone()));
            }
        }
        if self.options.join == Join::Outer {
            for AmbiguousFill { path, input, lengths } in fill_absent_rows(&mut self.entries, inputs) {
                let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
                let (kind, expected) = (DifferenceKind::Rows, "the number of rows of its table".to_owned());
                let found = format!("nothing, and tables of {} rows", lengths.join(" and "));
                self.found.entry(FoundDifference { path, kind, expected, found }).or_default().push(input);
            }
        }
        // With different conventions, everything else differs too.
        if self.found.keys().any(|found| found.kind == DifferenceKind::Convention) {
            self.found.retain(|found, _| found.kind == DifferenceKind::Convention);
        }
        let (mut differences, mut warnings) = self.make_of_inputs();
        differences.extend(self.stack_scalars());
        for (found, mut inputs) in std::mem::take(&mut self.found) {
            if found.kind == DifferenceKind::Repeated
                && let Some(&index) = self.by_path.get(&found.path)
                && let Some(first) = self.entries[index].present.first()
            {
                inputs.insert(0, first.start); // none of them is the right one
            }
            let difference = Difference {
                path: display_path(&found.path),
                kind: found.kind,
                expected: found.expected,
                found: found.found,
                inputs,
            };
            let is_stuck = found.kind == DifferenceKind::Attributes && stuck.contains(&found.path);
            if self.is_bridged(found.kind) && !is_stuck {
                warnings.push(difference)
            } else {
                differences.push(difference)
            }
        }
        let (mut schema, mut all_declared) = (Schema::default(), Vec::new());
        for joined in sort_parents_first(self.entries) {
            let JoinedEntry { mut entry, column, declared, is_disputed, .. } = joined;
            if let Some(mut declared) = declared.filter(|_| !is_disputed) {
                declared.entry = schema.entries.len() as u32;
                all_declared.push(*declared);
            }
            if let Some(mut column) = column {
                entry.role = Role::Column(schema.columns.len() as u32);
                column.entry = schema.entries.len() as u32;
                schema.columns.push(column);
            }
            schema.entries.push(entry);
        }
        JoinResult {
            schema,
            differences,
            warnings,
            declared: all_declared,
            convention: self.convention.flatten(),
            uncounted: Vec::new(),
            because: self.because,
        }
    }

    fn is_bridged(&self, kind: DifferenceKind) -> bool {
        match kind {
            DifferenceKind::Missing | DifferenceKind::Extra => self.options.join != Join::Exact,
            DifferenceKind::Attributes => match self.options.attributes {
                AttributePolicy::Error => false,
                AttributePolicy::Stack => self.options.join != Join::Union,
                _ => true,
            },
            DifferenceKind::Value => self.options.scalars != ScalarPolicy::Equal,
            DifferenceKind::Scale => self.options.scalars == ScalarPolicy::First,
            DifferenceKind::Dangling | DifferenceKind::FillValue | DifferenceKind::Index => true,
            _ => false,
        }
    }

    /// Reports objects that some inputs lack. Members of an absent group are not listed individually.
    fn report_absences(&mut self) {
        if self.options.join == Join::Union {
            return;
        }
        let absent_parents: HashSet<&[u8]> = self
            .entries
            .iter()
            .filter(|joined| joined.holders() < self.inputs && matches!(joined.entry.role, Role::Group { .. }))
            .map(|joined| joined.entry.path.as_slice())
            .collect();
        for joined in &self.entries {
            let parent = parent_path(&joined.entry.path);
            if joined.holders() == self.inputs || joined.is_widest() || absent_parents.contains(parent) {
                continue;
            }
            let has = |input: u32| joined.present.iter().any(|run| run.contains(&input));
            let is_missing = has(0);
            let (kind, expected, found) = if is_missing {
                (DifferenceKind::Missing, joined.entry.role.word(), "nothing")
            } else {
                (DifferenceKind::Extra, "nothing", joined.entry.role.word())
            };
            let (expected, found) = (expected.to_owned(), found.to_owned());
            let found = FoundDifference { path: joined.entry.path.clone(), kind, expected, found };
            self.found.insert(found, (0..self.inputs).filter(|&input| has(input) != is_missing).collect());
        }
    }
}

/// Whether a rule accounts for this kind of difference between datasets when it is settled.
fn settles(rule: &Rule, kind: DifferenceKind) -> bool {
    match kind {
        DifferenceKind::Datatype => !matches!(rule.values, ValueMeaning::Plain | ValueMeaning::Categories { .. }),
        DifferenceKind::TrailingDimensions => rule.labels.is_some() || rule.widened.is_some() || !rule.tiled.is_empty(),
        DifferenceKind::Scale => rule.keeps_values() || rule.placement == Placement::OnceOrLeftOut,
        _ => false,
    }
}

/// Sorts entries in creation order: objects first seen in a later input follow the existing children of their parent.
fn sort_parents_first(entries: Vec<JoinedEntry>) -> Vec<JoinedEntry> {
    let mut children: HashMap<Vec<u8>, Vec<JoinedEntry>> = HashMap::new();
    let mut roots = Vec::new();
    for joined in entries {
        if joined.entry.path == b"/" {
            roots.push(joined);
        } else {
            children.entry(parent_path(&joined.entry.path).to_vec()).or_default().push(joined);
        }
    }
    let mut sorted = Vec::new();
    let mut stack = roots;
    while let Some(joined) = stack.pop() {
        if let Some(inside) = children.remove(&joined.entry.path) {
            stack.extend(inside.into_iter().rev());
        }
        sorted.push(joined);
    }
    sorted
}

/// Whether the group is an index of PyTables over columns of a table, which refers to rows by their numbers in one
/// file.
fn is_table_index(entry: &ScannedEntry) -> bool {
    matches!(entry.role, ScannedRole::Other(Role::Group { .. }))
        && entry.attributes.iter().any(|attribute| attribute.name == b"CLASS" && attribute.value.starts_with(b"TINDEX"))
}
