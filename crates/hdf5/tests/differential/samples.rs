//! One datatype of every kind, with element values in memory form.

use crate::h5;
use crate::make::{Maker, Space, name, pattern};
use hdf5_metno_sys::h5g::H5Gclose;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5r::{H5R_type_t, H5Rcreate};
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::*;
use std::ffi::CString;

/// A datatype and a generator of its values.
pub struct Sample {
    pub name: &'static str,
    pub id: hid_t,
    /// Creates one element in memory form.
    element: Box<dyn Fn(u64) -> Vec<u8>>,
}

impl Sample {
    /// Returns whether elements contain references.
    pub fn has_reference(&self) -> bool {
        // SAFETY: a datatype is open.
        unsafe { H5Tdetect_class(self.id, H5T_class_t::H5T_REFERENCE) > 0 }
    }

    /// Returns `count` elements in memory form.
    pub fn values(&self, count: usize, seed: u64) -> Vec<u8> {
        (0..count as u64).flat_map(|number| (self.element)(seed * 1000 + number)).collect()
    }
}

fn plain(name: &'static str, id: hid_t) -> Sample {
    // SAFETY: a datatype is open.
    let len = unsafe { H5Tget_size(id) };
    Sample { name, id, element: Box::new(move |seed| pattern(len, seed)) }
}

fn copy(id: hid_t) -> hid_t {
    h5!(H5Tcopy(id))
}

/// Leaks the values, so that pointers live as long as the test process: libhdf5 only reads them while writing.
fn leak<T>(values: Vec<T>) -> usize {
    values.leak().as_ptr() as usize
}

fn string_pointer(seed: u64) -> Vec<u8> {
    let text = match seed % 4 {
        0 => return 0_usize.to_ne_bytes().to_vec(),
        1 => String::new(),
        _ => format!("text {seed} {}", "é".repeat((seed % 7) as usize)),
    };
    let pointer = CString::new(text).unwrap().into_raw() as usize;
    pointer.to_ne_bytes().to_vec()
}

fn sequence(items: Vec<u8>, count: usize) -> Vec<u8> {
    let pointer = if count == 0 { 0 } else { leak(items) };
    [count.to_ne_bytes(), pointer.to_ne_bytes()].concat()
}

/// Types whose elements mean the same in every file.
pub fn fixed() -> Vec<Sample> {
    let mut samples = vec![
        plain("i8", copy(*H5T_STD_I8LE)),
        plain("u8", copy(*H5T_STD_U8BE)),
        plain("i16le", copy(*H5T_STD_I16LE)),
        plain("i16be", copy(*H5T_STD_I16BE)),
        plain("u32be", copy(*H5T_STD_U32BE)),
        plain("u64le", copy(*H5T_STD_U64LE)),
        plain("f32be", copy(*H5T_IEEE_F32BE)),
        plain("f64le", copy(*H5T_IEEE_F64LE)),
        plain("bitfield", copy(*H5T_STD_B16BE)),
        plain("time", copy(*H5T_UNIX_D32LE)),
    ];
    samples.push(plain("odd_integer", {
        let id = copy(*H5T_STD_I32LE);
        h5!(H5Tset_precision(id, 13));
        h5!(H5Tset_offset(id, 7));
        h5!(H5Tset_pad(id, H5T_pad_t::H5T_PAD_ONE, H5T_pad_t::H5T_PAD_ONE));
        id
    }));
    samples.push(plain("three_byte_integer", {
        let id = copy(*H5T_STD_U32BE);
        h5!(H5Tset_size(id, 3));
        id
    }));
    samples.push(plain("f16", {
        let id = copy(*H5T_IEEE_F32LE);
        h5!(H5Tset_fields(id, 15, 10, 5, 0, 10));
        h5!(H5Tset_precision(id, 16));
        h5!(H5Tset_size(id, 2));
        h5!(H5Tset_ebias(id, 15));
        id
    }));
    samples.push(plain("odd_float", {
        let id = copy(*H5T_IEEE_F64LE);
        h5!(H5Tset_fields(id, 44, 34, 10, 10, 24));
        h5!(H5Tset_offset(id, 8));
        h5!(H5Tset_precision(id, 40));
        h5!(H5Tset_size(id, 7));
        h5!(H5Tset_ebias(id, 511));
        h5!(H5Tset_norm(id, H5T_norm_t::H5T_NORM_NONE));
        h5!(H5Tset_inpad(id, H5T_pad_t::H5T_PAD_ONE));
        id
    }));
    samples.push(plain("odd_bitfield", {
        let id = copy(*H5T_STD_B32LE);
        h5!(H5Tset_precision(id, 5));
        h5!(H5Tset_offset(id, 3));
        id
    }));
    for (label, padding, charset) in [
        ("string_terminated", H5T_str_t::H5T_STR_NULLTERM, H5T_cset_t::H5T_CSET_ASCII),
        ("string_null_padded", H5T_str_t::H5T_STR_NULLPAD, H5T_cset_t::H5T_CSET_UTF8),
        ("string_space_padded", H5T_str_t::H5T_STR_SPACEPAD, H5T_cset_t::H5T_CSET_ASCII),
    ] {
        let id = copy(*H5T_C_S1);
        h5!(H5Tset_size(id, 11));
        h5!(H5Tset_strpad(id, padding));
        h5!(H5Tset_cset(id, charset));
        samples.push(plain(label, id));
    }
    samples.push(plain("opaque", {
        let id = h5!(H5Tcreate(H5T_class_t::H5T_OPAQUE, 5));
        h5!(H5Tset_tag(id, c"a tag of ours".as_ptr()));
        id
    }));
    samples.push(plain("enum", enumeration()));
    samples.push(plain("array", h5!(H5Tarray_create2(*H5T_STD_I16BE, 2, [2, 3].as_ptr()))));
    samples.push(plain("compound", compound()));
    samples.push(plain("array_of_compound", h5!(H5Tarray_create2(compound(), 1, [2].as_ptr()))));
    samples.push(plain("compound_of_compound", {
        let id = h5!(H5Tcreate(H5T_class_t::H5T_COMPOUND, 64));
        h5!(H5Tinsert(id, c"inner".as_ptr(), 5, compound()));
        h5!(H5Tinsert(id, c"symbol".as_ptr(), 40, enumeration()));
        h5!(H5Tinsert(id, c"\xc3\xa9".as_ptr(), 50, *H5T_STD_B8LE));
        id
    }));
    samples
}

