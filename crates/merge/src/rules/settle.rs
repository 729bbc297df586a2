//! Settling turns the rules of a joined schema into conversions, sizes and attributes of the output, or refusals.
//!
//! It uses only extents and attributes; checks that need values of the inputs come later ([`super::check`]). Invariant:
//! a refusal names the object, the attribute, both values and the option that decides, if there is one.

use super::attribute::{named, words};
use super::check::{RecordTrims, TakenRecords};
use super::conversion::{Conversion, ElementMap, Gather, InputConversion, Trim};
use super::repack::Ranges;
use super::versions::{self, CONVENTIONS};
use super::{Placement, Rule, Values, absent, coordinate, packing, positions};
use crate::conventions::{ConventionOptions, Units};
use crate::scan::extents::InputExtents;
use crate::schema::join::{Difference, DifferenceKind, describe};
use crate::schema::{ABSENT, AttributeValue, Column, ColumnIndex, EntryIndex, InputExtent, Role, Schema, display_path};
use raddle_hdf5::model::{Dataset, Dataspace, Datatype, InlineData, TypeClass};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;
use std::sync::Arc;

/// Rule of an entry, with the differences between inputs that the rule takes into account.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// Number of the entry.
    pub entry: EntryIndex,
    /// Rule of the entry.
    pub rule: Rule,
    /// Attributes in the first input that has the entry.
    pub first: Arc<[AttributeValue]>,
    /// Inputs whose attributes differ from those of the first, with their attributes.
    pub attributes: Vec<(u32, Arc<[AttributeValue]>)>,
    /// Values of inputs, if the rule keeps them: of the first input, and of each input whose values differ.
    pub values: Vec<(u32, Arc<[u8]>)>,
}

/// Difference that prevents inputs from being combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Name of the attribute, if one differs.
    pub attribute: Option<String>,
    /// Value in the first input.
    pub expected: String,
    /// Value in another input.
    pub found: String,
}

impl Mismatch {
    /// Creates a mismatch of values.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { attribute: None, expected: expected.into(), found: found.into() }
    }

    /// Creates a mismatch of an attribute.
    pub fn attribute(name: &str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { attribute: Some(name.to_owned()), expected: expected.into(), found: found.into() }
    }

    /// Appends the option that decides to the message.
    #[must_use]
    pub fn or(mut self, option: &str) -> Self {
        self.found = format!("{}; {option}", self.found);
        self
    }
}

/// Schema whose rules are being settled.
pub(crate) struct Settling<'a> {
    /// Schema whose rules are settled.
    pub schema: &'a mut Schema,
    /// Options of the user.
    pub options: &'a ConventionOptions,
    /// Whether the output is a new file; a file that grows keeps its attributes and fill values.
    pub is_new: bool,
    /// Ranges of repacked values, as far as they are known.
    pub ranges: &'a Ranges,
    /// Paths of repacked datasets whose range is not known yet.
    pub unranged: Vec<Vec<u8>>,
    declared: &'a [Declared],
    differences: Vec<Difference>,
    /// Numbers of columns, by path.
    columns: HashMap<Vec<u8>, ColumnIndex>,
}

