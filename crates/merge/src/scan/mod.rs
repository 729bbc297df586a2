//! Scan of the inputs: reads their metadata, each file once and many in parallel, and reduces it to the facts that a
//! merge needs.
//!
//! The tree of a file exists only until it is reduced to [`ScannedEntry`] values. Chunk indexes are walked to check
//! that every chunk lies inside the file and that none overlap, and are not kept. Invariant: results are in input
//! order, regardless of the number of threads.

pub(crate) mod chunk_checks;
mod digests;
pub(crate) mod dimension_scales;
mod entry;
pub(crate) mod exchange;
mod left_out_bounds;
mod left_out_members;
pub(crate) mod scale_lists;
mod scanner;
mod visits;

pub use entry::{ScannedEntry, ScannedRole};

use crate::conventions::{self, Choice, ConventionOptions, FileView, Recognition, Refusal};
use crate::error::{BadInput, MergeError, Result};
use crate::inputs::left_out_scales;
use crate::inputs::linked_files::real_folder;
use crate::inputs::paths::Paths;
use crate::inputs::reader::InputReader;
use crate::options::{MergeOptions, Watch};
use crate::scan::chunk_checks::TemplateChunks;
use crate::verify::digests::{InputDigest, Records, stored};
use crate::verify::record;
use crate::write::ranks::share;
use foldhash::HashMap;
use raddle_core::output::publish::published_path;
use raddle_core::parallel::ordered::OrderedQueue;
use raddle_core::pooled_file::FileIdentity;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::native::{Encoding, HeaderTemplateCache};
use raddle_hdf5::source::{InputFile, MetadataView, ViewBuffers};
use scanner::Scanner;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Instant;
use visits::{paths_limit_bytes, walk};

/// A scanned input.
#[derive(Debug, Clone)]
pub struct ScannedInput {
    /// Absolute paths of objects and links, parents before children.
    pub paths: Paths,
    /// Entry at each path.
    pub entries: Vec<ScannedEntry>,
    /// Facts about the whole file.
    pub file: ScannedFile,
}

/// Facts about a scanned file as a whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScannedFile {
    /// Identity of the file at the time of the scan.
    pub identity: FileIdentity,
    /// Base address of the file, and the sizes of the addresses and lengths that it stores.
    pub encoding: Encoding,
    /// Number of bytes before the superblock, which are not merged.
    pub userblock_len_bytes: u64,
    /// Number of chunks of all datasets.
    pub chunk_count: u64,
    /// Wall time of opening the file.
    pub open_s: f64,
    /// Convention that the file was recognised as.
    pub recognised: Recognition,
    /// Records of the merge that wrote the file, if it has any.
    #[serde(with = "record::as_text")]
    pub records: Records,
    /// Digest of the values of each entry, if the file holds digests and they are compared; otherwise empty.
    pub digests: Vec<Option<InputDigest>>,
}

/// Maximum memory for cached metadata blocks per scanning thread. A file of 16,000 datasets spreads its metadata over
/// all of its 20 MB, and it is read twice: first objects, then chunk indexes, each in file order.
const MAX_VIEW_BYTES: u64 = 64 << 20;

