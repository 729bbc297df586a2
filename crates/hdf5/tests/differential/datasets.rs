//! Datasets: layouts, chunk indexes, filters, fill values, types; metadata, chunk lists and values.

use crate::make::{
    BOUNDS, Space, attribute, creation_list, each_bounds, is_available, pattern, write_all, write_chunk, write_rows,
};
use crate::{h5, samples};
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5f::H5F_libver_t;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5t::*;
use hdf5_metno_sys::h5z::H5Z_SO_scale_type_t;

pub const UNLIMITED: u64 = u64::MAX;

static FILL: i32 = -99;

/// Extents with a chunk shape each, which together with the format bounds produce every kind of chunk index.
pub fn chunked_spaces() -> Vec<(&'static str, Space, Vec<u64>)> {
    vec![
        ("one_chunk", Space::fixed(&[6, 10]), vec![6, 10]),
        ("fixed", Space::fixed(&[20, 11]), vec![6, 4]),
        ("fixed_1d", Space::fixed(&[1000]), vec![7]),
        ("grows_in_rows", Space::growing(&[20, 11], &[UNLIMITED, 11]), vec![6, 4]),
        ("grows_in_columns", Space::growing(&[20, 11], &[20, UNLIMITED]), vec![6, 4]),
        ("grows_to_a_limit", Space::growing(&[20, 11], &[40, 22]), vec![6, 4]),
        ("grows_in_both", Space::growing(&[20, 11], &[UNLIMITED, UNLIMITED]), vec![6, 4]),
        ("grows_1d", Space::growing(&[333], &[UNLIMITED]), vec![16]),
        ("three_d", Space::fixed(&[5, 6, 7]), vec![2, 3, 4]),
        ("four_d", Space::growing(&[3, 4, 5, 6], &[UNLIMITED, 4, 5, 6]), vec![2, 2, 2, 2]),
        ("empty", Space::growing(&[0, 11], &[UNLIMITED, 11]), vec![6, 4]),
        ("empty_in_columns", Space::growing(&[20, 0], &[UNLIMITED, UNLIMITED]), vec![6, 4]),
    ]
}

/// Filter pipelines by their names in these tests.
const PIPELINES: [&str; 8] =
    ["plain", "deflate", "shuffle deflate", "fletcher32", "nbit", "scaleoffset", "szip", "shuffle deflate fletcher32"];

fn add_filters(list: hid_t, pipeline: &str) {
    for filter in pipeline.split(' ') {
        match filter {
            "plain" => 0,
            "deflate" => h5!(H5Pset_deflate(list, 6)),
            "shuffle" => h5!(H5Pset_shuffle(list)),
            "fletcher32" => h5!(H5Pset_fletcher32(list)),
            "nbit" => h5!(H5Pset_nbit(list)),
            "scaleoffset" => h5!(H5Pset_scaleoffset(list, H5Z_SO_scale_type_t::H5Z_SO_INT, 0)),
            "szip" => h5!(H5Pset_szip(list, 32, 8)),
            other => unreachable!("{other}"),
        };
    }
}

/// Creates the creation properties of a chunked dataset.
pub fn chunked_list(chunk_shape: &[u64], pipeline: &str) -> hid_t {
    let list = creation_list();
    h5!(H5Pset_chunk(list, chunk_shape.len() as i32, chunk_shape.as_ptr()));
    add_filters(list, pipeline);
    list
}

const ALLOCATIONS: [H5D_alloc_time_t; 3] = [
    H5D_alloc_time_t::H5D_ALLOC_TIME_EARLY,
    H5D_alloc_time_t::H5D_ALLOC_TIME_LATE,
    H5D_alloc_time_t::H5D_ALLOC_TIME_INCR,
];

const LAYOUTS: [H5D_layout_t; 3] = [H5D_layout_t::H5D_COMPACT, H5D_layout_t::H5D_CONTIGUOUS, H5D_layout_t::H5D_CHUNKED];

#[test]
fn every_chunk_index_with_every_pipeline() {
    each_bounds("chunked", |maker| {
        for pipeline in PIPELINES {
            // The encoder of szip may be missing from the build.
            if pipeline == "szip" && !is_available(4) {
                continue;
            }
            for (label, space, chunk_shape) in chunked_spaces() {
                for allocation in ALLOCATIONS {
                    let list = chunked_list(&chunk_shape, pipeline);
                    h5!(H5Pset_alloc_time(list, allocation));
                    let datatype = h5!(H5Tcopy(*H5T_STD_I32BE));
                    if pipeline == "nbit" {
                        h5!(H5Tset_precision(datatype, 20));
                    }
                    let dataset = maker.dataset(&format!("{label} {pipeline} {allocation:?}"), datatype, &space, list);
                    write_all(dataset, datatype, &small_numbers(space.element_count()));
                    h5!(H5Dclose(dataset));
                    h5!(H5Tclose(datatype));
                    h5!(H5Pclose(list));
                }
            }
        }
    });
}

