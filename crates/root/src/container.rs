//! The ROOT file around a written RNTuple: header, directory, keys, the description of its one class, free space.
//!
//! The file has one directory with one key, as files of ROOT's own RNTuple writer do. Times are constant and the UUID
//! of the file is derived from its contents, so that the bytes depend only on what is written. Keys always have 64-bit
//! addresses, as ROOT writes them here. Header, directory and free space use 64-bit addresses beyond 2 GB, in the same
//! room.

use xxhash_rust::xxh3::xxh3_128;

/// Address of the first key in the file.
const FIRST_ADDRESS: u64 = 100;

/// Name of the file recorded in the file itself. Readers go by its path.
const FILE_NAME: &str = "events.root";

/// Midnight at the beginning of 1995, the earliest time that ROOT's dates can represent.
const DATE: u32 = 1 << 22 | 1 << 17;

/// Version number of ROOT 6.34, the first that writes RNTuples of version 1.
const ROOT_VERSION: u32 = 63_400;

/// Length from which a file has 64-bit addresses, and number by which these raise the versions of its records.
const MAX_SHORT_LEN_BYTES: u64 = 2_000_000_000;
const LONG_FILE: u32 = 1_000_000;
const LONG_RECORD: u16 = 1000;

/// Version of keys with 64-bit addresses.
const KEY_VERSION: u16 = 1004;

/// Length of the directory: version, two times, two lengths, three addresses, UUID, padding to the longer form.
const FOLDER_LEN_BYTES: usize = 60;

/// Maximum length of a key's payload. RNTuples split longer payloads over several keys, which this writer does not do.
pub(super) const MAX_PAYLOAD_LEN_BYTES: u64 = 1 << 30;

/// Class of the keys that hold parts of an RNTuple.
const BLOB_CLASS: &str = "RBlob";

/// Length of a key that holds a part of an RNTuple.
pub(super) const BLOB_KEY_LEN_BYTES: u64 = 42;

/// Class of the key of the anchor.
const NTUPLE_CLASS: &str = "ROOT::RNTuple";

/// Returns the length of the bytes before the first part: header, first key, name, directory.
pub(super) fn front_len_bytes() -> u64 {
    FIRST_ADDRESS + (first_key(0).len() + FILE_NAME.len() + 2 + FOLDER_LEN_BYTES) as u64
}

/// Lengths of the payload after a key, as stored and as decoded.
#[derive(Debug, Clone, Copy)]
struct Payload {
    stored_len_bytes: u64,
    len_bytes: u64,
}

/// Returns the bytes of a key at `address`. Payloads are no longer than [`MAX_PAYLOAD_LEN_BYTES`].
fn key(address: u64, [class, name, title]: [&str; 3], payload: Payload) -> Vec<u8> {
    // Lengths, version, time, length of the key, cycle and addresses.
    const FIXED_LEN_BYTES: usize = 34;
    let mut strings = Vec::new();
    for text in [class, name, title] {
        push_text(&mut strings, text);
    }
    let key_len_bytes = FIXED_LEN_BYTES + strings.len();
    let mut bytes = Vec::with_capacity(key_len_bytes);
    bytes.extend_from_slice(&((key_len_bytes as u64 + payload.stored_len_bytes) as u32).to_be_bytes());
    bytes.extend_from_slice(&KEY_VERSION.to_be_bytes());
    bytes.extend_from_slice(&(payload.len_bytes as u32).to_be_bytes());
    bytes.extend_from_slice(&DATE.to_be_bytes());
    bytes.extend_from_slice(&(key_len_bytes as u16).to_be_bytes());
    // The first cycle.
    bytes.extend_from_slice(&1_u16.to_be_bytes());
    bytes.extend_from_slice(&address.to_be_bytes());
    // The first key describes the file itself and is not in any directory.
    let folder = if address == FIRST_ADDRESS { 0 } else { FIRST_ADDRESS };
    bytes.extend_from_slice(&folder.to_be_bytes());
    bytes.extend_from_slice(&strings);
    bytes
}

/// Returns the key of a part of an RNTuple, of `len_bytes` before compression.
pub(super) fn blob_key(address: u64, stored_len_bytes: u64, len_bytes: u64) -> Vec<u8> {
    key(address, [BLOB_CLASS, "", ""], Payload { stored_len_bytes, len_bytes })
}

