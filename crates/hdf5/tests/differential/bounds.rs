//! Limits of what a file can do to the child, and the reports of its death.

use crate::make::{BOUNDS, Maker, Space, creation_list, pattern};
use crate::{child_reader, h5};
use hdf5_metno_sys::h5d::H5Dclose;
use hdf5_metno_sys::h5p::{H5Pclose, H5Pset_chunk};
use hdf5_metno_sys::h5t::*;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::child::{ChildOptions, ChildReader, ObjectName, READER_ARGUMENT};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Creates a file with a chunked dataset of 8 GiB without any stored chunks.
fn make_huge(folder: &Path) -> PathBuf {
    let path = folder.join("huge.h5");
    let maker = Maker::create(&path, BOUNDS[0], |_| {});
    let list = creation_list();
    h5!(H5Pset_chunk(list, 1, [1 << 20].as_ptr()));
    let dataset = maker.dataset("huge", *H5T_STD_I64LE, &Space::fixed(&[1 << 30]), list);
    h5!(H5Dclose(dataset));
    h5!(H5Pclose(list));
    maker.finish();
    path
}

fn huge() -> ObjectName {
    ObjectName::Path(b"huge".to_vec())
}

#[test]
fn values_beyond_the_answer_limit_are_refused_before_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = make_huge(folder.path());
    let child = child_reader(ChildOptions { answer_limit_len_bytes: 1 << 20, ..ChildOptions::default() });
    let start = Instant::now();
    let error = child.read_values(&path, huge(), None).unwrap_err();
    assert!(matches!(error, Hdf5Error::Limit { limit: 1_048_576, .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(child.read_values(&path, huge(), Some(5..6)).unwrap(), [0; 8]);
}

#[test]
fn the_child_s_memory_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let path = make_huge(folder.path());
    let options =
        ChildOptions { answer_limit_len_bytes: 1 << 40, address_space_len_bytes: 1 << 30, ..ChildOptions::default() };
    let child = child_reader(options);
    let error = child.read_values(&path, huge(), None).unwrap_err();
    assert!(matches!(error, Hdf5Error::Limit { limit: 0x4000_0000, .. }), "{error}");
    assert_eq!(child.read_values(&path, huge(), Some(0..2)).unwrap(), [0; 16]);
}

#[test]
fn missing_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = make_huge(folder.path());
    let child = child_reader(ChildOptions::default());
    for rows in [5..(1 << 30) + 1, u64::MAX - 1..u64::MAX, std::ops::Range { start: 7, end: 6 }] {
        assert!(child.read_values(&path, huge(), Some(rows.clone())).is_err(), "{rows:?}");
    }
    assert!(child.read_values(&path, ObjectName::Path(b"/".to_vec()), None).is_err());
    assert!(child.read_values(&path, ObjectName::Path(b"gone".to_vec()), None).is_err());
    assert!(child.read_values(&path, ObjectName::Address(12), None).is_err());
}

#[test]
fn files_in_another_format_are_reported_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.h5");
    std::fs::write(&path, pattern(5000, 1)).unwrap();
    let child = child_reader(ChildOptions::default());
    let error = child.read_tree(&path).unwrap_err();
    assert!(error.to_string().contains("text.h5") && error.to_string().contains("H5Fopen"), "{error}");
    let gone = child.read_tree(&folder.path().join("gone.h5")).unwrap_err();
    assert!(matches!(gone, Hdf5Error::Io { .. }), "{gone}");
    assert!(matches!(child.read_tree(folder.path()).unwrap_err(), Hdf5Error::Io { .. }));
}

/// Every truncation of a small file yields an error or a tree in bounded time, and the parent continues.
#[test]
fn truncated_files_never_harm_the_parent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.h5");
    let maker = Maker::create(&path, BOUNDS[2], |_| {});
    maker.simple_dataset("values", *H5T_STD_I32LE, &Space::fixed(&[50]), &pattern(200, 1));
    maker.finish();
    let whole = std::fs::read(&path).unwrap();
    let child = child_reader(ChildOptions { timeout: Duration::from_secs(20), ..ChildOptions::default() });
    let cut = folder.path().join("cut.h5");
    for len in (0..whole.len()).step_by(whole.len() / 20) {
        std::fs::write(&cut, &whole[..len]).unwrap();
        assert!(child.read_tree(&cut).is_err(), "cut at {len}");
    }
    assert_eq!(child.read_tree(&path).unwrap().objects.len(), 2);
}

