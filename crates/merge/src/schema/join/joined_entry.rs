//! An object of the output, collected from the inputs that have it.

use crate::rules::settling::DeclaredRule;
use crate::rules::{Placement, Rule};
use crate::scan::{ScannedEntry, ScannedRole};
use crate::schema::extents::InputExtents;
use crate::schema::stacked_scalars::DifferingScalars;
use crate::schema::{ABSENT, AttributeValue, Column, Role, SchemaEntry};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// An object of the output, with the facts known from the inputs so far.
#[derive(Debug)]
pub(super) struct JoinedEntry {
    pub entry: SchemaEntry,
    pub column: Option<Column>,
    /// Whether any input so far has rows of the column. It is cached, because summing over all inputs for each input
    /// would be quadratic.
    pub has_rows: bool,
    /// Digest of a dataset that is stored once.
    pub kept: Option<u64>,
    /// Runs of inputs that have the object, ascending; nearly always a single run.
    pub present: Vec<Range<u32>>,
    pub dropped_attributes: HashSet<Vec<u8>>,
    /// Attributes that differ from those of the first input and are stacked, by input number.
    pub other_attributes: Vec<(u32, Arc<[AttributeValue]>)>,
    /// Values of a scalar that differ from the first one.
    pub differing: DifferingScalars,
    /// Facts about the inputs that a rule needs; `None` if no rule applies.
    pub declared: Option<Box<DeclaredRule>>,
    /// Whether inputs have different rules for the object, in which case no rule is applied to it.
    pub is_disputed: bool,
}

impl JoinedEntry {
    /// Creates the entry of an object that no input before `input` has, with the object in `input` as its model.
    pub fn of_model(
        path: &[u8],
        scanned: ScannedEntry,
        rule: Option<&Rule>,
        input: u32,
        expected_inputs: usize,
    ) -> Self {
        let mut kept = None;
        let mut first_values = None;
        let (role, column) = match scanned.role {
            ScannedRole::Column { template, fact, committed, kept: digest, values } => {
                // Tiles are not copies of each other, whatever their values are needed for.
                kept = digest.filter(|_| rule.is_none_or(|rule| rule.tiled.is_empty()));
                first_values = values;
                let facts = InputExtents::expecting(expected_inputs);
                let mut column = Column::new(template, committed, facts);
                column.axis = rule.map_or(0, Rule::axis);
                column.is_lifted = rule.is_some_and(|rule| rule.is_lifted);
                column.add_extent(input, fact);
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
        let has_rows = column.as_ref().is_some_and(|column| column.rows() > 0);
        Self {
            entry,
            column,
            has_rows,
            kept,
            present: std::iter::once(input..input + 1).collect(),
            dropped_attributes: HashSet::new(),
            other_attributes: Vec::new(),
            differing: DifferingScalars::default(),
            declared,
            is_disputed: false,
        }
    }

    /// Records that `input`, which follows all earlier inputs, has the object.
    pub fn add_holder(&mut self, input: u32) {
        match self.present.last_mut() {
            Some(run) if run.end == input => run.end += 1,
            _ => self.present.push(input..input + 1),
        }
    }

    /// Returns the number of inputs that have it.
    pub fn holders(&self) -> u32 {
        self.present.iter().map(|run| run.end - run.start).sum()
    }

    /// Returns whether the object is a string-length dimension, which may have a different name in each input.
    pub fn is_widest(&self) -> bool {
        self.declared.as_ref().is_some_and(|declared| declared.rule.placement == Placement::Widest)
    }

    /// Removes attributes that are not the same in all inputs; returns whether there were any.
    pub fn drop_attributes(&mut self) -> bool {
        let (dropped, attributes) = (&self.dropped_attributes, &mut self.entry.attributes);
        let is_any = attributes.iter().any(|attribute| dropped.contains(&attribute.name));
        if is_any {
            let kept = attributes.iter().filter(|attribute| !dropped.contains(&attribute.name));
            *attributes = kept.cloned().collect();
        }
        is_any
    }

    /// Returns the inputs that have the column, and its number of rows in each.
    pub fn lengths(&self) -> Vec<(u32, u64)> {
        let facts = (0..).zip(self.column.iter().flat_map(|column| column.facts.iter()));
        facts.filter(|(_, fact)| fact.template != ABSENT).map(|(input, fact)| (input, fact.rows)).collect()
    }
}
