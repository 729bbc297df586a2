//! Generates NOvA-like files: workers draw and compress columns, and one thread writes them in order.
//!
//! The same workload and seed give the same bytes for any number of threads. Memory is bounded: workers wait when they
//! are `WINDOW_PIECES` pieces ahead of the writer. Invariant: a file appears under its name only when it is complete.

use crate::values::{FileKeys, Law, TableRows, fill_column, fill_map_row};
use crate::workload::{CHUNK_ROWS, Column, GZIP_LEVEL, Table, Workload};
use anyhow::{Context, Result};
use raddle_codec::{Effort, EncodeState, Encoder};
use raddle_core::cancel::CancelToken;
use raddle_core::random::Random;
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Progress of generation, reported after the datasets of every file and after every few pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenerateProgress {
    /// Number of completed files.
    pub files_done: u32,
    /// Total number of files.
    pub files: u32,
    /// Raw bytes written, over all files.
    pub raw_len_bytes: u64,
    /// Stored length of chunks written, over all files.
    pub stored_len_bytes: u64,
}

/// Number of chunks of a map in one piece of work: 8 chunks of 128 rows of 16,000 bytes are 16 MiB raw, about 30 ms of
/// work.
const MAP_PIECE_CHUNKS: u64 = 8;

/// Maximum number of pieces waiting for the writer. A piece holds at most about 400 kB stored (a long column that
/// hardly compresses), so the waiting bytes are limited to about 25 MB.
const WINDOW_PIECES: usize = 64;

/// Writes the files of `workload` into `folder`, which must exist, and returns their paths in order.
///
/// `progress` is called on the calling thread. Fails if one of the files exists, and soon after `cancel` is cancelled.
pub fn generate(
    folder: &Path,
    workload: &Workload,
    seed: u64,
    threads: NonZeroUsize,
    cancel: &CancelToken,
    progress: &mut dyn FnMut(&GenerateProgress),
) -> Result<Vec<PathBuf>> {
    let schema = workload.schema(seed);
    let mut state = GenerateProgress { files_done: 0, files: workload.files, raw_len_bytes: 0, stored_len_bytes: 0 };
    let mut paths = Vec::new();
    for number in 0..workload.files {
        let content = FileContent::draw(workload, &schema, seed, number);
        let path = folder.join(content.file_name());
        let partial = path.with_extension("h5.partial");
        anyhow::ensure!(!path.exists(), "{} exists already", path.display());
        let written = write_file(&partial, &content, threads, cancel, &mut |raw_len_bytes, stored_len_bytes| {
            state.raw_len_bytes += raw_len_bytes;
            state.stored_len_bytes += stored_len_bytes;
            progress(&state);
        });
        if written.is_err() {
            // The error that stopped the writing is more important than one of cleaning up.
            let _ = std::fs::remove_file(&partial);
        }
        written.with_context(|| format!("{} could not be made", path.display()))?;
        std::fs::rename(&partial, &path).with_context(|| format!("rename to {}", path.display()))?;
        state.files_done += 1;
        progress(&state);
        paths.push(path);
    }
    Ok(paths)
}

/// Keys and rows of a file, before its values are drawn.
struct FileContent<'s> {
    seed: u64,
    number: u32,
    keys: FileKeys,
    schema: &'s [Table],
    /// Rows of each table of `schema`.
    rows: Vec<TableRows>,
}

/// Fraction of files, as 1/N, in which a table that normally has rows is empty, so that inputs differ in which datasets
/// are empty.
const EMPTY_IN_ONE_FILE_OF: u64 = 37;

/// Run number of all events; each file is a subrun, counted from 0.
pub const RUN: u32 = 11_981;

impl<'s> FileContent<'s> {
    fn draw(workload: &Workload, schema: &'s [Table], seed: u64, number: u32) -> Self {
        let mut random = Random::of(&[seed, u64::from(number)]);
        let count = (f64::from(workload.mean_events) * (0.75 + 0.5 * random.unit())) as u32;
        // The kept triggers among many: gaps of 60 on average, as in the detector's files.
        let events = (0..count).scan(0_u32, |event, _| {
            *event += 1 + random.geometric(59.0) as u32;
            Some(*event)
        });
        let keys = FileKeys { run: RUN, subrun: number, events: events.collect() };
        let rows = schema
            .iter()
            .enumerate()
            .map(|(table, facts)| {
                let random = &mut Random::of(&[seed, u64::from(number), table as u64]);
                draw_rows(facts, keys.events.len() as u32, random)
            })
            .collect();
        Self { seed, number, keys, schema, rows }
    }

