//! Input arrays that are written to a dataset or compared with one, and the part of the dataset that each represents.

use super::place::{Along, along};
use crate::arrays::{ArraySource, IdxPart, IdxSource, RawForm, WholeFields};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::quantity;
use raddle::options::ReaderOptions;
use raddle_idx::SampleBox;
use raddle_idx::dataset::bitmask::MAX_RANK;
use raddle_idx::dataset::sample::{Number, SampleType};
use std::ops::Range;
use std::path::Path;

/// Relation between several inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum InputsAre {
    /// Fields of one dataset, at one time
    Fields,
    /// One field at consecutive times
    Steps,
}

/// Options about inputs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Inputs")]
pub struct ArrayArgs {
    /// Relation between several inputs
    #[arg(long = "as", value_name = "WHAT", value_enum, default_value_t = InputsAre::Fields)]
    pub inputs_are: InputsAre,

    /// Time step of the inputs, or of the first of them; without it a dataset of fields has no time steps. For an IDX
    /// dataset as input: the only step to read
    #[arg(long, value_name = "N")]
    pub step: Option<u64>,

    /// The last axis of the inputs holds the components of each sample
    #[arg(long)]
    pub vector: bool,

    /// Shape of raw files, slowest axis first, for example 64x128x128
    #[arg(long, value_name = "SHAPE", value_parser = shape, requires = "dtype")]
    pub shape: Option<Shape>,

    /// Type of the numbers in raw files, little-endian: uint8 to int64, float32, float64
    #[arg(long, value_name = "TYPE", value_parser = number, requires = "shape")]
    pub dtype: Option<Number>,

    /// Names of the fields, in the order of the inputs [default: names of datasets or files]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub name: Vec<String>,

    /// Type of the numbers to write; values are converted exactly or to the nearest float32 or float64, anything else
    /// is an error
    #[arg(long, value_name = "TYPE", value_parser = number)]
    pub cast: Option<Number>,

    /// Fields to read from an IDX dataset [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub field: Vec<String>,

    /// Ranges of samples to read from an IDX dataset, per axis, end excluded; other axes are whole
    #[arg(long, value_name = "x=0:64,z=5:9", value_delimiter = ',', value_parser = along)]
    pub crop: Vec<Along>,

    /// Read missing blocks of an IDX dataset as the default value of the field
    #[arg(long)]
    pub missing_as_default: bool,
}

/// Number of values per axis, slowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<u64>);

/// Parses a shape: 64x128x128, or a single number.
pub fn shape(text: &str) -> Result<Shape, String> {
    let counts: Result<Vec<u64>, _> = text.split('x').map(str::parse).collect();
    let counts = counts.ok().filter(|counts| !counts.contains(&0));
    counts.map(Shape).ok_or_else(|| "a shape is numbers above 0 with x between them, for example 64x128x128".to_owned())
}

fn number(text: &str) -> Result<Number, String> {
    let sample: SampleType = text.parse().map_err(|_| "not a type such as float32 or uint16".to_owned())?;
    if sample.count == 1 { Ok(sample.number) } else { Err("one number per value; vectors are a last axis".to_owned()) }
}

/// Opened inputs.
#[derive(Debug)]
pub struct Inputs {
    /// Arrays, one per field or per time step.
    pub arrays: Vec<ArraySource>,
    /// Number of samples per axis, x first.
    pub counts: Vec<u64>,
    /// Name and sample type of each field.
    pub fields: Vec<(String, SampleType)>,
    /// Time steps that are written or compared in one go, with the range of arrays of each.
    pub steps: Vec<(Option<u64>, Range<usize>)>,
    /// Additional keys for the header of a dataset to write.
    pub others: Vec<(String, String)>,
    /// The blocks of an IDX dataset, if all of its samples are copied unchanged.
    pub whole: Option<WholeFields>,
}