/// Collective. Scans `inputs`, each on one of the `ranks`, and passes all results to `take`, in input order. Inputs
/// that cannot be read are collected: all of them are in the error, or in the returned list with `skip_bad`.
pub fn scan(
    inputs: &[PathBuf],
    options: &MergeOptions,
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
    mut take: impl FnMut(usize, ScannedInput),
) -> Result<Vec<BadInput>> {
    let started = Instant::now();
    // One rank shows the progress of all.
    let lens = inputs.iter().filter(|_| ranks.rank() == 0).filter_map(|path| std::fs::metadata(path).ok());
    let total_bytes = lens.map(|file| file.len()).sum();
    watch.observer.event(&Event::StageStarted { stage: Stage::Scan, total_bytes: Some(total_bytes) });
    let local_inputs: Vec<usize> = share(ranks, inputs.len()).collect();
    let is_alone = ranks.size() == 1;
    let mut bad = Vec::new();
    let forms = HeaderTemplateCache::default();
    let view_limit_bytes = MAX_VIEW_BYTES.min(options.memory_limit_bytes / (4 * options.jobs as u64));
    let ahead = OrderedQueue::new(local_inputs.len(), options.jobs * 4);
    let output_folder = real_folder(&published_path(&options.output)).ok();
    let work = || {
        let mut scanner = InputScanner {
            reader: InputReader::new(options),
            options,
            is_alone: inputs.len() == 1 && options.conventions == ConventionOptions::default(),
            forms: &forms,
            output_folder: output_folder.as_deref(),
            buffers: ViewBuffers::default(),
            view_limit_bytes,
        };
        while let Some(place) = ahead.next() {
            if watch.cancel.is_cancelled() {
                ahead.stop();
                return;
            }
            let scanned = scanner.scan(&inputs[local_inputs[place]]);
            if is_alone {
                let bytes = scanned.as_ref().map_or(0, |scanned| scanned.file.identity.len_bytes);
                watch.observer.event(&Event::Advanced { stage: Stage::Scan, bytes, items: 1 });
            }
            ahead.put(place, scanned);
        }
    };
    // Results are joined on this thread while the others continue to scan.
    ahead.run(options.jobs, work, || {
        if !is_alone {
            return exchange::take_all(&ahead, inputs, watch, ranks, &mut take, &mut bad);
        }
        for (place, path) in inputs.iter().enumerate() {
            match ahead.take(place) {
                Some(Ok(scanned)) => take(place, scanned),
                Some(Err(error)) => bad.push(BadInput { path: path.clone(), error }),
                None => break,
            }
        }
        Ok(())
    })?;
    if is_alone && watch.cancel.is_cancelled() {
        return Err(MergeError::Cancelled);
    }
    watch.observer.event(&Event::StageFinished { stage: Stage::Scan, elapsed_s: started.elapsed().as_secs_f64() });
    if bad.is_empty() || (options.skip_bad && bad.len() < inputs.len()) {
        return Ok(bad);
    }
    Err(MergeError::BadInputs { bad })
}

/// Returns the error for a file whose paths of `objects` objects are too long.
fn too_long_paths(file: &InputFile, objects: usize) -> Hdf5Error {
    Hdf5Error::Limit {
        path: file.path().to_path_buf(),
        what: format!("length in bytes of the paths of all {objects} objects together"),
        limit: paths_limit_bytes(objects),
    }
}

/// Scanner of inputs, one after another, on one thread.
struct InputScanner<'a> {
    reader: InputReader,
    options: &'a MergeOptions,
    /// Whether this is the only input.
    is_alone: bool,
    forms: &'a HeaderTemplateCache,
    output_folder: Option<&'a Path>,
    buffers: ViewBuffers,
    view_limit_bytes: u64,
}

