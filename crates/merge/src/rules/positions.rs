//! Positions of rows of another dataset, which must refer to the rows of the output instead of those of one input.
//!
//! Invariant: the output's type holds every position. The check whether positions fit the dataset to which they refer
//! runs during planning ([`super::check`]).

use super::conversion::{Conversion, ElementMap, InputConversion, Trim};
use super::settling::{DeclaredRule, Mismatch, Settling, common_number};
use super::unpack::missing_values;
use super::{Placement, PositionForm};
use crate::schema::{ABSENT, ColumnIndex, InputExtent, child_path, display_path, parent_path};

/// The dataset or dimension to whose rows positions refer.
pub(super) struct Target<'a> {
    pub path: &'a [u8],
    /// Number of rows in each input if it is a dimension, whose own dataset may be shorter.
    pub lengths: Option<&'a [u64]>,
    /// Whether rows are left out because inputs have them in common.
    pub is_trimmed: bool,
}

/// Settles positions that are kept once: the rows of `target` must be kept once as well.
pub(super) fn settle_once(settling: &mut Settling<'_>, declared: &DeclaredRule, target: &[u8]) {
    settling.require_equal(declared, &[]);
    let is_declared_once = settling.declared_at(target).is_some_and(|target| target.rule.placement == Placement::Once);
    // --keep takes no rows of later inputs.
    let has_rows_of_others = |column: ColumnIndex| {
        settling.schema.columns[column as usize].facts.iter().filter(|fact| fact.rows > 0).count() > 1
    };
    let is_concatenated = settling.column_at(target).is_none_or(has_rows_of_others);
    if !is_declared_once && is_concatenated {
        let table = display_path(parent_path(target));
        let members = display_path(&child_path(parent_path(target), b"**"));
        let found =
            format!("rows of several inputs; --keep '{members}' keeps those of the first, if all inputs have the same");
        settling.refuse(declared.entry, Mismatch::new(format!("one copy of {table}"), found), Vec::new());
    }
}

/// Settles positions of rows of `target`.
pub(super) fn settle(
    settling: &mut Settling<'_>,
    declared: &DeclaredRule,
    column: ColumnIndex,
    target: &Target<'_>,
    form: PositionForm,
) {
    settling.require_equal(declared, &[]);
    let path = display_path(target.path);
    let Some(target_column) = settling.column_at(target.path) else {
        let mismatch = Mismatch::new(format!("positions of rows of {path}"), "no such dataset");
        return settling.refuse(declared.entry, mismatch, Vec::new());
    };
    if target.is_trimmed {
        let found = "some are left out, because inputs have them in common";
        return settling.refuse(declared.entry, Mismatch::new(format!("all rows of {path}"), found), Vec::new());
    }
    let of_dataset = || settling.schema.columns[target_column as usize].facts.iter().map(|fact| fact.rows).collect();
    let rows: Vec<u64> = target.lengths.map_or_else(of_dataset, <[u64]>::to_vec);
    let facts = &settling.schema.columns[column as usize].facts;
    let lacking: Vec<u32> = (0..)
        .zip(facts.iter())
        .filter(|(_, fact)| fact.template == ABSENT || form == PositionForm::Bounds && fact.rows == 0)
        .map(|(input, _)| input)
        .collect();
    if !lacking.is_empty() && rows.iter().any(|&rows| rows > 0) {
        let mismatch = Mismatch::new(format!("positions of the rows of {path}"), "none");
        return settling.refuse(declared.entry, mismatch, lacking);
    }
    let total = rows.iter().fold(0, |sum: u64, rows| sum.saturating_add(*rows));
    let number = common_number(&settling.schema.columns[column as usize]).filter(|number| number.is_integer());
    let Some(number) = number.and_then(|number| number.widened_to(total)) else {
        let mismatch = Mismatch::new(format!("integers up to {total}"), "numbers of another kind");
        return settling.refuse(declared.entry, mismatch, Vec::new());
    };
    let is_one_input = rows.iter().filter(|&&rows| rows > 0).count() < 2;
    let taken = |value: &f64| (0.0..total as f64).contains(value);
    if !is_one_input && let Some(value) = missing_values(&declared.first).into_iter().find(taken) {
        let expected = format!("a number that is not a position of the {total} rows of {path}");
        return settling.refuse(
            declared.entry,
            Mismatch::attribute("_FillValue or missing_value", expected, value.to_string()),
            Vec::new(),
        );
    }
    let shifts = rows.iter().scan(0_i64, |first, &rows| {
        let shift = *first;
        *first = first.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
        Some(shift)
    });
    let maps = shifts.map(|shift| if shift == 0 { ElementMap::Same } else { ElementMap::Shift(shift) }).collect();
    let of_inputs = settling.with_casts(column, number, maps).into_iter();
    let scanned = &settling.schema.columns[column as usize];
    let pick = |input| scanned.conversion_of(input).and_then(|conversion| conversion.pick.clone());
    let of_inputs = (0..).zip(of_inputs);
    let of_inputs = of_inputs.map(|(input, map)| InputConversion { map, gather: None, pick: pick(input) }).collect();
    settling.convert(column, Some(number.class()), Conversion { of_inputs });
    if form == PositionForm::Bounds {
        // The end of one input is the beginning of the next, so it is stored once.
        let facts = &settling.schema.columns[column as usize].facts;
        let trim =
            |(input, fact): (usize, &InputExtent)| (input > 0).then_some(Trim { leading: 1, stored_rows: fact.rows });
        let trims = facts.iter().enumerate().map(trim).collect();
        settling.trim(column, trims, |input, rows| if input > 0 { rows.saturating_sub(1) } else { rows });
    }
}