fn first_key(payload_len_bytes: u64) -> Vec<u8> {
    let payload = Payload { stored_len_bytes: payload_len_bytes, len_bytes: payload_len_bytes };
    key(FIRST_ADDRESS, ["TFile", FILE_NAME, ""], payload)
}

/// Appends a string of less than 255 bytes.
fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(text.len() as u8);
    bytes.extend_from_slice(text.as_bytes());
}

/// Appends an address of 8 bytes, or of 4 if not `is_long`.
fn push_address(bytes: &mut Vec<u8>, address: u64, is_long: bool) {
    match is_long {
        true => bytes.extend_from_slice(&address.to_be_bytes()),
        false => bytes.extend_from_slice(&(address as u32).to_be_bytes()),
    }
}

/// End of a file, and its front, which is written last.
#[derive(Debug)]
pub(super) struct FileEnd {
    /// Bytes for the beginning of the file, of the length that [`front_len_bytes`] returns.
    pub(super) front: Vec<u8>,
    /// Bytes for the end of the file.
    pub(super) end: Vec<u8>,
}

/// Creates the end and the front of a file whose parts end at `address`, with the RNTuple `name` to which `anchor`
/// leads. `settings` are its compression settings; the UUID of the file is derived from `contents`.
pub(super) fn close(address: u64, name: &str, anchor: &[u8], settings: u32, contents: &[u8]) -> FileEnd {
    let whole = |payload: &[u8]| {
        let len_bytes = payload.len() as u64;
        Payload { stored_len_bytes: len_bytes, len_bytes }
    };
    let mut end = Vec::new();
    let anchor_key = key(address, [NTUPLE_CLASS, name, ""], whole(anchor));
    end.extend_from_slice(&anchor_key);
    end.extend_from_slice(anchor);

    let keys_address = address + end.len() as u64;
    let keys = [&1_u32.to_be_bytes(), anchor_key.as_slice()].concat();
    end.extend_from_slice(&key(keys_address, ["", FILE_NAME, ""], whole(&keys)));
    end.extend_from_slice(&keys);
    let keys_len_bytes = address + end.len() as u64 - keys_address;

    let infos_address = address + end.len() as u64;
    let infos_key =
        |payload: &[u8]| key(infos_address, ["TList", "StreamerInfo", "Doubly linked list"], whole(payload));
    let infos = super::written_infos::of_anchor(infos_key(&[]).len());
    end.extend_from_slice(&infos_key(&infos));
    end.extend_from_slice(&infos);
    let infos_len_bytes = address + end.len() as u64 - infos_address;

    let free_address = address + end.len() as u64;
    let free_key = |payload: &[u8]| key(free_address, ["", FILE_NAME, ""], whole(payload));
    // Version and two addresses.
    let free_len_bytes = |address_len_bytes: usize| (free_key(&[]).len() + 2 + 2 * address_len_bytes) as u64;
    let is_long = free_address + free_len_bytes(4) > MAX_SHORT_LEN_BYTES;
    let file_len_bytes = free_address + free_len_bytes(if is_long { 8 } else { 4 });
    let mut free = record_version(1, is_long).to_be_bytes().to_vec();
    push_address(&mut free, file_len_bytes, is_long);
    // All space after the end is free, up to the next multiple of 10^9.
    push_address(&mut free, (file_len_bytes / 1_000_000_000 + 1).max(2) * 1_000_000_000, is_long);
    end.extend_from_slice(&free_key(&free));
    end.extend_from_slice(&free);

    let places = EndPlaces {
        is_long,
        keys_address,
        keys_len_bytes,
        infos_address,
        infos_len_bytes,
        free_address,
        file_len_bytes,
    };
    FileEnd { front: front(&places, settings, &identification(contents)), end }
}

/// Places of the parts at the end of a file.
struct EndPlaces {
    /// Whether addresses in the file take 8 bytes instead of 4.
    is_long: bool,
    /// The list of keys.
    keys_address: u64,
    keys_len_bytes: u64,
    /// The descriptions of classes.
    infos_address: u64,
    infos_len_bytes: u64,
    /// The list of free space, up to the end of the file.
    free_address: u64,
    file_len_bytes: u64,
}