    /// Returns the file name; sorting by name sorts by subrun.
    fn file_name(&self) -> String {
        format!("neardet_r{:08}_s{:02}.h5", self.keys.run, self.keys.subrun)
    }

    fn random(&self, table: usize, column: usize, part: u64) -> Random {
        Random::of(&[self.seed, u64::from(self.number), table as u64, column as u64, part])
    }
}

fn draw_rows(table: &Table, events: u32, random: &mut Random) -> TableRows {
    let event_of_row = match table.rows_per_event {
        None => (0..events).collect(),
        Some(0.0) => Vec::new(),
        Some(_) if random.below(EMPTY_IN_ONE_FILE_OF) == 0 => Vec::new(),
        Some(mean) => {
            (0..events).flat_map(|event| std::iter::repeat_n(event, random.geometric(mean) as usize)).collect()
        }
    };
    TableRows { event_of_row }
}

/// Unit of work: a dataset of a file, or a run of chunks of a map.
#[derive(Debug, Clone, Copy)]
struct WorkUnit {
    table: usize,
    column: usize,
    first_row: u64,
    end_row: u64,
    /// Whether this is the last piece of the dataset.
    last: bool,
}

/// The stored chunks of a piece.
#[derive(Debug, Default)]
struct StoredPiece {
    bytes: Vec<u8>,
    /// End offset in `bytes` and filter mask of each chunk: as in libhdf5, a chunk that deflate cannot shrink is stored
    /// without it.
    chunks: Vec<(usize, u32)>,
}

fn pieces(content: &FileContent<'_>) -> Vec<WorkUnit> {
    let mut pieces = Vec::new();
    for (table, (facts, rows)) in content.schema.iter().zip(&content.rows).enumerate() {
        let rows = rows.event_of_row.len() as u64;
        for (column, facts) in facts.columns.iter().enumerate() {
            let step = match facts.law {
                Law::Map { .. } => CHUNK_ROWS * MAP_PIECE_CHUNKS,
                _ => rows.max(1),
            };
            let mut first_row = 0;
            loop {
                let end_row = (first_row + step).min(rows);
                pieces.push(WorkUnit { table, column, first_row, end_row, last: end_row == rows });
                if end_row == rows {
                    break;
                }
                first_row = end_row;
            }
        }
    }
    pieces
}

/// Finished pieces passed from the workers to the writer.
#[derive(Default)]
struct Window {
    finished: BTreeMap<usize, Result<StoredPiece>>,
    /// Number of the piece that the writer waits for.
    next: usize,
    /// Whether the writer has given up, in which case workers stop.
    stopped: bool,
}

fn write_file(
    path: &Path,
    content: &FileContent<'_>,
    threads: NonZeroUsize,
    cancel: &CancelToken,
    advanced: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let mut file = DefaultFormatFile::create(path)?;
    for table in content.schema {
        file.create_group(format!("/{}", table.name).as_bytes())?;
    }
    let pieces = pieces(content);
    let (window, moved) = (Mutex::new(Window::default()), Condvar::new());
    let next_piece = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                let mut worker = Worker::default();
                loop {
                    let number = next_piece.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = pieces.get(number) else { break };
                    let stored = worker.make(content, piece);
                    let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
                    while !window.stopped && number >= window.next + WINDOW_PIECES {
                        window = moved.wait(window).unwrap_or_else(PoisonError::into_inner);
                    }
                    if window.stopped {
                        break;
                    }
                    window.finished.insert(number, stored);
                    moved.notify_all();
                }
            });
        }
        let written = write_pieces(&mut file, content, &pieces, advanced, &|number| {
            cancel.check()?;
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                if let Some(stored) = window.finished.remove(&number) {
                    window.next = number + 1;
                    moved.notify_all();
                    return stored;
                }
                window = moved.wait(window).unwrap_or_else(PoisonError::into_inner);
            }
        });
        window.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        moved.notify_all();
        written
    })?;
    file.finish()?;
    Ok(())
}

