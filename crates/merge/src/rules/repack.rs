//! `--packing repack`: one packing for the values of all inputs, with the smallest possible step.
//!
//! The first plan has the values unpacked, and their range is found by reading them; the second plan packs them.
//! Invariant: no value differs from the input's value by more than half a step of the packing.

use super::conversion::{Conversion, ElementMap, InputConversion};
use super::packed::{OutputPacking, PACKING, Ranges};
use super::settling::{DeclaredRule, Mismatch, Settling};
use super::unpack::{single_number, unpacking};
use crate::error::Result;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::schema::attribute::{self, replaced, without};
use crate::schema::{ColumnIndex, Role, display_path};
use crate::write::values::{ColumnReader, open_pool};
use raddle_hdf5::model::{Datatype, InlineData};
use raddle_hdf5::number::NumberType;
use std::sync::Arc;

/// Number of bytes of unpacked values that are read at once.
const BLOCK_LEN_BYTES: u64 = 4 << 20;

/// Finds the range of the unpacked values of the datasets at `paths`.
pub(crate) fn ranges(plan: &MergePlan, paths: &[Vec<u8>], watch: &Watch<'_>) -> Result<Ranges> {
    let pool = open_pool(plan);
    let mut reader = ColumnReader::new(plan, &pool);
    let mut ranges = Ranges::new();
    for path in paths {
        let column = crate::write::picking::column_at(plan, path)?;
        let Some(number) = NumberType::of(&plan.schema.columns[column as usize].model().datatype.class) else {
            continue;
        };
        let dims = &plan.columns[column as usize].dims;
        let row_len_bytes = dims.iter().skip(1).product::<u64>() * number.len_bytes() as u64;
        let block_rows = (BLOCK_LEN_BYTES / row_len_bytes.max(1)).max(1);
        let (mut bytes, mut integers, mut floats) = (Vec::new(), Vec::new(), Vec::new());
        let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
        for start in (0..dims[0]).step_by(block_rows as usize) {
            watch.cancel.check()?;
            let rows = start..dims[0].min(start + block_rows);
            bytes.clear();
            bytes.resize(((rows.end - rows.start) * row_len_bytes) as usize, 0);
            reader.read_rows(column, rows, &mut bytes)?;
            number.decode_floats(&bytes, &mut integers, &mut floats);
            for value in floats.iter().filter(|value| !value.is_nan()) {
                (least, largest) = (least.min(*value), largest.max(*value));
            }
        }
        ranges.insert(path.clone(), if least <= largest { (least, largest) } else { (0.0, 0.0) });
    }
    Ok(ranges)
}

/// Chooses one packing for the values of all inputs, given their range.
pub(super) fn settle(settling: &mut Settling<'_>, declared: &DeclaredRule, column: ColumnIndex, range: (f64, f64)) {
    let refuse = |settling: &mut Settling<'_>, found: &str| {
        let mismatch = Mismatch::new("integers of up to 32 bits and finite values", found);
        settling.refuse(declared.entry, mismatch.or("--packing unpack writes the values as floats"), Vec::new());
    };
    let Some(number) = single_number(settling, column) else {
        return refuse(settling, "values of several types, which no single packing covers");
    };
    let packing = OutputPacking::of(number, range).filter(|packing| packing.scale.is_finite() && packing.scale > 0.0);
    let Some(packing) = packing else { return refuse(settling, "values that no packing covers") };
    let maps = match unpacking(settling, declared, column) {
        Ok(maps) => maps,
        Err((mismatch, inputs)) => return settling.refuse(declared.entry, mismatch, inputs),
    };
    let of_inputs = maps.into_iter().map(|map| {
        let map = match map {
            ElementMap::Unpack { scale, offset, missing, unwritten, reinterpret, .. } => {
                ElementMap::Repack { scale, offset, missing, unwritten, reinterpret, packing }
            }
            other => other,
        };
        InputConversion { map, ..InputConversion::default() }
    });
    let conversion = Conversion { of_inputs: of_inputs.collect() };
    let mut output = settling.schema.columns[column as usize].model().clone();
    output.datatype = Datatype { class: Arc::new(number.class()), committed: None };
    let mut missing = Vec::new();
    // The type holds the number, so this cannot fail.
    let _ = number.encode_integers(&[packing.missing], &mut missing);
    output.fill.value = Some(InlineData::Stored(missing.clone()));
    (output.fill.user_defined, output.fill.undefined) = (true, false);
    let mut attributes = without(&declared.first, &PACKING);
    let double = NumberType::Float { len_bytes: 8, is_big_endian: false };
    for (name, value) in [("scale_factor", packing.scale), ("add_offset", packing.offset)] {
        let mut bytes = Vec::new();
        double.encode_floats(&[value], &mut bytes);
        attributes = replaced(&attributes, attribute::new(name, double.class(), &[1], bytes));
    }
    attributes = replaced(&attributes, attribute::new("_FillValue", number.class(), &[1], missing));
    settling.set_attributes(declared.entry, attributes);
    settling.schema.columns[column as usize].set_output(output);
    settling.convert(column, None, conversion);
}

/// Describes each repacked dataset, with its largest error.
pub(crate) fn describe(plan: &MergePlan) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in &plan.schema.entries {
        let Role::Column(column) = entry.role else { continue };
        let Some(conversion) = &plan.schema.columns[column as usize].conversion else { continue };
        let packing = conversion.of_inputs.iter().find_map(|one| match &one.map {
            ElementMap::Repack { packing, .. } => Some(packing),
            _ => None,
        });
        let Some(packing) = packing else { continue };
        lines.push(format!(
            "{} is repacked (scale_factor {}, add_offset {}): the largest error is {:.3e}",
            display_path(&entry.path),
            packing.scale,
            packing.offset,
            packing.scale / 2.0
        ));
    }
    lines
}
