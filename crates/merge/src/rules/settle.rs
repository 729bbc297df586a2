//! Settling turns the rules of a joined schema into conversions, sizes and attributes of the output, or refusals.
//!
//! It uses only extents and attributes; checks that need values of the inputs come later ([`super::check`]).

use super::conversion::{Conversion, ElementMap, Gather, InputConversion, Trim};
use super::packed::Ranges;
use super::pickled::{self, INFO};
use super::record_lengths::record_lengths;
use super::records::{RecordTrims, TakenRecords};
use super::settling::{DeclaredRule, Mismatch, Settling};
use super::unit_scale::UNWRITTEN;
use super::versions::{self, CONVENTIONS};
use super::{Placement, ValueMeaning, absent, coordinate, packing, positions};
use crate::conventions::ConventionOptions;
use crate::schema::join::{Difference, describe_both};
use crate::schema::{ABSENT, InputExtent, Schema};
use raddle_hdf5::model::Dataspace;
use std::collections::HashMap;

/// Settles the `declared` rules of `schema`. Returns the mismatches that cannot be reconciled, and the paths of values
/// whose range is needed.
pub(crate) fn settle(
    schema: &mut Schema,
    declared: &[DeclaredRule],
    options: &ConventionOptions,
    taken: &RecordTrims,
    ranges: &Ranges,
    is_new: bool,
) -> (Vec<Difference>, Vec<Vec<u8>>) {
    let mut settling = Settling::new(schema, declared, options, ranges, is_new);
    let rules = declared.iter().map(|one| (one.entry, &one.rule));
    let lengths = record_lengths(settling.schema, rules);
    for one in declared {
        settling.widen(one);
        settling.entry(one, &lengths, taken);
        if let Some(column) = settling.column_of(one) {
            absent::settle(&mut settling, one, column, &lengths);
        }
        settling.require_one_type(one);
        settling.pad_records(one, &lengths);
        settling.take_records(one, taken);
    }
    (settling.differences, settling.unranged)
}

