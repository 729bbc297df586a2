/* The part of HDF5's interface that the shim uses, as one table per libhdf5 in the process.
 *
 * It is declared here instead of including a header: the shim is a single object for every HDF5 from 1.10, is not linked
 * with HDF5, and can be built without it. The types are those of the binary interface, which these versions share. */
#ifndef RADDLE_HDF5_H
#define RADDLE_HDF5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t hid_t; /* 32 bits before 1.10; see is_known */
typedef int herr_t;
typedef unsigned long long hsize_t;

#define H5P_DEFAULT ((hid_t)0)
#define H5E_DEFAULT ((hid_t)0)
#define H5S_ALL ((hid_t)0)
#define H5S_UNLIMITED ((hsize_t)-1)
#define H5F_ACC_RDWR 0x0001u
#define H5F_ACC_EXCL 0x0004u
#define H5F_ACC_SWMR 0x0060u /* H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ */
#define H5F_OBJ_DATASET 0x0002u
#define H5I_DATASET 5
#define H5R_OBJECT 0
#define H5D_COMPACT 0
#define H5D_CONTIGUOUS 1
#define H5D_CHUNKED 2
#define H5F_FSPACE_STRATEGY_FSM_AGGR 0
#define H5F_FSPACE_STRATEGY_PAGE 1
#define H5D_FILL_TIME_NEVER 1
#define H5D_FILL_TIME_IFSET 2
#define H5D_FILL_VALUE_DEFAULT 1
#define H5D_FILL_VALUE_USER_DEFINED 2
#define H5Z_FILTER_DEFLATE 1
#define H5Z_FILTER_SHUFFLE 2
#define H5Z_FILTER_FLETCHER32 3
#define H5Z_FILTER_SZIP 4
#define H5Z_FILTER_RESERVED 256 /* plugins have numbers from here */
#define MOST_DIMENSIONS 32

/* H5AC_cache_config_t, version 1: unchanged from 1.8 to 2.x. */
typedef struct {
    int version;
    bool rpt_fcn_enabled, open_trace_file, close_trace_file;
    char trace_file_name[1025];
    bool evictions_enabled, set_initial_size;
    size_t initial_size;
    double min_clean_fraction;
    size_t max_size, min_size;
    long epoch_length;
    int incr_mode;
    double lower_hr_threshold, increment;
    bool apply_max_increment;
    size_t max_increment;
    int flash_incr_mode;
    double flash_multiple, flash_threshold;
    int decr_mode;
    double upper_hr_threshold, decrement;
    bool apply_max_decrement;
    size_t max_decrement;
    int epochs_before_eviction;
    bool apply_empty_reserve;
    double empty_reserve;
    size_t dirty_bytes_threshold;
    int metadata_write_strategy;
} metadata_cache_config;

/* Result, name, parameters. Those below the gap may be absent: they exist in parallel HDF5 only, or in versions later
 * than 1.10.0. */
