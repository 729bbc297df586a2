//! Files written by libhdf5, with the values that must come back: the oracle of these tests.

use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5f::*;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::*;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::*;
use raddle_codec::{Filter, Pipeline};
use raddle_hdf5::ffi::Library;
use raddle_hdf5::model::*;
use raddle_hdf5::read::FileSizes;
use raddle_hdf5::source::InputFile;
use std::ffi::CString;
use std::path::Path;
use std::ptr::null;
use std::sync::Arc;

/// How the raw data lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    Compact,
    Contiguous,
    Chunked { shape: Vec<u64>, partial_unfiltered: bool },
}

/// A dataset to make. Every element gets a value that depends on its position; chunks for which `write` says no are
/// left out (whole datasets that are not chunked: written if the first says yes).
#[derive(Debug, Clone)]
pub struct Spec {
    /// libhdf5's newest format (layout 4 and later) or its earliest.
    pub latest: bool,
    pub storage: Storage,
    pub dims: Vec<u64>,
    pub max_dims: Vec<u64>,
    pub element_len: usize,
    pub deflate: Option<u32>,
    pub shuffle: bool,
    pub fletcher32: bool,
    /// Byte that fill values consist of.
    pub fill: Option<u8>,
    /// Allocate all storage at creation.
    pub early: bool,
    /// Which chunks are written, by number in row-major order, in the order of writing.
    pub chunks: Vec<u64>,
    /// Length of a user block.
    pub userblock: u64,
    /// B-tree fan-out of chunk indexes (`istore_k`).
    pub fanout: Option<u32>,
}

impl Spec {
    /// Everything written, nothing special.
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

