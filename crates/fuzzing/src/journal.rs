//! Journals of interrupted runs: a journal that is read must be written back unchanged.

use raddle_core::engine::PlacedBatch;
use raddle_core::output::claims::Claim;
use raddle_core::output::journal::{self, Binding, Journal};
use raddle_core::plan::{ArrayPlan, Plan, TileIndex};

const START_ADDRESS: u64 = 2048;

fn index() -> TileIndex {
    let array =
        |tiles| ArrayPlan { shape: vec![tiles], tile_shape: vec![1], element_len_bytes: 1, ..ArrayPlan::default() };
    Plan { arrays: vec![array(5), array(0), array(60)] }.tile_index()
}

/// Runs the target whose input is a journal.
pub(crate) fn journal(bytes: &[u8]) {
    let index = index();
    let Ok(Some(mut journal)) = Journal::open(bytes, 0, START_ADDRESS) else { return };
    let mut written = Vec::new();
    journal::begin(&mut written, journal.binding()).expect("memory takes all");
    assert_eq!(journal.binding().difference(&journal.binding().clone()), None);
    while let Some(batch) = journal.next_record(&index).expect("memory gives all") {
        journal::append(&mut written, &batch, &index).expect("memory takes all");
    }
    assert_eq!(written, bytes[..journal.len_bytes() as usize], "what is read is not what would be written");
    assert!(journal.kept().tiles <= index.tile_count());
}

/// Returns whole journals of several lengths.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let index = index();
    let seed = |batches: u64, tiles: u64| {
        let mut binding = Binding::default();
        binding.bind("the options", batches);
        binding.bind("the inputs", tiles);
        let mut bytes = Vec::new();
        journal::begin(&mut bytes, &binding).expect("memory takes all");
        let mut address = START_ADDRESS;
        for first in (0..batches).map(|batch| batch * tiles) {
            let mut batch = PlacedBatch { first, tiles, address, note: vec![7; 32], ..PlacedBatch::default() };
            for ordinal in first..first + tiles {
                let Some(tile) = index.tile(ordinal) else { continue };
                batch.claims.push(Claim { tile, address, len_bytes: 10 + ordinal, filter_mask: ordinal as u32 % 3 });
                address += 10 + ordinal;
            }
            batch.stored_len_bytes = address - batch.address;
            journal::append(&mut bytes, &batch, &index).expect("memory takes all");
        }
        bytes
    };
    vec![seed(0, 1), seed(3, 4), seed(12, 5), seed(1, 65)]
}