/// Returns the version of a record, which marks addresses of 8 bytes.
fn record_version(version: u16, is_long: bool) -> u16 {
    if is_long { version + LONG_RECORD } else { version }
}

/// Creates the front of a file: its header, then the record of its folder.
fn front(places: &EndPlaces, settings: u32, identification: &[u8]) -> Vec<u8> {
    let &EndPlaces { is_long, keys_address, keys_len_bytes, infos_address, infos_len_bytes, free_address, .. } = places;
    let mut front = b"root".to_vec();
    front.extend_from_slice(&(if is_long { ROOT_VERSION + LONG_FILE } else { ROOT_VERSION }).to_be_bytes());
    front.extend_from_slice(&(FIRST_ADDRESS as u32).to_be_bytes());
    push_address(&mut front, places.file_len_bytes, is_long);
    push_address(&mut front, free_address, is_long);
    front.extend_from_slice(&((places.file_len_bytes - free_address) as u32).to_be_bytes());
    front.extend_from_slice(&1_u32.to_be_bytes());
    let name_len_bytes = first_key(0).len() + FILE_NAME.len() + 2;
    front.extend_from_slice(&(name_len_bytes as u32).to_be_bytes());
    // Length of an address.
    front.push(if is_long { 8 } else { 4 });
    front.extend_from_slice(&settings.to_be_bytes());
    push_address(&mut front, infos_address, is_long);
    front.extend_from_slice(&(infos_len_bytes as u32).to_be_bytes());
    front.extend_from_slice(identification);
    front.resize(FIRST_ADDRESS as usize, 0);

    front.extend_from_slice(&first_key((FILE_NAME.len() + 2 + FOLDER_LEN_BYTES) as u64));
    push_text(&mut front, FILE_NAME);
    push_text(&mut front, "");
    let folder_start = front.len();
    front.extend_from_slice(&record_version(5, is_long).to_be_bytes());
    front.extend_from_slice(&DATE.to_be_bytes());
    front.extend_from_slice(&DATE.to_be_bytes());
    front.extend_from_slice(&(keys_len_bytes as u32).to_be_bytes());
    front.extend_from_slice(&(name_len_bytes as u32).to_be_bytes());
    for address in [FIRST_ADDRESS, 0, keys_address] {
        push_address(&mut front, address, is_long);
    }
    front.extend_from_slice(identification);
    front.resize(folder_start + FOLDER_LEN_BYTES, 0);
    front
}

/// Creates a `TUUID`: a version, and an identification in the form of a random UUID of RFC 9562, derived here from the
/// contents of the file.
fn identification(contents: &[u8]) -> [u8; 18] {
    let mut bytes = xxh3_128(contents).to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut identification = [0; 18];
    identification[1] = 1;
    identification[2..].copy_from_slice(&bytes);
    identification
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RootFile;
    use std::os::unix::fs::FileExt;

    /// Closes a file whose parts end at `address`, and opens it; the bytes before that are a hole.
    fn closed_at(address: u64, contents: &[u8]) -> (RootFile, FileEnd) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.root");
        let closing = close(address, "Events", &[7; 78], 505, contents);
        assert_eq!(closing.front.len() as u64, front_len_bytes());
        let file = std::fs::File::create(&path).unwrap();
        file.write_all_at(&closing.front, 0).unwrap();
        file.write_all_at(&closing.end, address).unwrap();
        (RootFile::open(&path).unwrap(), closing)
    }

    #[test]
    fn files_beyond_two_gigabytes_have_long_addresses() {
        let long = MAX_SHORT_LEN_BYTES;
        for (address, units) in [(1000, 4), (long - 5000, 4), (long - 1, 8), (5 << 30, 8)] {
            let (file, closing) = closed_at(address, b"contents");
            assert_eq!(file.ntuples(), ["Events"]);
            let key = file.ntuple_key("Events").unwrap();
            assert_eq!((key.address, key.object_len_bytes), (address, 78));
            assert_eq!(file.read_object(key).unwrap(), [7; 78]);
            // Length of an address, after the other numbers of the header.
            assert_eq!(closing.front[if units == 4 { 32 } else { 40 }], units);
        }
    }

    #[test]
    fn other_contents_have_another_identification() {
        let [one, same, other] = [b"one", b"one", b"two"].map(|contents| closed_at(1000, contents).1.front);
        assert!(one == same && one != other);
    }
}