impl Settling<'_> {
    fn entry(&mut self, declared: &DeclaredRule, lengths: &HashMap<Vec<u8>, Vec<u64>>, taken: &RecordTrims) {
        let column = self.column_of(declared);
        match (&declared.rule.values, column) {
            (ValueMeaning::Positions { target, .. }, _) if declared.rule.placement == Placement::Once => {
                positions::settle_once(self, declared, target);
            }
            (ValueMeaning::Positions { target, form }, Some(column)) => {
                let lengths = lengths.get(target).map(Vec::as_slice);
                let is_trimmed = lengths.is_some_and(|lengths| taken.leaves_out(target, lengths));
                let target = positions::Target { path: target, lengths, is_trimmed };
                positions::settle(self, declared, column, &target, *form);
            }
            (ValueMeaning::Time(form), Some(column)) if matches!(declared.rule.placement, Placement::Along(_)) => {
                coordinate::settle(self, declared, column, *form);
            }
            (ValueMeaning::TimeOf { time }, Some(column)) => coordinate::settle_like(self, declared, column, time),
            (ValueMeaning::Packed, Some(column)) if matches!(declared.rule.placement, Placement::Along(_)) => {
                packing::settle(self, declared, column);
            }
            _ if pickled::are_same(declared) => self.require_equal(declared, &[INFO]),
            _ if versions::settle(self, declared) => self.require_equal(declared, &[CONVENTIONS]),
            _ => self.require_equal(declared, &[]),
        }
    }

    /// Refuses inputs whose values have a different type than the output's and are not converted.
    fn require_one_type(&mut self, declared: &DeclaredRule) {
        let Some(column) = self.column_of(declared) else { return };
        let scanned = &self.schema.columns[column as usize];
        let differs = |(input, fact): &(u32, &InputExtent)| {
            let is_same = scanned.conversion_of(*input).is_none_or(|one| one.map == ElementMap::Same);
            let template = scanned.templates.get(fact.template as usize);
            is_same && template.is_some_and(|template| !template.datatype.has_same_elements(&scanned.model().datatype))
        };
        let differing: Vec<u32> = (0..).zip(scanned.facts.iter()).filter(differs).map(|(input, _)| input).collect();
        let Some(first) = differing.first() else { return };
        let template = scanned.facts[*first as usize].template as usize;
        let (expected, found) =
            describe_both(&scanned.model().datatype.class, &scanned.templates[template].datatype.class);
        self.refuse(declared.entry, Mismatch::new(expected, found), differing);
    }

    /// Adds rows of the fill value to a dataset that stores fewer records than its input has.
    fn pad_records(&mut self, declared: &DeclaredRule, lengths: &HashMap<Vec<u8>, Vec<u64>>) {
        let Some(column) = self.column_of(declared).filter(|_| declared.rule.placement != Placement::Empty) else {
            return;
        };
        let Some(lengths) = declared.rule.record.as_ref().and_then(|record| lengths.get(record)) else { return };
        let scanned = &self.schema.columns[column as usize];
        let is_short = |(fact, length): (&InputExtent, &u64)| fact.template != ABSENT && fact.rows < *length;
        let short: Vec<u32> = (0..)
            .zip(scanned.facts.iter().zip(lengths))
            .filter(|(_, pair)| is_short(*pair))
            .map(|(input, _)| input)
            .collect();
        let is_empty = |(axis, &dim): (usize, &u64)| axis != scanned.axis && dim == 0;
        // Readers return fill values for a dataset of which nothing was written along any of its unlimited dimensions.
        if short.is_empty() || scanned.model().dataspace.dims().iter().enumerate().any(is_empty) {
            return;
        }
        if !self.is_new && short.first() == Some(&0) {
            let found = "fewer, which an append cannot fill; merge all inputs into a new file";
            return self.refuse(declared.entry, Mismatch::new("all records of the file", found), vec![0]);
        }
        let changes =
            |input: &u32| scanned.conversion_of(*input).is_some_and(|conversion| conversion.map.changes_unwritten());
        if short.iter().any(changes) {
            let inputs = short.iter().copied().filter(changes).collect();
            let mismatch = Mismatch::new("all records", format!("fewer, and the value of the others {UNWRITTEN}"));
            return self.refuse(declared.entry, mismatch, inputs);
        }
        if scanned.is_file_local() {
            let mismatch = Mismatch::new("strings of all records", "fewer, whose rows cannot be filled");
            return self.refuse(declared.entry, mismatch, short);
        }
        let trim = |pair: (&InputExtent, &u64)| is_short(pair).then_some(Trim { leading: 0, stored_rows: pair.0.rows });
        let trims = scanned.facts.iter().zip(lengths).map(trim).collect();
        let is_short = |input: usize| short.binary_search(&(input as u32)).is_ok();
        self.trim(column, trims, |input, rows| if is_short(input) { lengths[input] } else { rows });
    }

    /// Extends an axis of characters to the largest size among the inputs.
    fn widen(&mut self, declared: &DeclaredRule) {
        let Some(column) = self.column_of(declared) else { return };
        let scanned = &mut self.schema.columns[column as usize];
        if declared.rule.placement == Placement::Widest {
            let widest = scanned.facts.iter().map(|fact| fact.rows).max().unwrap_or(0);
            let mut is_taken = false;
            let take = |fact: &InputExtent| {
                let rows = if fact.rows == widest && !std::mem::replace(&mut is_taken, true) { widest } else { 0 };
                let rows = if is_taken && rows == 0 { 0 } else { rows };
                InputExtent { rows, ..*fact }
            };
            scanned.facts = scanned.facts.iter().map(take).collect();
            return;
        }
        let Some(axis) = declared.rule.widened else { return };
        let size = |fact: &InputExtent| {
            scanned
                .templates
                .get(fact.template as usize)
                .and_then(|template| template.dataspace.dims().get(axis).copied())
        };
        let sizes: Vec<Option<u64>> = scanned.facts.iter().map(size).collect();
        let Some(widest) = sizes.iter().flatten().copied().max() else { return };
        if sizes.iter().flatten().all(|size| *size == widest) {
            return;
        }
        let gather = |size: &Option<u64>| {
            let gather = size.filter(|size| *size < widest).map(|size| Gather {
                axis,
                from: (0..widest).map(|at| (at < size).then_some(at as u32)).collect(),
                len: size,
            });
            InputConversion { gather, ..InputConversion::default() }
        };
        let of_inputs = sizes.iter().map(gather).collect();
        let of_output = scanned.model().dataspace.dims().get(axis).copied().filter(|size| *size < widest);
        if let Some(size) = of_output {
            if !self.is_new {
                let longer = |(input, size): (u32, &Option<u64>)| (*size > of_output).then_some(input);
                let longer: Vec<u32> = (0..).zip(&sizes).filter_map(longer).collect();
                let found = format!("up to {widest}; merge all inputs again");
                let mismatch = Mismatch::new(format!("strings of up to {size} characters"), found);
                return self.refuse(declared.entry, mismatch, longer);
            }
            let mut output = scanned.model().clone();
            if let Dataspace::Simple { dims, max_dims } = &mut output.dataspace {
                (dims[axis], max_dims[axis]) = (widest, max_dims[axis].max(widest));
            }
            scanned.set_output(output);
        }
        self.convert(column, None, Conversion { of_inputs });
    }

    /// Restricts each input to some of its records, if inputs have records in common.
    fn take_records(&mut self, declared: &DeclaredRule, taken: &RecordTrims) {
        let Some(column) = self.column_of(declared) else { return };
        let Some(taken) = declared.rule.record.as_ref().and_then(|record| taken.0.get(record)) else { return };
        let scanned = &self.schema.columns[column as usize];
        let trim = |((input, fact), taken): ((u32, &InputExtent), &TakenRecords)| {
            let stored_rows = scanned.trim_of(input).map_or(fact.rows, |trim| trim.stored_rows);
            (*taken != TakenRecords { leading: 0, count: stored_rows })
                .then_some(Trim { leading: taken.leading, stored_rows })
        };
        let trims = (0..).zip(scanned.facts.iter()).zip(taken).map(trim).collect();
        self.trim(column, trims, |input, _| taken[input].count);
    }
}
