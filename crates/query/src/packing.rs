//! Attributes of a dataset that give its stored numbers other values, as CF defines them.
//!
//! Invariant: attributes that this module does not understand are never ignored. They count as changes of the values,
//! and decoding refuses them.

use crate::any_number::{AnyNumber, values};
use crate::decoding::Decoding;
use crate::error::{QueryError, Result};
use crate::values::Values;
use raddle_hdf5::logical::strings_of;
use raddle_hdf5::model::{Dataspace, ObjectIndex, TypeClass};
use raddle_hdf5::netcdf::{PACKING, is_netcdf, is_single, reinterprets};
use raddle_hdf5::number::NumberType;
use raddle_hdf5::open_file::OpenFile;

/// Maximum number of values of an attribute in a message.
const MAX_DESCRIBED: usize = 4;

/// How the values of a column follow from the stored ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ColumnValues {
    /// Computation of the values; `None` for the stored ones.
    pub decoding: Option<Decoding>,
    /// Whether NaN stands for a missing value.
    pub is_nullable: bool,
}

impl ColumnValues {
    /// Returns how the chosen values of the dataset at `path`, whose elements have type `class`, follow from the stored
    /// ones.
    ///
    /// # Errors
    /// If attributes change the values and none are chosen, or the values cannot be computed.
    pub fn of(
        values: Option<Values>,
        file: &OpenFile,
        (object, path): (ObjectIndex, &str),
        class: &TypeClass,
    ) -> Result<Self> {
        let attributes = file.attributes(object)?;
        let is_packed = attributes.iter().any(|one| PACKING.iter().any(|name| one.name == name.as_bytes()));
        let is_chosen = values == Some(Values::Decoded);
        let is_plain = values == Some(Values::Stored) || !is_packed;
        if is_plain || !is_chosen && !is_netcdf(file)? {
            return Ok(Self::default());
        }
        let packing = Packing::of(file, object, class)?;
        let object = format!("{}: {path}", file.path().display());
        if is_chosen {
            return packing.decoding().map_err(|reason| QueryError::Undecodable { object, reason });
        }
        match packing.changes() {
            changes if changes.is_empty() => Ok(Self::default()),
            changes => Err(QueryError::Packed { object, attributes: changes.join(", ") }),
        }
    }
}

/// Attributes of a dataset that may change its values.
#[derive(Debug)]
struct Packing {
    stored: Stored,
    /// Attributes in the order of [`PACKING`]; `None` for those that the dataset lacks.
    attributes: [Option<Content>; PACKING.len()],
}

/// Stored values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stored {
    Numbers(NumberType),
    Strings,
    Other,
}

/// Content of an attribute.
#[derive(Debug)]
enum Content {
    Numbers(NumberType, Vec<AnyNumber>),
    Strings(Vec<String>),
    Other,
}

impl Packing {
    /// Reads the attributes of a dataset whose elements have type `class`.
    ///
    /// # Errors
    /// If an attribute is damaged.
    fn of(file: &OpenFile, object: ObjectIndex, class: &TypeClass) -> Result<Self> {
        let mut attributes = [const { None }; PACKING.len()];
        for (name, content) in PACKING.into_iter().zip(&mut attributes) {
            let Some(attribute) = file.object(object)?.attribute(name.as_bytes()) else { continue };
            let class = &attribute.datatype.class;
            *content = Some(match attribute.dataspace {
                Dataspace::Null => Content::Strings(Vec::new()),
                _ => Content::of(class, &file.inline(class, &attribute.data)?),
            });
        }
        let stored = match class {
            TypeClass::FixedString { .. } | TypeClass::VariableString { .. } => Stored::Strings,
            class => number_of(class).map_or(Stored::Other, Stored::Numbers),
        };
        Ok(Self { stored, attributes })
    }

    /// Describes the attributes that change values.
    fn changes(&self) -> Vec<String> {
        let of_all = PACKING.into_iter().zip(&self.attributes);
        let changing = of_all.filter_map(|(name, content)| {
            let content = content.as_ref()?;
            self.changes_values(name, content).then(|| format!("{name} = {}", content.described()))
        });
        changing.collect()
    }

    fn changes_values(&self, name: &str, content: &Content) -> bool {
        let is_number = matches!(self.stored, Stored::Numbers(_));
        match (name, content) {
            (_, content) if content.is_empty() => false,
            ("scale_factor" | "add_offset" | "_Unsigned", _) if self.stored == Stored::Strings => false,
            ("_Unsigned", Content::Strings(texts)) => self.is_reinterpreted(texts),
            ("scale_factor", Content::Numbers(_, numbers)) => numbers[..] != [AnyNumber::Integer(1)],
            ("add_offset", Content::Numbers(_, numbers)) => numbers[..] != [AnyNumber::Integer(0)],
            // NaN is missing with or without a marker, and so is an empty string.
            (_, Content::Numbers(_, numbers)) if is_number => !numbers.iter().all(AnyNumber::is_nan),
            (_, Content::Strings(texts)) if self.stored == Stored::Strings => texts.iter().any(|text| !text.is_empty()),
            _ => true,
        }
    }

