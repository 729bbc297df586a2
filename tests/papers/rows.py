"""The items of the five papers: whether raddle implements each, and the evidence. Data for audit.py, which formats it as a table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """An item of a paper."""

    item: str
    verdict: str
    # "bench WORKLOAD EXPERIMENT ...", "test FILE NAME ...", "script FILE WORD ...", or "run NAME" of one of CHECKS.
    shown: tuple = ()
    reason: str = ""


def bench(workload, *experiments):
    return ("bench", workload, *experiments)


def test(file, *names):
    return ("test", file, *names)


def run(name):
    return ("run", name)


def script(file, *words):
    return ("script", file, *words)


def works(item, *shown):
    return Row(item, "W", shown)


def not_shown(item, reason):
    return Row(item, "N", (), reason)


def missing(item, reason):
    return Row(item, "M", (), reason)


PAPERS = {
    "Lee et al. 2022": [
        works("tables 1, 2: groups of columns with run, subrun and event", run("made_files")),
        works("table 3: statistics of a set of files", run("total"), test("tests/interop/test_inspect.py", "test_the_sum_over_files")),
        works("section 3: concatenated datasets of all files", run("concatenation"), test("tests/interop/test_merge.py", "test_values_whatever_the_layout")),
        works("options of the paper's program: memory, level, order of files", test("tests/interop/test_merge.py", "test_little_memory_gives_the_same_values"), test("tests/interop/test_filters.py", "test_values_whatever_the_compression"), test("tests/interop/test_selection.py", "test_natural_order_and_lists")),
        works("append to a merged file", run("append"), test("tests/interop/test_append.py", "test_values_are_those_of_one_merge", "test_merges_of_plain_files_are_extendible_where_that_is_cheap")),
        works("append to a file with keys", run("append_with_keys"), test("tests/interop/test_append_keys.py", "test_keys_continue")),
        works("contiguous output, for all datasets or small ones", run("contiguous"), test("tests/interop/test_storage.py", "test_all_datasets_can_be_contiguous", "test_a_size_decides_which_are_contiguous")),
        works("contiguous, compact and chunked empty datasets", test("tests/interop/test_storage.py", "test_empty_datasets_are_stored_as_asked")),
        works("partition keys while merging", run("keys"), test("tests/interop/test_keys.py", "test_keys_are_what_numpy_finds")),
        works("partition keys added afterwards, in some groups, or replaced", test("tests/interop/test_keys.py", "test_keys_added_later_are_the_same", "test_keys_of_groups_that_are_skipped_stay")),
        works("ids of several numbers in a row (MicroBooNE)", test("tests/interop/test_keys.py", "test_ids_of_several_numbers_in_a_row")),
        works("checking and sorting by event", run("checked_keys"), test("tests/interop/test_selection.py", "test_inputs_are_sorted_by_first_values")),
        works("files with distinct datasets combined in one", run("union"), test("tests/interop/test_links.py", "test_a_union_moves_chunks_as_they_are_stored")),
        works("a file of links to the inputs", test("tests/interop/test_links.py", "test_external_links_lead_to_the_inputs"), test("tests/interop/test_views.py", "test_a_virtual_merge_reads_as_the_merge")),
        works("a link per group", run("links")),
        works("sizes of events", run("events"), test("tests/interop/test_keys.py", "test_sizes_of_events_are_what_numpy_finds")),
        works("rechunking: chunks, level", run("rechunk"), test("tests/interop/test_merge.py", "test_rechunk_keeps_the_values")),
        works("rechunking: rank 1", run("rank_1"), test("tests/interop/test_storage.py", "test_columns_of_rank_2_get_rank_1")),
        works("rechunking: empty datasets without dimensions, as null datasets", test("tests/interop/test_storage.py", "test_empty_datasets_can_become_null")),
        works("the share of each reader", run("shares"), test("tests/python/test_partition.py", "test_shares_hold_every_row_once_and_events_whole")),
        works("chunks that several readers decode", run("shared_chunks"), test("tests/interop/test_keys.py", "test_chunks_that_several_readers_read")),
        works("searching the merged file for events", test("tests/python/test_scan.py", "test_rows_by_the_events_of_other_tables")),
        works("selected events in a file of their own", test("tests/python/test_select.py", "test_events_are_those_of_numpy")),
        not_shown("the paper's reading program on our files", "Debian does not package it; readers through libhdf5 and h5py see the same values (tests/interop)"),
        works("tables 4, 5; section 5.5: metadata on the fly and in memory", bench("nova-2021", "collect")),
        works("figure 1, section 5.2: creation by one rank or by all, collective metadata", bench("nova-2021", "ranks-create")),
        works("figure 2: chunk size by stage, 1-D and 2-D", bench("nova-2021", "chunk-1d", "chunk-2d", "ranks-chunk-1d", "ranks-chunk-2d")),
        works("tables 6, 7: layout of empty datasets", bench("nova-2021", "empty-layout", "ranks-empty-layout")),
        works("tables 8, 9: levels of gzip", bench("nova-2021", "levels-1d", "levels-2d")),
        works("tables 10, 11: metadata cache", bench("nova-2021", "metadata-cache-1d", "metadata-cache-2d")),
        works("figure 3: reading by files or by datasets, measured with HDF5", bench("nova-2021", "ranks-partition-1d", "ranks-partition-2d")),
        works("figure 3: the same choice in raddle's merge", run("reading"), test("tests/mpi/test_reading.py", "test_by_files_the_bytes_are_those_of_one_process", "test_auto_reads_by_files_where_opening_is_slow")),
        works("figures 4, 5, table 13: scaling over ranks", bench("nova-2021", "ranks-scaling-1d", "ranks-scaling-2d")),
        works("the same at 165 ranks, predicted", run("predicted_nova")),
        works("table 12: rounds by memory", run("rounds")),
        works("future work: several datasets at once", test("tests/mpi/test_merge.py", "test_any_number_of_ranks_makes_the_bytes_of_one_process")),
        works("histograms of thousands of files by one program", test("tests/python/test_ecosystem.py", "test_the_examples_of_analyses")),
        not_shown("time against the paper's program", "Debian does not package it, and it needs two changes to build with Debian's HDF5; `make bench` runs the same merge in h5py"),
        not_shown("runs on Cori, up to 1,600 processes", "the machine was retired in 2023; `plan --simulate` predicts them"),
    ],
    "Hill, Smith and Trew 2005": [
        works("figures 8, 15, 20, 21: chunk size with gzip, sieve, blocks", bench("occam-2005", "chunk-gzip")),
        works("figure 9: a sieve of 1 MB for each chunk size", bench("occam-2005", "chunk-sieve")),
        works("figure 10: chunk size without gzip", bench("occam-2005", "chunk-plain")),
        works("figures 11, 12, 14: chunk cache", bench("occam-2005", "cache-chunk-rows", "cache-single-rows")),
        works("figure 13: chunk cache with chunks of 64 KB", bench("occam-2005", "cache-small-chunks")),
        works("figure 16: conversion buffer", bench("occam-2005", "conversion")),
        works("figures 17, 18, section 5.8.3: gzip levels, checksums, shuffle", bench("occam-2005", "filters")),
        works("figure 19: szip with both codings", bench("occam-2005", "szip"), test("tests/apply/test_tune.py", "test_szip_with_both_codings")),
        works("table 2: another zlib", test("tests/apply/test_tune.py", "test_another_zlib")),
        works("section 5.9: serial and parallel library, interleaved", bench("occam-2005", "libraries"), test("tests/apply/test_tune.py", "test_interleaved_libraries")),
        works("data set of 1.97 GB", run("full_field")),
        not_shown("section 5.10: libraries of 32 and 64 bits", "no 32-bit library is supported"),
        not_shown("appendix A: profile by function", "raddle times HDF5 calls, not its internal functions; it compares gzip on and off by processor time"),
    ],
    "Kumar et al. 2012": [
        works("figures 1, 2, table I: order of samples", test("tests/interop/test_openvisus.py", "test_openvisus_reads_what_raddle_writes", "test_files_are_those_of_openvisus")),
        works("any type, order, compression, block size; 1-D to 5-D", test("tests/interop/test_openvisus.py", "test_openvisus_reads_any_layout", "test_any_layout_of_openvisus_is_read")),
        works("zfp", test("tests/interop/test_openvisus.py", "test_zfp_in_both_directions")),
        works("vectors of 5 and 11 numbers (species of S3D), a field for each component", test("tests/interop/test_openvisus.py", "test_openvisus_reads_the_components_of_wide_vectors")),
        not_shown("the same as one field", "OpenVisus fails on samples of 5 doubles; raddle reads and writes them"),
        works("S3D-IO from C and Fortran, by ranks", test("tests/capi/test_capi.py", "test_any_number_of_ranks_writes_the_same", "test_ranks_of_fortran_write_the_same")),
        works("S3D-IO from Python, by MPI ranks", test("tests/python/test_idx_ranks.py", "test_ranks_of_mpi")),
        works("algorithm 1, figures 3, 4: one, two and three phases", bench("pidx-sc12", "phases"), test("tests/mpi/test_idx.py", "test_any_number_of_ranks_writes_the_files_of_one_process")),
        works("figure 5: messages", bench("pidx-sc12", "messages", "messages-of-256")),
        works("figure 6: 126^3, 128^3 and raw files", bench("pidx-sc12", "regular")),
        works("figures 7, 8: imposed boxes", bench("pidx-sc12", "box-15", "box-60", "holders")),
        works("figure 9: blocks per file, aggregators", bench("pidx-sc12", "blocks-per-file", "aggregators", "files")),
        works("figures 10a, 11a: compared with a raw file per process and a shared raw file", bench("pidx-sc12", "weak-scaling")),
        works("figures 10a, 11a: compared with PnetCDF and MPI-IO", script("benches/pidx.py", "--rounds", "1")),
        works("figures 10c, 11c: holders, files and aggregators", bench("pidx-sc12", "predicted")),
        works("figure 12: strong scaling", bench("pidx-sc12", "strong-scaling")),
        works("table II: processes that hold restructured data", bench("pidx-sc12", "table-2"), run("table_2")),
        works("65,536 and 131,072 processes, planned", run("many_ranks")),
        works("future work: number of aggregators and size of boxes as options", bench("pidx-sc12", "aggregators", "box-60")),
        works("future work: load balance of the held data", run("balance")),
        works("several boxes per process, time steps", test("tests/capi/test_capi.py", "test_boxes_without_steps_of_any_rank")),
        not_shown("rates on Hopper and Intrepid", "the machines are gone; `raddle bench pidx-sc12` measures the machine that runs it"),
    ],
    "Bashyal et al. 2024": [
        not_shown("files of experiments", "the repository does not contain them; tests/events writes files of every kind with uproot and reads them back"),
        works("ROOT trees", test("tests/events/test_trees.py", "test_columns_of_every_kind", "test_bytes_of_what_root_wrote")),
        works("RNTuples", test("tests/events/test_ntuples.py", "test_fields_are_those_of_uproot", "test_fields_that_were_added_later_begin_with_zeros")),
        works("branches of packed numbers, arrays, references", test("tests/events/test_packed_numbers.py", "test_leaves_of_packed_numbers"), test("tests/events/test_branches.py", "test_arrays_behind_pointers", "test_references")),
        works("section 2: the framework's layouts by product, event and batch", test("tests/events/test_layouts.py", "test_the_framework_s_product_layout", "test_the_framework_s_event_and_batch_layouts")),
        works("packed data streams, converted to every layout and back", run("streams"), test("tests/events/test_layouts.py", "test_a_stream_comes_back_through_every_layout")),
        works("products of the framework from split ROOT branches", test("tests/events/test_whole.py", "test_random_classes", "test_products_come_back_from_every_format", "test_the_framework_takes_split_and_unsplit_objects_alike")),
        works("sources that wait, also for the times recorded in a file", test("tests/events/test_bench.py", "test_events_wait_as_long_as_a_file_says")),
        works("values of events as text", test("tests/events/test_dump.py", "test_json_has_the_values_of_uproot")),
        works("figure 2: rates of formats by threads", bench("hep-cce-2023", "formats", "threads")),
        works("section 2.1: many products, with a dataset for each", bench("hep-cce-2023", "many-products")),
        works("section 2.2: batches", bench("hep-cce-2023", "batches")),
        works("figures 3, 4: one file by several processes", bench("hep-cce-2023", "processes"), test("tests/mpi/test_events.py", "test_any_number_of_ranks_writes_the_file_of_one_process")),
        works("table 1: shares of the time, including messages", bench("hep-cce-2023", "processes")),
        works("number of events not known in advance", test("tests/mpi/test_events.py", "test_ranks_write_what_the_framework_reads")),
        works("future plans: RNTuples as an output", test("tests/events/test_ntuple_output.py", "test_trees_become_ntuples")),
        works("future plans: data on a GPU", test("tests/python/test_gpu.py", "test_columns_of_a_merged_file")),
        not_shown("nodes and burst buffers of Cori", "the machine was retired in 2023"),
    ],
    "Xie, Tang et al. 2021": [
        works("table I, figures 3 to 5: bursts, blocks, alignment, written and read", bench("battle-layout", "baseline-1KiB", "baseline-256KiB", "multi-block-1KiB")),
        works("table I: processes on several nodes and on one node", bench("battle-layout", "ranks-baseline-1KiB", "ranks-multi-core-1KiB")),
        works("figures 4, 5a, 5d: distributions of the times to open and close", test("tests/report/test_pages.py", "test_figures_are_pictures")),
        works("table II, figure 6: number of datasets, metadata in one place, deferred flush, collective metadata", bench("battle-metadata", "write-16KiB", "read-16KiB", "ranks-write-16KiB", "ranks-read-16KiB")),
        works("figures 7a, 7d: VPIC-IO, BD-CATS-IO, AMReX", bench("battle-apps", "vpic", "bdcats", "amrex", "ranks-vpic", "ranks-bdcats", "ranks-amrex")),
        works("figures 7b, 7c: random patterns, written and read", bench("battle-apps", "random-1", "random-8")),
        not_shown("figures 7e, 7f: stripes", "they need Lustre or GPFS; on other file systems the settings stripe_count and stripe_size are left out"),
        works("the tuned library, for unmodified programs", test("tests/apply/test_apply.py", "test_a_program_linked_with_debian_s_library", "test_ranks")),
        works("the tuned library, as a patch of HDF5", test("tests/apply/test_apply.py", "test_the_patch_applies_to_hdf5_s_source")),
        works("settings found for a program", test("tests/apply/test_tune.py", "test_a_program_that_writes_row_by_row")),
        works("future work: chunk caches chosen at run time", test("tests/apply/test_adapt.py", "test_rows_of_later_datasets_get_the_cache_that_the_first_lacked", "test_readers_get_it_while_the_dataset_is_open", "test_any_accesses_read_and_write_the_same")),
        not_shown("future work: alignment chosen at run time", "tests on ext4 found no gain, and Lustre and GPFS were not available; `apply --adapt` aligns to their stripes"),
        not_shown("the cost of the superblock", "the paper took it from Darshan; raddle times HDF5 calls"),
        not_shown("Summit and Cori", "parallel file systems and hundreds of nodes were not available"),
    ],
    "Beyond the papers": [
        works("the same bytes for any number of ranks and threads", test("tests/mpi/test_merge.py", "test_any_number_of_ranks_makes_the_bytes_of_one_process"), test("tests/interop/test_merge.py", "test_the_same_bytes_for_any_number_of_threads")),
        works("a killed run is resumed", test("tests/mpi/test_failures.py", "test_a_killed_rank_ends_all_and_any_number_resumes")),
        works("no stripe is written by two ranks", test("tests/mpi/test_stripes.py", "test_places_are_those_of_one_process")),
        works("virtual merges of the inputs, with keys", test("tests/interop/test_views.py", "test_keys_are_made_in_a_virtual_merge")),
        works("a preview with each merge", test("tests/interop/test_preview.py", "test_every_resolution_is_the_merged_data")),
        works("verify, append, keys and inspect on ranks", test("tests/mpi/test_verify.py", "test_what_is_equal", "test_files_are_inspected_by_ranks"), test("tests/mpi/test_append.py", "test_keys_are_added_by_ranks")),
    ],
}
