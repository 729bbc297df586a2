//! Exchange of scanned inputs between ranks, so that each file is read by one rank and known to all.
//!
//! Objects of one kind differ only in their rows and addresses. A rank sends the common part, called a shape, once, and
//! afterwards only the number of the shape; it sends the paths of an input only if they differ from those of the
//! previous input. Inputs are sent in windows, which keeps messages small. Invariant: all ranks receive the same inputs
//! in the same order, including the inputs that they scanned themselves.

use crate::error::{BadInput, MergeError, Result};
use crate::inputs::paths::Paths;
use crate::options::Watch;
use crate::scan::{ScannedEntry, ScannedFile, ScannedInput, ScannedRole};
use crate::schema::{AttributeValue, InputExtent, Role};
use crate::write::ranks::share;
use foldhash::HashMap;
use raddle_core::CoreError;
use raddle_core::parallel::ordered::OrderedQueue;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::{Event, Stage};
use raddle_hdf5::model::{CreationOrder, Dataset};
use raddle_hdf5::wire_error::WireError;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

const OPERATION: &str = "scan the inputs";

/// Number of inputs per window.
const WINDOW_INPUTS: usize = 64;

/// Maximum number of numbered shapes; typical inputs have hundreds.
const MAX_SHAPES: usize = 1 << 16;

/// Size above which a shape, such as that of a large constant, gets no number.
const MAX_SHAPE_LEN_BYTES: usize = 16 << 10;

/// Description of an object without its rows and address, common to the objects of many inputs.
#[derive(Debug, Serialize, Deserialize)]
struct ExchangedShape {
    utf8: bool,
    attributes: Arc<[AttributeValue]>,
    attribute_order: CreationOrder,
    comment: Option<Vec<u8>>,
    dangling: Vec<(Vec<u8>, u64)>,
    role: ShapeRole,
}

#[derive(Debug, Serialize, Deserialize)]
enum ShapeRole {
    Column { template: Arc<Dataset>, committed: Option<Vec<u8>>, kept: Option<u64>, values: Option<Arc<[u8]>> },
    Other(Role),
}

/// A shape in a message.
#[derive(Debug, Serialize, Deserialize)]
enum SentShape {
    /// Number of a shape that the rank has sent before.
    Known(u32),
    /// A new shape, which gets the next number of the sending rank.
    New(Vec<u8>),
    /// A shape without a number.
    Once(Vec<u8>),
}

#[derive(Debug, Serialize, Deserialize)]
struct SentEntry {
    shape: SentShape,
    /// For a column: number of rows, address + 1 (0 stands for no storage), number of stored bytes.
    place: Option<(u64, u64, u64)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SentInput {
    /// Paths of the input; `None` if they equal those of the rank's previous input.
    paths: Option<Paths>,
    entries: Vec<SentEntry>,
    file: ScannedFile,
}

type ScanResult = std::result::Result<SentInput, WireError>;

/// The state of a rank at the end of a window.
#[derive(Debug, Serialize, Deserialize)]
enum WindowStatus {
    Well,
    Cancelled,
    Failed(String),
}

/// Encoder of the inputs scanned by this rank.
#[derive(Default)]
struct Sender {
    shapes: HashMap<Vec<u8>, u32>,
    paths: Paths,
}

impl Sender {
    fn encode(&mut self, scanned: raddle_hdf5::Result<ScannedInput>) -> ScanResult {
        let ScannedInput { paths, entries, file } = scanned?;
        // Keys are addresses of shared data, which stay valid as long as `entries` lives.
        let mut seen: HashMap<(*const Dataset, *const AttributeValue, usize, bool), u32> = HashMap::default();
        let sent = entries.iter().map(|entry| {
            let (place, address) = match &entry.role {
                ScannedRole::Column { template, fact, committed: None, kept: None, .. } if is_plain(entry) => {
                    let attributes = &entry.attributes;
                    (place(fact), Some((Arc::as_ptr(template), attributes.as_ptr(), attributes.len(), entry.utf8)))
                }
                ScannedRole::Column { fact, .. } => (place(fact), None),
                ScannedRole::Other(_) => (None, None),
            };
            if let Some(number) = address.and_then(|address| seen.get(&address)) {
                return SentEntry { shape: SentShape::Known(*number), place };
            }
            let (shape, number) = self.shape(entry);
            if let (Some(address), Some(number)) = (address, number) {
                seen.insert(address, number);
            }
            SentEntry { shape, place }
        });
        let entries = sent.collect();
        let paths = (paths != self.paths).then_some(paths);
        if let Some(paths) = &paths {
            self.paths.clone_from(paths);
        }
        Ok(SentInput { paths, entries, file })
    }

