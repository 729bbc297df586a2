//! Cost of a scan with libhdf5's own calls: visits every object, queries each dataset's extent, type and creation
//! properties, and iterates over its chunks. Prints the seconds as JSON. This is the contender of the scan benchmark.

use hdf5_metno_sys::{h5::*, h5d::*, h5f::*, h5i::*, h5o::*, h5p::*, h5s::*, h5t::*};
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Instant;

#[derive(Default)]
struct Seen {
    datasets: u64,
    chunks: u64,
}

unsafe extern "C" fn chunk(
    _offset: *const hsize_t,
    _mask: u32,
    _address: haddr_t,
    _len: hsize_t,
    seen: *mut c_void,
) -> c_int {
    // SAFETY: `seen` is the pointer given to H5Dchunk_iter below and outlives the call.
    unsafe { (*seen.cast::<Seen>()).chunks += 1 };
    0
}

extern "C" fn object(root: hid_t, name: *const c_char, info: *const H5O_info2_t, seen: *mut c_void) -> herr_t {
    // SAFETY: libhdf5 passes a valid name and info; identifiers are checked by the calls and closed here.
    unsafe {
        if (*info).type_ != H5O_type_t::H5O_TYPE_DATASET {
            return 0;
        }
        let dataset = H5Dopen2(root, name, H5P_DEFAULT);
        let (space, datatype, creation) = (H5Dget_space(dataset), H5Dget_type(dataset), H5Dget_create_plist(dataset));
        let mut dims = [0; 32];
        H5Sget_simple_extent_dims(space, dims.as_mut_ptr(), std::ptr::null_mut());
        H5Tget_size(datatype);
        if H5Pget_layout(creation) == H5D_layout_t::H5D_CHUNKED {
            H5Dchunk_iter(dataset, H5P_DEFAULT, Some(chunk), seen);
        }
        H5Pget_nfilters(creation);
        (*seen.cast::<Seen>()).datasets += 1;
        H5Pclose(creation);
        H5Tclose(datatype);
        H5Sclose(space);
        H5Dclose(dataset)
    }
}

fn main() {
    let started = Instant::now();
    let mut seen = Seen::default();
    for path in std::env::args().skip(1) {
        let name = CString::new(path.as_str()).expect("a path without zero bytes");
        // SAFETY: a valid name and a pointer that outlives the visit; one thread.
        unsafe {
            let file = H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, H5P_DEFAULT);
            assert!(file >= 0, "cannot open {path}");
            let seen: *mut Seen = &raw mut seen;
            let (index, order) = (H5_index_t::H5_INDEX_NAME, H5_iter_order_t::H5_ITER_NATIVE);
            assert!(H5Ovisit3(file, index, order, Some(object), seen.cast(), H5O_INFO_BASIC) >= 0, "{path}");
            assert!(H5Iis_valid(file) > 0 && H5Fclose(file) >= 0);
        }
    }
    let Seen { datasets, chunks } = seen;
    println!("{{\"elapsed_s\": {}, \"datasets\": {datasets}, \"chunks\": {chunks}}}", started.elapsed().as_secs_f64());
}