/// Returns big-endian 32-bit numbers below 2^18, of which nbit keeps 20 bits.
fn small_numbers(count: usize) -> Vec<u8> {
    (0..count as u32).flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 14).to_be_bytes()).collect()
}

#[test]
fn datasets_that_were_written_in_part() {
    each_bounds("partial", |maker| {
        for pipeline in ["plain", "deflate"] {
            for (label, space, chunk_shape) in chunked_spaces() {
                let Space::Simple { dims, .. } = &space else { unreachable!() };
                if dims.contains(&0) {
                    continue;
                }
                let list = chunked_list(&chunk_shape, pipeline);
                h5!(H5Pset_fill_value(list, *H5T_STD_I32LE, (&raw const FILL).cast()));
                let dataset = maker.dataset(&format!("{label} {pipeline}"), *H5T_STD_I32LE, &space, list);
                write_rows(dataset, *H5T_STD_I32LE, dims, 2..3, &pattern(space.element_count() * 4, 5));
                h5!(H5Dclose(dataset));
                h5!(H5Pclose(list));
            }
        }
    });
}

#[test]
fn datasets_that_grew_and_shrank() {
    each_bounds("resized", |maker| {
        for (label, first, last) in [("grew", 40_u64, 400_u64), ("shrank", 400, 33), ("emptied", 400, 0)] {
            for pipeline in ["plain", "shuffle deflate"] {
                for max in [[UNLIMITED, 5], [UNLIMITED, UNLIMITED], [1000, 5]] {
                    let list = chunked_list(&[8, 3], pipeline);
                    let space = Space::growing(&[first, 5], &max);
                    let path = format!("{label} {pipeline} {max:?}");
                    let dataset = maker.dataset(&path, *H5T_STD_I16LE, &space, list);
                    write_all(dataset, *H5T_STD_I16LE, &pattern(first as usize * 10, 3));
                    h5!(H5Dset_extent(dataset, [last, 5].as_ptr()));
                    h5!(H5Dclose(dataset));
                    h5!(H5Pclose(list));
                }
            }
        }
    });
}

/// Enough chunks for paged arrays and trees of several levels.
#[test]
fn many_chunks() {
    each_bounds("many", |maker| {
        for pipeline in ["plain", "deflate"] {
            for (label, space, chunk_shape) in [
                ("fixed", Space::fixed(&[9000]), vec![2]),
                ("grows", Space::growing(&[9000], &[UNLIMITED]), vec![2]),
                ("grows in both", Space::growing(&[90, 100], &[UNLIMITED, UNLIMITED]), vec![2, 1]),
            ] {
                let Space::Simple { dims, .. } = &space else { unreachable!() };
                let list = chunked_list(&chunk_shape, pipeline);
                let dataset = maker.dataset(&format!("{label} {pipeline}"), *H5T_STD_U8LE, &space, list);
                write_all(dataset, *H5T_STD_U8LE, &pattern(9000, 7));
                h5!(H5Dclose(dataset));
                let dataset = maker.dataset(&format!("{label} {pipeline} with holes"), *H5T_STD_U8LE, &space, list);
                for row in [dims[0] - 1, dims[0] / 2, 0, dims[0] / 3] {
                    write_rows(dataset, *H5T_STD_U8LE, dims, row..row + 1, &pattern(100, row));
                }
                h5!(H5Dclose(dataset));
                h5!(H5Pclose(list));
            }
        }
    });
}

