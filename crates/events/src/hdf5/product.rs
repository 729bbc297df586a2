//! The product layout: the bytes of each product in one dataset, and the end of each event in another.
//!
//! In files of the framework (HDFOutputer.cc), event numbers are truncated to 32 bits, run and subrun are those of the
//! first event, and nothing is compressed.

use super::LUMI;
use super::arrangement::{EventArrangement, FilePlan, PartitionBlocks, bytes_of, id_of, id_pieces, id_series};
use super::lumi::{attributes, blobs, first_event, refused, serialization};
use super::series::{PartitionedBlock, Series, SeriesAttribute, SeriesPiece, SeriesValue};
use crate::error::Result;
use raddle_columns::awkward::link_name;
use raddle_columns::block::Block;
use raddle_columns::error::Location;
use raddle_columns::event_id::EventId;
use raddle_columns::schema::{Number, Schema, Serialization};
use raddle_hdf5::write::Compat;
use std::collections::HashSet;

/// Name of the layout in messages.
const LAYOUT: &str = "the framework's product layout";
/// Name of this layout in the layout attribute.
pub(super) const LAYOUT_NAME: &str = "product";
pub(super) const EVENT_IDS: &str = "Event_IDs";
pub(super) const RUNS: &str = "Run_IDs";
pub(super) const LUMIS: &str = "Lumi_IDs";
/// Suffix of the names of datasets that hold the ends of a product's events.
pub(super) const SIZES: &str = "_sz";
pub(super) const CLASS_NAME: &str = "classname";
/// Attribute of `/Lumi` in files written by raddle: name of the dataset of each product.
pub(super) const DATASETS: &str = "ProductDatasets";

/// The product layout, as an arrangement.
pub(super) struct Products {
    plan: FilePlan,
    is_framework: bool,
}

impl Products {
    pub fn new(schema: &Schema, with_ids: bool) -> Result<Self> {
        let mut names = HashSet::from([EVENT_IDS.to_owned(), RUNS.to_owned(), LUMIS.to_owned()]);
        let mut of_products = Vec::with_capacity(schema.products.len());
        for product in &schema.products {
            let wanted = link_name(&product.name);
            let mut name = wanted.clone();
            let mut number = 0;
            while names.contains(&name) || names.contains(&format!("{name}{SIZES}")) {
                number += 1;
                name = format!("{wanted}.{number}");
            }
            names.extend([name.clone(), format!("{name}{SIZES}")]);
            of_products.push(name);
        }
        let mut attributes = attributes(LAYOUT_NAME, schema, with_ids)?;
        attributes.push((LUMI, SeriesAttribute::new(DATASETS, SeriesValue::Strings(of_products.clone()))));
        let path = |name: &str| format!("{LUMI}/{name}");
        let mut series: Vec<Series> = id_series(&path(RUNS), &path(LUMIS), &path(EVENT_IDS)).into();
        series.extend(product_series(&of_products, schema, Number::Uint8));
        let plan = FilePlan { compat: Compat::V18, is_extensible: false, groups: vec![LUMI], attributes, series };
        Ok(Self { plan, is_framework: false })
    }

    pub fn as_the_framework(schema: &Schema) -> Result<Self> {
        let mut names = Vec::with_capacity(schema.products.len());
        for product in &schema.products {
            let refuse = |needed| Err(refused(product, LAYOUT, needed));
            if serialization(product, LAYOUT)? != Serialization::Root {
                return refuse("it cannot record the serialisation of products, and requires ROOT's");
            }
            // The framework's reader takes any name that contains these letters as the name of a dataset of sizes.
            if product.name.contains(SIZES) || product.name == EVENT_IDS || link_name(&product.name) != product.name {
                return refuse(
                    "names of products become names of datasets, which must be without slashes, _sz and Event_IDs",
                );
            }
            names.push(product.name.clone());
        }
        let mut series = vec![Series::values(format!("{LUMI}/{EVENT_IDS}"), Number::Int32)];
        series.extend(product_series(&names, schema, Number::Int8));
        let plan = FilePlan {
            compat: Compat::Earliest,
            is_extensible: true,
            groups: vec![LUMI],
            attributes: Vec::new(),
            series,
        };
        Ok(Self { plan, is_framework: true })
    }
}

fn product_series(names: &[String], schema: &Schema, bytes: Number) -> Vec<Series> {
    let of_product = |(name, product): (&String, &raddle_columns::schema::Product)| {
        let class = SeriesValue::String(product.class.clone());
        let sizes = Series::values(format!("{LUMI}/{name}{SIZES}"), Number::Uint64);
        [Series::values(format!("{LUMI}/{name}"), bytes).with(CLASS_NAME, class), sizes]
    };
    names.iter().zip(&schema.products).flat_map(of_product).collect()
}

impl EventArrangement for Products {
    fn plan(&self) -> &FilePlan {
        &self.plan
    }

    fn arranger(&self) -> Result<Box<dyn PartitionBlocks>> {
        Ok(Box::new(BlockPartitioner { is_framework: self.is_framework }))
    }

    fn last_attributes(&self, _entries: u64, first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)> {
        if self.is_framework { first_event(first) } else { Vec::new() }
    }
}

struct BlockPartitioner {
    is_framework: bool,
}

impl PartitionBlocks for BlockPartitioner {
    fn arrange(&mut self, block: Block, _place: &Location) -> Result<PartitionedBlock> {
        let entries = block.len_entries();
        let ids = (0..entries as usize).map(|number| id_of(&block, number));
        let mut pieces: Vec<SeriesPiece> = match self.is_framework {
            // Truncated, as by a C++ `int`.
            true => vec![bytes_of(ids.map(|id| (id.event as i32).to_le_bytes()))],
            false => id_pieces(ids).into(),
        };
        for (offsets, bytes) in blobs(&block) {
            pieces.push(SeriesPiece::Values(bytes.to_vec()));
            pieces.push(SeriesPiece::Ends(offsets[1..].to_vec()));
        }
        Ok(PartitionedBlock { pieces, entries })
    }
}
