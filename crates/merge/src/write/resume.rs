//! Resumption of interrupted runs: decides whether a run may continue an earlier one, and records it for the next one.
//!
//! Nothing is trusted: the journal must belong to the same inputs, options, plan and version, and every recorded batch
//! is read back from the device and compared with its checksum. Batches that do not match are written again. With
//! several ranks, the first one keeps the journal for the tiles of all ranks; reading back is shared. Invariant: a kept
//! tile is byte for byte what this run would place at the same address.

use crate::error::{MergeError, Result};
use crate::options::{MergeOptions, Watch};
use crate::plan::MergePlan;
use crate::write::publish::remove_recorded;
use crate::write::tiles::MergeWork;
use raddle_core::CoreError;
use raddle_core::digest::Digest;
use raddle_core::engine::{Checkpoint, PlacedBatch, Recorder};
use raddle_core::output::journal::{self, Binding, Journal};
use raddle_core::output::read_back::{WrittenExtent, evict};
use raddle_core::plan::TileIndex;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, Rank};
use raddle_core::report::progress::Event;
use raddle_hdf5::source::{InputFile, InputPool};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Length of each sample of an input. The first and the last are at its start and end, where a program that rewrites a
/// file and restores its time stamps is most likely to change it.
const SAMPLE_LEN_BYTES: u64 = 4096;
/// Number of samples of an input.
const SAMPLES: u64 = 16;
/// Length up to which an input is digested as a whole, equal to the total length of the samples of a longer input.
const WHOLE_LEN_BYTES: u64 = SAMPLES * SAMPLE_LEN_BYTES;

/// The journal of a run, and the kept tiles from which the run resumes.
pub struct RunJournal<'a> {
    index: TileIndex,
    kept: Checkpoint,
    /// The kept records that have not been read yet, if there are any.
    earlier: Option<Journal<BufReader<File>>>,
    /// File to which records are appended; `None` after a failure.
    out: Option<File>,
    recorded_tiles: u64,
    recorded_len_bytes: u64,
    path: &'a Path,
    watch: Watch<'a>,
}

/// Files in which a run stores tiles and records.
#[derive(Debug, Clone, Copy)]
pub struct JournalPaths<'a> {
    /// File with the tiles.
    pub data: &'a Path,
    /// Journal next to that file.
    pub journal: &'a Path,
    /// The first tile in the file.
    pub first_tile: u64,
    /// Address of the first tile.
    pub start_address: u64,
}

impl JournalPaths<'_> {
    /// Opens the journal; `None` if there is no readable one.
    pub fn open_journal(&self) -> Result<Option<Journal<BufReader<File>>>> {
        match File::open(self.journal) {
            Ok(journal) => self.read_journal(journal).map_err(|source| self.unread(source)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.unread(source)),
        }
    }

    fn read_journal(&self, journal: File) -> std::io::Result<Option<Journal<BufReader<File>>>> {
        Journal::open(BufReader::new(journal), self.first_tile, self.start_address)
    }

    /// Returns the error for a journal that cannot be read.
    pub fn unread(&self, source: std::io::Error) -> MergeError {
        failed(self.journal, "read")(source)
    }
}

fn failed(path: &Path, operation: &'static str) -> impl FnOnce(std::io::Error) -> MergeError + use<> {
    let path = path.to_path_buf();
    move |source| MergeError::Write { path, operation, source }
}

/// The tile file and the journal of a run that starts or resumes.
pub struct ResumedRun<'a> {
    /// The tile file, open for reading and writing, truncated after the kept tiles.
    pub data: File,
    /// Journal of this run.
    pub journal: RunJournal<'a>,
}

