//! Files written by libhdf5, with the values that must be read back: the oracle of these tests.

use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5f::*;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::*;
use raddle_codec::Pipeline;
use raddle_hdf5::ffi::Library;
use raddle_hdf5::model::{Dataset, ObjectKind};
use raddle_hdf5::native::{Encoding, ReadLimits, read_tree};
use raddle_hdf5::source::InputFile;
use std::ffi::CString;
use std::path::Path;
use std::ptr::null;

/// Storage layout of the raw data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    Compact,
    Contiguous,
    Chunked { shape: Vec<u64>, partial_unfiltered: bool },
}

/// A dataset to be created. Every element gets a value that depends on its position. Only the chunks listed in `chunks`
/// are written; a dataset that is not chunked counts as chunk 0.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Whether libhdf5's newest format (layout 4 and later) is used, or its earliest.
    pub latest: bool,
    pub storage: Storage,
    pub dims: Vec<u64>,
    pub max_dims: Vec<u64>,
    pub element_len: usize,
    pub deflate: Option<u32>,
    pub shuffle: bool,
    pub fletcher32: bool,
    /// Byte repeated in the fill value.
    pub fill: Option<u8>,
    /// Whether all storage is allocated at creation.
    pub early: bool,
    /// Numbers of the chunks to write, in row-major order of the dataset; they are written in the order of this list.
    pub chunks: Vec<u64>,
    /// Length of the user block.
    pub userblock: u64,
    /// B-tree fan-out of chunk indexes (`istore_k`).
    pub fanout: Option<u32>,
}

impl Spec {
    /// Creates a specification with all chunks written and no special settings.
    pub fn plain(dims: &[u64], storage: Storage) -> Self {
        let mut spec = Self {
            latest: false,
            storage,
            dims: dims.to_vec(),
            max_dims: dims.to_vec(),
            element_len: 4,
            deflate: None,
            shuffle: false,
            fletcher32: false,
            fill: None,
            early: false,
            chunks: Vec::new(),
            userblock: 0,
            fanout: None,
        };
        spec.chunks = (0..spec.chunk_count()).collect();
        spec
    }

    pub fn chunk_shape(&self) -> Vec<u64> {
        match &self.storage {
            Storage::Chunked { shape, .. } => shape.clone(),
            _ => self.dims.clone(),
        }
    }

    fn grid(&self) -> Vec<u64> {
        self.dims.iter().zip(self.chunk_shape()).map(|(&dim, shape)| dim.div_ceil(shape.max(1))).collect()
    }

    pub fn chunk_count(&self) -> u64 {
        self.grid().iter().product()
    }

    /// Returns the first element and clipped size of chunk `number`.
    fn chunk_box(&self, number: u64) -> (Vec<u64>, Vec<u64>) {
        let (grid, shape) = (self.grid(), self.chunk_shape());
        let mut rest = number;
        let mut start = vec![0; grid.len()];
        for axis in (0..grid.len()).rev() {
            start[axis] = rest % grid[axis] * shape[axis];
            rest /= grid[axis];
        }
        let count = (0..grid.len()).map(|axis| shape[axis].min(self.dims[axis] - start[axis])).collect();
        (start, count)
    }
}

/// A created dataset.
pub struct SampleDataset {
    pub file: InputFile,
    pub encoding: Encoding,
    pub dataset: Dataset,
    pub pipeline: Pipeline,
    /// All elements, row-major.
    pub values: Vec<u8>,
}

/// Returns byte `byte` of the element at linear position `position`: compressible, never 0 or by accident a fill byte.
fn value_byte(position: u64, byte: u64) -> u8 {
    ((position.wrapping_mul(2_654_435_761) >> 7) ^ (position / 5) ^ (byte * 37)) as u8
}

/// Calls `visit` with the linear positions of a box in an array of `dims`, row by row.
pub fn for_each_position(dims: &[u64], start: &[u64], count: &[u64], visit: &mut dyn FnMut(u64)) {
    let total: u64 = count.iter().product();
    for number in 0..total {
        let (mut rest, mut position, mut stride) = (number, 0, 1);
        for axis in (0..dims.len()).rev() {
            position += (start[axis] + rest % count[axis]) * stride;
            rest /= count[axis];
            stride *= dims[axis];
        }
        visit(position);
    }
}

fn ok(status: i32) {
    assert!(status >= 0, "libhdf5 call failed");
}

fn element_type(element_len: usize) -> hid_t {
    match element_len {
        1 => *H5T_STD_U8LE,
        2 => *H5T_STD_U16LE,
        4 => *H5T_STD_U32LE,
        8 => *H5T_STD_U64LE,
        other => panic!("no element of {other} bytes"),
    }
}

