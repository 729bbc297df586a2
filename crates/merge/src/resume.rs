//! What an interrupted run left: whether this run may go on from it, and the record of this run for the next.
//!
//! Nothing is believed: the journal must belong to the same inputs, options, plan and version, and every batch that it
//! tells of is read back from the device and compared with its checksum. What does not agree is made again.
//! Invariant: a kept tile is byte for byte what this run would place at the same address.

use crate::error::{MergeError, Result};
use crate::options::{MergeOptions, Watch};
use crate::plan::MergePlan;
use crate::publish::{Publication, remove_recorded};
use crate::ranks::{agree, share};
use crate::tiles::MergeWork;
use raddle_core::CoreError;
use raddle_core::communicator::Communicator;
use raddle_core::digest::Digest;
use raddle_core::engine::{Kept, PlacedBatch, Recorder};
use raddle_core::journal::{self, Binding, Journal};
use raddle_core::plan::TileIndex;
use raddle_core::progress::{Event, Severity};
use raddle_hdf5::source::{InputFile, InputPool};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Stored bytes are read back in pieces of this length.
const READ_LEN_BYTES: usize = 1 << 20;

/// Bytes of an input that each of its three samples (begin, middle, end) has: what a program that rewrites a file and
/// puts its time stamps back is most likely to touch.
const SAMPLE_LEN_BYTES: u64 = 4096;

/// The journal of a run, and what the run goes on from.
pub struct RunJournal<'a> {
    index: TileIndex,
    kept: Kept,
    /// The kept records, where there are any left.
    earlier: Option<Journal<BufReader<File>>>,
    /// Where records go, until that fails.
    out: Option<File>,
    recorded_tiles: u64,
    recorded_len_bytes: u64,
    path: &'a Path,
    watch: Watch<'a>,
}

/// Where a run keeps what it places and what it records.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// File of the tiles.
    pub data: &'a Path,
    /// Journal beside it.
    pub journal: &'a Path,
    /// The first tile in the file, and its address.
    pub first_tile: u64,
    /// Its address.
    pub start_address: u64,
}

impl<'a> Record<'a> {
    /// That of a whole output.
    fn of(publication: &'a Publication, raw_start: u64) -> Self {
        let (data, journal) = (publication.temporary(), publication.journal());
        Self { data, journal, first_tile: 0, start_address: raw_start }
    }
}

/// The temporary file and the journal of a run that begins or goes on.
pub struct Begun<'a> {
    /// The temporary file, open for reading and writing; behind the kept tiles it is empty.
    pub temporary: File,
    /// The journal.
    pub journal: RunJournal<'a>,
}

/// Collective. Digest of samples of each input, on every rank; each input is read by one.
pub fn samples(plan: &MergePlan, pool: &InputPool, ranks: &dyn Communicator) -> Result<Vec<u64>> {
    let own = share(ranks, plan.inputs.len());
    let own = own.map(|input| Ok(sample(pool.get(input as u32)?.as_ref())?.crc64_nvme())).collect::<Result<Vec<_>>>();
    let own = agree(ranks, "sample the inputs", own)?;
    let all = ranks.all_gather_bytes(&own.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>())?;
    let of = |input: usize| {
        let (rank, at) = (input % ranks.size(), input / ranks.size());
        let sample = all[rank].as_chunks::<8>().0.get(at).copied();
        let nonsense = CoreError::MessageContent { operation: "sample the inputs", rank };
        sample.map(u64::from_le_bytes).ok_or(nonsense)
    };
    Ok((0..plan.inputs.len()).map(of).collect::<Result<_, _>>()?)
}

/// Goes on from what an interrupted run left, if that is the same merge, or begins anew. `raw_start` is the first
/// address of tiles. Of several ranks the first calls this, and always begins anew: what the others place is not
/// recorded.
///
/// # Errors
/// If the temporary file cannot be made, an input cannot be read, or the run is cancelled.
pub fn begin<'a>(
    plan: &MergePlan,
    samples: &[u64],
    work: &MergeWork<'_>,
    raw_start: u64,
    publication: &'a Publication,
    watch: Watch<'a>,
) -> Result<Begun<'a>> {
    let binding = work.is_recorded().then(|| binding(plan, samples, raw_start));
    let record = Record::of(publication, raw_start);
    let (temporary, journal) = begin_record(plan, binding.as_ref(), record, work, plan.options.resume, watch)?;
    Ok(Begun { temporary, journal })
}