#define HDF5_FUNCTIONS(F)                                                                                     \
    F(hid_t, H5Fcreate, (const char *, unsigned, hid_t, hid_t))                                               \
    F(hid_t, H5Fopen, (const char *, unsigned, hid_t))                                                        \
    F(hid_t, H5Dcreate2, (hid_t, const char *, hid_t, hid_t, hid_t, hid_t, hid_t))                            \
    F(hid_t, H5Dopen2, (hid_t, const char *, hid_t))                                                          \
    F(hid_t, H5Oopen, (hid_t, const char *, hid_t))                                                           \
    F(herr_t, H5open, (void))                                                                                 \
    F(herr_t, H5get_libversion, (unsigned *, unsigned *, unsigned *))                                         \
    F(hid_t, H5Pcreate, (hid_t))                                                                              \
    F(hid_t, H5Pcopy, (hid_t))                                                                                \
    F(herr_t, H5Pclose, (hid_t))                                                                              \
    F(hid_t, H5Pget_driver, (hid_t))                                                                          \
    F(herr_t, H5Pget_userblock, (hid_t, hsize_t *))                                                           \
    F(herr_t, H5Pset_alignment, (hid_t, hsize_t, hsize_t))                                                    \
    F(herr_t, H5Pget_alignment, (hid_t, hsize_t *, hsize_t *))                                                \
    F(herr_t, H5Pset_meta_block_size, (hid_t, hsize_t))                                                       \
    F(herr_t, H5Pget_meta_block_size, (hid_t, hsize_t *))                                                     \
    F(herr_t, H5Pset_small_data_block_size, (hid_t, hsize_t))                                                 \
    F(herr_t, H5Pget_small_data_block_size, (hid_t, hsize_t *))                                               \
    F(herr_t, H5Pset_sieve_buf_size, (hid_t, size_t))                                                         \
    F(herr_t, H5Pget_sieve_buf_size, (hid_t, size_t *))                                                       \
    F(herr_t, H5Pset_libver_bounds, (hid_t, int, int))                                                        \
    F(herr_t, H5Pget_libver_bounds, (hid_t, int *, int *))                                                    \
    F(herr_t, H5Pset_cache, (hid_t, int, size_t, size_t, double))                                             \
    F(herr_t, H5Pget_cache, (hid_t, int *, size_t *, size_t *, double *))                                     \
    F(herr_t, H5Pset_mdc_config, (hid_t, metadata_cache_config *))                                            \
    F(herr_t, H5Pget_mdc_config, (hid_t, metadata_cache_config *))                                            \
    F(herr_t, H5Pset_chunk_cache, (hid_t, size_t, size_t, double))                                            \
    F(herr_t, H5Pget_chunk_cache, (hid_t, size_t *, size_t *, double *))                                      \
    F(int, H5Pget_layout, (hid_t))                                                                            \
    F(herr_t, H5Pset_layout, (hid_t, int))                                                                    \
    F(int, H5Pget_chunk, (hid_t, int, hsize_t *))                                                             \
    F(herr_t, H5Pset_chunk, (hid_t, int, const hsize_t *))                                                    \
    F(int, H5Pget_external_count, (hid_t))                                                                    \
    F(int, H5Pget_nfilters, (hid_t))                                                                          \
    F(int, H5Pget_filter2, (hid_t, unsigned, unsigned *, size_t *, unsigned *, size_t, char *, unsigned *))   \
    F(herr_t, H5Pmodify_filter, (hid_t, int, unsigned, size_t, const unsigned *))                             \
    F(herr_t, H5Premove_filter, (hid_t, int))                                                                 \
    F(herr_t, H5Pset_deflate, (hid_t, unsigned))                                                              \
    F(herr_t, H5Pset_shuffle, (hid_t))                                                                        \
    F(herr_t, H5Pset_fletcher32, (hid_t))                                                                     \
    F(herr_t, H5Pset_fill_time, (hid_t, int))                                                                 \
    F(herr_t, H5Pget_fill_time, (hid_t, int *))                                                               \
    F(herr_t, H5Pfill_value_defined, (hid_t, int *))                                                          \
    F(size_t, H5Tget_size, (hid_t))                                                                           \
    F(int, H5Sget_simple_extent_dims, (hid_t, hsize_t *, hsize_t *))                                          \
    F(herr_t, H5Sclose, (hid_t))                                                                              \
    F(herr_t, H5Tclose, (hid_t))                                                                              \
    F(int, H5Iget_type, (hid_t))                                                                              \
    F(ptrdiff_t, H5Iget_name, (hid_t, char *, size_t))                                                        \
    F(hid_t, H5Iget_file_id, (hid_t))                                                                         \
    F(herr_t, H5Fclose, (hid_t))                                                                              \
    F(hid_t, H5Fget_access_plist, (hid_t))                                                                    \
    F(ptrdiff_t, H5Fget_obj_count, (hid_t, unsigned))                                                         \
    F(ptrdiff_t, H5Fget_obj_ids, (hid_t, unsigned, size_t, hid_t *))                                          \
    F(ptrdiff_t, H5Fget_name, (hid_t, char *, size_t))                                                        \
    F(herr_t, H5Dclose, (hid_t))                                                                              \
    F(herr_t, H5Dread, (hid_t, hid_t, hid_t, hid_t, hid_t, void *))                                           \
    F(herr_t, H5Dwrite, (hid_t, hid_t, hid_t, hid_t, hid_t, const void *))                                    \
    F(hid_t, H5Dget_access_plist, (hid_t))                                                                    \
    F(int, H5Iis_valid, (hid_t))                                                                              \
    F(int, H5Iget_ref, (hid_t))                                                                               \
    F(long long, H5Sget_select_npoints, (hid_t))                                                              \
    F(herr_t, H5Sget_select_bounds, (hid_t, hsize_t *, hsize_t *))                                            \
    F(hid_t, H5Dget_create_plist, (hid_t))                                                                    \
    F(hid_t, H5Dget_type, (hid_t))                                                                            \
    F(hid_t, H5Dget_space, (hid_t))                                                                           \
    F(herr_t, H5Eget_auto2, (hid_t, void **, void **))                                                        \
    F(herr_t, H5Eset_auto2, (hid_t, void *, void *))

