//! Comparison of an object of an input with its model, to which the facts about the input are added.
//!
//! Invariant: the order of the extents of a column is the order of inputs, whatever differs.

use super::attributes::{GUARDED, Guard, compare_attributes, unite_attributes};
use super::compare::{compare_datasets, compare_roles};
use super::found::FoundDifferences;
use super::joined_entry::JoinedEntry;
use super::series::gap;
use super::{AttributePolicy, DifferenceKind, Join, JoinOptions, ScalarPolicy};
use crate::rules::once::OTHER_VALUES;
use crate::rules::{Placement, Rule, ValueMeaning};
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::{AttributeValue, Column, InputExtent, Role, display_path};
use raddle_hdf5::model::{Dataset, Dataspace};
use std::sync::Arc;

/// An object of an input and its model.
pub(super) struct Comparison<'a> {
    /// The model, and what other inputs have added to it.
    pub joined: &'a mut JoinedEntry,
    /// Store that receives the differences.
    pub found: &'a mut FoundDifferences,
    pub options: &'a JoinOptions,
    /// Whether attributes that change the meaning of values are refused.
    pub guards_meaning: bool,
    /// Whether the first input is a file to which the others are appended.
    pub grows: bool,
    /// Number of the input.
    pub input: u32,
}

impl Comparison<'_> {
    /// Compares the object with its model and adds its facts, unless the inputs have different rules for it.
    pub fn run(mut self, mut scanned: ScannedEntry, rule: Option<&Rule>) {
        self.joined.add_holder(self.input);
        let is_same = match (&self.joined.declared, rule) {
            (Some(declared), Some(rule)) => declared.rule.is_like(rule),
            (None, None) => true,
            _ => false,
        };
        if !is_same && !self.is_length_of_strings(rule) {
            self.dispute(rule);
            return;
        }
        if let (Some(declared), Some(rule)) = (&mut self.joined.declared, rule) {
            declared.rule.is_coordinate |= rule.is_coordinate;
        }
        self.compare_series(&scanned);
        self.compare_attributes(&scanned.attributes, self.guard(&scanned.role));
        self.keep_values(&mut scanned.role);
        self.compare_content(scanned.role);
    }

    fn report(&mut self, kind: DifferenceKind, expected: String, found: String) {
        self.found.add(&self.joined.entry.path, kind, expected, found, self.input);
    }

    /// Returns whether the object is a dimension that variables other than strings use only in some inputs. Its length
    /// is then compared with that of the variables, as for strings.
    fn is_length_of_strings(&mut self, rule: Option<&Rule>) -> bool {
        let (Some(declared), Some(rule)) = (&mut self.joined.declared, rule) else { return false };
        let (of_strings, of_others) = match (declared.rule.placement, rule.placement) {
            (Placement::Widest, Placement::Once) => (&declared.rule, rule),
            (Placement::Once, Placement::Widest) => (rule, &declared.rule),
            _ => return false,
        };
        let of_strings = of_strings.clone();
        if (Rule { placement: Placement::Once, widened: None, ..of_strings.clone() }) != *of_others {
            return false;
        }
        declared.rule = of_strings;
        self.joined.kept = None;
        true
    }

    /// Reports that the input has another rule for the object.
    fn dispute(&mut self, rule: Option<&Rule>) {
        let known = self.joined.declared.as_ref().map(|declared| &declared.rule);
        let option = [known, rule].into_iter().flatten().find_map(Rule::option);
        let decides = option.map_or_else(String::new, |option| {
            format!("; --rule '{}: {option}' holds for all inputs", display_path(&self.joined.entry.path))
        });
        let default = Rule::default();
        let (expected, found) = known.unwrap_or(&default).contrast(rule.unwrap_or(&default));
        self.report(DifferenceKind::Meaning, expected, found + &decides);
        self.joined.is_disputed = true;
    }

    /// Returns which attributes may not differ.
    fn guard(&self, found: &ScannedRole) -> Guard {
        let has_no_rows = matches!(found, ScannedRole::Column { fact, .. } if fact.rows == 0);
        match &self.joined.entry.role {
            // Without values, their meaning does not matter.
            _ if !self.guards_meaning || has_no_rows => Guard::Nothing,
            Role::Column(_) if !self.joined.has_rows => Guard::OtherMeaning,
            Role::Column(_) | Role::Constant { .. } => Guard::Meaning,
            _ => Guard::Nothing,
        }
    }

    /// Reports attributes that differ, except those that a rule accounts for, and keeps attributes that are needed
    /// later.
    fn compare_attributes(&mut self, found: &Arc<[AttributeValue]>, guard: Guard) {
        let Self { joined, found: differences, options, input, .. } = self;
        let JoinedEntry { entry, dropped_attributes: dropped, declared, kept, other_attributes, .. } = &mut **joined;
        let stacks = options.attributes == AttributePolicy::Stack && options.join != Join::Union;
        let mut report = |kind, expected, found| {
            // Stacked attributes are examined together at the end.
            if !stacks {
                differences.add(&entry.path, kind, expected, found, *input);
            }
        };
        let is_shared = kept.is_some() || matches!(entry.role, Role::Group { .. });
        if options.unites(*input) && is_shared {
            unite_attributes(&mut entry.attributes, found, guard, dropped, &mut report);
            return;
        }
        if Arc::ptr_eq(&entry.attributes, found) || *entry.attributes == **found {
            return;
        }
        if stacks {
            other_attributes.push((*input, Arc::clone(found)));
        }
        let Some(declared) = declared else {
            compare_attributes(&entry.attributes, found, guard, dropped, &mut report);
            return;
        };
        let others = |list: &[AttributeValue]| -> Vec<AttributeValue> {
            list.iter().filter(|attribute| !declared.rule.accounts_for(&attribute.name)).cloned().collect()
        };
        compare_attributes(&others(&entry.attributes), &others(found), guard, dropped, &mut report);
        declared.attributes.push((*input, Arc::clone(found)));
    }

    /// Reports a regularly sampled series that the input does not continue.
    fn compare_series(&mut self, scanned: &ScannedEntry) {
        let (JoinedEntry { entry, column, declared, .. }, found) = (&*self.joined, &scanned.attributes);
        let is_series = self.guard(&scanned.role) == Guard::Meaning && declared.is_none();
        let Some(column) = column.as_ref().filter(|_| is_series && *entry.attributes != **found) else { return };
        if self.options.attributes != AttributePolicy::Stack
            && let Some((expected, found)) = gap(&entry.attributes, found, || column.rows())
        {
            self.report(DifferenceKind::Meaning, expected, format!("{found}; {GUARDED}"));
        }
    }

    /// Keeps the values that a rule needs and that differ from the first ones.
    fn keep_values(&mut self, role: &mut ScannedRole) {
        if let (ScannedRole::Column { values: values @ Some(_), kept, .. }, Some(declared)) =
            (role, &mut self.joined.declared)
            && *kept != self.joined.kept
        {
            declared.values.extend(values.take().map(|values| (self.input, values)));
        }
    }

    /// Compares the kinds and the contents of the objects.
    fn compare_content(&mut self, role: ScannedRole) {
        let mut column = self.joined.column.take();
        match (role, &mut column) {
            (ScannedRole::Column { template, fact, kept, .. }, Some(column)) => {
                self.compare_column(column, template, fact, kept);
            }
            (ScannedRole::Other(role), None) => self.compare_single(role),
            (ScannedRole::Other(Role::Constant { dataset, value, .. }), Some(column))
                if self.is_row_of(column, &dataset) =>
            {
                self.joined.differing.push(self.input, value);
                column.add_extent(self.input, InputExtent::absent(1));
            }
            (ScannedRole::Other(role), Some(_)) => {
                self.report(DifferenceKind::Kind, "dataset".to_owned(), role.word().to_owned());
            }
            (ScannedRole::Column { .. }, None) => {
                self.report(DifferenceKind::Kind, self.joined.entry.role.word().to_owned(), "dataset".to_owned());
            }
        }
        self.joined.column = column;
    }

    /// Compares datasets that are concatenated or stored once, and adds the extent of the input's dataset.
    fn compare_column(
        &mut self,
        column: &mut Column,
        template: Arc<Dataset>,
        mut fact: InputExtent,
        kept: Option<u64>,
    ) {
        if !Arc::ptr_eq(&column.templates[0], &template)
            && let Some((kind, expected, found)) = compare_datasets(column.model(), &template, column.axis)
            && !(self.is_settled(kind) && self.has_settled_sizes(column, &template))
        {
            self.report(kind, expected, found);
        }
        if let Some(digest) = self.joined.kept {
            let differs = kept != Some(digest) || column.facts.iter().all(|known| known.rows != fact.rows);
            if differs && !self.is_settled(DifferenceKind::Scale) {
                let rule = self.joined.declared.as_ref().map(|declared| &declared.rule);
                let kind = match rule {
                    Some(rule) if rule.is_strict => DifferenceKind::Meaning,
                    Some(rule) if rule.is_coordinate => DifferenceKind::Coordinate,
                    _ => DifferenceKind::Scale,
                };
                self.report(kind, "the first input's".to_owned(), OTHER_VALUES.to_owned());
            }
            fact.rows = 0;
        } else if self.options.unites(self.input) {
            self.report(DifferenceKind::Repeated, "in one input".to_owned(), "another".to_owned());
        }
        self.joined.has_rows |= fact.rows > 0;
        fact.template = column.number_of_template(template);
        column.add_extent(self.input, fact);
    }

    /// Compares objects that the output has only once.
    fn compare_single(&mut self, found: Role) {
        let Some((kind, expected, words)) = compare_roles(&self.joined.entry.role, &found) else { return };
        match found {
            _ if kind == DifferenceKind::Value && self.is_strict() => {
                self.report(DifferenceKind::Meaning, expected, words);
            }
            _ if kind == DifferenceKind::Value
                && self.stays_scalar()
                && self.options.scalars != ScalarPolicy::First =>
            {
                let found = format!("{words}; --scalars first keeps the first input's");
                self.report(DifferenceKind::Meaning, expected, found);
            }
            Role::Constant { value, .. }
                if kind == DifferenceKind::Value && self.options.scalars == ScalarPolicy::Stack =>
            {
                self.report(kind, "one value".to_owned(), "other values: stacked, one per input".to_owned());
                self.joined.differing.push(self.input, value);
            }
            _ => self.report(kind, expected, words),
        }
    }

    /// Returns whether a scalar becomes a row of the column that an earlier merge stacked.
    fn is_row_of(&self, column: &Column, scalar: &Dataset) -> bool {
        self.grows
            && self.options.scalars == ScalarPolicy::Stack
            && scalar.dataspace == Dataspace::Scalar
            && column.model().dataspace.dims().len() == 1
            && scalar.datatype.has_same_elements(&column.model().datatype)
    }

    /// Returns whether differences in values change what other datasets mean.
    fn is_strict(&self) -> bool {
        self.joined.declared.as_ref().is_some_and(|declared| declared.rule.is_strict)
    }

    /// Returns whether readers require a scalar here.
    fn stays_scalar(&self) -> bool {
        self.joined.declared.as_ref().is_some_and(|declared| declared.rule.stays_scalar)
    }

    /// Returns whether the sizes of a dataset of an input differ only along axes that the rule of the object accounts for.
    fn has_settled_sizes(&self, column: &Column, found: &Dataset) -> bool {
        let rule = self.joined.declared.as_ref().map(|declared| &declared.rule);
        let is_settled = |axis: usize| {
            axis == column.axis
                || rule.is_some_and(|rule| {
                    rule.widened == Some(axis)
                        || rule.labels.as_ref().is_some_and(|labels| labels.axis == axis)
                        || rule.tiled.iter().any(|(tiled, _)| *tiled == axis)
                })
        };
        let sizes = column.model().dataspace.dims().iter().zip(found.dataspace.dims()).enumerate();
        sizes.into_iter().all(|(axis, (known, found))| known == found || is_settled(axis))
    }

    /// Returns whether the rule of the object accounts for this kind of difference.
    fn is_settled(&self, kind: DifferenceKind) -> bool {
        self.joined.declared.as_ref().is_some_and(|declared| settles(&declared.rule, kind))
    }
}

/// Returns whether a rule accounts for this kind of difference between datasets when it is settled.
fn settles(rule: &Rule, kind: DifferenceKind) -> bool {
    match kind {
        DifferenceKind::Datatype => !matches!(rule.values, ValueMeaning::Plain | ValueMeaning::Categories { .. }),
        DifferenceKind::TrailingDimensions => rule.labels.is_some() || rule.widened.is_some() || !rule.tiled.is_empty(),
        DifferenceKind::Scale => rule.keeps_values() || rule.placement == Placement::OnceOrLeftOut,
        _ => false,
    }
}
