//! Scanned inputs, with the facts known about their values and the contents of their records.

use super::PlannedInput;
use super::links::{self, RootObjects};
use crate::conventions::{Choice, anndata};
use crate::error::BadInput;
use crate::keys::DerivedSpec;
use crate::options::{Link, MergeOptions};
use crate::rules::packed::Ranges;
use crate::rules::pick::SelectedCounts;
use crate::rules::records::RecordTrims;
use crate::scan::{ScannedFile, ScannedInput};
use crate::schema::join::{JoinResult, Joiner};
use crate::subset::selected::SelectedElements;
use crate::verify::digests::{InputDigests, Records};
use crate::verify::record::StoredRecord;
use std::path::PathBuf;
use std::time::Instant;

/// Inputs that have been scanned, before planning.
pub(crate) struct FoundInputs {
    pub started: Instant,
    pub contents: FoundContents,
    pub inputs: Vec<PlannedInput>,
    /// Number of each planned input in the caller's list, in which skipped inputs are counted too.
    pub places: Vec<u32>,
    pub skipped: Vec<BadInput>,
    pub chunk_count: u64,
    /// Wall time of opening all inputs.
    pub open_s: f64,
    pub learned: LearnedValues,
    pub recorded: InputRecords,
    pub digests: InputDigests,
    /// Whether the first input is a file to which the others are appended.
    is_growing: bool,
}

/// Facts that earlier plans of the same merge determined from the values of its inputs.
#[derive(Clone, Default)]
pub(crate) struct LearnedValues {
    /// Records taken from each input, if inputs overlap.
    pub taken: RecordTrims,
    /// Counts of elements that are picked.
    pub counts: SelectedCounts,
    /// Ranges of values that are repacked.
    pub ranges: Ranges,
    /// Elements to which the output is restricted, if they are known.
    pub selected: Option<SelectedElements>,
}

/// Objects of the inputs, from which the schema of the output is joined.
pub(crate) struct FoundContents {
    joiner: Joiner,
    /// AnnData inputs, which are not joined path by path.
    anndata: anndata::Files,
    link: Link,
    /// Link targets, if each object in a root group gets a link.
    objects: Vec<RootObjects>,
}

/// Records in the inputs about the merges that wrote them.
#[derive(Default)]
pub(crate) struct InputRecords {
    remembered: Option<StoredRecord>,
    /// Datasets that those merges added to the inputs.
    pub derived_specs: Vec<DerivedSpec>,
}

impl FoundInputs {
    /// Creates an empty set that expects `expected` inputs.
    pub(crate) fn new(options: &MergeOptions, expected: usize) -> Self {
        Self {
            started: Instant::now(),
            contents: FoundContents::new(options, expected),
            inputs: Vec::with_capacity(expected),
            places: Vec::with_capacity(expected),
            skipped: Vec::new(),
            chunk_count: 0,
            open_s: 0.0,
            learned: LearnedValues::default(),
            recorded: InputRecords::default(),
            digests: InputDigests::default(),
            is_growing: false,
        }
    }

    /// Expects the first input to be a merged file, to which the others are appended.
    pub(crate) fn growing(mut self) -> Self {
        self.contents.joiner = self.contents.joiner.growing();
        self.is_growing = true;
        self
    }

    /// Adds an input, number `place` of the caller's list. Inputs must be added in list order.
    pub(crate) fn add(&mut self, place: usize, path: PathBuf, scanned: ScannedInput) {
        let ScannedInput { paths, entries, file } = scanned;
        let ScannedFile { identity, encoding, userblock_len_bytes, chunk_count, recognised, records, digests, open_s } =
            file;
        // Existing rows are neither read nor digested again.
        let is_grown = self.is_growing && self.inputs.is_empty();
        self.digests.add(&paths, if is_grown { &[] } else { &digests });
        self.recorded.add(records);
        self.places.push(place as u32);
        self.inputs.push(PlannedInput { path, identity, encoding, userblock_len_bytes });
        self.chunk_count += chunk_count;
        self.open_s += open_s;
        let FoundContents { joiner, anndata, link, objects } = &mut self.contents;
        match link {
            Link::External => return,
            Link::ExternalObjects => return objects.push(RootObjects::of(&paths, &entries, recognised.refusal)),
            Link::No | Link::Virtual => {}
        }
        if recognised.choice == Some(Choice::Anndata) {
            joiner.add(&paths, Vec::new(), &recognised);
            anndata.add(paths, entries);
        } else {
            joiner.add(&paths, entries, &recognised);
        }
    }
}

impl FoundContents {
    fn new(options: &MergeOptions, expected: usize) -> Self {
        let guards_meaning = options.conventions.convention != Some(Choice::None);
        let joiner = Joiner::new(options.join.clone(), guards_meaning, expected).computing(&options.derived);
        let has_some_rows = options.rows.is_some() || !options.subset.is_empty();
        let joiner = if has_some_rows { joiner.with_some_rows() } else { joiner };
        Self {
            joiner: if options.selection.is_partial() { joiner.with_some_objects() } else { joiner },
            anndata: anndata::Files::default(),
            link: options.link,
            objects: Vec::new(),
        }
    }

    /// Joins the objects of all inputs, whose `paths` and `link_names` are in input order.
    pub(crate) fn join(
        self,
        paths: &[PathBuf],
        link_names: &[Vec<u8>],
        options: &MergeOptions,
        counts: &SelectedCounts,
        is_new: bool,
    ) -> JoinResult {
        let joined = match self.link {
            Link::External => JoinResult { schema: links::external_schema(paths, link_names), ..JoinResult::default() },
            Link::ExternalObjects => {
                let (schema, differences) = links::object_schema(&self.objects, link_names);
                JoinResult { schema, differences, ..JoinResult::default() }
            }
            Link::No | Link::Virtual => self.joiner.finish(),
        };
        let is_anndata = joined.convention == Some(Choice::Anndata) && !self.anndata.is_empty();
        if !is_anndata || !joined.differences.is_empty() {
            return joined;
        }
        let joined_trees = anndata::join(&self.anndata, options.join.join, &options.conventions, counts);
        let mut joined = JoinResult { because: joined.because, ..joined_trees };
        if !is_new {
            joined.differences.push(anndata::refuse_append());
        }
        joined
    }
}

impl InputRecords {
    fn add(&mut self, records: Records) {
        let Records { remembered, made: specs } = records;
        for spec in specs {
            if !self.derived_specs.contains(&spec) {
                self.derived_specs.push(spec);
            }
        }
        self.remembered = match (self.remembered.take(), remembered) {
            (Some(known), Some(other)) if known != other => Some(known.of_parts().united(&other.of_parts())),
            (known, other) => known.or(other),
        };
    }

    /// Returns the record that also holds for an output of `inputs` inputs.
    pub(crate) fn record_for(self, inputs: usize) -> Option<StoredRecord> {
        match inputs {
            1 => self.remembered,
            _ => self.remembered.map(StoredRecord::of_parts),
        }
    }
}