/// Types that exist only in the newest format version.
pub fn newest() -> Vec<Sample> {
    vec![
        plain("complex_f64", h5!(H5Tcomplex_create(*H5T_IEEE_F64LE))),
        plain("complex_f32be", h5!(H5Tcomplex_create(*H5T_IEEE_F32BE))),
        plain("bfloat16", copy(*H5T_FLOAT_BFLOAT16LE)),
        plain("f8", copy(*H5T_FLOAT_F8E4M3)),
    ]
}

fn enumeration() -> hid_t {
    let id = h5!(H5Tenum_create(*H5T_STD_I16BE));
    for (symbol, value) in [("red", 7_i16), ("green", -3), ("a longer symbol name", 500)] {
        h5!(H5Tenum_insert(id, name(symbol).as_ptr(), value.to_be_bytes().as_ptr().cast()));
    }
    id
}

/// Creates a compound with holes and members out of order.
fn compound() -> hid_t {
    let id = h5!(H5Tcreate(H5T_class_t::H5T_COMPOUND, 24));
    h5!(H5Tinsert(id, c"last".as_ptr(), 20, *H5T_STD_U16LE));
    h5!(H5Tinsert(id, c"first".as_ptr(), 1, *H5T_STD_I8LE));
    h5!(H5Tinsert(id, c"middle of it".as_ptr(), 8, *H5T_IEEE_F64BE));
    id
}

