//! Files that no library writes: cycles, repeated references to the same bytes, and files beyond the caller's limits.

use crate::maker::{FileSpec, Format, Maker, Order};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::Result;
use raddle_hdf5::model::{FileTree, Group, ObjectKind};
use raddle_hdf5::native::{ReadLimits, read_tree};
use raddle_hdf5::source::InputFile;
use std::path::Path;
use std::time::Instant;

const ROOT: u64 = 96;

fn le(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|(value, len)| value.to_le_bytes().into_iter().cycle().take(*len)).collect()
}

/// Returns a version 0 superblock, followed by `body` at [`ROOT`], where the root group's header is.
fn file_with(body: &[u8]) -> Vec<u8> {
    let end = ROOT + body.len() as u64;
    let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
    bytes.extend(le(&[(0, 5), (8, 1), (8, 1), (0, 1), (4, 2), (16, 2), (0, 4)]));
    bytes.extend(le(&[(0, 8), (u64::MAX, 8), (end, 8), (u64::MAX, 8), (0, 8), (ROOT, 8), (0, 24)]));
    assert_eq!(bytes.len() as u64, ROOT);
    bytes.extend_from_slice(body);
    bytes
}

/// Returns a version 1 object header with one message.
fn header(kind: u64, body: &[u8]) -> Vec<u8> {
    header_of(&[(kind, body)])
}

/// Returns a version 1 object header with these messages.
fn header_of(messages: &[(u64, &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (kind, body) in messages {
        block.extend(le(&[(*kind, 2), (body.len() as u64, 2), (0, 4)]));
        block.extend_from_slice(body);
    }
    let mut bytes = le(&[(1, 1), (0, 1), (messages.len() as u64, 2), (1, 4), (block.len() as u64, 4), (0, 4)]);
    bytes.extend(block);
    bytes
}

fn read(path: &Path, limits: &ReadLimits) -> Result<FileTree> {
    read_tree(&InputFile::open(path)?, limits)
}

fn read_bytes(bytes: &[u8]) -> Result<FileTree> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crafted.h5");
    std::fs::write(&path, bytes).unwrap();
    read(&path, &ReadLimits::default())
}

fn root_reason(bytes: &[u8]) -> String {
    match read_bytes(bytes).unwrap().objects.swap_remove(0).kind {
        ObjectKind::Unreadable { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_header_that_continues_in_itself() {
    let reason = root_reason(&file_with(&header(0x10, &le(&[(ROOT + 16, 8), (24, 8)]))));
    assert_eq!(reason, "damaged at byte 112: object header: two continuations lead to this block");
}

/// Returns a group B-tree node of level `level` with `children` children, all of them the node at `child`.
fn btree_node(level: u64, children: u64, child: u64) -> Vec<u8> {
    let mut node = b"TREE".to_vec();
    node.extend(le(&[(0, 1), (level, 1), (children, 2), (u64::MAX, 8), (u64::MAX, 8)]));
    for _ in 0..children {
        node.extend(le(&[(0, 8), (child, 8)]));
    }
    node.extend(le(&[(0, 8)]));
    node
}

/// Returns root group header, local heap, and the result of `tree` for the address after them.
fn group_with(tree: impl FnOnce(u64) -> Vec<u8>) -> Vec<u8> {
    let heap = ROOT + 16 + 8 + 16;
    let tree_address = heap + 32 + 8;
    let mut body = header(0x11, &le(&[(tree_address, 8), (heap, 8)]));
    body.extend_from_slice(b"HEAP");
    body.extend(le(&[(0, 4), (8, 8), (u64::MAX, 8), (heap + 32, 8), (0, 8)]));
    body.extend(tree(tree_address));
    file_with(&body)
}

#[test]
fn a_comment_and_messages_from_the_future() {
    let no_links = le(&[(0, 1), (0, 1), (u64::MAX, 8), (u64::MAX, 8), (0, 6)]);
    let messages: [(u64, &[u8]); 3] = [(0x77, &[9; 8]), (0x0d, b"remark\0\0"), (0x02, &no_links)];
    let tree = read_bytes(&file_with(&header_of(&messages))).unwrap();
    assert_eq!(tree.objects[0].kind, ObjectKind::Group(Group::default()));
    assert_eq!(tree.objects[0].comment.as_deref(), Some(&b"remark"[..]));
}

#[test]
fn a_tree_that_contains_itself() {
    let reason = root_reason(&group_with(|address| btree_node(5, 1, address)));
    assert_eq!(reason, "damaged at byte 182: group B-tree node: level 5 below level 5");
}

#[test]
fn a_tree_that_names_the_same_node_over_and_over() {
    let bytes = group_with(|address| {
        let mut tree = Vec::new();
        for level in (0..4).rev() {
            let next = address + tree.len() as u64 + 24 + 60_000 * 16 + 8;
            tree.extend(btree_node(level, 60_000, next));
        }
        tree
    });
    let started = Instant::now();
    let error = read_bytes(&bytes).unwrap_err();
    assert!(matches!(error, Hdf5Error::Limit { .. }), "{error}");
    // 60,000^4 visits without the limit.
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn a_user_block_of_any_length_and_none_at_all() {
    let sixteen_k = [vec![0; 16_384], file_with(&header(0, &[]))].concat();
    let tree = read_bytes(&sixteen_k).unwrap();
    assert_eq!((tree.userblock_len_bytes, tree.objects[0].address), (16_384, 16_384 + ROOT));
    // A superblock cannot be at 600.
    let odd = [vec![0; 600], file_with(&header(0, &[]))].concat();
    assert!(matches!(read_bytes(&odd), Err(Hdf5Error::NotHdf5 { .. })));
    assert!(matches!(read_bytes(b""), Err(Hdf5Error::NotHdf5 { .. })));
}

#[test]
fn the_callers_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.h5");
    let maker = Maker::create(&path, FileSpec::of(Format::Latest));
    let mut group = String::new();
    for _ in 0..200 {
        group.push_str("/g");
        maker.group(&group, Order::ByName);
    }
    drop(maker);
    let wide = ReadLimits::default();
    assert_eq!(read(&path, &wide).unwrap().objects.len(), 201);
    for (limits, what) in [
        (ReadLimits { depth: 100, ..wide }, "depth of groups"),
        (ReadLimits { objects: 100, ..wide }, "number of objects"),
        (ReadLimits { links: 100, ..wide }, "number of links"),
    ] {
        let error = read(&path, &limits).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("limit of 100"), "{error}");
    }
    assert!(read(&path, &ReadLimits { depth: 200, objects: 201, links: 200, ..wide }).is_ok());
}