/// Settles the `declared` rules of `schema`. Returns the mismatches that cannot be reconciled, and the paths of values
/// whose range is needed.
pub(crate) fn settle(
    schema: &mut Schema,
    declared: &[Declared],
    options: &ConventionOptions,
    taken: &RecordTrims,
    ranges: &Ranges,
    is_new: bool,
) -> (Vec<Difference>, Vec<Vec<u8>>) {
    let columns =
        (0..schema.columns.len() as ColumnIndex).map(|column| (schema.column_path(column).to_vec(), column)).collect();
    let mut settling =
        Settling { schema, options, is_new, ranges, unranged: Vec::new(), declared, differences: Vec::new(), columns };
    let lengths = settling.record_lengths();
    for one in declared {
        settling.widen(one);
        settling.entry(one);
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
    fn entry(&mut self, declared: &Declared) {
        let column = self.column_of(declared);
        match (&declared.rule.values, column) {
            (Values::Positions { target, form }, Some(column)) => {
                positions::settle(self, declared, column, target, *form)
            }
            (Values::Time(form), Some(column)) if matches!(declared.rule.placement, Placement::Along(_)) => {
                coordinate::settle(self, declared, column, *form);
            }
            (Values::TimeOf { time }, Some(column)) => coordinate::settle_like(self, declared, column, time),
            (Values::Packed, Some(column)) if matches!(declared.rule.placement, Placement::Along(_)) => {
                packing::settle(self, declared, column);
            }
            _ if versions::settle(self, declared) => self.require_equal(declared, &[CONVENTIONS]),
            _ => self.require_equal(declared, &[]),
        }
    }

    fn column_of(&self, declared: &Declared) -> Option<ColumnIndex> {
        match self.schema.entries[declared.entry as usize].role {
            Role::Column(column) => Some(column),
            _ => None,
        }
    }

    /// Refuses inputs whose values have another type than the output's and are not converted.
    fn require_one_type(&mut self, declared: &Declared) {
        let Some(column) = self.column_of(declared) else { return };
        let scanned = &self.schema.columns[column as usize];
        let differs = |(input, fact): &(u32, &InputExtent)| {
            let is_same = scanned.conversion_of(*input).is_none_or(|one| one.map == ElementMap::Same);
            let template = scanned.templates.get(fact.template as usize);
            is_same && template.is_some_and(|template| template.datatype != scanned.model().datatype)
        };
        let differing: Vec<u32> = (0..).zip(scanned.facts.iter()).filter(differs).map(|(input, _)| input).collect();
        let Some(first) = differing.first() else { return };
        let template = scanned.facts[*first as usize].template as usize;
        let (expected, found) =
            (describe(&scanned.model().datatype.class), describe(&scanned.templates[template].datatype.class));
        self.refuse(declared.entry, Mismatch::new(expected, found), differing);
    }

    /// Returns the number of records of each input, by the path of their coordinate: the length of the longest dataset
    /// along it.
    fn record_lengths(&self) -> HashMap<Vec<u8>, Vec<u64>> {
        let mut lengths: HashMap<Vec<u8>, Vec<u64>> = HashMap::new();
        for declared in self.declared {
            let (Some(record), Some(column)) = (&declared.rule.record, self.column_of(declared)) else { continue };
            let facts = &self.schema.columns[column as usize].facts;
            let known = lengths.entry(record.clone()).or_insert_with(|| vec![0; facts.len()]);
            // An input without the dataset does not affect the number of records.
            let rows = facts.iter().map(|fact| if fact.template == ABSENT { 0 } else { fact.rows });
            known.iter_mut().zip(rows).for_each(|(known, rows)| *known = (*known).max(rows));
        }
        lengths
    }

    /// Adds rows of the fill value to a dataset that stores fewer records than its input has.
    fn pad_records(&mut self, declared: &Declared, lengths: &HashMap<Vec<u8>, Vec<u64>>) {
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
        if short.is_empty() {
            return;
        }
        if scanned.is_file_local() {
            let mismatch = Mismatch::new("texts of all records", "fewer, whose rows cannot be filled");
            return self.refuse(declared.entry, mismatch, short);
        }
        let trim = |pair: (&InputExtent, &u64)| is_short(pair).then_some(Trim { leading: 0, stored_rows: pair.0.rows });
        let trims = scanned.facts.iter().zip(lengths).map(trim).collect();
        let is_short = |input: usize| short.binary_search(&(input as u32)).is_ok();
        self.trim(column, trims, |input, rows| if is_short(input) { lengths[input] } else { rows });
    }

    /// Extends an axis of characters to the largest size among the inputs.
    fn widen(&mut self, declared: &Declared) {
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
                let mismatch = Mismatch::new(format!("texts of up to {size} characters"), found);
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
    fn take_records(&mut self, declared: &Declared, taken: &RecordTrims) {
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

    /// Returns the declared rule of the dataset at `path`.
    pub fn declared_at(&self, path: &[u8]) -> Option<Declared> {
        let at = |declared: &&Declared| self.schema.entries[declared.entry as usize].path == path;
        self.declared.iter().find(at).cloned()
    }

    /// Returns the column at `path`.
    pub fn column_at(&self, path: &[u8]) -> Option<ColumnIndex> {
        self.columns.get(path).copied()
    }

    /// Returns the attributes in an input.
    pub fn attributes(&self, declared: &Declared, input: u32) -> Arc<[AttributeValue]> {
        let known = declared.attributes.binary_search_by_key(&input, |(input, _)| *input);
        known.map_or_else(|_| Arc::clone(&declared.first), |at| Arc::clone(&declared.attributes[at].1))
    }

    /// Refuses inputs that differ in an attribute that the rule takes into account, except for those in `settled`. The
    /// refusal names the option that decides.
    pub fn require_equal(&mut self, declared: &Declared, settled: &[&str]) {
        for name in &declared.rule.attributes {
            let name = String::from_utf8_lossy(name).into_owned();
            if settled.contains(&name.as_str()) {
                continue;
            }
            let known = named(&declared.first, &name);
            let mut differing: Vec<(String, Vec<u32>)> = Vec::new();
            for (input, attributes) in &declared.attributes {
                let found = named(attributes, &name);
                if is_same_value(known, found) {
                    continue;
                }
                let mut found = found.map_or_else(|| "no such attribute".to_owned(), words);
                if let Some(option) = decides(&name, &declared.rule, self.options) {
                    found = format!("{found}; {option}");
                }
                match differing.iter_mut().find(|(words, _)| *words == found) {
                    Some((_, inputs)) => inputs.push(*input),
                    None => differing.push((found, vec![*input])),
                }
            }
            let expected = known.map_or_else(|| "no such attribute".to_owned(), words);
            for (found, inputs) in differing {
                self.refuse(declared.entry, Mismatch::attribute(&name, expected.clone(), found), inputs);
            }
        }
    }

    /// Returns the first input that has a column.
    pub fn first_input(&self, column: ColumnIndex) -> u32 {
        let facts = &self.schema.columns[column as usize].facts;
        facts.iter().position(|fact| fact.template != ABSENT).unwrap_or(0) as u32
    }

    /// Returns the result of `of` for each input that has the column, and the default for the others. On failure,
    /// returns the first mismatch with all inputs that have the same one.
    pub fn of_inputs<T: Default>(
        &self,
        column: ColumnIndex,
        mut of: impl FnMut(&Self, u32) -> Result<T, Mismatch>,
    ) -> Result<Vec<T>, (Mismatch, Vec<u32>)> {
        let facts = &self.schema.columns[column as usize].facts;
        let (mut found, mut failed) = (Vec::with_capacity(facts.len()), None::<(Mismatch, Vec<u32>)>);
        for (input, fact) in (0..).zip(facts.iter()) {
            if fact.template == ABSENT {
                found.push(T::default());
                continue;
            }
            match (of(self, input), &mut failed) {
                (Ok(one), _) => found.push(one),
                (Err(mismatch), Some((known, inputs))) if *known == mismatch => inputs.push(input),
                (Err(_), Some(_)) => {}
                (Err(mismatch), None) => failed = Some((mismatch, vec![input])),
            }
        }
        failed.map_or(Ok(found), Err)
    }

    /// Adds casts for inputs whose values are the same numbers in another type.
    pub fn with_casts(&self, column: ColumnIndex, number: NumberType, maps: Vec<ElementMap>) -> Vec<ElementMap> {
        let column = &self.schema.columns[column as usize];
        let is_other = |fact: &InputExtent| {
            let template = column.templates.get(fact.template as usize);
            template.is_some_and(|template| NumberType::of(&template.datatype.class) != Some(number))
        };
        let cast = |(map, fact): (ElementMap, &InputExtent)| match map {
            ElementMap::Same if is_other(fact) => ElementMap::Cast,
            map => map,
        };
        maps.into_iter().zip(column.facts.iter()).map(cast).collect()
    }

    /// Sets the conversion of a column, and its type in the output if that differs from the first input's.
    pub fn convert(&mut self, column: ColumnIndex, class: Option<TypeClass>, conversion: Conversion) {
        let column = &mut self.schema.columns[column as usize];
        if let Some(class) = class.filter(|class| *class != *column.model().datatype.class) {
            column.set_output(with_class(column.model(), class));
        }
        if conversion.of_inputs.iter().any(|one| !one.is_identity()) {
            column.conversion = Some(Arc::new(conversion));
        }
    }

    /// Leaves out rows of inputs.
    pub fn trim(&mut self, column: ColumnIndex, trims: Vec<Option<Trim>>, rows: impl Fn(usize, u64) -> u64) {
        let column = &mut self.schema.columns[column as usize];
        let trimmed = column.facts.iter().enumerate();
        let trimmed = trimmed.map(|(input, fact)| InputExtent { rows: rows(input, fact.rows), ..*fact });
        // Inputs that contribute no rows may still have rows that are checked.
        column.facts = InputExtents::with_addresses(trimmed);
        column.trims = Some(trims.into());
    }

    /// Replaces the attributes of an entry.
    pub fn set_attributes(&mut self, entry: EntryIndex, attributes: Arc<[AttributeValue]>) {
        self.schema.entries[entry as usize].attributes = attributes;
    }

    /// Records why inputs cannot be combined.
    pub fn refuse(&mut self, entry: EntryIndex, mismatch: Mismatch, inputs: Vec<u32>) {
        let path = display_path(&self.schema.entries[entry as usize].path);
        let path = match mismatch.attribute {
            Some(name) => format!("{path} (attribute {name})"),
            None => path,
        };
        let Mismatch { expected, found, .. } = mismatch;
        self.differences.push(Difference { path, kind: DifferenceKind::Meaning, expected, found, inputs });
    }
}

/// Returns the option that decides if inputs differ in an attribute.
fn decides(name: &str, rule: &Rule, options: &ConventionOptions) -> Option<String> {
    let is_packed = rule.values == Values::Packed;
    if is_packed && (packing::PACKING.contains(&name) || packing::VALID.contains(&name)) {
        return Some(packing::DECIDES.to_owned());
    }
    if is_packed && name == "units" && options.units == Units::Refuse {
        return Some("--units convert converts the values where a linear map is known".to_owned());
    }
    let is_asked = options.require_equal.iter().any(|asked| asked == name);
    is_asked.then(|| "--require-equal asks for it to be the same".to_owned())
}

/// Whether two attributes have the same meaning for readers: strings and numbers of any types are compared by value.
fn is_same_value(left: Option<&AttributeValue>, right: Option<&AttributeValue>) -> bool {
    use super::attribute::{numbers, texts};
    match (left, right) {
        (Some(left), Some(right)) if left.value == right.value && left.datatype == right.datatype => true,
        (Some(left), Some(right)) => match (texts(left), texts(right), numbers(left), numbers(right)) {
            (Some(left), Some(right), ..) => left == right,
            (.., Some(left), Some(right)) => left == right,
            _ => false,
        },
        (None, None) => true,
        _ => false,
    }
}

/// Returns a dataset with elements of another type. The fill value is kept if it is a number that the type holds.
fn with_class(model: &Dataset, class: TypeClass) -> Dataset {
    let mut dataset = model.clone();
    let fill = dataset.fill.value.take().filter(|value| value.bytes().iter().any(|&byte| byte != 0));
    let converted = fill.and_then(|value| {
        let (from, to) = (NumberType::of(&model.datatype.class)?, NumberType::of(&class)?);
        let (mut integers, mut floats, mut out) = (Vec::new(), Vec::new(), Vec::new());
        if from.is_integer() && to.is_integer() {
            from.decode_integers(value.bytes(), &mut integers);
            to.encode_integers(&integers, &mut out).ok()?;
        } else {
            from.decode_floats(value.bytes(), &mut integers, &mut floats);
            to.encode_floats(&floats, &mut out);
        }
        (out.len() == to.len_bytes()).then_some(InlineData::Stored(out))
    });
    dataset.fill.value = converted;
    dataset.datatype = Datatype { class: Arc::new(class), committed: None };
    dataset
}

/// Returns a number type that holds the numbers of all inputs of a column: the widest of their integers, or floats if
/// any input has floats; `None` if an input has values other than numbers.
pub(super) fn common_number(column: &Column) -> Option<NumberType> {
    let mut numbers = column.templates.iter().map(|template| NumberType::of(&template.datatype.class));
    let first = numbers.next()??;
    numbers.try_fold(first, |common, next| {
        let next = next?;
        Some(match (common, next) {
            _ if common == next => common,
            (
                NumberType::Integer { len_bytes: a, signed: left, is_big_endian },
                NumberType::Integer { len_bytes: b, signed: right, .. },
            ) => {
                let signed = left || right;
                // An unsigned number needs a wider signed type.
                let needs = |len: u8, is_signed: bool| if signed && !is_signed { (len * 2).min(8) } else { len };
                NumberType::Integer { len_bytes: needs(a, left).max(needs(b, right)), signed, is_big_endian }
            }
            (NumberType::Float { len_bytes: a, is_big_endian }, NumberType::Float { len_bytes: b, .. }) => {
                NumberType::Float { len_bytes: a.max(b), is_big_endian }
            }
            (NumberType::Float { is_big_endian, .. } | NumberType::Integer { is_big_endian, .. }, _) => {
                NumberType::Float { len_bytes: 8, is_big_endian }
            }
        })
    })
}
