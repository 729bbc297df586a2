//! ROOT files: opening of trees, trees of packed events and RNTuples, and writing of RNTuples.

use super::{EventCodec, EventFile, Format, MergeJob, OpenOptions, OutputLayout, WriteJob, WrittenEvents};
use crate::convert::ConvertOptions;
use crate::error::{EventsError, Result};
use crate::packed::PackedTree;
use raddle_columns::error::{ColumnsError, Location};
use raddle_columns::source::Source;
use raddle_report::quantity;
use raddle_root::{
    CLUSTER_LEN_BYTES, NtupleOptions, NtupleSink, NtupleSource, RootFile, RootOptions, TreeSource, WholeTree,
    is_root_file, renamed,
};
use std::path::Path;

/// Format of ROOT files.
pub(super) struct RootFormat;

/// Name of the tree to which the frameworks of experiments write events.
const DEFAULT_TREE: &str = "Events";

impl Format for RootFormat {
    fn title(&self) -> &'static str {
        "a ROOT file"
    }

    fn is_match(&self, first: &[u8]) -> bool {
        is_root_file(first)
    }

    fn open(&self, path: &Path, options: &OpenOptions) -> Result<Box<dyn EventFile>> {
        let file = RootFile::open(path)?;
        let tree = match &options.tree {
            Some(tree) => tree.clone(),
            None => usual_tree(&file, path)?,
        };
        if file.has_ntuple(&tree) {
            return Ok(Box::new(NtupleSource::open(file, &tree)?));
        }
        let source = TreeSource::open(file, &tree, RootOptions { raw: options.raw })?;
        Ok(match PackedTree::is_one(&source) {
            true => Box::new(PackedTree::open(source.into_file(), &tree)?),
            false if options.whole => Box::new(WholeTree::open(source.into_file(), &tree)?),
            false => Box::new(source),
        })
    }

    fn layouts(&self) -> &'static [OutputLayout] {
        &[OutputLayout::Rntuple]
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<WrittenEvents> {
        let schema = job.schema();
        let options = NtupleOptions {
            codec: job.options.ntuple_codec(),
            with_ids: job.source.has_ids(),
            replace: job.replace,
            ..NtupleOptions::default()
        };
        for (product, stored) in renamed(&schema) {
            let (name, stored_as) = (product.escape_debug(), stored.escape_debug());
            job.warn(match product == stored {
                true => format!("{name}: '_' replaces characters that RNTuples do not permit in names of fields"),
                false => format!("{name} is written as {stored_as}: RNTuples do not permit all characters in names"),
            });
        }
        let sink = NtupleSink::begin_collective(job.output, &schema, options, job.ranks)?;
        let convert = ConvertOptions { batch_len_bytes: CLUSTER_LEN_BYTES, ..job.convert.clone() };
        let (converted, summary) = job.fill(sink, &convert)?;
        Ok(job.report(summary.events, summary.len_bytes, converted))
    }

    fn merge(&self, job: &MergeJob<'_>) -> Result<Option<WrittenEvents>> {
        let path = job.inputs.first().cloned().unwrap_or_default();
        Err(EventsError::NotMergeable { path, title: "ROOT files" })
    }
}

fn usual_tree(file: &RootFile, path: &Path) -> Result<String> {
    let available = file.containers();
    match available.as_slice() {
        [only] => Ok(only.clone()),
        _ if available.iter().any(|tree| tree == DEFAULT_TREE) => Ok(DEFAULT_TREE.to_owned()),
        _ => {
            let place = Location::file(path).tree(DEFAULT_TREE).into();
            Err(ColumnsError::NoSuch { place, kind: "tree", available }.into())
        }
    }
}

/// Returns the name of the tree that a source reads.
fn tree_of(source: &dyn Source) -> String {
    source.place().tree.unwrap_or_default()
}

impl EventFile for TreeSource {
    fn description(&self) -> String {
        format!("ROOT file, tree {}", tree_of(self))
    }

    fn unread(&self) -> Vec<String> {
        self.unread().iter().map(ToString::to_string).collect()
    }

    fn undecoded(&self) -> Vec<(String, String)> {
        self.unknown().map(|(product, why)| (product.name.clone(), why)).collect()
    }
}

impl EventFile for WholeTree {
    fn description(&self) -> String {
        format!("ROOT file, tree {} as whole objects", tree_of(self))
    }

    fn unread(&self) -> Vec<String> {
        let refused = self.refused().map(|(product, why)| format!("{}: {why}", product.name));
        self.unread().iter().map(ToString::to_string).chain(refused).collect()
    }
}

impl EventFile for PackedTree {
    fn description(&self) -> String {
        let (codec, kind) = (EventCodec::from(self.codec()), self.serialization());
        let of = self.batches().map_or("events".to_owned(), |count| quantity::counted(count, "batch"));
        format!("ROOT file, tree {} of packed {of}, compression {codec}, serialisation {kind}", tree_of(self))
    }
}

impl EventFile for NtupleSource {
    fn description(&self) -> String {
        format!("ROOT file, RNTuple {}", tree_of(self))
    }

    fn unread(&self) -> Vec<String> {
        self.unread().to_vec()
    }
}
