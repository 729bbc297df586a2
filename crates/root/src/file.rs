//! ROOT files: header, directories and their keys, payloads, descriptions of classes.
//!
//! Invariant: every directory is visited once, whatever its keys contain.

use super::compression;
use super::key::Key;
use super::streamer::StreamerInfos;
use raddle_codec::DecodeState;
use raddle_columns::bytes::{Bytes, room};
use raddle_columns::error::{ColumnsError, Location, Result, UnlocatedError};
use raddle_columns::input::InputFile;
use std::collections::HashSet;
use std::path::Path;

/// First version of a file in which addresses have 64 bits.
const LONG_ADDRESSES: i32 = 1_000_000;

/// Length of the shortest key: lengths, version, times, addresses and three empty names.
const MIN_KEY_LEN_BYTES: u64 = 29;

/// Maximum depth of directories that are searched.
const MAX_FOLDER_DEPTH: usize = 64;

/// Class of the key that leads to an RNTuple.
const NTUPLE_CLASS: &str = "ROOT::RNTuple";

/// Classes of the keys that lead to trees.
const TREE_CLASSES: [&str; 3] = ["TTree", "TNtuple", "TNtupleD"];

/// Open ROOT file.
#[derive(Debug)]
pub struct RootFile {
    file: InputFile,
    keys: Vec<NamedKey>,
    infos: StreamerInfos,
}

/// Key with the path of its directory.
#[derive(Debug)]
pub(super) struct NamedKey {
    /// Directories and name, joined by `/`.
    pub(super) path: String,
    pub(super) key: Key,
}

/// Tree in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeName {
    /// Directories and name, joined by `/`.
    pub path: String,
    /// Class: `TTree`, `TNtuple` or `TNtupleD`.
    pub class: String,
    /// Generation number: the highest is the latest.
    pub cycle: u16,
}

/// Contents of the header.
struct FileHeader {
    first_address: u64,
    name_len_bytes: u64,
    infos_address: u64,
    infos_len_bytes: u64,
}

/// Returns whether a file that begins with `first`, of five bytes or more, is a ROOT file.
pub fn is_root_file(first: &[u8]) -> bool {
    // The version of the file follows, which is small or, after an extension, negative: text may begin with `root`, too.
    first.strip_prefix(b"root").is_some_and(|version| version.starts_with(&[0]) || version.starts_with(&[0xff]))
}

