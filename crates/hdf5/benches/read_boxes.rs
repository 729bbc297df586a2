//! Cost of a small chunk: index, read and decode of NOvA-like columns (128-row chunks, gzip 6), compared with decoding
//! alone.
//!
//! Times are CPU times of this thread, the best of several rounds, so that other work on the machine has little effect.
//! Run: `cargo bench -p raddle-hdf5 --bench read_boxes`.

use raddle_codec::{DecodeState, Effort, EncodeState, Encoder, Pipeline};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_hdf5::model::{Dataset, ObjectKind};
use raddle_hdf5::native::{Encoding, ReadLimits, read_tree};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits, for_each_chunk};
use raddle_hdf5::source::{InputFile, MetadataView};
use std::ops::ControlFlow;
use std::path::Path;

const DATASETS: u64 = 200;
const CHUNKS: u64 = 124;
const CHUNK_ROWS: u64 = 128;
const ROUNDS: usize = 7;

/// Returns the CPU seconds of this thread.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the values of one chunk: alternately event numbers that rise slowly, and floats that differ in their low
/// bits.
fn raw_chunk(dataset: u64, chunk: u64) -> Vec<u8> {
    let mut state = (dataset << 32 | chunk).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::new();
    let mut event = chunk * 100;
    for _ in 0..CHUNK_ROWS {
        let value = if dataset.is_multiple_of(2) {
            event += u64::from(random() % 4 == 0);
            event as u32
        } else {
            ((random() % 1000) as f32 * 0.25 + 10.0).to_bits()
        };
        out.extend_from_slice(&value.to_le_bytes());
    }
    out
}

/// Writes the file; with `interleaved`, as an event loop does: chunk by chunk over all columns.
fn make(path: &Path, interleaved: bool) {
    let encoder = Encoder::plain(Effort::Gzip(6), 4);
    let mut state = EncodeState::default();
    let mut file = DefaultFormatFile::create(path).unwrap();
    let spec = DefaultDatasetSpec {
        element: Element::U32,
        dims: vec![CHUNKS * CHUNK_ROWS, 1],
        chunk_shape: vec![CHUNK_ROWS, 1],
        gzip_level: 6,
    };
    let mut columns: Vec<_> =
        (0..DATASETS).map(|number| file.create_dataset(format!("/d{number:03}").as_bytes(), &spec).unwrap()).collect();
    let mut stored = Vec::new();
    for step in 0..DATASETS * CHUNKS {
        let (dataset, chunk) =
            if interleaved { (step % DATASETS, step / DATASETS) } else { (step / CHUNKS, step % CHUNKS) };
        stored.clear();
        encoder.encode(&mut state, &raw_chunk(dataset, chunk), &mut stored).unwrap();
        columns[dataset as usize].write_chunk(&[chunk * CHUNK_ROWS, 0], &stored, 0).unwrap();
    }
    drop(columns);
    file.finish().unwrap();
}

/// Returns the nanoseconds per chunk of the best round.
fn best(mut round: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let started = cpu_s();
        round();
        cpu_s() - started
    });
    times.fold(f64::INFINITY, f64::min) * 1e9 / (DATASETS * CHUNKS) as f64
}

fn main() {
    for interleaved in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("columns.h5");
        make(&path, interleaved);
        let file = InputFile::open(&path).unwrap();
        let tree = read_tree(&file, &ReadLimits::default()).unwrap();
        let encoding = Encoding::of(&tree);
        let datasets: Vec<&Dataset> = tree
            .objects
            .iter()
            .filter_map(|object| match &object.kind {
                ObjectKind::Dataset(dataset) => Some(&**dataset),
                _ => None,
            })
            .collect();
        let pipeline = Pipeline::new(&datasets[0].filters, 4).unwrap();
        let mut stored: Vec<Vec<u8>> = Vec::new();
        let mut view = MetadataView::new(&file, 64 << 20);
        let index = best(|| {
            for dataset in &datasets {
                for_each_chunk(&mut view, encoding, dataset, None, &mut |_| ControlFlow::Continue(())).unwrap();
            }
        });
        for dataset in &datasets {
            for_each_chunk(&mut view, encoding, dataset, None, &mut |chunk| {
                let mut bytes = vec![0; chunk.len_bytes as usize];
                file.read_exact_at(chunk.address, &mut bytes, "chunk").unwrap();
                stored.push(bytes);
                ControlFlow::Continue(())
            })
            .unwrap();
        }
        let mut state = DecodeState::default();
        let mut out = vec![0; (CHUNKS * CHUNK_ROWS * 4) as usize];
        let chunk_len = (CHUNK_ROWS * 4) as usize;
        let decode = best(|| {
            for (number, bytes) in stored.iter().enumerate() {
                let at = number % CHUNKS as usize * chunk_len;
                pipeline.decode(&mut state, bytes, 0, &mut out[at..at + chunk_len]).unwrap();
            }
        });
        let mut reader = DatasetReader::new(ReaderLimits::default());
        let shape = [CHUNKS * CHUNK_ROWS, 1];
        let read = best(|| {
            for dataset in &datasets {
                let source = DatasetSource { file: &file, encoding, dataset, pipeline: &pipeline };
                let target = BoxRead { start: &[0, 0], count: &shape, out_shape: &shape, out_origin: &[0, 0] };
                reader.read_box(&source, &target, &mut out).unwrap();
            }
        });
        let stored_len: usize = stored.iter().map(Vec::len).sum();
        println!(
            "{}: {:.0} ns per chunk of {} bytes ({} stored); index alone {index:.0}, decode alone {decode:.0}",
            if interleaved { "chunks of columns interleaved" } else { "column after column" },
            read,
            chunk_len,
            stored_len / stored.len()
        );
    }
}