impl InputScanner<'_> {
    fn scan(&mut self, path: &Path) -> raddle_hdf5::Result<ScannedInput> {
        let started = Instant::now();
        let file = InputFile::open(path)?;
        file.check_no_writer()?;
        let open_s = started.elapsed().as_secs_f64();
        let buffers = std::mem::take(&mut self.buffers);
        let mut view = MetadataView::with_buffers(&file, self.view_limit_bytes, buffers);
        let scanned = self.scan_through(&file, open_s, &mut view);
        self.buffers = view.into_buffers();
        scanned
    }

    fn scan_through(
        &self,
        file: &InputFile,
        open_s: f64,
        view: &mut MetadataView<'_>,
    ) -> raddle_hdf5::Result<ScannedInput> {
        let (tree, left_out) = self.reader.read_outline(view, self.forms)?;
        let encoding = Encoding::of(&tree);
        let chunks = TemplateChunks::check(view, encoding, &tree);
        let visits = walk(&tree).ok_or_else(|| too_long_paths(file, tree.objects.len()))?;
        let mut scanner = Scanner {
            view,
            resolver: Resolver::new(file, &tree),
            tree: &tree,
            visits: &visits,
            by_address: OnceCell::new(),
            of_forms: HashMap::default(),
            chunks,
            reader: &self.reader,
            encoding,
            output_folder: self.output_folder,
            chunk_count: 0,
        };
        let mut entries = scanner.entries()?;
        if self.options.conventions.convention != Some(Choice::None) {
            let coordinates = left_out.coordinates.iter();
            let coordinates: Vec<_> =
                coordinates.map(|coordinate| (&*coordinate.path, scanner.of_left_out(coordinate))).collect();
            left_out_bounds::complete_bounds(&visits.paths, &mut entries, &coordinates);
        }
        let stored = (!self.options.ignore_digests).then(|| stored::usable(file, &tree, &self.reader)).flatten();
        let digests = stored.map(|stored| digests::of_entries(&stored, &visits.paths, &entries)).unwrap_or_default();
        let records = match self.options.conventions.convention {
            Some(Choice::None) => Ok(Records::default()),
            _ => stored::records(file, &tree),
        };
        let may_lack_records =
            self.options.selection.is_partial() && left_out_scales::has_records(&tree, &self.options.conventions);
        let mut recognised = self.recognise(file, &visits.paths, &mut entries, may_lack_records, &records);
        if self.options.link.is_external() {
            recognised.refusal = left_out.in_group.as_deref().map(left_out_members::linked_as_whole);
        }
        scanner.follow_rules(&mut entries, &recognised)?;
        let chunk_count = scanner.chunk_count;
        file.check_unchanged()?;
        let file = ScannedFile {
            identity: file.identity(),
            encoding,
            userblock_len_bytes: tree.userblock_len_bytes,
            chunk_count,
            open_s,
            recognised,
            records: records.unwrap_or_default(),
            digests,
        };
        Ok(ScannedInput { paths: visits.paths, entries, file })
    }

    /// Recognises the conventions of an input, whose own record of an earlier merge is `records`.
    fn recognise(
        &self,
        file: &InputFile,
        paths: &Paths,
        entries: &mut [ScannedEntry],
        may_lack_records: bool,
        records: &std::result::Result<Records, (&str, String)>,
    ) -> Recognition {
        let mut options = Cow::Borrowed(&self.options.conventions);
        let names_members = self.options.selection.is_partial() && options.convention != Some(Choice::None);
        if names_members {
            left_out_members::shorten_lists(paths, entries);
        }
        let view = FileView::new(file.path(), paths, entries, may_lack_records);
        let is_alone = self.is_alone || self.options.join.is_union_only();
        if let Ok(Records { remembered: Some(remembered), .. }) = records {
            options = Cow::Owned(remembered.guiding(&options, self.options.selection.patterns()[2]));
        }
        let mut recognised = conventions::recognise(&view, &options, is_alone && self.options.rows.is_none());
        if is_alone && self.options.divides_variables && options.convention.is_none() {
            recognised.choice = conventions::undivided(&view);
        }
        if self.options.rows.is_some() {
            // Nothing is combined, but values may refer to rows that are left out.
            recognised.rules.retain(|(_, rule)| rule.values.refers_to().is_some());
            let refusal = conventions::unselectable(&view, &options);
            recognised = Recognition { rules: recognised.rules, refusal, ..Recognition::default() };
        }
        if names_members {
            recognised.refusal = recognised.refusal.or_else(|| left_out_members::lacks_signal(paths, entries));
        }
        if let Err((attribute, reason)) = records {
            let reason =
                format!("the record of the merge cannot be read: {reason}; --convention none merges without it");
            recognised.refusal = Some(Refusal { object: format!("/_raddle (attribute {attribute})"), reason });
        }
        recognised
    }
}