    fn is_reinterpreted(&self, texts: &[String]) -> bool {
        let text = texts.first().map(String::as_str);
        matches!(self.stored, Stored::Numbers(stored) if reinterprets(stored, text))
    }

    /// Returns how values are computed.
    ///
    /// # Errors
    /// If an attribute is not understood, or values of this type are not numbers. Returns the reason.
    fn decoding(&self) -> Result<ColumnValues, String> {
        let Stored::Numbers(stored) = self.stored else {
            return match self.changes() {
                changes if changes.is_empty() => Ok(ColumnValues::default()),
                changes => Err(format!(
                    "has {}, and only integers and floats of up to 64 bits are decoded",
                    changes.join(", ")
                )),
            };
        };
        let scale = self.single("scale_factor")?;
        let offset = self.single("add_offset")?;
        let (missing, has_nan) = self.missing()?;
        let is_reinterpreted = match self.content("_Unsigned") {
            Some(Content::Strings(texts)) => self.is_reinterpreted(texts),
            Some(content) => return Err(format!("has _Unsigned = {}, which is not a string", content.described())),
            None => false,
        };
        let read = if is_reinterpreted { stored.with_other_signedness() } else { stored };
        // As in xarray, NaN marks no missing integers, and floats with such a marker keep their type.
        let marks_nan = has_nan && !stored.is_integer();
        let is_packed = scale.is_some() || offset.is_some();
        let is_nullable = marks_nan || !missing.is_empty();
        if !is_packed && missing.is_empty() {
            let decoding = is_reinterpreted.then(|| Decoding::reinterpretation(stored, read));
            return Ok(ColumnValues { decoding, is_nullable });
        }
        let is_single = match marks_nan && missing.is_empty() {
            true => stored.len_bytes() == 4,
            false => is_single(read, scale.map(|(number, _)| number), offset.map(|(number, _)| number)),
        };
        let factors = (scale.map(|(_, scale)| scale), offset.map(|(_, offset)| offset));
        Ok(ColumnValues { decoding: Some(Decoding::new(stored, read, is_single, factors, missing)), is_nullable })
    }

    /// Returns the number in `scale_factor` or `add_offset`, with its type.
    fn single(&self, name: &str) -> Result<Option<(NumberType, f64)>, String> {
        match self.content(name) {
            None => Ok(None),
            Some(content) if content.is_empty() => Ok(None),
            Some(Content::Numbers(number, numbers)) if numbers.len() == 1 => Ok(Some((*number, numbers[0].to_float()))),
            Some(content) => Err(format!("has {name} = {}, which is not one number", content.described())),
        }
    }

    /// Returns the numbers that mark missing values, and whether NaN is among the markers.
    fn missing(&self) -> Result<(Vec<AnyNumber>, bool), String> {
        let (mut missing, mut has_nan) = (Vec::new(), false);
        for name in ["_FillValue", "missing_value"] {
            match self.content(name) {
                Some(Content::Numbers(_, numbers)) => {
                    has_nan |= numbers.iter().any(AnyNumber::is_nan);
                    missing.extend(numbers.iter().copied().filter(|number| !number.is_nan()));
                }
                Some(content) if !content.is_empty() => {
                    return Err(format!("has {name} = {}, which is not a number", content.described()));
                }
                _ => {}
            }
        }
        Ok((missing, has_nan))
    }

    fn content(&self, name: &str) -> Option<&Content> {
        let at = PACKING.iter().position(|known| *known == name)?;
        self.attributes[at].as_ref()
    }
}

impl Content {
    fn of(class: &TypeClass, canonical: &[u8]) -> Self {
        match number_of(class) {
            Some(number) => Self::Numbers(number, values(number, canonical)),
            None => strings_of(class, canonical).map_or(Self::Other, Self::Strings),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Numbers(_, numbers) => numbers.is_empty(),
            Self::Strings(texts) => texts.is_empty(),
            Self::Other => false,
        }
    }

    fn described(&self) -> String {
        let (all, count): (Vec<String>, usize) = match self {
            Self::Numbers(number, numbers) => {
                let is_single = number.len_bytes() == 4;
                (numbers.iter().take(MAX_DESCRIBED).map(|one| one.described(is_single)).collect(), numbers.len())
            }
            Self::Strings(texts) => {
                (texts.iter().take(MAX_DESCRIBED).map(|text| format!("{text:?}")).collect(), texts.len())
            }
            Self::Other => return "a value of an unknown type".to_owned(),
        };
        match (&all[..], count) {
            ([one], 1) => one.clone(),
            (some, count) if count > some.len() => format!("[{}, …]", some.join(", ")),
            (some, _) => format!("[{}]", some.join(", ")),
        }
    }
}

/// Returns the type of numbers, or of the integers of an enumeration.
fn number_of(class: &TypeClass) -> Option<NumberType> {
    match class {
        TypeClass::Enum { base, .. } => NumberType::of(base),
        class => NumberType::of(class),
    }
}
