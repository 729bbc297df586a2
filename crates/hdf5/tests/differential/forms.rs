//! Recognition of datasets by their form: similar ones are recognised, and different ones are not. All other tests of
//! this folder check the correctness of recognised datasets on their files.

use crate::datasets::{UNLIMITED, chunked_list};
use crate::h5;
use crate::make::{BOUNDS, Maker, Space, attribute, write_all};
use hdf5_metno_sys::h5d::H5Dclose;
use hdf5_metno_sys::h5p::H5Pclose;
use hdf5_metno_sys::h5t::{H5T_STD_I32LE, H5T_STD_REF_OBJ};
use raddle_hdf5::model::template::DatasetLocation;
use raddle_hdf5::model::{FileTree, LinkTarget, ObjectKind};
use raddle_hdf5::native::{HeaderTemplateCache, ReadLimits, read_outline};
use raddle_hdf5::source::{InputFile, MetadataView};

fn make(path: &std::path::Path, format: usize, rows: [u64; 2]) {
    let maker = Maker::create(path, BOUNDS[format], |_| {});
    let list = chunked_list(&[4, 3], "deflate");
    for (name, rows) in ["a", "b"].iter().zip(rows) {
        let space = Space::growing(&[rows, 3], &[UNLIMITED, 3]);
        let dataset = maker.dataset(name, *H5T_STD_I32LE, &space, list);
        write_all(dataset, *H5T_STD_I32LE, &vec![7; 12 * rows as usize]);
        attribute(dataset, "unit", *H5T_STD_I32LE, &Space::Scalar, &5_i32.to_ne_bytes());
        h5!(H5Dclose(dataset));
    }
    // A different trailing dimension, and elements that point into their file.
    for (name, datatype, columns) in [("other", *H5T_STD_I32LE, 4), ("points", *H5T_STD_REF_OBJ, 3)] {
        let space = Space::growing(&[2, columns], &[UNLIMITED, columns]);
        h5!(H5Dclose(maker.dataset(name, datatype, &space, list)));
    }
    h5!(H5Pclose(list));
    maker.finish();
}

fn place(tree: &FileTree, name: &str) -> Option<DatasetLocation> {
    let ObjectKind::Group(root) = &tree.objects[0].kind else { panic!("the root is a group") };
    let link = root.links.iter().find(|link| link.name == name.as_bytes()).unwrap();
    let LinkTarget::Hard(index) = link.target else { panic!("{name} is a hard link") };
    match &tree.objects[index as usize].kind {
        ObjectKind::Templated(formed) => {
            assert_eq!(formed.form.attributes.len(), usize::from(name != "other"));
            Some(formed.place)
        }
        _ => None,
    }
}

#[test]
fn alike_datasets_are_recognised_in_a_file_and_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    for format in 0..BOUNDS.len() {
        let forms = HeaderTemplateCache::default();
        let outline = |rows| {
            let path = folder.path().join("file.h5");
            make(&path, format, rows);
            let file = InputFile::open(&path).unwrap();
            read_outline(&mut MetadataView::new(&file, 1 << 20), &ReadLimits::default(), &forms).unwrap()
        };
        let first = outline([5, 9]);
        assert_eq!(place(&first, "a"), None, "the first of a form is read in full");
        assert_eq!(place(&first, "b").map(|place| place.rows), Some(9));
        assert_eq!(place(&first, "other"), None);
        let second = outline([0, 2]);
        assert_eq!(place(&second, "b").map(|place| place.rows), Some(2));
        assert_eq!(place(&second, "other"), Some(DatasetLocation { rows: 2, address: None }));
        for tree in [&first, &second] {
            assert_eq!(place(tree, "points"), None, "references mean something in their file only");
        }
    }
}