/// Writes `spec` to `path`.
pub fn make(path: &Path, spec: &Spec) -> SampleDataset {
    let elements: u64 = spec.dims.iter().product();
    make_with(path, spec, vec![spec.fill.unwrap_or(0); elements as usize * spec.element_len])
}

/// Writes `spec`, which has no chunks, to `path`; its values may be too many to hold in memory.
pub fn make_empty(path: &Path, spec: &Spec) -> SampleDataset {
    assert!(spec.chunks.is_empty());
    make_with(path, spec, Vec::new())
}

fn make_with(path: &Path, spec: &Spec, mut values: Vec<u8>) -> SampleDataset {
    {
        let _library = Library::lock();
        // SAFETY: the lock is held; all identifiers come from the preceding calls and are closed once; buffers have the
        // sizes that the selections require.
        unsafe { write(path, spec, &mut values) };
    }
    let file = InputFile::open(path).unwrap();
    let tree = read_tree(&file, &ReadLimits::default()).unwrap();
    let dataset = tree.objects.iter().find_map(|object| match &object.kind {
        ObjectKind::Dataset(dataset) => Some((**dataset).clone()),
        _ => None,
    });
    let dataset = dataset.unwrap();
    let pipeline = Pipeline::new(&dataset.filters, spec.element_len).unwrap();
    SampleDataset { file, encoding: Encoding::of(&tree), dataset, pipeline, values }
}

/// Writes the file and stores the written values in `values`.
unsafe fn write(path: &Path, spec: &Spec, values: &mut [u8]) {
    let name = CString::new(path.to_str().unwrap()).unwrap();
    let (rank, element_len) = (spec.dims.len() as i32, spec.element_len as u64);
    // SAFETY: see `make`.
    unsafe {
        let access = H5Pcreate(*H5P_CLS_FILE_ACCESS);
        let low = if spec.latest { H5F_LIBVER_LATEST } else { H5F_libver_t::H5F_LIBVER_EARLIEST };
        ok(H5Pset_libver_bounds(access, low, H5F_LIBVER_LATEST));
        let creation = H5Pcreate(*H5P_CLS_FILE_CREATE);
        ok(H5Pset_userblock(creation, spec.userblock));
        if let Some(fanout) = spec.fanout {
            ok(H5Pset_istore_k(creation, fanout));
        }
        let file = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, creation, access);
        assert!(file >= 0);
        let space = H5Screate_simple(rank, spec.dims.as_ptr(), spec.max_dims.as_ptr());
        let list = H5Pcreate(*H5P_CLS_DATASET_CREATE);
        match &spec.storage {
            Storage::Compact => ok(H5Pset_layout(list, H5D_layout_t::H5D_COMPACT)),
            Storage::Contiguous => ok(H5Pset_layout(list, H5D_layout_t::H5D_CONTIGUOUS)),
            Storage::Chunked { shape, partial_unfiltered } => {
                ok(H5Pset_chunk(list, rank, shape.as_ptr()));
                if *partial_unfiltered {
                    ok(H5Pset_chunk_opts(list, 2));
                }
            }
        }
        if spec.shuffle {
            ok(H5Pset_shuffle(list));
        }
        if let Some(level) = spec.deflate {
            ok(H5Pset_deflate(list, level));
        }
        if spec.fletcher32 {
            ok(H5Pset_fletcher32(list));
        }
        let element = element_type(spec.element_len);
        if let Some(byte) = spec.fill {
            ok(H5Pset_fill_value(list, element, [byte; 8].as_ptr().cast()));
        }
        if spec.early {
            ok(H5Pset_alloc_time(list, H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY));
        }
        let dataset = H5Dcreate2(file, c"values".as_ptr(), element, space, H5P_DEFAULT, list, H5P_DEFAULT);
        assert!(dataset >= 0);
        for &number in &spec.chunks {
            let (start, count) = spec.chunk_box(number);
            let mut buffer = Vec::new();
            for_each_position(&spec.dims, &start, &count, &mut |position| {
                for byte in 0..element_len {
                    let value = value_byte(position, byte);
                    buffer.push(value);
                    values[(position * element_len + byte) as usize] = value;
                }
            });
            let memory = H5Screate_simple(rank, count.as_ptr(), null());
            ok(H5Sselect_hyperslab(
                space,
                H5S_seloper_t::H5S_SELECT_SET,
                start.as_ptr(),
                null(),
                count.as_ptr(),
                null(),
            ));
            ok(H5Dwrite(dataset, element, memory, space, H5P_DEFAULT, buffer.as_ptr().cast()));
            ok(H5Sclose(memory));
        }
        ok(H5Dclose(dataset));
        ok(H5Pclose(list));
        ok(H5Sclose(space));
        ok(H5Fclose(file));
        ok(H5Pclose(creation));
        ok(H5Pclose(access));
    }
}