    /// First element and clipped size of chunk `number`.
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

/// A dataset that was made.
pub struct Made {
    pub file: InputFile,
    pub sizes: FileSizes,
    pub dataset: Dataset,
    pub pipeline: Pipeline,
    /// All elements, row-major.
    pub values: Vec<u8>,
}

/// Byte `byte` of the element at linear position `position`: compressible, never 0 or a fill byte by accident of order.
fn value_byte(position: u64, byte: u64) -> u8 {
    (position.wrapping_mul(2_654_435_761) >> 7 ^ position / 5 ^ byte * 37) as u8
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
pub fn make(path: &Path, spec: &Spec) -> Made {
    let element_len = spec.element_len as u64;
    let elements: u64 = spec.dims.iter().product();
    let mut values = vec![spec.fill.unwrap_or(0); (elements * element_len) as usize];
    let header_address = {
        let _library = Library::lock();
        // SAFETY: the lock is held; all identifiers come from the calls before and are closed once; buffers have the
        // sizes that the selections ask for.
        unsafe { write(path, spec, &mut values) }
    };
    let file = InputFile::open(path).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let sizes = FileSizes { base_address: spec.userblock, address_len_bytes: 8, length_len_bytes: 8 };
    let layout = layout_of(&bytes, spec, header_address + spec.userblock);
    let filter =
        |id, parameters: &[u32]| Filter { id, optional: false, name: Vec::new(), parameters: parameters.to_vec() };
    let mut filters = Vec::new();
    if spec.shuffle {
        filters.push(filter(2, &[spec.element_len as u32]));
    }
    if let Some(level) = spec.deflate {
        filters.push(filter(1, &[level]));
    }
    if spec.fletcher32 {
        filters.push(filter(3, &[]));
    }
    let pipeline = Pipeline::new(&filters, spec.element_len).unwrap();
    let class = TypeClass::Integer {
        len_bytes: spec.element_len as u32,
        order: ByteOrder::Little,
        signed: false,
        bits: BitRange { offset: 0, count: 8 * spec.element_len as u32 },
        padding: (0, 0),
    };
    let fill = FillValue {
        value: spec.fill.map(|byte| InlineData::Stored(vec![byte; spec.element_len])),
        user_defined: spec.fill.is_some(),
        undefined: false,
        allocation_time: 3,
        write_time: 2,
    };
    let dataspace = Dataspace::Simple { dims: spec.dims.clone(), max_dims: spec.max_dims.clone() };
    let datatype = Datatype { class: Arc::new(class), committed: None };
    Made { file, sizes, dataset: Dataset { dataspace, datatype, layout, fill, filters }, pipeline, values }
}

/// Writes the file, puts what was written into `values`, returns the address of the dataset's header.
unsafe fn write(path: &Path, spec: &Spec, values: &mut [u8]) -> u64 {
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
        let mut info = std::mem::zeroed::<H5O_info2_t>();
        ok(H5Oget_info3(dataset, &raw mut info, H5O_INFO_BASIC));
        // The native connector's tokens hold the address, little-endian.
        let header_address = std::ptr::from_ref(&info.token).cast::<u64>().read_unaligned();
        ok(H5Dclose(dataset));
        ok(H5Pclose(list));
        ok(H5Sclose(space));
        ok(H5Fclose(file));
        ok(H5Pclose(creation));
        ok(H5Pclose(access));
        header_address
    }
}

fn le(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut number = [0; 8];
    number[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(number)
}

/// The layout message (type 8) of the object header at `address`.
fn layout_of(bytes: &[u8], spec: &Spec, address: u64) -> Layout {
    let base = spec.userblock;
    let at = address as usize;
    let version_2 = bytes[at..].starts_with(b"OHDR");
    let mut blocks = if version_2 {
        let flags = bytes[at + 5];
        let start = at + 6 + if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
        let width = 1 << (flags & 3);
        vec![(start + width, le(bytes, start, width) as usize)]
    } else {
        vec![(at + 16, le(bytes, at + 8, 4) as usize)]
    };
    let tracked = version_2 && bytes[at + 5] & 4 != 0;
    let message_header = if version_2 { 4 + if tracked { 2 } else { 0 } } else { 8 };
    while let Some((mut at, len)) = blocks.pop() {
        let end = at + len;
        while at + message_header <= end {
            let (kind, len) = if version_2 {
                (u64::from(bytes[at]), le(bytes, at + 1, 2) as usize)
            } else {
                (le(bytes, at, 2), le(bytes, at + 2, 2) as usize)
            };
            let body = at + message_header;
            match kind {
                8 => return layout_message(&bytes[body..body + len], spec, base),
                16 => {
                    let (start, len) = ((le(bytes, body, 8) + base) as usize, le(bytes, body + 8, 8) as usize);
                    blocks.push(if version_2 { (start + 4, len - 8) } else { (start, len) });
                }
                _ => {}
            }
            at = body + len;
        }
    }
    panic!("no layout message");
}

fn layout_message(message: &[u8], spec: &Spec, base: u64) -> Layout {
    let address = |at: usize| Some(le(message, at, 8)).filter(|&address| address != u64::MAX).map(|at| at + base);
    let rank = spec.dims.len();
    match (message[0], message[1]) {
        (_, 0) => {
            let len = le(message, 2, 2) as usize;
            Layout::Compact(InlineData::Stored(message[4..4 + len].to_vec()))
        }
        (_, 1) => Layout::Contiguous { address: address(2), len_bytes: le(message, 10, 8) },
        (3, 2) => Layout::Chunked {
            chunk_shape: (0..rank).map(|axis| le(message, 11 + 4 * axis, 4)).collect(),
            index: address(3).map_or(ChunkIndex::None, |address| ChunkIndex::BtreeV1 { address }),
            partial_chunks_unfiltered: false,
        },
        (4 | 5, 2) => {
            let (flags, width) = (message[2], usize::from(message[4]));
            let chunk_shape = (0..rank).map(|axis| le(message, 5 + width * axis, width)).collect();
            let mut at = 5 + width * (rank + 1);
            let kind = message[at];
            at += 1;
            let index = match kind {
                1 if flags & 2 != 0 => {
                    let (len_bytes, filter_mask) = (le(message, at, 8), le(message, at + 8, 4) as u32);
                    address(at + 12).map(|address| ChunkIndex::Single {
                        address,
                        len_bytes: Some(len_bytes),
                        filter_mask,
                    })
                }
                1 => address(at).map(|address| ChunkIndex::Single { address, len_bytes: None, filter_mask: 0 }),
                2 => address(at).map(|address| ChunkIndex::Implicit { address }),
                3 => address(at + 1).map(|address| ChunkIndex::FixedArray { address }),
                4 => address(at + 5).map(|address| ChunkIndex::ExtensibleArray { address }),
                5 => address(at + 6).map(|address| ChunkIndex::BtreeV2 { address }),
                other => panic!("chunk index {other}"),
            };
            let index = index.unwrap_or(ChunkIndex::None);
            Layout::Chunked { chunk_shape, index, partial_chunks_unfiltered: flags & 1 != 0 }
        }
        other => panic!("layout {other:?}"),
    }
}
