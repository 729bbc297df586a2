//! Parts of a merge give the same bytes as one process, whatever is merged.

use crate::folder::names;
use crate::watched::watched;
use proptest::prelude::*;
use raddle_codec::Effort;
use raddle_merge::plan::chunk::Chunk;
use raddle_merge::write::parts::{Part, PartReport, merge_part};
use raddle_merge::{Compress, Contiguous, MergeOptions, merge, plan};
use raddle_testing::plain;
use raddle_testing::strategy::{SchemaOptions, files};
use std::path::{Path, PathBuf};

fn make(inputs: &[PathBuf], options: &MergeOptions, part: Part) -> PartReport {
    watched(|watch| merge_part(plan(inputs, options, watch)?, part, watch)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_the_whole(
        specs in files(SchemaOptions::default()),
        compress in prop_oneof![Just(Effort::Fast.into()), Just(Compress::Keep)],
        contiguous in prop_oneof![Just(Contiguous::Small), Just(Contiguous::All)],
        rows in prop::option::of(1_u64..20),
        order in (1_u32..6).prop_flat_map(|count| Just((1..=count).collect::<Vec<_>>()).prop_shuffle()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let inputs = plain::make_all(folder.path(), &specs).unwrap();
        let chunk = rows.map(|rows| vec![rows]);
        let options = |output: &Path| {
            MergeOptions { compress, contiguous, chunk: chunk.clone().map(Chunk::from), jobs: 2, ..MergeOptions::new(output) }
        };
        let whole = folder.path().join("whole.h5");
        watched(|watch| merge(&plan(&inputs, &options(&whole), watch)?, watch)).unwrap();
        let out = folder.path().join("out");
        std::fs::create_dir(&out).unwrap();
        let output = out.join("parts.h5");
        let count = order.len() as u32;
        let mut tiles = 0;
        for (place, number) in order.iter().enumerate() {
            let done = make(&inputs, &options(&output), Part::new(*number, count).unwrap());
            tiles += done.tiles;
            let mut missing = order[place + 1..].to_vec();
            missing.sort_unstable();
            prop_assert_eq!(&done.missing, &missing);
            prop_assert_eq!(done.merged.is_some(), missing.is_empty());
            if let Some(merged) = done.merged {
                prop_assert_eq!(merged.engine.tiles, tiles);
            }
        }
        prop_assert!(std::fs::read(&output).unwrap() == std::fs::read(&whole).unwrap());
        prop_assert_eq!(names(&out), ["parts.h5"]);
    }
}

#[test]
fn there_are_no_parts_beyond_the_last() {
    assert!(Part::new(0, 3).is_none() && Part::new(4, 3).is_none() && Part::new(1, 0).is_none());
    let part = Part::new(2, 3).unwrap();
    assert_eq!((part.number(), part.count()), (2, 3));
}