/// Collective. Returns the digests of samples of each input, on every rank; each input is read by its `keeper`.
pub fn samples(
    plan: &MergePlan,
    pool: &InputPool,
    keeper: impl Fn(u32) -> Rank,
    ranks: &dyn Communicator,
) -> Result<Vec<u64>> {
    const OPERATION: &str = "sample the inputs";
    let inputs = 0..plan.inputs.len() as u32;
    let local = inputs.clone().filter(|input| keeper(*input) == ranks.rank());
    let local = local.map(|input| Ok(sample(pool.get(input)?.as_ref())?.crc64_nvme())).collect::<Result<Vec<_>>>();
    let local = ranks.agree(OPERATION, local)?;
    let mut all: Vec<_> = ranks.all_gather_values(OPERATION, &local)?.into_iter().map(Vec::into_iter).collect();
    let of = |input: u32| {
        let rank = keeper(input);
        all[rank].next().ok_or(CoreError::MessageContent { operation: OPERATION, rank })
    };
    Ok(inputs.map(of).collect::<Result<_, _>>()?)
}

/// State from which a run begins.
#[derive(Clone, Copy)]
pub struct ResumeRequest<'a> {
    /// Plan of the run.
    pub plan: &'a MergePlan,
    /// Work that receives the digest contributions of the kept tiles.
    pub work: &'a MergeWork<'a>,
    /// Files in which tiles and records are stored.
    pub record: JournalPaths<'a>,
    /// Whether to resume from existing tiles.
    pub resume: bool,
    /// Origin of existing tiles.
    pub source: ResumeSource,
    /// Observer of the run, and its cancellation.
    pub watch: Watch<'a>,
}

/// Origin of tiles that exist before a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeSource {
    /// An interrupted run.
    Interrupted,
    /// Joined parts.
    Parts,
}

/// Collective. Resumes an earlier run of the same plan or starts over; the first rank gets file and journal. Without a
/// `binding` nothing is recorded.
///
/// # Errors
/// If the file cannot be created, existing records cannot be read, or the run is cancelled.
pub fn begin<'a>(
    beginning: &ResumeRequest<'a>,
    binding: Option<&Binding>,
    ranks: &dyn Communicator,
) -> Result<Option<ResumedRun<'a>>> {
    let &ResumeRequest { plan, record, resume, watch, .. } = beginning;
    let index = plan.tiles.tile_index();
    let leads = ranks.rank() == 0;
    let found = match binding.filter(|_| leads && resume) {
        Some(binding) => look(record, binding),
        None => EarlierRun::Nothing,
    };
    let is_ours = ranks.broadcast(0, &[u8::from(matches!(found, EarlierRun::Ours { .. }))])? == [1];
    let whole = if is_ours { whole_batches(record, &index, ranks, watch)? } else { 0 };
    let begun = leads.then(|| beginning.resume_or_restart(found, whole, binding, index)).transpose();
    ranks.agree("make the temporary file", begun)
}

/// Data of an earlier run, as seen by this run.
enum EarlierRun {
    Nothing,
    /// The data cannot be used, for this reason.
    Useless(String),
    /// The data belongs to this run; tiles and journal are open for reading and writing.
    Ours {
        data: File,
        journal: File,
    },
}

fn look(record: JournalPaths<'_>, binding: &Binding) -> EarlierRun {
    let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
    let (Ok(data), Ok(journal)) = (open(record.data), open(record.journal)) else { return EarlierRun::Nothing };
    let Ok(Some(earlier)) = record.open_journal() else {
        return EarlierRun::Useless("its journal cannot be read".to_owned());
    };
    match earlier.binding().difference(binding) {
        Some(subject) => EarlierRun::Useless(format!("{subject} changed since")),
        None => EarlierRun::Ours { data, journal },
    }
}

/// Collective. Returns the number of intact batches, counted from the first. Each batch is read back by one rank.
fn whole_batches(
    record: JournalPaths<'_>,
    index: &TileIndex,
    ranks: &dyn Communicator,
    watch: Watch<'_>,
) -> Result<u64> {
    let local = ranks.agree("read back the kept data", whole_of_share(record, index, ranks, watch))?;
    Ok(ranks.all_gather_u64(local)?.into_iter().min().unwrap_or(0))
}