impl ArrayArgs {
    /// Opens the inputs.
    ///
    /// # Errors
    /// If an input cannot be read, or they do not fit together.
    pub fn open(&self, paths: &[String], reader: &ReaderOptions) -> Result<Inputs, Failure> {
        if paths.iter().any(|path| is_idx(path)) {
            return self.open_idx(paths);
        }
        let of_idx = [
            (!self.field.is_empty(), "--field"),
            (!self.crop.is_empty(), "--crop"),
            (self.missing_as_default, "--missing-as-default"),
        ];
        if let Some((_, option)) = of_idx.iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::usage(&format!("{option} applies to an input NAME.idx, but none is given")));
        }
        let raw = self.shape.as_ref().zip(self.dtype);
        let raw = raw.map(|(shape, number)| RawForm { shape: shape.0.clone(), number });
        let open = |path: &String| ArraySource::open(path, raw.as_ref(), reader).map(|array| self.cast(array));
        let arrays = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut of_samples = Vec::new();
        for array in &arrays {
            of_samples.push(self.samples(array)?);
        }
        let refused =
            |array: &ArraySource, why: &str| Failure::new(Exit::InputRefused, &format!("{}: {why}", array.place()));
        let (counts, first_sample) = of_samples[0].clone();
        for (array, (others, sample)) in arrays.iter().zip(&of_samples) {
            if *others != counts {
                let (one, other) = (product(others), product(&counts));
                return Err(refused(array, &format!("has {one} samples, {} has {other}", arrays[0].place())));
            }
            if self.inputs_are == InputsAre::Steps && *sample != first_sample {
                let why = format!("has samples of type {sample}, the first step has {first_sample}");
                return Err(refused(array, &why));
            }
        }
        let is_steps = self.inputs_are == InputsAre::Steps;
        let field_count = if is_steps { 1 } else { arrays.len() };
        if !self.name.is_empty() && self.name.len() != field_count {
            let wanted = quantity::counted(field_count as u64, "field");
            return Err(Failure::usage(&format!("--name gives {} names for {wanted}", self.name.len())));
        }
        let name_of = |field: usize| self.name.get(field).cloned().unwrap_or_else(|| plain(&arrays[field].name));
        let fields = (0..field_count).map(|field| (name_of(field), of_samples[field].1)).collect();
        let steps = match is_steps {
            false => vec![(self.step, 0..arrays.len())],
            true => {
                let first = self.step.unwrap_or(0);
                (0..arrays.len()).map(|at| (Some(first.saturating_add(at as u64)), at..at + 1)).collect()
            }
        };
        Ok(Inputs { arrays, counts, fields, steps, others: Vec::new(), whole: None })
    }

    /// Converts the array to the requested type, if any.
    fn cast(&self, array: ArraySource) -> ArraySource {
        match self.cast {
            Some(number) => array.cast(number),
            None => array,
        }
    }

    /// Opens a single input that is an IDX dataset.
    fn open_idx(&self, paths: &[String]) -> Result<Inputs, Failure> {
        let [path] = paths else {
            return Err(Failure::usage(
                "an IDX dataset must be the only input, because it already has fields and time steps",
            ));
        };
        let others = [
            (self.inputs_are == InputsAre::Steps, "--as steps"),
            (self.vector, "--vector"),
            (self.shape.is_some(), "--shape"),
        ];
        if let Some((_, option)) = others.iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::usage(&format!("{option} only applies to arrays; {path} specifies it itself")));
        }
        let part = IdxPart {
            fields: &self.field,
            step: self.step,
            along: &self.crop,
            missing_as_default: self.missing_as_default,
        };
        let IdxSource { counts, mut fields, steps, others, arrays, whole } = IdxSource::open(Path::new(path), &part)?;
        let count = fields.len();
        if !self.name.is_empty() && self.name.len() != count {
            let wanted = quantity::counted(count as u64, "field");
            return Err(Failure::usage(&format!("--name gives {} names for {wanted}", self.name.len())));
        }
        fields.iter_mut().zip(&self.name).for_each(|((name, _), given)| name.clone_from(given));
        fields.iter_mut().for_each(|(_, sample)| sample.number = self.cast.unwrap_or(sample.number));
        let arrays = arrays.into_iter().map(|array| self.cast(array)).collect();
        let steps = (0..).zip(steps).map(|(at, step): (usize, _)| (step, at * count..(at + 1) * count)).collect();
        let whole = whole.filter(|_| self.cast.is_none());
        Ok(Inputs { arrays, counts, fields, steps, others, whole })
    }

    /// Returns the number of samples per axis, x first, and their type.
    fn samples(&self, array: &ArraySource) -> Result<(Vec<u64>, SampleType), Failure> {
        let (mut counts, mut count) = (array.shape.clone(), 1);
        if self.vector {
            count = counts.pop().unwrap_or(1);
        }
        counts.reverse();
        let fits = !counts.is_empty() && counts.len() <= MAX_RANK && !counts.contains(&0);
        let sample = usize::try_from(count).ok().map(|count| SampleType { number: array.number, count });
        // The sample type must be representable in a header.
        let sample = sample.filter(|sample| sample.to_string().parse() == Ok(*sample));
        match sample {
            Some(sample) if fits => Ok((counts, sample)),
            _ => {
                let vector = if self.vector { " with the components on the last" } else { "" };
                let what = format!(
                    "{}: its shape {:?} is not that of 1 to {MAX_RANK} axes of samples{vector}",
                    array.place(),
                    array.shape
                );
                Err(Failure::new(Exit::InputRefused, &what))
            }
        }
    }
}

/// Whether an input is an IDX dataset.
fn is_idx(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending == "idx")
}

/// Converts a name to one that a header can hold.
fn plain(name: &str) -> String {
    let kept = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    let name: String = name.chars().map(|character| if kept(character) { character } else { '_' }).collect();
    if name.is_empty() { "field".to_owned() } else { name }
}

/// Formats sample counts, slowest axis first.
fn product(counts: &[u64]) -> String {
    counts.iter().rev().map(u64::to_string).collect::<Vec<_>>().join(" x ")
}

impl Inputs {
    /// Returns the number of bytes of all fields in a row of samples, which have the same index along the slowest axis.
    pub fn row_len_bytes(&self) -> u64 {
        self.steps.first().map_or(0, |(_, inputs)| {
            self.arrays[inputs.clone()].iter().map(ArraySource::row_len_bytes).fold(0, u64::saturating_add)
        })
    }

    /// Returns the number of bytes needed to read a row: its fields are read one at a time, and one of them may be
    /// cast.
    pub fn held_row_len_bytes(&self) -> u64 {
        let more = |array: &ArraySource| array.held_row_len_bytes().saturating_sub(array.row_len_bytes());
        let most = self.arrays.iter().map(more).max().unwrap_or(0);
        self.row_len_bytes().saturating_add(most)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.counts.last().copied().unwrap_or(0)
    }

    /// Returns the box of a range of rows.
    pub fn region(&self, rows: &Range<u64>) -> SampleBox {
        let (mut start, mut counts) = (vec![0; self.counts.len()], self.counts.clone());
        if let (Some(start), Some(count)) = (start.last_mut(), counts.last_mut()) {
            (*start, *count) = (rows.start, rows.end - rows.start);
        }
        SampleBox::new(&start, &counts)
    }
}