/// Types whose stored elements point into the file. `file` must contain the objects that [`make_targets`] creates.
pub fn file_local(file: hid_t) -> Vec<Sample> {
    let string = || {
        let id = copy(*H5T_C_S1);
        h5!(H5Tset_size(id, usize::MAX));
        h5!(H5Tset_cset(id, H5T_cset_t::H5T_CSET_UTF8));
        id
    };
    let string_id = string();
    let numbers = h5!(H5Tvlen_create(*H5T_STD_I32BE));
    let a_sequence = |seed: u64| {
        let count = (seed % 5) as usize;
        sequence(pattern(4 * count, seed), count)
    };
    let mixed = h5!(H5Tcreate(H5T_class_t::H5T_COMPOUND, 56));
    h5!(H5Tinsert(mixed, c"number".as_ptr(), 0, *H5T_STD_I32LE));
    h5!(H5Tinsert(mixed, c"text".as_ptr(), 8, string_id));
    h5!(H5Tinsert(mixed, c"numbers".as_ptr(), 16, numbers));
    h5!(H5Tinsert(mixed, c"short".as_ptr(), 32, *H5T_STD_I16BE));
    h5!(H5Tinsert(mixed, c"reference".as_ptr(), 40, *H5T_STD_REF_OBJ));
    let bytes = h5!(H5Tarray_create2(*H5T_STD_U8LE, 1, [3].as_ptr()));
    h5!(H5Tinsert(mixed, c"fixed".as_ptr(), 48, bytes));
    vec![
        Sample { name: "text", id: string_id, element: Box::new(string_pointer) },
        Sample { name: "numbers", id: numbers, element: Box::new(a_sequence) },
        Sample {
            name: "texts",
            id: h5!(H5Tvlen_create(string())),
            element: Box::new(|seed| {
                let count = (seed % 4) as usize;
                sequence((0..count as u64).flat_map(|item| string_pointer(seed + item)).collect(), count)
            }),
        },
        Sample {
            name: "sequences_of_sequences",
            id: h5!(H5Tvlen_create(numbers)),
            element: Box::new(move |seed| {
                let count = (seed % 3) as usize;
                sequence((0..count as u64).flat_map(|item| a_sequence(seed + item)).collect(), count)
            }),
        },
        Sample {
            name: "array_of_texts",
            id: h5!(H5Tarray_create2(string(), 1, [3].as_ptr())),
            element: Box::new(|seed| (0..3).flat_map(|item| string_pointer(seed + item)).collect()),
        },
        Sample {
            name: "object_references",
            id: copy(*H5T_STD_REF_OBJ),
            element: Box::new(move |seed| object_reference(file, seed)),
        },
        Sample {
            name: "region_references",
            id: copy(*H5T_STD_REF_DSETREG),
            element: Box::new(move |seed| region_reference(file, seed)),
        },
        Sample {
            name: "sequences_of_references",
            id: h5!(H5Tvlen_create(*H5T_STD_REF_OBJ)),
            element: Box::new(move |seed| {
                let count = (seed % 3) as usize;
                sequence((0..count as u64).flat_map(|item| object_reference(file, seed + item)).collect(), count)
            }),
        },
        Sample {
            name: "compound_of_all",
            id: mixed,
            element: Box::new(move |seed| {
                let mut element = pattern(56, seed);
                element[8..16].copy_from_slice(&string_pointer(seed));
                element[16..32].copy_from_slice(&a_sequence(seed));
                element[40..48].copy_from_slice(&object_reference(file, seed));
                element
            }),
        },
    ]
}

fn object_reference(file: hid_t, seed: u64) -> Vec<u8> {
    let mut reference = vec![0_u8; 8];
    let target = match seed % 4 {
        0 => return reference,
        1 => c"/",
        2 => c"/target",
        _ => c"/folder",
    };
    let out = reference.as_mut_ptr().cast();
    h5!(H5Rcreate(out, file, target.as_ptr(), H5R_type_t::H5R_OBJECT1, -1));
    reference
}

fn region_reference(file: hid_t, seed: u64) -> Vec<u8> {
    let mut reference = vec![0_u8; 12];
    if seed.is_multiple_of(6) {
        return reference;
    }
    let space = h5!(H5Screate_simple(2, [4, 5].as_ptr(), [4, 5].as_ptr()));
    let set = H5S_seloper_t::H5S_SELECT_SET;
    match seed % 6 {
        1 => h5!(H5Sselect_none(space)),
        2 => h5!(H5Sselect_all(space)),
        3 => h5!(H5Sselect_elements(space, set, 3, [3, 1, 0, 4, 2, 2].as_ptr())),
        4 => h5!(H5Sselect_hyperslab(space, set, [0, 1].as_ptr(), [2, 2].as_ptr(), [2, 2].as_ptr(), [1, 1].as_ptr())),
        _ => {
            let first = ([0, 0].as_ptr(), [2, 2].as_ptr());
            h5!(H5Sselect_hyperslab(space, set, first.0, std::ptr::null(), first.1, std::ptr::null()));
            let second = ([1, 3].as_ptr(), [3, 2].as_ptr());
            let or = H5S_seloper_t::H5S_SELECT_OR;
            h5!(H5Sselect_hyperslab(space, or, second.0, std::ptr::null(), second.1, std::ptr::null()))
        }
    };
    let out = reference.as_mut_ptr().cast();
    h5!(H5Rcreate(out, file, c"/target".as_ptr(), H5R_type_t::H5R_DATASET_REGION1, space));
    h5!(H5Sclose(space));
    reference
}

/// Creates the targets of the references of [`file_local`].
pub fn make_targets(maker: &Maker) {
    h5!(H5Gclose(maker.group("folder", 0, 0)));
    maker.simple_dataset("target", *H5T_STD_I16LE, &Space::fixed(&[4, 5]), &pattern(40, 1));
}
