//! The objects of a planned file, which libhdf5 creates after all chunks are written, and the space that they take.
//!
//! Invariant: predictions made before chunks are known determine only where metadata is placed, never its contents.

use super::arrangement::{FilePlan, INDEX_LEN_BYTES};
use super::chunk_builder::{ChunkBuilder, Storage};
use super::series::{EncodedAttribute, Series, SeriesAttribute, class_of};
use crate::error::Result;
use raddle_codec::Encoder;
use raddle_hdf5::model::{CreationOrder, Dataspace, FillValue};
use raddle_hdf5::write::{Compat, DatasetSpec, MetadataPrediction, OutputFile, OutputLayout, TypeRef};
use std::sync::Arc;

/// Creates the objects of a file of `entries` entries; `last` holds the attributes that are only known at the end.
/// Returns the number of datasets.
pub(super) fn create(
    file: &mut OutputFile,
    plan: &FilePlan,
    (growing, encoders): (&[ChunkBuilder], &[Encoder]),
    entries: u64,
    last: &[(&'static str, SeriesAttribute)],
) -> Result<u64> {
    let order = link_order(plan);
    for group in &plan.groups {
        file.create_group(group.as_bytes(), order, CreationOrder::default())?;
    }
    let of_groups: Vec<_> = last.iter().chain(&plan.attributes).collect();
    for of_group in of_groups.chunk_by(|(one, _), (other, _)| one == other) {
        let encoded: Vec<EncodedAttribute<'_>> = of_group.iter().map(|(_, attribute)| attribute.encoded()).collect();
        let specs: Vec<_> = encoded.iter().map(EncodedAttribute::spec).collect();
        file.write_attributes(of_group[0].0.as_bytes(), &specs)?;
    }
    let mut datasets = 0;
    for ((series, growing), encoder) in plan.series.iter().zip(growing).zip(encoders) {
        if series.is_optional && growing.len == 0 && entries > 0 {
            continue;
        }
        datasets += 1;
        let storage = growing.storage();
        let mut dataset =
            file.create_dataset(series.path.as_bytes(), &spec(plan, series, encoder, growing.len, storage))?;
        match storage {
            Storage::Nowhere => {}
            Storage::Run { address } => dataset.place(address)?,
            Storage::Chunks { chunk_len } => {
                if !growing.chunks.is_empty() {
                    dataset.expect_chunks(growing.chunks.len() as u64)?;
                }
                for (chunk, origin) in growing.chunks.iter().zip((0..).step_by(chunk_len as usize)) {
                    dataset.insert(&[origin], chunk.address, chunk.len_bytes, chunk.filter_mask)?;
                }
            }
        }
        for attribute in &series.attributes {
            dataset.write_attribute(&attribute.encoded().spec())?;
        }
    }
    Ok(datasets)
}

/// Returns whether to track and index the creation order of links: always, except in the earliest file format.
pub(super) fn link_order(plan: &FilePlan) -> CreationOrder {
    let keeps = plan.compat != Compat::Earliest;
    CreationOrder { tracked: keeps, indexed: keeps }
}

/// Describes a dataset of `len` elements.
fn spec(plan: &FilePlan, series: &Series, encoder: &Encoder, len: u64, storage: Storage) -> DatasetSpec {
    let dims = vec![len];
    let max_dims = if plan.is_extensible { vec![u64::MAX] } else { dims.clone() };
    let (layout, filters) = match storage {
        Storage::Nowhere | Storage::Run { .. } => (OutputLayout::Contiguous, Vec::new()),
        Storage::Chunks { chunk_len } => (OutputLayout::Chunked { chunk_shape: vec![chunk_len] }, encoder.filters()),
    };
    DatasetSpec {
        datatype: TypeRef::Own(Arc::new(class_of(series.number))),
        dataspace: Dataspace::Simple { dims, max_dims },
        layout,
        filters,
        fill: FillValue::default(),
        attribute_order: CreationOrder::default(),
        has_attributes: !series.attributes.is_empty(),
    }
}

/// Predicts the room to reserve for metadata; metadata that does not fit is placed at the end of the file.
pub(super) fn predicted_metadata(
    plan: &FilePlan,
    encoders: &[Encoder],
    growing: &[ChunkBuilder],
    expected_len_bytes: u64,
) -> u64 {
    let mut prediction = MetadataPrediction::new(plan.compat);
    let order = link_order(plan);
    let attribute_len_bytes = |attribute: &SeriesAttribute| attribute.len_bytes(plan.compat);
    prediction.add_group(plan.groups.len() as u64, 64, order, &[]);
    for group in &plan.groups {
        let inside = plan.series.iter().filter(|series| series.path.starts_with(group));
        let (count, text) = inside.fold((0, 0), |(count, text), series| (count + 1, text + series.path.len() as u64));
        let of_group = plan.attributes.iter().filter(|(object, _)| object == group);
        let mut attributes: Vec<u64> = of_group.map(|(_, attribute)| attribute_len_bytes(attribute)).collect();
        // The attributes that are only known at the end are numbers.
        attributes.extend([128; 3]);
        prediction.add_group(count, text, order, &attributes);
    }
    let share = expected_len_bytes / (plan.series.len() as u64).max(1);
    for ((series, encoder), growing) in plan.series.iter().zip(encoders).zip(growing) {
        let chunk_len_bytes = (growing.chunk_len * growing.element_len_bytes as u64).max(1);
        let chunks = share / chunk_len_bytes + 1;
        let storage = match share < INDEX_LEN_BYTES as u64 && !plan.is_extensible {
            true => Storage::Run { address: 0 },
            false => Storage::Chunks { chunk_len: growing.chunk_len },
        };
        let spec = spec(plan, series, encoder, chunks.saturating_mul(growing.chunk_len), storage);
        let attributes: Vec<u64> = series.attributes.iter().map(attribute_len_bytes).collect();
        prediction.add_dataset(&spec, chunks, &attributes);
    }
    prediction.len_bytes()
}
