//! A schema whose rules are being settled: what is declared, what a rule may change, and why inputs do not fit together.
//!
//! The rules themselves are in the modules next to this one, and [`super::settle`] calls them. Invariant: a refusal names the object, the
//! attribute, both values and the option that decides, if there is one.

use super::conversion::{Conversion, ElementMap, Trim};
use super::packed::{DECIDES, PACKING, Ranges, VALID};
use super::{Rule, ValueMeaning};
use crate::conventions::{ConventionOptions, Units};
use crate::schema::attribute::{named, numbers, strings, words};
use crate::schema::extents::InputExtents;
use crate::schema::join::{Difference, DifferenceKind};
use crate::schema::{ABSENT, AttributeValue, Column, ColumnIndex, EntryIndex, InputExtent, Role, Schema, display_path};
use raddle_hdf5::model::{Dataset, Datatype, InlineData, TypeClass};
use raddle_hdf5::number::NumberType;
use std::collections::HashMap;
use std::sync::Arc;

/// Rule of an entry, with the differences between inputs that the rule takes into account.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredRule {
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
    /// Ranges of repacked values, where they are known.
    pub ranges: &'a Ranges,
    /// Paths of repacked datasets whose range is not known yet.
    pub unranged: Vec<Vec<u8>>,
    /// Rules to settle.
    pub declared: &'a [DeclaredRule],
    /// Reasons why inputs cannot be combined.
    pub differences: Vec<Difference>,
    /// Numbers of columns, indexed by path.
    columns: HashMap<Vec<u8>, ColumnIndex>,
}

impl<'a> Settling<'a> {
    /// Begins to settle the `declared` rules of `schema`.
    pub fn new(
        schema: &'a mut Schema,
        declared: &'a [DeclaredRule],
        options: &'a ConventionOptions,
        ranges: &'a Ranges,
        is_new: bool,
    ) -> Self {
        let numbered =
            (0..schema.columns.len() as ColumnIndex).map(|column| (schema.column_path(column).to_vec(), column));
        let columns = numbered.collect();
        Self { schema, options, is_new, ranges, unranged: Vec::new(), declared, differences: Vec::new(), columns }
    }
}

impl Settling<'_> {
    /// Returns the column of a declared rule, if its entry is a concatenated dataset.
    pub fn column_of(&self, declared: &DeclaredRule) -> Option<ColumnIndex> {
        match self.schema.entries[declared.entry as usize].role {
            Role::Column(column) => Some(column),
            _ => None,
        }
    }

    /// Returns the declared rule of the dataset at `path`.
    pub fn declared_at(&self, path: &[u8]) -> Option<DeclaredRule> {
        let at = |declared: &&DeclaredRule| self.schema.entries[declared.entry as usize].path == path;
        self.declared.iter().find(at).cloned()
    }

    /// Returns the column at `path`.
    pub fn column_at(&self, path: &[u8]) -> Option<ColumnIndex> {
        self.columns.get(path).copied()
    }

    /// Returns the attributes that the object of `declared` has in an input.
    pub fn attributes(&self, declared: &DeclaredRule, input: u32) -> Arc<[AttributeValue]> {
        let known = declared.attributes.binary_search_by_key(&input, |(input, _)| *input);
        known.map_or_else(|_| Arc::clone(&declared.first), |at| Arc::clone(&declared.attributes[at].1))
    }

    /// Refuses inputs that differ in an attribute that the rule takes into account, except for those in `settled`. The
    /// refusal names the option that decides.
    pub fn require_equal(&mut self, declared: &DeclaredRule, settled: &[&str]) {
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

    /// Returns the description of the dataset of an input that has the column.
    pub fn template(&self, column: ColumnIndex, input: u32) -> &Dataset {
        let scanned = &self.schema.columns[column as usize];
        &scanned.templates[scanned.facts[input as usize].template as usize]
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

    /// Adds casts for inputs whose values are the same numbers in a different type.
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
    let is_packed = rule.values == ValueMeaning::Packed;
    if is_packed && (PACKING.contains(&name) || VALID.contains(&name)) {
        return Some(DECIDES.to_owned());
    }
    if is_packed && name == "units" && options.units == Units::Refuse {
        return Some("--units convert converts the values where a linear map is known".to_owned());
    }
    let is_asked = options.require_equal.iter().any(|asked| asked == name);
    is_asked.then(|| "--require-equal asks for it to be the same".to_owned())
}

/// Returns whether two attributes have the same meaning for readers: strings and numbers of any types are compared by
/// value.
fn is_same_value(left: Option<&AttributeValue>, right: Option<&AttributeValue>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) if left.value == right.value && left.datatype == right.datatype => true,
        (Some(left), Some(right)) => match (strings(left), strings(right), numbers(left), numbers(right)) {
            (Some(left), Some(right), ..) => left == right,
            (.., Some(left), Some(right)) => left == right,
            _ => false,
        },
        (None, None) => true,
        _ => false,
    }
}

/// Returns a dataset with elements of a different type. The fill value is kept if it is a number that the type holds.
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