/// Free space of length 0 in a heap collection makes libhdf5 loop: the child is ended by its CPU time limit, and the
/// file is given up when it has taken too long.
#[test]
fn a_heap_without_an_end_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heap.h5");
    let maker = Maker::create(&path, BOUNDS[0], |_| {});
    let string = h5!(H5Tcopy(*H5T_C_S1));
    h5!(H5Tset_size(string, usize::MAX));
    let pointer = c"text".as_ptr() as usize;
    maker.simple_dataset("text", string, &Space::fixed(&[1]), &pointer.to_ne_bytes());
    h5!(H5Tclose(string));
    maker.finish();
    let mut bytes = std::fs::read(&path).unwrap();
    let collection = bytes.windows(4).position(|window| window == b"GCOL").unwrap();
    // Header and entries have 16 bytes before their content, which is padded to 8.
    let free = collection + 16 + 16 + 8;
    assert_eq!(bytes[free..free + 8], [0; 8], "the entry behind the text is free space");
    bytes[free + 8..free + 16].fill(0);
    std::fs::write(&path, bytes).unwrap();

    let (cpu_time, patience) = (Duration::from_secs(1), Duration::from_secs(1));
    let child = child_reader(ChildOptions { cpu_time, patience, ..ChildOptions::default() });
    let values = || child.read_values(&path, ObjectName::Path(b"text".to_vec()), None).unwrap_err().to_string();
    let started = Instant::now();
    let error = values();
    assert!(error.contains("heap.h5") && error.contains("no answer within its CPU time"), "{error}");
    // Two seconds of a core, which a busy machine may take long to provide.
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    let error = values();
    assert!(error.contains("it is not asked again"), "{error}");
}

#[test]
fn a_changed_file_is_reopened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let child = child_reader(ChildOptions::default());
    for rows in [3_u64, 40] {
        let maker = Maker::create(&path, BOUNDS[0], |_| {});
        let values = pattern(rows as usize, rows);
        maker.simple_dataset("values", *H5T_STD_U8LE, &Space::fixed(&[rows]), &values);
        maker.finish();
        assert_eq!(child.read_values(&path, ObjectName::Path(b"values".to_vec()), None).unwrap(), values);
    }
}

#[test]
fn many_threads_ask_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let maker = Maker::create(&path, BOUNDS[1], |_| {});
    let values = pattern(400, 3);
    maker.simple_dataset("values", *H5T_STD_U8LE, &Space::fixed(&[400]), &values);
    maker.finish();
    let child = child_reader(ChildOptions::default());
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let (child, path, values) = (&child, &path, &values);
            scope.spawn(move || {
                for step in 0..10 {
                    let start = thread * 30 + step;
                    let rows = Some(start..start + 100);
                    let name = ObjectName::Path(b"values".to_vec());
                    let found = child.read_values(path, name, rows).unwrap();
                    assert_eq!(found, values[start as usize..start as usize + 100]);
                }
            });
        }
    });
}

#[test]
fn an_executable_other_than_the_reader_is_not_the_file_s_fault() {
    let folder = tempfile::tempdir().unwrap();
    let path = make_huge(folder.path());
    let timeout = Duration::from_secs(10);
    let error = ChildReader::new(PathBuf::from("/bin/true"), timeout).read_tree(&path).unwrap_err();
    assert!(matches!(error, Hdf5Error::ReaderNotStarted { .. }), "{error}");
    let error = ChildReader::new(PathBuf::from("/no/such/program"), timeout).read_tree(&path).unwrap_err();
    assert!(matches!(error, Hdf5Error::Io { .. }), "{error}");
    assert_eq!(READER_ARGUMENT, "__hdf5-reader");
}
