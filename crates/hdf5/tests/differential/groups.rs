//! Groups, links, attributes and committed datatypes in every storage form.

use crate::make::{DEFAULT, Space, attribute, commit_type, each_bounds, name, none, pattern};
use crate::{h5, samples};
use hdf5_metno_sys::h5d::H5Dclose;
use hdf5_metno_sys::h5g::{H5Gclose, H5Gcreate2};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{
    H5Lcreate_external, H5Lcreate_hard, H5Lcreate_soft, H5Lcreate_ud, H5Ldelete, H5Lregister, H5Lunregister,
};
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5t::*;
use std::ffi::{c_char, c_int, c_void};

/// Creation order flags: none, tracked, tracked and indexed.
const ORDERS: [u32; 3] = [0, 1, 3];

fn soft_link(group: hid_t, target: impl AsRef<[u8]>, link: impl AsRef<[u8]>) {
    h5!(H5Lcreate_soft(name(target).as_ptr(), group, name(link).as_ptr(), DEFAULT, DEFAULT));
}

fn subgroup(group: hid_t, path: &str) {
    let inner = h5!(H5Gcreate2(group, name(path).as_ptr(), DEFAULT, DEFAULT, DEFAULT));
    h5!(H5Gclose(inner));
}

unsafe extern "C" {
    // Deprecated in the bindings, but files with comments exist.
    fn H5Oset_comment(object: hid_t, comment: *const c_char) -> c_int;
}

#[test]
fn an_empty_file() {
    each_bounds("empty", |_| {});
}

#[test]
fn groups_of_every_size() {
    each_bounds("sizes", |maker| {
        for order in ORDERS {
            for count in [0, 1, 3, 8, 9, 40, 700] {
                let group = maker.group(&format!("{count}_members_order_{order}"), order, 0);
                // Neither created in order of their names nor equal in length.
                for number in 0..count {
                    let member = format!("{:x}{}", number * 7919 % 10007, "x".repeat(number % 31));
                    soft_link(group, format!("to {number}"), member);
                }
                h5!(H5Gclose(group));
            }
        }
    });
}

#[test]
fn groups_that_lost_links() {
    each_bounds("lost", |maker| {
        for (count, left) in [(12, 3), (200, 150), (200, 0), (30, 29)] {
            let group = maker.group(&format!("{left}_of_{count}"), 3, 0);
            for number in 0..count {
                soft_link(group, "nowhere", format!("link {number}"));
            }
            for number in 0..count - left {
                h5!(H5Ldelete(group, name(format!("link {number}")).as_ptr(), DEFAULT));
            }
            h5!(H5Gclose(group));
        }
    });
}

#[test]
fn groups_that_are_dense_from_the_start() {
    each_bounds("dense", |maker| {
        for order in ORDERS {
            let list = h5!(H5Pcreate(*H5P_CLS_GROUP_CREATE));
            h5!(H5Pset_link_phase_change(list, 0, 0));
            h5!(H5Pset_link_creation_order(list, order));
            let path = name(format!("order {order}"));
            let group = h5!(H5Gcreate2(maker.file, path.as_ptr(), DEFAULT, list, DEFAULT));
            for number in 0..5 {
                subgroup(group, &format!("g{number}"));
            }
            h5!(H5Gclose(group));
            h5!(H5Pclose(list));
        }
    });
}

#[test]
fn links_of_every_kind() {
    each_bounds("kinds", |maker| {
        for order in ORDERS {
            let group = maker.group(&format!("order {order}"), order, order);
            links_of_every_kind_in(group);
            h5!(H5Gclose(group));
        }
        let alias = c"the root again";
        h5!(H5Lcreate_hard(maker.file, c"/".as_ptr(), maker.file, alias.as_ptr(), DEFAULT, DEFAULT));
    });
}

fn links_of_every_kind_in(group: hid_t) {
    for inner in ["sub", "sub/sub", "sub/sub/sub"] {
        subgroup(group, inner);
    }
    h5!(H5Lcreate_hard(group, c"sub/sub".as_ptr(), group, c"alias".as_ptr(), DEFAULT, DEFAULT));
    h5!(H5Lcreate_hard(group, c".".as_ptr(), group, c"sub/sub/cycle".as_ptr(), DEFAULT, DEFAULT));
    soft_link(group, "sub/../no such", "dangling");
    soft_link(group, "s".repeat(900), "long");
    let utf8 = h5!(H5Pcreate(*H5P_CLS_LINK_CREATE));
    h5!(H5Pset_char_encoding(utf8, H5T_cset_t::H5T_CSET_UTF8));
    h5!(H5Lcreate_soft(c"sub".as_ptr(), group, c"\xc3\xa9t\xc3\xa9".as_ptr(), utf8, DEFAULT));
    h5!(H5Pclose(utf8));
    for odd in [&b"\xff\xfe no text"[..], b"new\nline", b"-rf", b" ", &[b'n'; 300]] {
        soft_link(group, "odd", odd);
    }
    // Old groups cannot store the following links: libhdf5 converts them to new groups.
    h5!(H5Lcreate_external(c"other.h5".as_ptr(), c"/a/b".as_ptr(), group, c"external".as_ptr(), DEFAULT, DEFAULT));
    user_defined_link(group);
}

/// `H5L_class_t`, with the class as a number.
#[repr(C)]
struct LinkClass {
    version: c_int,
    class: c_int,
    comment: *const c_char,
    before: [usize; 3],
    traverse: extern "C" fn() -> hid_t,
    after: [usize; 2],
}