fn write_pieces(
    file: &mut DefaultFormatFile,
    content: &FileContent<'_>,
    pieces: &[WorkUnit],
    advanced: &mut dyn FnMut(u64, u64),
    take: &dyn Fn(usize) -> Result<StoredPiece>,
) -> Result<()> {
    let mut open = None;
    for (number, piece) in pieces.iter().enumerate() {
        let stored = take(number)?;
        let table = &content.schema[piece.table];
        let column = &table.columns[piece.column];
        let mut dataset = match open.take() {
            Some(dataset) => dataset,
            None => {
                let spec = DefaultDatasetSpec {
                    element: column.element,
                    dims: vec![content.rows[piece.table].event_of_row.len() as u64, column.width],
                    chunk_shape: vec![CHUNK_ROWS, column.width],
                    gzip_level: u32::from(GZIP_LEVEL),
                };
                file.create_dataset(format!("/{}/{}", table.name, column.name).as_bytes(), &spec)?
            }
        };
        let mut start = 0;
        for (chunk, &(end, filter_mask)) in stored.chunks.iter().enumerate() {
            let origin = [piece.first_row + chunk as u64 * CHUNK_ROWS, 0];
            dataset.write_chunk(&origin, &stored.bytes[start..end], filter_mask)?;
            start = end;
        }
        if piece.end_row > piece.first_row {
            advanced((piece.end_row - piece.first_row) * column.row_len_bytes(), stored.bytes.len() as u64);
        }
        if !piece.last {
            open = Some(dataset);
        }
    }
    Ok(())
}

/// Returns an encoder for plain deflate, as used in NOvA's files.
fn encoder(column: &Column) -> Encoder {
    Encoder::plain(Effort::Gzip(GZIP_LEVEL), column.element.len_bytes())
}

/// Buffers that a worker reuses.
#[derive(Default)]
struct Worker {
    raw: Vec<u8>,
    state: EncodeState,
}

impl Worker {
    fn make(&mut self, content: &FileContent<'_>, piece: &WorkUnit) -> Result<StoredPiece> {
        let column = &content.schema[piece.table].columns[piece.column];
        let encoder = encoder(column);
        let mut stored = StoredPiece::default();
        if piece.end_row == piece.first_row {
            return Ok(stored);
        }
        let chunk_len_bytes = (CHUNK_ROWS * column.row_len_bytes()) as usize;
        self.raw.clear();
        match column.law {
            Law::Map { tracks } => {
                for first_row in (piece.first_row..piece.end_row).step_by(CHUNK_ROWS as usize) {
                    let rows = (piece.end_row - first_row).min(CHUNK_ROWS);
                    self.raw.clear();
                    self.raw.resize(chunk_len_bytes, 0);
                    let mut random = content.random(piece.table, piece.column, first_row);
                    for row in self.raw.chunks_exact_mut(column.row_len_bytes() as usize).take(rows as usize) {
                        fill_map_row(tracks, column.element, &mut random, row);
                    }
                    self.store(&encoder, chunk_len_bytes, &mut stored)?;
                }
            }
            law => {
                let mut random = content.random(piece.table, piece.column, 0);
                let rows = &content.rows[piece.table];
                fill_column(law, column.element, &content.keys, rows, &mut random, &mut self.raw);
                // The last chunk is padded with the fill value, as in libhdf5.
                self.raw.resize(self.raw.len().next_multiple_of(chunk_len_bytes), 0);
                self.store(&encoder, chunk_len_bytes, &mut stored)?;
            }
        }
        Ok(stored)
    }

    /// Compresses the raw bytes chunk by chunk.
    fn store(&mut self, encoder: &Encoder, chunk_len_bytes: usize, stored: &mut StoredPiece) -> Result<()> {
        for chunk in self.raw.chunks_exact(chunk_len_bytes) {
            let filter_mask = encoder.encode(&mut self.state, chunk, &mut stored.bytes)?;
            stored.chunks.push((stored.bytes.len(), filter_mask));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
