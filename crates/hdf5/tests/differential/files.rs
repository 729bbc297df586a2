//! Properties of whole files: user block, sizes of addresses, file space, shared messages.

use crate::datasets::{UNLIMITED, chunked_list, chunked_spaces};
use crate::make::{BOUNDS, Maker, Space, attribute, each_of, each_within, pattern, write_all};
use crate::{h5, samples};
use hdf5_metno_sys::h5d::H5Dclose;
use hdf5_metno_sys::h5f::{H5F_fspace_strategy_t, H5F_libver_t};
use hdf5_metno_sys::h5g::H5Gclose;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5t::*;

/// Creates at least one object of each kind that is affected by its place in the file.
fn fill(maker: &Maker) {
    fill_with(maker, true);
}

fn fill_with(maker: &Maker, references: bool) {
    samples::make_targets(maker);
    for (label, space, chunk_shape) in chunked_spaces() {
        let list = chunked_list(&chunk_shape, "deflate");
        let dataset = maker.dataset(label, *H5T_STD_I32LE, &space, list);
        write_all(dataset, *H5T_STD_I32LE, &pattern(space.element_count() * 4, 6));
        for sample in samples::fixed().into_iter().take(12) {
            attribute(dataset, sample.name, sample.id, &Space::fixed(&[2]), &sample.values(2, 3));
            h5!(H5Tclose(sample.id));
        }
        h5!(H5Dclose(dataset));
        h5!(H5Pclose(list));
    }
    h5!(H5Gclose(maker.group("many", 3, 3)));
    let all = samples::fixed().into_iter().chain(samples::file_local(maker.file));
    for sample in all.filter(|sample| references || !sample.has_reference()) {
        let path = format!("many/{}", sample.name);
        maker.simple_dataset(&path, sample.id, &Space::fixed(&[3]), &sample.values(3, 1));
        h5!(H5Tclose(sample.id));
    }
}

#[test]
fn user_blocks() {
    for len_bytes in [512, 4096] {
        let configure = |list| _ = h5!(H5Pset_userblock(list, len_bytes));
        each_of(&format!("userblock_{len_bytes}"), &configure, fill);
    }
}

#[test]
fn sizes_of_addresses_and_lengths() {
    for (address, length) in [(8, 4), (4, 8), (4, 4)] {
        // With short lengths HDF5 2.2 writes extensible arrays but cannot open them: it mistakes their unlimited
        // dimension for a limited one. So only formats before 1.10 are compared.
        let bounds = if length < 8 { &BOUNDS[..2] } else { &BOUNDS[..] };
        let configure = |list| _ = h5!(H5Pset_sizes(list, address, length));
        // References of 4 bytes are refused by both readers.
        let fill = |maker: &Maker| fill_with(maker, address == 8);
        each_within(bounds, &format!("sizes_{address}_{length}"), &configure, fill);
    }
}

#[test]
fn narrow_trees() {
    let configure = |list: hid_t| {
        h5!(H5Pset_sym_k(list, 3, 2));
        h5!(H5Pset_istore_k(list, 2));
    };
    each_of("narrow", &configure, fill);
}

#[test]
fn file_space_strategies() {
    use H5F_fspace_strategy_t::{H5F_FSPACE_STRATEGY_AGGR, H5F_FSPACE_STRATEGY_NONE, H5F_FSPACE_STRATEGY_PAGE};
    for (strategy, persist) in
        [(H5F_FSPACE_STRATEGY_PAGE, 1), (H5F_FSPACE_STRATEGY_AGGR, 0), (H5F_FSPACE_STRATEGY_NONE, 0)]
    {
        let configure = |list: hid_t| {
            h5!(H5Pset_file_space_strategy(list, strategy, persist, 1));
            h5!(H5Pset_file_space_page_size(list, 1024));
        };
        // Available since HDF5 1.10; the oldest bounds leave the choice to libhdf5.
        let bounds: Vec<_> = BOUNDS.into_iter().filter(|bounds| bounds.1 != H5F_libver_t::H5F_LIBVER_V18).collect();
        each_within(&bounds, &format!("{strategy:?}"), &configure, fill);
    }
}

#[test]
fn shared_header_messages() {
    /// `H5O_SHMESG_ALL_FLAG`.
    const ALL: u32 = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 11 | 1 << 12;
    for (label, list_limit) in [("shared_in_lists", 50), ("shared_in_trees", 0)] {
        let configure = |list: hid_t| {
            h5!(H5Pset_shared_mesg_nindexes(list, 1));
            h5!(H5Pset_shared_mesg_index(list, 0, ALL, 20));
            h5!(H5Pset_shared_mesg_phase_change(list, list_limit, 0));
        };
        each_of(label, &configure, |maker| {
            for number in 0..20 {
                let list = chunked_list(&[6, 4], "shuffle deflate");
                let fill = -7_i32;
                h5!(H5Pset_fill_value(list, *H5T_STD_I32LE, (&raw const fill).cast()));
                let space = Space::growing(&[20, 11], &[UNLIMITED, 11]);
                let dataset = maker.dataset(&format!("d{number}"), *H5T_STD_I32LE, &space, list);
                for sample in samples::fixed() {
                    attribute(dataset, sample.name, sample.id, &Space::fixed(&[2]), &sample.values(2, 3));
                    h5!(H5Tclose(sample.id));
                }
                h5!(H5Dclose(dataset));
                h5!(H5Pclose(list));
            }
        });
    }
}
