//! Fuzzing entry point that reads arbitrary bytes as frames of the protocol with a reader process.

use super::is_closed;
use super::protocol::{self, Answer, Fragment, FrameHeader, HEADER_LEN_BYTES, Hello, ListedChunk, Request, Task};
use crate::error::Hdf5Error;
use crate::logical::ObjectPaths;
use crate::metadata::take_in;
use crate::model::{FileTree, Object, ObjectKind};
use crate::wire_error::WireError;
use std::path::Path;

/// Maximum length of an answer accepted here.
const MAX_ANSWER_LEN_BYTES: u64 = 1 << 20;

/// Reads `bytes` as each kind of frame that either side may receive, and processes an answer as the parent would. Must
/// never panic, which is the property under test.
pub fn read(bytes: &[u8]) {
    let _ = protocol::receive::<Hello>(&mut &*bytes);
    let _ = protocol::receive::<Request>(&mut &*bytes);
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LEN_BYTES>() else { return };
    let Ok(header) = FrameHeader::parse(header, MAX_ANSWER_LEN_BYTES) else { return };
    let Some(message) = usize::try_from(header.len_bytes).ok().and_then(|len_bytes| rest.get(..len_bytes)) else {
        return;
    };
    match protocol::decode::<Answer>(message) {
        Ok(Answer::Tree(tree)) if is_closed(&tree.objects) => use_tree(tree),
        Ok(Answer::Fragment(Fragment { objects })) if is_closed(&objects) => {
            use_tree(take_in(unknown_everywhere(&objects), objects));
        }
        Ok(Answer::Failed(failure)) => drop(failure.into_error(Path::new("input.h5")).to_string()),
        _ => {}
    }
}

/// Returns a tree in which the native reader supports none of these objects.
fn unknown_everywhere(objects: &[Object]) -> FileTree {
    let unknown = |object: &Object| Object {
        kind: ObjectKind::Unreadable { reason: String::new(), unsupported: true, foreign: None },
        ..object.clone()
    };
    let objects = objects.iter().map(unknown).collect();
    FileTree { superblock_version: 0, userblock_len_bytes: 0, address_len_bytes: 8, length_len_bytes: 8, objects }
}

fn use_tree(tree: FileTree) {
    let paths = ObjectPaths::new(&tree);
    for object in &tree.objects {
        let _ = paths.path(object.address);
        if let ObjectKind::Dataset(dataset) = &object.kind {
            let _ = (dataset.dataspace.element_count(), dataset.datatype.class.len_bytes());
        }
    }
}

/// Returns frames as both sides send them, including answers about this tree.
pub fn seeds(tree: FileTree) -> Vec<Vec<u8>> {
    let chunk = ListedChunk { origin: vec![0, 64], address: 4096, len_bytes: 77, filter_mask: 1 };
    let refused = Hdf5Error::NotHdf5 { path: "input.h5".into(), format: None }.in_object("/a");
    vec![
        protocol::encode(&Answer::Fragment(Fragment { objects: tree.objects.clone() })),
        protocol::encode(&Answer::Tree(tree)),
        protocol::encode(&Answer::Chunks(vec![chunk; 3])),
        protocol::encode(&Answer::Failed(WireError::from(refused))),
        protocol::encode(&Request { task: Task::Fragment { addresses: vec![96, 800] } }),
    ]
}