#[test]
fn chunks_with_skipped_filters_and_unfiltered_edges() {
    each_bounds("masks", |maker| {
        for (label, max) in [("fixed", [10, 6]), ("grows", [UNLIMITED, 6]), ("both", [UNLIMITED, UNLIMITED])] {
            let space = Space::growing(&[10, 6], &max);
            let list = chunked_list(&[4, 6], "shuffle deflate");
            let dataset = maker.dataset(label, *H5T_STD_I32LE, &space, list);
            write_all(dataset, *H5T_STD_I32LE, &pattern(240, 8));
            write_chunk(dataset, 0b11, &[4, 0], &pattern(96, 9));
            h5!(H5Dclose(dataset));
            h5!(H5Pclose(list));

            if maker.bounds.1 == H5F_libver_t::H5F_LIBVER_V18 {
                continue;
            }
            // Available since HDF5 1.10.
            let list = chunked_list(&[4, 4], "deflate");
            h5!(H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
            let dataset = maker.dataset(&format!("{label} edges"), *H5T_STD_I32LE, &space, list);
            write_all(dataset, *H5T_STD_I32LE, &pattern(240, 8));
            h5!(H5Dclose(dataset));
            h5!(H5Pclose(list));
        }
    });
}

#[test]
fn unchunked_layouts_of_every_shape() {
    each_bounds("unchunked", |maker| {
        for layout in [H5D_layout_t::H5D_COMPACT, H5D_layout_t::H5D_CONTIGUOUS] {
            for (label, space) in [
                ("scalar", Space::Scalar),
                ("null", Space::Null),
                ("one", Space::fixed(&[5])),
                ("two", Space::fixed(&[5, 3])),
                ("empty", Space::fixed(&[0, 3])),
                ("high rank", Space::fixed(&[1, 2, 1, 2, 1, 2, 1, 2, 1, 2])),
            ] {
                for written in [true, false] {
                    let list = creation_list();
                    h5!(H5Pset_layout(list, layout));
                    let path = format!("{layout:?} {label} {written}");
                    let dataset = maker.dataset(&path, *H5T_IEEE_F64BE, &space, list);
                    if written && space != Space::Null {
                        write_all(dataset, *H5T_IEEE_F64BE, &pattern(space.element_count() * 8, 4));
                    }
                    h5!(H5Dclose(dataset));
                    h5!(H5Pclose(list));
                }
            }
        }
    });
}

#[test]
fn fill_values_of_every_kind() {
    let times = [
        H5D_fill_time_t::H5D_FILL_TIME_ALLOC,
        H5D_fill_time_t::H5D_FILL_TIME_NEVER,
        H5D_fill_time_t::H5D_FILL_TIME_IFSET,
    ];
    each_bounds("fill", |maker| {
        for (layout, allocation) in LAYOUTS.into_iter().flat_map(|layout| ALLOCATIONS.map(|time| (layout, time))) {
            for (time, value) in times.into_iter().flat_map(|time| ["default", "set", "none"].map(|v| (time, v))) {
                let chunked = layout == H5D_layout_t::H5D_CHUNKED;
                // Combinations that libhdf5 refuses to create.
                let incremental = allocation == H5D_alloc_time_t::H5D_ALLOC_TIME_INCR;
                let none_on_allocation = value == "none" && time == H5D_fill_time_t::H5D_FILL_TIME_ALLOC;
                if !chunked && incremental || none_on_allocation {
                    continue;
                }
                let list = creation_list();
                h5!(H5Pset_layout(list, layout));
                if chunked {
                    h5!(H5Pset_chunk(list, 1, [4].as_ptr()));
                }
                if layout != H5D_layout_t::H5D_COMPACT {
                    h5!(H5Pset_alloc_time(list, allocation));
                }
                h5!(H5Pset_fill_time(list, time));
                match value {
                    "set" => h5!(H5Pset_fill_value(list, *H5T_STD_I32LE, (&raw const FILL).cast())),
                    "none" => h5!(H5Pset_fill_value(list, *H5T_STD_I32LE, std::ptr::null())),
                    _ => 0,
                };
                let path = format!("{layout:?} {time:?} {allocation:?} {value}");
                let dataset = maker.dataset(&path, *H5T_STD_I64BE, &Space::fixed(&[10]), list);
                // Without fill values, unwritten storage has arbitrary contents.
                if time == H5D_fill_time_t::H5D_FILL_TIME_NEVER || value == "none" {
                    write_all(dataset, *H5T_STD_I64BE, &pattern(80, 2));
                }
                h5!(H5Dclose(dataset));
                h5!(H5Pclose(list));
            }
        }
    });
}

#[test]
fn every_type_in_every_layout() {
    each_bounds("types", |maker| {
        samples::make_targets(maker);
        let all = samples::fixed().into_iter().chain(samples::file_local(maker.file));
        let newest = if maker.bounds == BOUNDS[4] { samples::newest() } else { Vec::new() };
        for sample in all.chain(newest) {
            for layout in LAYOUTS {
                let list = creation_list();
                h5!(H5Pset_layout(list, layout));
                if layout == H5D_layout_t::H5D_CHUNKED {
                    h5!(H5Pset_chunk(list, 2, [4, 2].as_ptr()));
                    h5!(H5Pset_deflate(list, 1));
                }
                let space = Space::fixed(&[9, 3]);
                let path = format!("{} {layout:?}", sample.name);
                let dataset = maker.dataset(&path, sample.id, &space, list);
                write_all(dataset, sample.id, &sample.values(27, 11));
                h5!(H5Dclose(dataset));
                h5!(H5Dclose(maker.dataset(&format!("{path} unwritten"), sample.id, &space, list)));
                h5!(H5Pclose(list));
            }
            h5!(H5Tclose(sample.id));
        }
    });
}

#[test]
fn fill_values_of_every_type() {
    each_bounds("fill_types", |maker| {
        samples::make_targets(maker);
        for sample in samples::fixed() {
            let list = creation_list();
            h5!(H5Pset_fill_value(list, sample.id, sample.values(1, 21).as_ptr().cast()));
            let dataset = maker.dataset(sample.name, sample.id, &Space::fixed(&[4]), list);
            attribute(dataset, "a", sample.id, &Space::Scalar, &sample.values(1, 4));
            h5!(H5Dclose(dataset));
            h5!(H5Pclose(list));
            h5!(H5Tclose(sample.id));
        }
    });
}