impl RootFile {
    /// Opens a file and lists its directories.
    ///
    /// # Errors
    /// If the file is not a ROOT file, is damaged, or is truncated.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of_input(InputFile::open(path)?)
    }

    /// Opens a file whose bytes are in memory; `path` names it in messages.
    ///
    /// # Errors
    /// As for [`RootFile::open`].
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        Self::of_input(InputFile::of_bytes(path, bytes))
    }

    fn of_input(file: InputFile) -> Result<Self> {
        let place = Location::file(file.path());
        let first = file.read(0, file.len_bytes().min(5), "file header").map_err(|fault| fault.at(&place))?;
        if !is_root_file(&first) {
            return Err(file.other_format("a ROOT file"));
        }
        let opened = Self { file, keys: Vec::new(), infos: StreamerInfos::default() };
        opened.with_contents().map_err(|fault| fault.at(&place))
    }

    fn with_contents(mut self) -> Result<Self, UnlocatedError> {
        let header = self.read_header()?;
        let mut keys = Vec::new();
        let record_address = header.first_address.saturating_add(header.name_len_bytes);
        let mut visited = HashSet::new();
        let mut folders = vec![(record_address, String::new(), 0)];
        while let Some((address, path, depth)) = folders.pop() {
            if !visited.insert(address) {
                continue;
            }
            for key in self.read_folder(address)? {
                let path = if path.is_empty() { key.name.clone() } else { format!("{path}/{}", key.name) };
                if matches!(key.class.as_str(), "TDirectory" | "TDirectoryFile") && depth < MAX_FOLDER_DEPTH {
                    let record = key.address.saturating_add(u64::from(key.key_len_bytes));
                    folders.push((record, path.clone(), depth + 1));
                }
                keys.push(NamedKey { path, key });
            }
            if keys.len() as u64 > self.file.len_bytes() / MIN_KEY_LEN_BYTES {
                let what = "folders share their lists of keys".to_owned();
                return Err(UnlocatedError::Damaged { address, structure: "folder", what });
            }
        }
        keys.sort_by(|a, b| (&a.path, b.key.cycle).cmp(&(&b.path, a.key.cycle)));
        self.keys = keys;
        if header.infos_address != 0 {
            self.infos = self.read_infos(header.infos_address, header.infos_len_bytes)?;
        }
        Ok(self)
    }

    fn read_header(&self) -> Result<FileHeader, UnlocatedError> {
        const STRUCTURE: &str = "file header";
        // Length of the longer of both forms, far shorter than any file.
        const LEN_BYTES: u64 = 63;
        let bytes = self.file.read(0, LEN_BYTES, STRUCTURE)?;
        let mut bytes = Bytes::new(&bytes, 0, STRUCTURE);
        bytes.take(4)?;
        // Writers that extend a file may subtract a million from a short version; the difference is negative.
        let is_long = bytes.be_i32()? >= LONG_ADDRESSES;
        let address = |bytes: &mut Bytes<'_>| if is_long { bytes.be_u64() } else { bytes.be_u32().map(u64::from) };
        let first_address = u64::from(bytes.be_u32()?);
        let (_end, _free) = (address(&mut bytes)?, address(&mut bytes)?);
        let (_free_len_bytes, _free_count) = (bytes.be_u32()?, bytes.be_u32()?);
        let name_len_bytes = u64::from(bytes.be_u32()?);
        let (_units, _compression) = (bytes.be_u8()?, bytes.be_u32()?);
        let infos_address = address(&mut bytes)?;
        Ok(FileHeader { first_address, name_len_bytes, infos_address, infos_len_bytes: u64::from(bytes.be_u32()?) })
    }

    /// Reads the keys of the directory whose record is at `address`.
    fn read_folder(&self, address: u64) -> Result<Vec<Key>, UnlocatedError> {
        const STRUCTURE: &str = "folder";
        const LEN_BYTES: u64 = 42;
        // The shorter form may be closer to the end of the file.
        let len_bytes = LEN_BYTES.min(self.file.len_bytes().saturating_sub(address));
        let bytes = self.file.read(address, len_bytes, STRUCTURE)?;
        let mut bytes = Bytes::new(&bytes, address, STRUCTURE);
        let is_long = bytes.be_u16()? > 1000;
        let (_created, _modified) = (bytes.be_u32()?, bytes.be_u32()?);
        let (keys_len_bytes, _name_len_bytes) = (bytes.be_u32()?, bytes.be_u32()?);
        let address = |bytes: &mut Bytes<'_>| if is_long { bytes.be_u64() } else { bytes.be_u32().map(u64::from) };
        let (_directory_address, _parent_address, keys_address) =
            (address(&mut bytes)?, address(&mut bytes)?, address(&mut bytes)?);
        if keys_address == 0 {
            return Ok(Vec::new());
        }
        const KEYS: &str = "list of keys";
        let bytes = self.file.read(keys_address, u64::from(keys_len_bytes), KEYS)?;
        let mut bytes = Bytes::new(&bytes, keys_address, KEYS);
        Key::read(&mut bytes)?;
        let count = bytes.be_u32()?;
        let mut keys = Vec::new();
        for _ in 0..count {
            keys.push(Key::read(&mut bytes)?);
        }
        Ok(keys)
    }

    fn read_infos(&self, address: u64, len_bytes: u64) -> Result<StreamerInfos, UnlocatedError> {
        let bytes = self.file.read(address, len_bytes, "descriptions of classes")?;
        let mut key_bytes = Bytes::new(&bytes, address, "key");
        let key = Key::read(&mut key_bytes)?;
        let mut payload = Vec::new();
        let mut state = DecodeState::default();
        decode_payload(&bytes, address, &key, &mut state, &mut payload, 0)?;
        StreamerInfos::read(&payload, u64::from(key.key_len_bytes))
    }

    /// Returns the trees of the file, the latest cycle of each, ordered by path.
    pub fn trees(&self) -> Vec<TreeName> {
        let mut trees: Vec<TreeName> = Vec::new();
        for NamedKey { path, key } in &self.keys {
            if is_tree(&key.class) && trees.last().is_none_or(|last| last.path != *path) {
                trees.push(TreeName { path: path.clone(), class: key.class.clone(), cycle: key.cycle });
            }
        }
        trees
    }

    /// Returns the paths of the RNTuples of the file.
    pub fn ntuples(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for NamedKey { path, key } in &self.keys {
            if is_ntuple(&key.class) && paths.last().is_none_or(|last| last != path) {
                paths.push(path.clone());
            }
        }
        paths
    }

    /// Returns the paths of all trees and RNTuples.
    pub fn containers(&self) -> Vec<String> {
        self.trees().into_iter().map(|tree| tree.path).chain(self.ntuples()).collect()
    }

    /// Returns whether an RNTuple of this name, optionally with a cycle, exists.
    pub fn has_ntuple(&self, name: &str) -> bool {
        self.key_of(name, is_ntuple).is_some()
    }

    /// Returns the key of an RNTuple: the latest, unless the name contains a cycle.
    pub(super) fn ntuple_key(&self, name: &str) -> Result<&Key> {
        self.key_of(name, is_ntuple).ok_or_else(|| self.no_such(name, "RNTuple", self.ntuples()))
    }

    /// Returns the key of a tree: the latest, unless the name contains a cycle.
    pub(super) fn tree_key(&self, name: &str) -> Result<&Key> {
        // Lists RNTuples as well, since callers that open a tree by name also accept them.
        self.key_of(name, is_tree).ok_or_else(|| self.no_such(name, "tree", self.containers()))
    }

    fn no_such(&self, name: &str, kind: &'static str, available: Vec<String>) -> ColumnsError {
        ColumnsError::NoSuch { place: Location::file(self.file.path()).tree(name).into(), kind, available }
    }

    /// Returns the key of a name such as `folder/name`, or `folder/name;1` with cycle 1.
    fn key_of(&self, name: &str, is_kind: fn(&str) -> bool) -> Option<&Key> {
        let find = |path: &str, is_cycle: &dyn Fn(u16) -> bool| {
            // Keys of the same name are in order of decreasing cycles.
            let is_it =
                |named: &&NamedKey| named.path == path && is_kind(&named.key.class) && is_cycle(named.key.cycle);
            self.keys.iter().find(is_it).map(|named| &named.key)
        };
        find(name, &|_| true).or_else(|| {
            let (path, stated) = name.rsplit_once(';')?;
            let stated: u16 = stated.parse().ok()?;
            find(path, &|cycle| cycle == stated)
        })
    }

    /// Returns the input file.
    pub(super) fn input(&self) -> &InputFile {
        &self.file
    }

    /// Returns the descriptions of classes.
    pub(super) fn infos(&self) -> &StreamerInfos {
        &self.infos
    }

    /// Reads and decodes the payload of `key`.
    pub(super) fn read_object(&self, key: &Key) -> Result<Vec<u8>, UnlocatedError> {
        let stored = self.file.read(key.address, key.len_bytes, "object")?;
        let mut payload = Vec::new();
        decode_payload(&stored, key.address, key, &mut DecodeState::default(), &mut payload, 0)?;
        Ok(payload)
    }
}

fn is_tree(class: &str) -> bool {
    TREE_CLASSES.contains(&class)
}

fn is_ntuple(class: &str) -> bool {
    class == NTUPLE_CLASS
}

/// Decodes the payload of `key` from `stored`, which begins with the key at `address`. The payload overwrites `out`,
/// starting at `from`; `out` is extended if necessary.
pub(super) fn decode_payload(
    stored: &[u8],
    address: u64,
    key: &Key,
    state: &mut DecodeState,
    out: &mut Vec<u8>,
    from: usize,
) -> Result<(), UnlocatedError> {
    let mut bytes = Bytes::new(stored, address, "payload");
    let stored_len_bytes = key.stored_len_bytes().ok_or_else(|| bytes.damaged("a key longer than its object"))?;
    bytes.take(usize::from(key.key_len_bytes))?;
    let payload_address = bytes.address();
    let stored = bytes.take(usize::try_from(stored_len_bytes).unwrap_or(usize::MAX))?;
    if key.object_len_bytes <= stored.len() {
        room(out, from, key.object_len_bytes).copy_from_slice(&stored[..key.object_len_bytes]);
        return Ok(());
    }
    compression::decode(stored, payload_address, key.object_len_bytes, state, out, from)
}
