//! Whole files: metadata, chunk indexes, values, heaps, digests, and merges of accepted files.

use crate::edits::edited;
use crate::scratch;
use raddle_codec::Pipeline;
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::Silent;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::{Dataset, FileTree, Layout, ObjectKind};
use raddle_hdf5::native::{
    Encoding, HeaderTemplateCache, ReadLimits, read_object, read_outline, read_tree, superblock::Superblock,
};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits, check_chunks};
use raddle_hdf5::source::{InputFile, MetadataView};
use raddle_merge::{MergeError, MergeOptions, Watch};
use std::path::Path;

const LIMITS: ReadLimits =
    ReadLimits { objects: 100_000, links: 100_000, depth: 1000, work_len_bytes: 4 << 20, cache_len_bytes: 1 << 20 };

/// Maximum length of a dataset that is read, and of a chunk.
const MAX_VALUES_BYTES: u64 = 1 << 20;

/// Runs the target whose input is a file.
pub(crate) fn file(bytes: &[u8]) {
    read_all(&scratch::write("file.h5", bytes));
}

/// Runs the target whose input is a list of edits to a file; the checksums of the file are kept valid.
pub(crate) fn edited_file(bytes: &[u8]) {
    read_all(&scratch::write("file.h5", &edited(bytes).0));
}

fn read_all(path: &Path) {
    let Ok(file) = InputFile::open(path) else { return };
    let Ok(tree) = read_tree(&file, &LIMITS) else { return };
    let outline =
        read_outline(&mut MetadataView::new(&file, LIMITS.cache_len_bytes), &LIMITS, &HeaderTemplateCache::default());
    let outline = outline.expect("what is read in full is read by forms");
    assert_eq!(outline.objects.len(), tree.objects.len());
    read_objects(&file, &tree);
    for (object, by_form) in tree.objects.iter().zip(&outline.objects) {
        assert_eq!(object.address, by_form.address);
        let dataset = match &object.kind {
            ObjectKind::Dataset(dataset) => dataset,
            _ => continue,
        };
        if let ObjectKind::Templated(templated) = &by_form.kind {
            assert_eq!(with_needed_length(dataset), templated.dataset(), "read by its form");
        }
        read_values(&file, &tree, dataset);
    }
    let _ = raddle_hdf5::inspect::inspect(&file, &LIMITS, None);
}

/// Returns the dataset with the length that its contiguous values need, if more is stored: a form does not record the
/// excess.
fn with_needed_length(dataset: &Dataset) -> Dataset {
    let mut dataset = dataset.clone();
    let needed =
        dataset.dataspace.element_count().and_then(|count| count.checked_mul(dataset.datatype.class.len_bytes()));
    if let (Layout::Contiguous { len_bytes, .. }, Some(needed)) = (&mut dataset.layout, needed) {
        *len_bytes = needed.min(*len_bytes);
    }
    dataset
}

fn read_objects(file: &InputFile, tree: &FileTree) {
    let Ok(superblock) = Superblock::read(file) else { panic!("its tree was read") };
    let mut view = MetadataView::new(file, LIMITS.cache_len_bytes);
    for object in tree.objects.iter().take(20) {
        let _ = read_object(&mut view, &superblock, object.address, &LIMITS);
        let mut resolver = Resolver::new(file, tree);
        for attribute in &object.attributes {
            let _ = resolver.canonical_inline(&attribute.datatype.class, &attribute.data);
        }
    }
}

fn read_values(file: &InputFile, tree: &FileTree, dataset: &Dataset) {
    let encoding = Encoding::of(tree);
    let checked = check_chunks(&mut MetadataView::new(file, LIMITS.cache_len_bytes), encoding, dataset);
    let class = &dataset.datatype.class;
    let len_bytes = dataset.dataspace.element_count().and_then(|count| count.checked_mul(class.len_bytes()));
    let Some(len_bytes) = len_bytes.filter(|len_bytes| *len_bytes <= MAX_VALUES_BYTES) else { return };
    let Ok(pipeline) = Pipeline::new(&dataset.filters, class.len_bytes() as usize) else { return };
    let (source, dims) = (DatasetSource { file, encoding, dataset, pipeline: &pipeline }, dataset.dataspace.dims());
    let origin = vec![0; dims.len()];
    let target = BoxRead { start: &origin, count: dims, out_shape: dims, out_origin: &origin };
    let limits = ReaderLimits { chunk_len_bytes: MAX_VALUES_BYTES, ..ReaderLimits::default() };
    let read = |fill| {
        let mut values = vec![fill; len_bytes as usize];
        DatasetReader::new(limits).read_box(&source, &target, &mut values).ok().map(|_| values)
    };
    let (Some(values), Some(again)) = (read(0xA5), read(0x5A)) else { return };
    assert!(checked.is_err() || values == again, "values that nobody wrote are shown");
    if class.is_file_local() {
        let (mut resolver, mut canonical) = (Resolver::new(file, tree), Vec::new());
        for element in values.chunks_exact(class.len_bytes().max(1) as usize) {
            // Texts may be shared, so that a small file can represent many long values; readers need the same limit as
            // here.
            if canonical.len() as u64 > MAX_VALUES_BYTES || resolver.canonical(class, element, &mut canonical).is_err()
            {
                break;
            }
        }
    }
}

fn options(output: &Path) -> MergeOptions {
    MergeOptions {
        force: true,
        resume: false,
        jobs: 1,
        memory_limit_bytes: 32 << 20,
        max_output_len_bytes: Some(MAX_VALUES_BYTES),
        ..MergeOptions::new(output)
    }
}

/// Runs the target whose input is a list of edits to a file, which is merged with itself. A merged file must pass
/// verification by its digests and by comparison with the inputs.
pub(crate) fn merge(bytes: &[u8]) {
    let input = scratch::write("input.h5", &edited(bytes).0);
    let inputs = [input.clone(), input];
    let (output, cancel) = (scratch::path("merged.h5"), CancelToken::new());
    let (options, watch) = (options(&output), Watch { observer: &Silent, cancel: &cancel });
    let Ok(plan) = raddle_merge::plan(&inputs, &options, &watch) else { return };
    if let Err(error) = raddle_merge::merge(&plan, &watch) {
        assert!(!matches!(error, MergeError::Cancelled), "{error}");
        return;
    }
    let report = raddle_merge::verify(&output, &inputs, &options, &watch);
    let report = report.unwrap_or_else(|error| panic!("what was merged cannot be verified: {error}"));
    assert!(report.mismatches.is_empty(), "{:?}", report.mismatches);
    let digest_report = raddle_merge::verify::digests::check::check(&output, &options, &watch);
    let digest_report = digest_report.unwrap_or_else(|error| panic!("what was merged has no digests: {error}"));
    assert!(digest_report.mismatches.is_empty(), "{:?}", digest_report.mismatches);
}

/// Runs the target whose input is a list of edits to a file, which is compared with its digests.
pub(crate) fn digests(bytes: &[u8]) {
    let path = scratch::write("own.h5", &edited(bytes).0);
    let cancel = CancelToken::new();
    let watch = Watch { observer: &Silent, cancel: &cancel };
    if let Ok(stored) = raddle_merge::verify::digests::stored::read(&path, &options(&path)) {
        for column in stored.datasets.values() {
            let inputs = stored.inputs_of(column, &(0..u64::MAX));
            assert!(inputs.end <= stored.inputs.len());
        }
    }
    let _ = raddle_merge::verify::digests::check::check(&path, &options(&path), &watch);
}
