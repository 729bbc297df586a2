//! Access of a dataset to other files: allowed or refused, present or missing, never through a link.

use crate::make::{BOUNDS, DEFAULT, Maker, Space, creation_list, name, none, pattern, write_all};
use crate::{child_reader, h5};
use hdf5_metno_sys::h5d::H5Dclose;
use hdf5_metno_sys::h5g::H5Gclose;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::H5Lcreate_external;
use hdf5_metno_sys::h5p::{H5Pclose, H5Pset_external, H5Pset_virtual};
use hdf5_metno_sys::h5s::{H5S_seloper_t, H5Sclose, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::H5T_STD_I32LE;
use raddle_hdf5::child::{ChildOptions, ForeignFiles, ObjectName};
use raddle_hdf5::metadata::{MetadataReader, NativeReader};
use raddle_hdf5::model::{Dataspace, Layout, LinkTarget, Object, ObjectKind};
use raddle_hdf5::{Hdf5Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

const ROWS: u64 = 6;

/// Creates a file with a dataset `values` of [`ROWS`] numbers.
fn make_source(path: &Path, seed: u64) -> Vec<u8> {
    let maker = Maker::create(path, BOUNDS[2], |_| {});
    let values = pattern(ROWS as usize * 4, seed);
    maker.simple_dataset("values", *H5T_STD_I32LE, &Space::fixed(&[ROWS]), &values);
    maker.finish();
    values
}

/// Creates a virtual dataset `virtual` that concatenates all rows of each source (file and dataset).
fn make_virtual(path: &Path, sources: &[(&str, &str)], dataset: &str) {
    let maker = Maker::create(path, BOUNDS[2], |_| {});
    add_virtual(&maker, sources, dataset);
    maker.finish();
}

fn add_virtual(maker: &Maker, sources: &[(&str, &str)], dataset: &str) {
    let list = creation_list();
    let space = Space::fixed(&[ROWS * sources.len() as u64]);
    for (number, (file, source)) in sources.iter().enumerate() {
        let target = space.open();
        let source_space = Space::fixed(&[ROWS]).open();
        select(target, number as u64 * ROWS, ROWS);
        h5!(H5Pset_virtual(list, target, name(file).as_ptr(), name(source).as_ptr(), source_space));
        h5!(H5Sclose(source_space));
        h5!(H5Sclose(target));
    }
    let virtual_dataset = maker.dataset(dataset, *H5T_STD_I32LE, &space, list);
    h5!(H5Dclose(virtual_dataset));
    h5!(H5Pclose(list));
}

fn select(space: hid_t, start: u64, count: u64) {
    let set = H5S_seloper_t::H5S_SELECT_SET;
    h5!(H5Sselect_hyperslab(space, set, &raw const start, none(), &raw const count, none()));
}

/// Creates a dataset `external` whose values are in another file.
fn make_external(path: &Path, file: &str) {
    let maker = Maker::create(path, BOUNDS[2], |_| {});
    let list = creation_list();
    h5!(H5Pset_external(list, name(file).as_ptr(), 4, 4 * ROWS));
    let dataset = maker.dataset("external", *H5T_STD_I32LE, &Space::fixed(&[ROWS]), list);
    h5!(H5Dclose(dataset));
    h5!(H5Pclose(list));
    maker.finish();
}

fn read(path: &Path, dataset: &str, rows: Option<Range<u64>>, foreign_files: ForeignFiles) -> Result<Vec<u8>> {
    let child = child_reader(ChildOptions { foreign_files, ..ChildOptions::default() });
    child.read_values(path, ObjectName::Path(dataset.as_bytes().to_vec()), rows)
}

fn read_here(path: &Path, dataset: &str) -> Result<Vec<u8>> {
    read(path, dataset, None, ForeignFiles::SameFolder)
}

/// A folder with a file inside and one next to it.
struct Folders {
    _root: tempfile::TempDir,
    inside: PathBuf,
    outside: PathBuf,
}

impl Folders {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (inside, outside) = (root.path().join("inside"), root.path().join("outside"));
        std::fs::create_dir_all(inside.join("deeper")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        Self { _root: root, inside, outside }
    }
}

#[test]
fn sources_in_the_folder_are_read() {
    let folders = Folders::new();
    let first = make_source(&folders.inside.join("a.h5"), 1);
    let second = make_source(&folders.inside.join("deeper/b.h5"), 2);
    let path = folders.inside.join("v.h5");
    make_virtual(&path, &[("a.h5", "values"), ("./deeper/b.h5", "/values"), ("a.h5", "values")], "virtual");
    let all = [first.clone(), second, first].concat();
    assert_eq!(read_here(&path, "virtual").unwrap(), all);
    let rows = read(&path, "/virtual", Some(5..8), ForeignFiles::SameFolder).unwrap();
    assert_eq!(rows, all[20..32]);
    // The extent and the kind are known without the sources.
    let tree = NativeReader::default().read_tree(&path).unwrap();
    let ObjectKind::Dataset(dataset) = &tree.objects[1].kind else { panic!("no dataset") };
    assert_eq!(dataset.layout, Layout::Virtual);
    assert_eq!(dataset.dataspace, Dataspace::Simple { dims: vec![18], max_dims: vec![18] });
    assert_eq!(child_reader(ChildOptions::default()).read_tree(&path).unwrap(), tree);
}

#[test]
fn absolute_names_in_the_folder_are_read() {
    let folders = Folders::new();
    let values = make_source(&folders.inside.join("a.h5"), 1);
    let path = folders.inside.join("v.h5");
    let absolute = folders.inside.join("a.h5");
    make_virtual(&path, &[(absolute.to_str().unwrap(), "values")], "virtual");
    assert_eq!(read_here(&path, "virtual").unwrap(), values);
    make_virtual(&path, &[("deeper/../a.h5", "values")], "virtual");
    assert_eq!(read_here(&path, "virtual").unwrap(), values);
    // Moved together, as libhdf5 reads it; and missing, if no such file is left.
    make_virtual(&path, &[("/no/such/folder/a.h5", "values")], "virtual");
    assert_eq!(read_here(&path, "virtual").unwrap(), values);
    make_virtual(&path, &[(absolute.to_str().unwrap(), "values")], "virtual");
    std::fs::remove_file(&absolute).unwrap();
    let error = read_here(&path, "virtual").unwrap_err();
    assert!(matches!(error, Hdf5Error::MissingSource { .. }), "{error}");
    make_virtual(&path, &[("/no/such/folder/a.h5", "values")], "virtual");
    let error = read_here(&path, "virtual").unwrap_err();
    assert!(matches!(error, Hdf5Error::ForeignFile { .. }), "{error}");
    let raw = folders.inside.join("raw.bin");
    std::fs::write(&raw, [7; 4 + 4 * ROWS as usize]).unwrap();
    make_external(&path, raw.to_str().unwrap());
    assert_eq!(read_here(&path, "external").unwrap(), [7; 4 * ROWS as usize]);
}

#[test]
fn a_missing_source_is_an_error_and_not_fill_values() {
    let folders = Folders::new();
    make_source(&folders.inside.join("a.h5"), 1);
    let path = folders.inside.join("v.h5");
    for (source, missing) in [
        (("gone.h5", "values"), "gone.h5"),
        (("a.h5", "no such"), "no such"),
        ((".", "nor this"), "nor this"),
        (("deeper", "values"), "deeper"),
    ] {
        make_virtual(&path, &[("a.h5", "values"), source], "virtual");
        let error = read_here(&path, "virtual").unwrap_err();
        assert!(matches!(error, Hdf5Error::MissingSource { .. }), "{error}");
        assert!(error.to_string().contains(missing), "{error}");
    }
}

#[test]
fn sources_outside_of_the_folder_are_refused_unless_allowed() {
    let folders = Folders::new();
    let outside = folders.outside.join("b.h5");
    let values = make_source(&outside, 3);
    let path = folders.inside.join("v.h5");
    std::os::unix::fs::symlink(&outside, folders.inside.join("link.h5")).unwrap();
    for source in ["../outside/b.h5", outside.to_str().unwrap(), "link.h5", "deeper/../../outside/b.h5"] {
        make_virtual(&path, &[(source, "values")], "virtual");
        let error = read_here(&path, "virtual").unwrap_err();
        assert!(matches!(error, Hdf5Error::ForeignFile { .. }), "{source}: {error}");
        assert_eq!(read(&path, "virtual", None, ForeignFiles::Anywhere).unwrap(), values, "{source}");
    }
    // Files in the folder of an outside source are outside as well.
    let chain = folders.outside.join("chain.h5");
    make_virtual(&chain, &[("b.h5", "values")], "virtual");
    assert_eq!(read_here(&chain, "virtual").unwrap(), values);
}

#[test]
fn virtual_datasets_of_virtual_datasets_are_followed_and_checked() {
    let folders = Folders::new();
    let values = make_source(&folders.inside.join("a.h5"), 1);
    make_virtual(&folders.inside.join("middle.h5"), &[("a.h5", "values")], "virtual");
    let path = folders.inside.join("top.h5");
    make_virtual(&path, &[("middle.h5", "virtual")], "virtual");
    assert_eq!(read_here(&path, "virtual").unwrap(), values);
    // libhdf5 also returns fill values for a source missing two steps away.
    std::fs::remove_file(folders.inside.join("a.h5")).unwrap();
    let error = read_here(&path, "virtual").unwrap_err();
    assert!(matches!(error, Hdf5Error::MissingSource { .. }), "{error}");
    make_virtual(&folders.inside.join("middle.h5"), &[("../outside/x.h5", "values")], "virtual");
    let error = read_here(&path, "virtual").unwrap_err();
    assert!(matches!(error, Hdf5Error::ForeignFile { .. }), "{error}");
}

#[test]
fn sources_in_the_same_file_are_read() {
    let folders = Folders::new();
    let path = folders.inside.join("v.h5");
    let maker = Maker::create(&path, BOUNDS[2], |_| {});
    let values = pattern(ROWS as usize * 4, 9);
    maker.simple_dataset("values", *H5T_STD_I32LE, &Space::fixed(&[ROWS]), &values);
    add_virtual(&maker, &[(".", "values"), (".", "/values")], "virtual");
    maker.finish();
    assert_eq!(read_here(&path, "virtual").unwrap(), values.repeat(2));
}

/// Creates an unlimited virtual dataset: block after block, one from each source, or all from one.
fn make_endless(path: &Path, file: &str, numbered: bool) {
    let (unlimited, rows, zero, one) = (u64::MAX, ROWS, 0, 1);
    let maker = Maker::create(path, BOUNDS[2], |_| {});
    let list = creation_list();
    let space = Space::growing(&[ROWS], &[unlimited]);
    let (target, source) = (space.open(), space.open());
    for endless in if numbered { vec![target] } else { vec![target, source] } {
        let set = H5S_seloper_t::H5S_SELECT_SET;
        let block = if numbered { &raw const rows } else { &raw const one };
        h5!(H5Sselect_hyperslab(endless, set, &raw const zero, block, &raw const unlimited, block));
    }
    h5!(H5Pset_virtual(list, target, name(file).as_ptr(), c"values".as_ptr(), source));
    h5!(H5Sclose(source));
    h5!(H5Sclose(target));
    let dataset = maker.dataset("virtual", *H5T_STD_I32LE, &space, list);
    h5!(H5Dclose(dataset));
    h5!(H5Pclose(list));
    maker.finish();
}

#[test]
fn a_virtual_dataset_without_an_end_is_as_long_as_its_source() {
    let folders = Folders::new();
    let path = folders.inside.join("v.h5");
    make_endless(&path, "a.h5", false);
    let extent = || {
        let tree = child_reader(ChildOptions::default()).read_tree(&path).unwrap();
        match &tree.objects[1].kind {
            ObjectKind::Dataset(dataset) => Ok(dataset.dataspace.dims().to_vec()),
            ObjectKind::Unreadable { reason, .. } => Err(reason.clone()),
            other => panic!("{other:?}"),
        }
    };
    assert!(extent().unwrap_err().contains("a.h5 is missing"));
    for rows in [ROWS, ROWS + 3, 1] {
        let maker = Maker::create(&folders.inside.join("a.h5"), BOUNDS[2], |_| {});
        let values = pattern(4 * rows as usize, rows);
        maker.simple_dataset("values", *H5T_STD_I32LE, &Space::fixed(&[rows]), &values);
        maker.finish();
        assert_eq!(extent().unwrap(), [rows]);
        assert_eq!(read_here(&path, "virtual").unwrap(), values);
    }
}

/// Creates an unlimited virtual dataset in which every second row comes from `files[0]`, the others from `files[1]`.
fn make_interleaved(path: &Path, files: [&str; 2]) {
    let (unlimited, zero, one, two) = (u64::MAX, 0, 1, 2);
    let maker = Maker::create(path, BOUNDS[2], |_| {});
    let list = creation_list();
    let space = Space::growing(&[1], &[unlimited]);
    for (first, file) in (0_u64..).zip(files) {
        let (target, source) = (space.open(), space.open());
        for (endless, start, stride) in [(target, first, two), (source, zero, one)] {
            let set = H5S_seloper_t::H5S_SELECT_SET;
            let (start, stride, one, unlimited) =
                (&raw const start, &raw const stride, &raw const one, &raw const unlimited);
            h5!(H5Sselect_hyperslab(endless, set, start, stride, unlimited, one));
        }
        h5!(H5Pset_virtual(list, target, name(file).as_ptr(), c"values".as_ptr(), source));
        h5!(H5Sclose(source));
        h5!(H5Sclose(target));
    }
    let dataset = maker.dataset("virtual", *H5T_STD_I32LE, &space, list);
    h5!(H5Dclose(dataset));
    h5!(H5Pclose(list));
    maker.finish();
}

#[test]
fn several_sources_without_an_end_are_read_where_none_falls_short() {
    let folders = Folders::new();
    let path = folders.inside.join("v.h5");
    make_interleaved(&path, ["a.h5", "b.h5"]);
    let make = |file: &str, rows: u64, seed| {
        let maker = Maker::create(&folders.inside.join(file), BOUNDS[2], |_| {});
        let values = pattern(4 * rows as usize, seed);
        maker.simple_dataset("values", *H5T_STD_I32LE, &Space::fixed(&[rows]), &values);
        maker.finish();
        values
    };
    let dims = || {
        let tree = child_reader(ChildOptions::default()).read_tree(&path).unwrap();
        match &tree.objects[1].kind {
            ObjectKind::Dataset(dataset) => Ok(dataset.dataspace.dims().to_vec()),
            ObjectKind::Unreadable { reason, .. } => Err(reason.clone()),
            other => panic!("{other:?}"),
        }
    };
    // The last row may come from either source: both end without a gap.
    for (rows, total) in [([4, 4], 8), ([5, 4], 9)] {
        let (a, b) = (make("a.h5", rows[0], 1), make("b.h5", rows[1], 2));
        assert_eq!(dims().unwrap(), [total]);
        let (mut a, mut b) = (a.chunks(4), b.chunks(4));
        let expected: Vec<u8> =
            (0..total).flat_map(|row| [&mut a, &mut b][row as usize % 2].next().unwrap()).copied().collect();
        assert_eq!(read_here(&path, "virtual").unwrap(), expected);
    }
    for rows in [[6, 4], [4, 5]] {
        make("a.h5", rows[0], 1);
        make("b.h5", rows[1], 2);
        assert!(dims().unwrap_err().contains("differ in length"), "{rows:?}");
        assert!(read_here(&path, "virtual").is_err(), "{rows:?}");
    }
    std::fs::remove_file(folders.inside.join("b.h5")).unwrap();
    assert!(dims().unwrap_err().contains("b.h5 is missing"));
}

#[test]
fn numbered_sources_are_refused_by_name() {
    let folders = Folders::new();
    let path = folders.inside.join("v.h5");
    make_endless(&path, "part%b.h5", true);
    assert!(read_here(&path, "virtual").unwrap_err().is_unsupported());
}

#[test]
fn a_source_that_is_too_short_is_an_error_and_not_fill_values() {
    let folders = Folders::new();
    let path = folders.inside.join("v.h5");
    make_virtual(&path, &[("a.h5", "values")], "virtual");
    let maker = Maker::create(&folders.inside.join("a.h5"), BOUNDS[2], |_| {});
    maker.simple_dataset("values", *H5T_STD_I32LE, &Space::fixed(&[ROWS - 1]), &pattern(20, 2));
    maker.finish();
    let outcome = read_here(&path, "virtual");
    assert!(outcome.is_err(), "{outcome:?}");
}

#[test]
fn external_files_are_read_from_the_folder_only() {
    let folders = Folders::new();
    let bytes = pattern(4 + 4 * ROWS as usize, 5);
    let path = folders.inside.join("e.h5");
    std::fs::write(folders.inside.join("raw.bin"), &bytes).unwrap();
    std::fs::write(folders.outside.join("raw.bin"), &bytes).unwrap();
    make_external(&path, "raw.bin");
    assert_eq!(read_here(&path, "external").unwrap(), bytes[4..]);
    let tree = NativeReader::default().read_tree(&path).unwrap();
    assert_eq!(child_reader(ChildOptions::default()).read_tree(&path).unwrap(), tree);

    let outside = folders.outside.join("raw.bin");
    for file in ["../outside/raw.bin", outside.to_str().unwrap(), "/etc/passwd"] {
        make_external(&path, file);
        let error = read_here(&path, "external").unwrap_err();
        assert!(matches!(error, Hdf5Error::ForeignFile { .. }), "{file}: {error}");
    }
    assert_eq!(read(&path, "external", None, ForeignFiles::Anywhere).unwrap().len(), 4 * ROWS as usize);
    make_external(&path, "gone.bin");
    let error = read_here(&path, "external").unwrap_err();
    assert!(matches!(error, Hdf5Error::MissingSource { .. }), "{error}");
}

#[test]
fn no_external_link_is_followed() {
    let folders = Folders::new();
    make_source(&folders.inside.join("a.h5"), 1);
    let path = folders.inside.join("l.h5");
    let maker = Maker::create(&path, BOUNDS[2], |_| {});
    h5!(H5Lcreate_external(c"a.h5".as_ptr(), c"/values".as_ptr(), maker.file, c"link".as_ptr(), DEFAULT, DEFAULT));
    h5!(H5Gclose(maker.group("g", 0, 0)));
    // The source's path leads through the link.
    add_virtual(&maker, &[(".", "link")], "virtual");
    maker.finish();
    let child = child_reader(ChildOptions::default());
    let tree = child.read_tree(&path).unwrap();
    let ObjectKind::Group(root) = &tree.objects[0].kind else { panic!("no group") };
    let target = LinkTarget::External { file: b"a.h5".to_vec(), path: b"/values".to_vec() };
    assert_eq!(root.links.iter().find(|link| link.name == b"link").unwrap().target, target);
    assert!(read_here(&path, "link").is_err());
    assert!(matches!(read_here(&path, "virtual").unwrap_err(), Hdf5Error::MissingSource { .. }));
    assert!(read(&path, "virtual", None, ForeignFiles::Anywhere).is_err());
}

#[test]
fn objects_are_read_by_address_with_what_they_lead_to() {
    let folders = Folders::new();
    let path = folders.inside.join("o.h5");
    let maker = Maker::create(&path, BOUNDS[0], |_| {});
    for group in ["g", "g/h", "other"] {
        h5!(H5Gclose(maker.group(group, 0, 0)));
    }
    let dataset = maker.dataset("g/d", *H5T_STD_I32LE, &Space::fixed(&[ROWS]), DEFAULT);
    write_all(dataset, *H5T_STD_I32LE, &pattern(24, 1));
    h5!(H5Dclose(dataset));
    maker.finish();
    let child = child_reader(ChildOptions::default());
    let tree = child.read_tree(&path).unwrap();
    let at = |index: usize| -> &Object { &tree.objects[index] };
    // Root, g, other, g/d, g/h.
    let asked = [at(3).address, at(1).address];
    let found = child.read_objects(&path, &asked).unwrap();
    assert_eq!(
        found.iter().map(|object| object.address).collect::<Vec<_>>(),
        [at(3).address, at(1).address, at(4).address]
    );
    assert_eq!(found[0], *at(3));
    let ObjectKind::Group(group) = &found[1].kind else { panic!("no group") };
    let targets: Vec<_> = group.links.iter().map(|link| link.target.clone()).collect();
    assert_eq!(targets, [LinkTarget::Hard(0), LinkTarget::Hard(2)]);
    // An address without an object yields an unreadable object, and does not affect the others.
    let found = child.read_objects(&path, &[at(1).address + 1, at(3).address]).unwrap();
    assert!(matches!(found[0].kind, ObjectKind::Unreadable { .. }));
    assert_eq!(found[1], *at(3));
}