#define HDF5_MAYBE(F)                                                                                         \
    F(hid_t, H5Dcreate1, (hid_t, const char *, hid_t, hid_t, hid_t))                                          \
    F(hid_t, H5Dcreate_anon, (hid_t, hid_t, hid_t, hid_t, hid_t))                                             \
    F(hid_t, H5Dopen1, (hid_t, const char *))                                                                 \
    F(hid_t, H5Fcreate_async, (const char *, const char *, unsigned, const char *, unsigned, hid_t, hid_t, hid_t)) \
    F(hid_t, H5Fopen_async, (const char *, const char *, unsigned, const char *, unsigned, hid_t, hid_t))     \
    F(herr_t, H5Drefresh, (hid_t))                                                                            \
    F(herr_t, H5Dwrite_chunk, (hid_t, hid_t, uint32_t, const hsize_t *, size_t, const void *))                \
    F(herr_t, H5Rcreate, (void *, hid_t, const char *, int, hid_t))                                           \
    F(hid_t, H5FD_mpio_init, (void))                                                                          \
    F(herr_t, H5Pset_all_coll_metadata_ops, (hid_t, bool))                                                    \
    F(herr_t, H5Pset_coll_metadata_write, (hid_t, bool))                                                      \
    F(herr_t, H5Pset_file_space_strategy, (hid_t, int, bool, hsize_t))                                        \
    F(herr_t, H5Pget_file_space_strategy, (hid_t, int *, bool *, hsize_t *))                                  \
    F(herr_t, H5Pset_file_space_page_size, (hid_t, hsize_t))                                                  \
    F(herr_t, H5Pset_page_buffer_size, (hid_t, size_t, unsigned, unsigned))                                   \
    F(herr_t, H5Pget_page_buffer_size, (hid_t, size_t *, unsigned *, unsigned *))

/* Where a libhdf5 keeps the identifier of a property list class once it is initialised. A program linked with it may
 * contain a copy of the variable, and the library's own then stays unset: the one that is set counts. */
typedef struct {
    const hid_t *own, *copied;
} list_class;

static inline hid_t class_id(list_class class) {
    return *class.own > 0 || !class.copied ? *class.own : *class.copied;
}

/* A libhdf5 in the process. */
typedef struct {
    void *base;     /* address it is loaded at */
    bool is_whole;  /* whether all of HDF5_FUNCTIONS were found */
    bool is_known;  /* whether its version has the binary interface above */
    char version[24];
    list_class file_access, file_creation, dataset_access, dataset_creation;
#define FIELD(result, name, parameters) result(*name) parameters;
    HDF5_FUNCTIONS(FIELD)
    HDF5_MAYBE(FIELD)
#undef FIELD
} hdf5;

/* Returns the libhdf5 that the code at `return_address` would call without the shim, by the rules of the dynamic
 * linker; NULL if there is none. */
const hdf5 *hdf5_of_caller(const void *return_address);

#endif