    /// Returns the shape of an entry, and its number if it has one.
    fn shape(&mut self, entry: &ScannedEntry) -> (SentShape, Option<u32>) {
        let role = match &entry.role {
            ScannedRole::Column { template, committed, kept, values, .. } => ShapeRole::Column {
                template: Arc::clone(template),
                committed: committed.clone(),
                kept: *kept,
                values: values.clone(),
            },
            ScannedRole::Other(role) => ShapeRole::Other(role.clone()),
        };
        let shape = ExchangedShape {
            utf8: entry.utf8,
            attributes: Arc::clone(&entry.attributes),
            attribute_order: entry.attribute_order,
            comment: entry.comment.clone(),
            dangling: entry.dangling.clone(),
            role,
        };
        let bytes = to_bytes(&shape);
        if let Some(number) = self.shapes.get(&bytes) {
            return (SentShape::Known(*number), Some(*number));
        }
        if self.shapes.len() >= MAX_SHAPES || bytes.len() > MAX_SHAPE_LEN_BYTES {
            return (SentShape::Once(bytes), None);
        }
        let number = self.shapes.len() as u32;
        self.shapes.insert(bytes.clone(), number);
        (SentShape::New(bytes), Some(number))
    }
}

/// Returns whether the shape of an entry is determined by its template, attributes and UTF-8 mark.
fn is_plain(entry: &ScannedEntry) -> bool {
    entry.comment.is_none() && entry.dangling.is_empty() && entry.attribute_order == CreationOrder::default()
}

fn place(fact: &InputExtent) -> Option<(u64, u64, u64)> {
    Some((fact.rows, fact.address.wrapping_add(1), fact.stored_len_bytes))
}

/// Serialises a value of this module. This never fails, because such values have no maps or sequences of unknown
/// length.
fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

/// Decoder of the inputs of all ranks.
struct Receiver {
    /// Shapes by their encoded bytes, shared by the inputs of all ranks.
    shapes: HashMap<Vec<u8>, Arc<ExchangedShape>>,
    ranks: Vec<ReceivedData>,
}

/// Data received from one rank so far.
#[derive(Default)]
struct ReceivedData {
    shapes: Vec<Arc<ExchangedShape>>,
    paths: Paths,
}

impl Receiver {
    /// Decodes an input of a rank; `None` if the message is malformed.
    fn decode(&mut self, rank: usize, sent: SentInput) -> Option<ScannedInput> {
        let received = &mut self.ranks[rank];
        if let Some(paths) = sent.paths {
            received.paths = paths;
        }
        let mut entries = Vec::with_capacity(sent.entries.len());
        for SentEntry { shape, place } in sent.entries {
            let shape = match shape {
                SentShape::Known(number) => Arc::clone(received.shapes.get(number as usize)?),
                SentShape::New(bytes) => {
                    let shape = match self.shapes.get(&bytes) {
                        Some(shape) => Arc::clone(shape),
                        None => {
                            let shape: Arc<ExchangedShape> = Arc::new(postcard::from_bytes(&bytes).ok()?);
                            self.shapes.insert(bytes, Arc::clone(&shape));
                            shape
                        }
                    };
                    received.shapes.push(Arc::clone(&shape));
                    shape
                }
                SentShape::Once(bytes) => Arc::new(postcard::from_bytes(&bytes).ok()?),
            };
            entries.push(shape.entry(place)?);
        }
        if received.paths.len() != entries.len() {
            return None;
        }
        Some(ScannedInput { paths: received.paths.clone(), entries, file: sent.file })
    }
}

impl ExchangedShape {
    /// Returns the entry with this shape and place.
    fn entry(&self, place: Option<(u64, u64, u64)>) -> Option<ScannedEntry> {
        let role = match (&self.role, place) {
            (ShapeRole::Column { template, committed, kept, values }, Some((rows, address, stored_len_bytes))) => {
                let fact = InputExtent { rows, address: address.wrapping_sub(1), stored_len_bytes, template: 0 };
                let (template, committed) = (Arc::clone(template), committed.clone());
                ScannedRole::Column { template, fact, committed, kept: *kept, values: values.clone() }
            }
            (ShapeRole::Other(role), None) => ScannedRole::Other(role.clone()),
            _ => return None,
        };
        Some(ScannedEntry {
            utf8: self.utf8,
            role,
            attributes: Arc::clone(&self.attributes),
            attribute_order: self.attribute_order,
            comment: self.comment.clone(),
            dangling: self.dangling.clone(),
        })
    }
}

/// Returns the ranges of inputs that are sent together.
fn windows(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(WINDOW_INPUTS).map(move |first| first..(first + WINDOW_INPUTS).min(count))
}

/// Collective. Passes all inputs to `take`, in order: those scanned by this rank, which come from `ahead`, and
/// those of the other ranks. Adds inputs that cannot be read to `bad`. After an error the caller must stop
/// `ahead`.
pub(crate) fn take_all(
    ahead: &OrderedQueue<raddle_hdf5::Result<ScannedInput>>,
    inputs: &[PathBuf],
    watch: &Watch<'_>,
    ranks: &dyn Communicator,
    take: &mut dyn FnMut(usize, ScannedInput),
    bad: &mut Vec<BadInput>,
) -> Result<()> {
    let size = ranks.size();
    let mut sender = Sender::default();
    let mut receiver = Receiver {
        shapes: HashMap::default(),
        ranks: std::iter::repeat_with(ReceivedData::default).take(size).collect(),
    };
    let mut local_inputs = share(ranks, inputs.len()).enumerate().peekable();
    for window in windows(inputs.len()) {
        let (mut outcome, mut sent) = (WindowStatus::Well, Vec::new());
        while let Some((at, _)) = local_inputs.next_if(|(_, place)| window.contains(place)) {
            let Some(scanned) = ahead.take(at) else {
                outcome = match watch.cancel.is_cancelled() {
                    true => WindowStatus::Cancelled,
                    false => WindowStatus::Failed("its scan ended early".to_owned()),
                };
                break;
            };
            sent.push(to_bytes(&sender.encode(scanned)));
        }
        let message = [to_bytes(&outcome)].into_iter().chain(sent).collect::<Vec<_>>().concat();
        let messages = ranks.all_gather_bytes(&message)?;
        let mut cursors = all_well(&messages)?;
        for place in window {
            let rank = place % size;
            let malformed = || CoreError::MessageContent { operation: OPERATION, rank };
            let (sent, rest) = postcard::take_from_bytes::<ScanResult>(cursors[rank]).map_err(|_| malformed())?;
            cursors[rank] = rest;
            let len_bytes = match sent {
                Ok(sent) => {
                    let scanned = receiver.decode(rank, sent).ok_or_else(malformed)?;
                    let len_bytes = scanned.file.identity.len_bytes;
                    take(place, scanned);
                    len_bytes
                }
                Err(error) => {
                    let path = inputs[place].clone();
                    bad.push(BadInput { error: error.into_error(&path), path });
                    0
                }
            };
            watch.observer.event(&Event::Advanced { stage: Stage::Scan, bytes: len_bytes, items: 1 });
        }
    }
    Ok(())
}

/// Returns the remainders of the messages after the outcomes if all ranks succeeded, otherwise the error for all ranks.
fn all_well(messages: &[Vec<u8>]) -> Result<Vec<&[u8]>> {
    let (mut rests, mut is_cancelled) = (Vec::with_capacity(messages.len()), false);
    for (rank, message) in messages.iter().enumerate() {
        match postcard::take_from_bytes(message) {
            Ok((WindowStatus::Well, rest)) => rests.push(rest),
            Ok((WindowStatus::Cancelled, _)) => is_cancelled = true,
            Ok((WindowStatus::Failed(message), _)) => {
                return Err(CoreError::RankFailed { operation: OPERATION, rank, message }.into());
            }
            Err(_) => return Err(CoreError::MessageContent { operation: OPERATION, rank }.into()),
        }
    }
    if is_cancelled { Err(MergeError::Cancelled) } else { Ok(rests) }
}