fn user_defined_link(group: hid_t) {
    extern "C" fn nowhere() -> hid_t {
        -1
    }
    type Create = unsafe extern "C" fn(hid_t, *const c_char, c_int, *const c_void, usize, hid_t, hid_t) -> c_int;
    type Unregister = unsafe extern "C" fn(c_int) -> c_int;
    const CLASS: c_int = 187;
    let class =
        LinkClass { version: 1, class: CLASS, comment: none(), before: [0; 3], traverse: nowhere, after: [0; 2] };
    // SAFETY: laid out as `H5L_class_t`, and never traversed. The functions are called with the class as the number
    // that the C enumeration is.
    unsafe {
        assert!(H5Lregister((&raw const class).cast()) >= 0);
        let create = std::mem::transmute::<*const (), Create>(H5Lcreate_ud as *const ());
        let data = b"data \0 of ours";
        let status = create(group, c"user".as_ptr(), CLASS, data.as_ptr().cast(), data.len(), DEFAULT, DEFAULT);
        assert!(status >= 0);
        let unregister = std::mem::transmute::<*const (), Unregister>(H5Lunregister as *const ());
        assert!(unregister(CLASS) >= 0);
    }
}

#[test]
fn names_too_long_for_the_blocks_of_a_heap() {
    each_bounds("long", |maker| {
        let group = maker.group("long", 3, 0);
        for len in [10, 500, 3000, 4090, 5000, 60_000] {
            soft_link(group, "x", format!("{len}{}", "n".repeat(len)));
        }
        for number in 0..20 {
            soft_link(group, "x", format!("{number}"));
        }
        h5!(H5Gclose(group));
    });
}

#[test]
fn comments() {
    each_bounds("comments", |maker| {
        let group = maker.group("g", 0, 3);
        h5!(H5Oset_comment(group, c"a comment, \xe2\x82\xac".as_ptr()));
        h5!(H5Oset_comment(maker.file, c"of the root".as_ptr()));
        h5!(H5Gclose(group));
    });
}

#[test]
fn attributes_of_every_fixed_type() {
    each_bounds("attributes", |maker| {
        let group = maker.group("g", 0, 0);
        for sample in samples::fixed() {
            for (space, label) in [
                (Space::Scalar, "scalar"),
                (Space::Null, "null"),
                (Space::fixed(&[3]), "one"),
                (Space::fixed(&[2, 0, 4]), "empty"),
                (Space::fixed(&[2, 3]), "two"),
            ] {
                let values = sample.values(space.element_count(), 1);
                attribute(group, format!("{}_{label}", sample.name), sample.id, &space, &values);
            }
            h5!(H5Tclose(sample.id));
        }
        h5!(H5Gclose(group));
    });
}

#[test]
fn attributes_of_every_file_local_type() {
    each_bounds("local", |maker| {
        samples::make_targets(maker);
        let group = maker.group("g", 0, 0);
        for sample in samples::file_local(maker.file) {
            for (space, label) in [(Space::Scalar, "scalar"), (Space::Null, "null"), (Space::fixed(&[7]), "one")] {
                let values = sample.values(space.element_count(), 1);
                attribute(group, format!("{}_{label}", sample.name), sample.id, &space, &values);
            }
            h5!(H5Tclose(sample.id));
        }
        h5!(H5Gclose(group));
    });
}

#[test]
fn attributes_in_every_number_and_order() {
    each_bounds("numbers", |maker| {
        for order in ORDERS {
            for count in [0_i32, 1, 8, 9, 60, 500] {
                let group = maker.group(&format!("{count}_order_{order}"), 0, order);
                for number in 0..count {
                    let label = format!("{:x}", number * 7919 % 10007);
                    attribute(group, label, *H5T_STD_I32LE, &Space::Scalar, &number.to_le_bytes());
                }
                attribute(group, "été", *H5T_STD_I8LE, &Space::Scalar, &[1]);
                h5!(H5Gclose(group));
            }
        }
    });
}

#[test]
fn large_attributes() {
    each_bounds("large", |maker| {
        // Beyond 64 KiB only dense storage is possible, which the oldest format lacks.
        let largest = if maker.has_dense_attributes() { 200_000 } else { 60_000 };
        let group = maker.group("g", 0, 1);
        for len in [1000, 4000, 5000, 60_001, largest] {
            let bytes = pattern(len, len as u64);
            attribute(group, format!("bytes {len}"), *H5T_STD_U8LE, &Space::fixed(&[len as u64]), &bytes);
        }
        h5!(H5Gclose(group));
    });
}

#[test]
fn committed_datatypes() {
    each_bounds("committed", |maker| {
        samples::make_targets(maker);
        let group = maker.group("g", 0, 0);
        for sample in samples::fixed().into_iter().chain(samples::file_local(maker.file)) {
            let committed = commit_type(maker.file, sample.name, sample.id);
            attribute(committed, "on the type", *H5T_STD_I8LE, &Space::Scalar, &[1]);
            attribute(group, sample.name, committed, &Space::fixed(&[2]), &sample.values(2, 1));
            let path = format!("dataset of {}", sample.name);
            let dataset = maker.dataset(&path, committed, &Space::fixed(&[3]), DEFAULT);
            attribute(dataset, "of the same type", committed, &Space::Scalar, &sample.values(1, 2));
            h5!(H5Dclose(dataset));
            h5!(H5Tclose(committed));
            h5!(H5Tclose(sample.id));
        }
        h5!(H5Gclose(group));
    });
}

#[test]
fn a_deep_chain_of_groups() {
    each_bounds("deep", |maker| {
        let mut path = String::new();
        for _ in 0..300 {
            path.push_str("/g");
            h5!(H5Gclose(maker.group(&path, 0, 0)));
        }
    });
}