/// As [`begin`], for tiles that are kept in `record`. Nothing is recorded without a binding, nothing gone on from unless
/// `resume`.
pub fn begin_record<'a>(
    plan: &MergePlan,
    binding: Option<&Binding>,
    record: Record<'a>,
    work: &MergeWork<'_>,
    resume: bool,
    watch: Watch<'a>,
) -> Result<(File, RunJournal<'a>)> {
    let index = plan.tiles.tile_index();
    if let Some(binding) = binding.filter(|_| resume) {
        match find(record, binding, &index, work, watch)? {
            Found::Nothing => {}
            Found::Kept(temporary, journal) => return Ok((temporary, *journal)),
            Found::Useless(why) => {
                let text = format!("{} cannot be gone on from: {why}; starting over", record.data.display());
                watch.observer.event(&Event::Message { severity: Severity::Warning, text });
            }
        }
    }
    remove_recorded(record.data, record.journal)?;
    let temporary = open_new(record.data)?;
    let mut journal = RunJournal::new(index, record.journal, watch);
    if let Some(binding) = binding {
        journal.begin(binding);
    }
    Ok((temporary, journal))
}

/// What an interrupted run left, to this run's eyes.
enum Found<'a> {
    Nothing,
    /// Why nothing can be made of it.
    Useless(String),
    Kept(File, Box<RunJournal<'a>>),
}

fn find<'a>(
    record: Record<'a>,
    binding: &Binding,
    index: &TileIndex,
    work: &MergeWork<'_>,
    watch: Watch<'a>,
) -> Result<Found<'a>> {
    let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
    let Record { data, journal: journal_path, first_tile, start_address } = record;
    let (Ok(temporary), Ok(mut out)) = (open(data), open(journal_path)) else {
        return Ok(Found::Nothing);
    };
    let useless = |why: &str| Ok(Found::Useless(why.to_owned()));
    let reread =
        |file: &File| file.try_clone().and_then(|file| Journal::open(BufReader::new(file), first_tile, start_address));
    let Ok(Some(mut earlier)) = reread(&out) else { return useless("its journal cannot be read") };
    if let Some(subject) = earlier.binding().difference(binding) {
        return Ok(Found::Useless(format!("{subject} changed since")));
    }
    // After a failed sync Linux takes the lost pages for clean: only what the device gives back counts.
    if temporary.sync_data().is_err() {
        return useless("the device did not take it");
    }
    // A file system that cannot forget has no device.
    let _ = rustix::fs::fadvise(&temporary, 0, None, rustix::fs::Advice::DontNeed);
    let mut kept = Kept::default();
    let mut journal_len_bytes = earlier.len_bytes();
    while let Ok(Some(batch)) = earlier.next_record(index) {
        watch.cancel.check().map_err(MergeError::from)?;
        if !is_placed(&temporary, &batch) || work.absorb(&batch.note).is_none() {
            break;
        }
        (kept, journal_len_bytes) = (earlier.kept(), earlier.len_bytes());
    }
    if kept.tiles == 0 {
        return useless("none of its tiles is whole");
    }
    let write = |path: &Path, operation| {
        let path = path.to_path_buf();
        move |source| MergeError::Write { path, operation, source }
    };
    let end = start_address + kept.stored_len_bytes;
    temporary.set_len(end).map_err(write(data, "cut off what is not kept"))?;
    let rewound = out.set_len(journal_len_bytes).and_then(|()| out.rewind()).and_then(|()| reread(&out));
    let earlier = rewound.map_err(write(journal_path, "cut off what is not kept"))?;
    let at_end = OpenOptions::new().append(true).open(journal_path);
    let mut journal = RunJournal::new(index.clone(), journal_path, watch);
    (journal.kept, journal.earlier, journal.out) = (kept, earlier, at_end.ok());
    (journal.recorded_tiles, journal.recorded_len_bytes) = (kept.tiles, kept.stored_len_bytes);
    let Kept { tiles, stored_len_bytes } = kept;
    watch.observer.event(&Event::Resumed { tiles, stored_len_bytes });
    Ok(Found::Kept(temporary, Box::new(journal)))
}

/// Whether the device gives back what the batch placed.
fn is_placed(temporary: &File, batch: &PlacedBatch) -> bool {
    let mut digest = Digest::default();
    let mut piece = vec![0; READ_LEN_BYTES.min(usize::try_from(batch.stored_len_bytes).unwrap_or(READ_LEN_BYTES))];
    let (mut at, mut left) = (batch.address, batch.stored_len_bytes);
    while left > 0 {
        let len = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if temporary.read_exact_at(&mut piece[..len], at).is_err() {
            return false;
        }
        digest = digest.then(Digest::of(&piece[..len]));
        (at, left) = (at + len as u64, left - len as u64);
    }
    digest.crc64_nvme() == batch.checksum
}

pub fn open_new(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    opened.map_err(|source| MergeError::Write { path: path.to_path_buf(), operation: "create", source })
}

