//! Links and attributes are read back as created, in every form of storage.

use crate::maker::{FileSpec, Format, Maker, Order, make_sampler};
use raddle_hdf5::model::{
    Attribute, CreationOrder, FileTree, Group, InlineData, Layout, LinkTarget, ObjectIndex, ObjectKind,
};
use raddle_hdf5::native::{ReadLimits, Superblock, read_object, read_tree};
use raddle_hdf5::source::{InputFile, MetadataView};
use std::path::Path;

fn tree(path: &Path) -> FileTree {
    read_tree(&InputFile::open(path).unwrap(), &ReadLimits::default()).unwrap()
}

fn group(tree: &FileTree, index: ObjectIndex) -> &Group {
    match &tree.objects[index as usize].kind {
        ObjectKind::Group(group) => group,
        other => panic!("{other:?}"),
    }
}

/// Follows hard links from the root.
fn find(tree: &FileTree, path: &[&str]) -> ObjectIndex {
    path.iter().fold(0, |index, name| {
        let link = group(tree, index).links.iter().find(|link| link.name == name.as_bytes());
        match link.map(|link| &link.target) {
            Some(LinkTarget::Hard(target)) => *target,
            other => panic!("{name}: {other:?}"),
        }
    })
}

fn names(group: &Group) -> Vec<String> {
    group.links.iter().map(|link| String::from_utf8(link.name.clone()).unwrap()).collect()
}

/// Returns the numbers below `count` in an order that is neither rising nor falling.
fn shuffled(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count)
}

#[test]
fn links_of_groups_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Earliest, Format::Latest] {
        for order in [Order::ByName, Order::Tracked] {
            for count in [0, 1, 8, 9, 40, 2003] {
                let path = folder.path().join("links.h5");
                let maker = Maker::create(&path, FileSpec { userblock: 512, ..FileSpec::of(format) });
                maker.group("/g", order);
                let created: Vec<_> = shuffled(count).map(|number| format!("link {number:05}")).collect();
                for name in &created {
                    maker.soft_link(&format!("/g/{name}"), &format!("/target of {name}"));
                }
                drop(maker);
                let tree = tree(&path);
                assert_eq!(tree.userblock_len_bytes, 512);
                let group = group(&tree, find(&tree, &["g"]));
                assert_eq!(group.link_order.tracked, order == Order::Tracked);
                let mut expected = created;
                if order == Order::ByName {
                    expected.sort();
                }
                assert_eq!(names(group), expected, "{format:?} {order:?} {count}");
                for (number, link) in group.links.iter().enumerate() {
                    let target = format!("/target of {}", expected[number]).into_bytes();
                    assert_eq!(link.target, LinkTarget::Soft(target));
                    let place = (order == Order::Tracked).then_some(number as i64);
                    assert_eq!(link.creation_order, place);
                }
            }
        }
    }
}

fn values(attributes: &[Attribute]) -> Vec<(&[u8], &[u8])> {
    attributes.iter().map(|attribute| (attribute.name.as_slice(), attribute.data.bytes())).collect()
}

#[test]
fn attributes_compact_dense_and_huge() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Earliest, Format::Latest] {
        for order in [Order::ByName, Order::Tracked] {
            // Above 4096 bytes an attribute is a huge object of its heap; above 65,535 it does not fit into any header.
            for (count, len) in [(1, 100), (8, 3), (9, 3), (300, 40), (12, 5000), (2, 100_000)] {
                if len > 60_000 && format == Format::Earliest {
                    continue;
                }
                let path = folder.path().join("attributes.h5");
                let maker = Maker::create(&path, FileSpec::of(format));
                maker.group("/g", order);
                let mut expected: Vec<_> = shuffled(count)
                    .map(|number| (format!("a{number:05}").into_bytes(), vec![number as u8 ^ 0x5a; len]))
                    .collect();
                for (name, value) in &expected {
                    maker.attribute("/g", std::str::from_utf8(name).unwrap(), value);
                }
                drop(maker);
                let tree = tree(&path);
                if order == Order::ByName {
                    expected.sort();
                }
                let expected: Vec<_> = expected.iter().map(|(name, value)| (&name[..], &value[..])).collect();
                let object = &tree.objects[find(&tree, &["g"]) as usize];
                assert_eq!(values(&object.attributes), expected, "{format:?} {order:?} {count} x {len}");
                assert_eq!(object.attribute_order.tracked, order == Order::Tracked);
            }
        }
    }
}