/// Returns the number of the first damaged batch of this rank's share, or the number of all batches.
fn whole_of_share(
    record: JournalPaths<'_>,
    index: &TileIndex,
    ranks: &dyn Communicator,
    watch: Watch<'_>,
) -> Result<u64> {
    let data = File::open(record.data).map_err(failed(record.data, "open"))?;
    // After a failed sync, Linux treats the lost pages as clean: only data read from the device counts.
    if data.sync_data().is_err() {
        return Ok(0);
    }
    // A file system that cannot drop cached pages has no device.
    let _ = evict(&data);
    let Ok(Some(mut journal)) = record.open_journal() else { return Ok(0) };
    let mut number = 0;
    while let Ok(Some(batch)) = journal.next_record(index) {
        watch.cancel.check()?;
        if number % ranks.size() as u64 == ranks.rank() as u64 && !is_placed(&data, &batch) {
            break;
        }
        number += 1;
    }
    Ok(number)
}

impl<'a> ResumeRequest<'a> {
    fn resume_or_restart(
        &self,
        found: EarlierRun,
        whole: u64,
        binding: Option<&Binding>,
        index: TileIndex,
    ) -> Result<ResumedRun<'a>> {
        let (record, watch) = (self.record, self.watch);
        let useless = match found {
            EarlierRun::Nothing => None,
            EarlierRun::Useless(why) => Some(why),
            EarlierRun::Ours { data, journal } => match self.go_on(data, journal, whole, &index)? {
                Some(begun) => return Ok(begun),
                None => Some("none of its tiles is intact".to_owned()),
            },
        };
        if let Some(why) = useless {
            let text = format!("{}: cannot resume: {why}; starting over", record.data.display());
            watch.warn(text);
        }
        remove_recorded(record.data, record.journal)?;
        let data = open_new(record.data)?;
        let mut journal = RunJournal::new(index, record.journal, watch);
        if let Some(binding) = binding {
            journal.begin(binding);
        }
        Ok(ResumedRun { data, journal })
    }

    /// Keeps the first `whole` batches and truncates everything after them; `None` if nothing would remain.
    fn go_on(&self, data: File, out: File, whole: u64, index: &TileIndex) -> Result<Option<ResumedRun<'a>>> {
        let (record, watch) = (self.record, self.watch);
        let reread = |mut journal: &File| {
            let rewound = journal.rewind().and_then(|()| record.read_journal(journal.try_clone()?));
            rewound.map_err(|source| record.unread(source))
        };
        let Some(mut earlier) = reread(&out)? else { return Ok(None) };
        let (mut kept, mut journal_len_bytes) = (Checkpoint::default(), earlier.len_bytes());
        for _ in 0..whole {
            let Ok(Some(batch)) = earlier.next_record(index) else { break };
            if self.work.absorb(&batch.note).is_none() {
                break;
            }
            (kept, journal_len_bytes) = (earlier.kept(), earlier.len_bytes());
        }
        if kept.tiles == 0 {
            return Ok(None);
        }
        let Checkpoint { tiles, stored_len_bytes } = kept;
        let cut =
            |file: &File, path, len_bytes| file.set_len(len_bytes).map_err(failed(path, "truncate to the kept data"));
        cut(&data, record.data, record.start_address + stored_len_bytes)?;
        cut(&out, record.journal, journal_len_bytes)?;
        let earlier = reread(&out)?;
        let at_end = OpenOptions::new().append(true).open(record.journal);
        let mut journal = RunJournal::new(index.clone(), record.journal, watch);
        (journal.kept, journal.earlier, journal.out) = (kept, earlier, at_end.ok());
        (journal.recorded_tiles, journal.recorded_len_bytes) = (tiles, stored_len_bytes);
        watch.observer.event(&match self.source {
            ResumeSource::Interrupted => Event::Resumed { tiles, stored_len_bytes },
            ResumeSource::Parts => Event::PartsJoined { tiles, stored_len_bytes },
        });
        Ok(Some(ResumedRun { data, journal }))
    }
}

/// Returns whether the device returns the bytes that the batch placed.
fn is_placed(data: &File, batch: &PlacedBatch) -> bool {
    let &PlacedBatch { address, stored_len_bytes, checksum, .. } = batch;
    WrittenExtent { address, len_bytes: stored_len_bytes, checksum }.is_in(data).unwrap_or(false)
}

pub fn open_new(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    opened.map_err(failed(path, "create"))
}