/// Everything that the bytes of the output depend on.
pub fn binding(plan: &MergePlan, samples: &[u64], raw_start: u64) -> Binding {
    let mut binding = Binding::default();
    // Two builds of one version may differ while raddle is being worked on: their length tells nearly all apart.
    let executable = std::env::current_exe().and_then(std::fs::metadata);
    let build_len_bytes = executable.map_or(0, |metadata| metadata.len());
    binding.bind("the version of raddle", of_text(&format!("{} {build_len_bytes}", env!("CARGO_PKG_VERSION"))));
    // What may change from run to run without changing a byte.
    let options = MergeOptions {
        output: "".into(),
        force: false,
        jobs: 0,
        memory_limit_bytes: 0,
        resume: true,
        reader: None,
        ..plan.options.clone()
    };
    binding.bind("the options", of_text(&format!("{options:?}")));
    let mut inputs = Digest::default();
    for (sample, input) in samples.iter().zip(&plan.inputs) {
        let identity = input.identity;
        inputs = inputs.then(Digest::of(input.path.as_os_str().as_bytes()));
        inputs =
            inputs.then(Digest::of(format!("\n{identity:?}\n").as_bytes())).then(Digest::of(&sample.to_le_bytes()));
    }
    binding.bind("the inputs", inputs.crc64_nvme());
    let mut layout = Digest::of(&raw_start.to_le_bytes());
    for array in &plan.tiles.arrays {
        layout = layout.then(Digest::of(format!("{:?} {:?}", array.shape, array.tile_shape).as_bytes()));
        let rows = array.segments.iter().flat_map(|segment| [u64::from(segment.input), segment.start, segment.rows]);
        layout = layout.then(Digest::of(&rows.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()));
    }
    binding.bind("the plan", layout.crc64_nvme());
    binding
}

fn of_text(text: &str) -> u64 {
    Digest::of(text.as_bytes()).crc64_nvme()
}

/// Digest of a few bytes at the begin, in the middle and at the end of an input.
pub fn sample(file: &InputFile) -> raddle_hdf5::Result<Digest> {
    let len_bytes = file.len_bytes().min(SAMPLE_LEN_BYTES);
    let last = file.len_bytes() - len_bytes;
    let mut bytes = vec![0; len_bytes as usize];
    let mut digest = Digest::default();
    for offset in [0, last / 2, last] {
        file.read_exact_at(offset, &mut bytes, "a sample of its content")?;
        digest = digest.then(Digest::of(&bytes));
    }
    Ok(digest)
}

impl<'a> RunJournal<'a> {
    fn new(index: TileIndex, path: &'a Path, watch: Watch<'a>) -> Self {
        let (kept, earlier, out) = (Kept::default(), None, None);
        Self { index, kept, earlier, out, recorded_tiles: 0, recorded_len_bytes: 0, path, watch }
    }

    /// Makes the file and writes what the run depends on.
    fn begin(&mut self, binding: &Binding) {
        let made = OpenOptions::new().append(true).create_new(true).open(self.path).and_then(|mut out| {
            journal::begin(&mut out, binding)?;
            Ok(out)
        });
        match made {
            Ok(out) => self.out = Some(out),
            Err(error) => self.give_up(&error),
        }
    }

    /// What a run that comes after this one can go on from.
    pub fn recorded(&self) -> Kept {
        Kept { tiles: self.recorded_tiles, stored_len_bytes: self.recorded_len_bytes }
    }

    /// Nothing more is recorded: a record behind one that is there in part would never be read.
    fn give_up(&mut self, error: &std::io::Error) {
        self.out = None;
        let text = format!("{}: {error}; an interrupted run would not go on from here", self.path.display());
        self.watch.observer.event(&Event::Message { severity: Severity::Warning, text });
    }
}

impl Recorder for RunJournal<'_> {
    fn kept(&self) -> Kept {
        self.kept
    }

    fn next_kept(&mut self) -> std::io::Result<Option<PlacedBatch>> {
        let Some(earlier) = &mut self.earlier else { return Ok(None) };
        let next = earlier.next_record(&self.index)?;
        if next.is_none() {
            let found = earlier.kept();
            self.earlier = None;
            if found != self.kept {
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "it changed while it was read"));
            }
        }
        Ok(next)
    }

    fn placed(&mut self, batch: &PlacedBatch) {
        let Some(out) = &mut self.out else { return };
        match journal::append(out, batch, &self.index) {
            Ok(()) => {
                self.recorded_tiles += batch.tiles;
                self.recorded_len_bytes += batch.stored_len_bytes;
            }
            Err(error) => self.give_up(&error),
        }
    }
}