#[test]
fn shared_messages_give_the_same_tree() {
    let folder = tempfile::tempdir().unwrap();
    let read = |shared_messages| {
        let path = folder.path().join(format!("shared_{shared_messages}.h5"));
        make_sampler(&path, FileSpec { shared_messages, ..FileSpec::of(Format::Latest) });
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.windows(4).any(|window| window == b"SMTB"), shared_messages);
        let mut tree = tree(&path);
        // Allowed differences: addresses, and that libhdf5 tracks the order of attributes that may be shared.
        for object in &mut tree.objects {
            object.address = 0;
            object.attribute_order = CreationOrder::default();
            for attribute in &mut object.attributes {
                attribute.creation_order = None;
            }
        }
        tree
    };
    assert!(read(true) == read(false));
}

#[test]
fn the_sampler_holds_what_was_made() {
    let folder = tempfile::tempdir().unwrap();
    for format in [Format::Earliest, Format::Latest] {
        for userblock in [0, 2048] {
            let path = folder.path().join("sampler.h5");
            make_sampler(&path, FileSpec { userblock, ..FileSpec::of(format) });
            let tree = tree(&path);
            assert!(!tree.objects.iter().any(|object| matches!(object.kind, ObjectKind::Unreadable { .. })));
            let tracked = group(&tree, find(&tree, &["tracked"]));
            assert_eq!(names(tracked), ["z", "a", "loop", "data"]);
            assert_eq!(tracked.links[2].target, LinkTarget::Hard(0));
            let external = LinkTarget::External { file: b"other.h5".to_vec(), path: b"/x".to_vec() };
            assert_eq!(tracked.links[1].target, external);
            let kind = &tree.objects[find(&tree, &["kind"]) as usize];
            let data = &tree.objects[find(&tree, &["tracked", "data"]) as usize];
            assert_eq!(data.attributes[0].datatype.committed, Some(kind.address));
            assert!(data.address > userblock);
            let ObjectKind::Dataset(dataset) = &data.kind else { panic!("{data:?}") };
            assert_eq!(dataset.fill.value, Some(InlineData::Stored((-7_i32).to_be_bytes().to_vec())));
            assert_eq!(dataset.filters.iter().map(|filter| filter.id).collect::<Vec<_>>(), [2, 1]);
            assert!(matches!(&dataset.layout, Layout::Chunked { chunk_shape, .. } if chunk_shape == &[5, 4]));
        }
    }
}

#[test]
fn one_object_alone_is_the_one_of_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sampler.h5");
    make_sampler(&path, FileSpec { userblock: 512, ..FileSpec::of(Format::Latest) });
    let tree = tree(&path);
    let file = InputFile::open(&path).unwrap();
    let superblock = Superblock::read(&file).unwrap();
    let mut view = MetadataView::new(&file, 1 << 20);
    for object in &tree.objects {
        let mut alone = read_object(&mut view, &superblock, object.address, &ReadLimits::default()).unwrap();
        if let (ObjectKind::Group(alone), ObjectKind::Group(whole)) = (&mut alone.kind, &object.kind) {
            // Hard links are numbered within the group.
            let mut next = 0;
            for (link, whole) in alone.links.iter_mut().zip(&whole.links) {
                if link.target == LinkTarget::Hard(next) {
                    link.target = whole.target.clone();
                    next += 1;
                }
            }
        }
        assert_eq!(&alone, object);
    }
}