/// Returns the options on which the bytes of the output depend, as text.
pub fn options_text(options: &MergeOptions) -> String {
    // Options that may differ between runs without changing a byte.
    let options = MergeOptions {
        output: "".into(),
        force: false,
        jobs: 0,
        memory_limit_bytes: 0,
        resume: true,
        reader: None,
        ..options.clone()
    };
    format!("{options:?}")
}

/// Returns a binding to everything that the bytes of the output depend on.
pub fn binding(plan: &MergePlan, samples: &[u64], raw_start: u64) -> Binding {
    let mut binding = Binding::default();
    // During development, builds of one version may differ: their length distinguishes nearly all of them.
    let executable = std::env::current_exe().and_then(std::fs::metadata);
    let build_len_bytes = executable.map_or(0, |metadata| metadata.len());
    binding.bind("the version of raddle", of_text(&format!("{} {build_len_bytes}", env!("CARGO_PKG_VERSION"))));
    binding.bind("the options", of_text(&options_text(&plan.options)));
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
        let rows = array.segments.iter();
        let rows = rows.flat_map(|run| [u64::from(run.input), run.start, run.rows, run.source_row]);
        layout = layout.then(Digest::of(&rows.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()));
        for one in array.boxes.iter() {
            layout = layout.then(Digest::of(format!("{one:?}").as_bytes()));
        }
    }
    binding.bind("the plan", layout.crc64_nvme());
    binding
}

fn of_text(text: &str) -> u64 {
    Digest::of(text.as_bytes()).crc64_nvme()
}

/// Returns the digest of a short input, or of samples at even distances of a longer one.
pub fn sample(file: &InputFile) -> raddle_hdf5::Result<Digest> {
    if file.len_bytes() <= WHOLE_LEN_BYTES {
        return samples_of(file, file.len_bytes(), 1);
    }
    samples_of(file, SAMPLE_LEN_BYTES, SAMPLES)
}

/// Returns the digest that versions before 2026-11-28 recorded: of a sample at the start, in the middle and at the end.
pub fn earlier_sample(file: &InputFile) -> raddle_hdf5::Result<Digest> {
    samples_of(file, file.len_bytes().min(SAMPLE_LEN_BYTES), 3)
}

/// Returns the digest of `count` samples, the last of which ends with the file.
fn samples_of(file: &InputFile, len_bytes: u64, count: u64) -> raddle_hdf5::Result<Digest> {
    let last = file.len_bytes() - len_bytes;
    let mut bytes = vec![0; len_bytes as usize];
    let mut digest = Digest::default();
    for number in 0..count {
        file.read_exact_at(last * number / (count - 1).max(1), &mut bytes, "a sample of its content")?;
        digest = digest.then(Digest::of(&bytes));
    }
    Ok(digest)
}

impl<'a> RunJournal<'a> {
    fn new(index: TileIndex, path: &'a Path, watch: Watch<'a>) -> Self {
        let (kept, earlier, out) = (Checkpoint::default(), None, None);
        Self { index, kept, earlier, out, recorded_tiles: 0, recorded_len_bytes: 0, path, watch }
    }

    /// Creates the file and writes the facts that the run depends on.
    fn begin(&mut self, binding: &Binding) {
        let created = OpenOptions::new().append(true).create_new(true).open(self.path).and_then(|mut out| {
            journal::begin(&mut out, binding)?;
            Ok(out)
        });
        match created {
            Ok(out) => self.out = Some(out),
            Err(error) => self.give_up(&error),
        }
    }

    /// Returns the work from which a later run can resume.
    pub fn recorded(&self) -> Checkpoint {
        Checkpoint { tiles: self.recorded_tiles, stored_len_bytes: self.recorded_len_bytes }
    }

    /// Stops recording: a record after an incomplete one would never be read.
    fn give_up(&mut self, error: &std::io::Error) {
        self.out = None;
        let text = format!("{}: {error}; an interrupted run could not be resumed from here", self.path.display());
        self.watch.warn(text);
    }
}

impl Recorder for RunJournal<'_> {
    fn kept(&self) -> Checkpoint {
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
