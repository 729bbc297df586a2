/* Property lists with settings: copies of the program's lists, which are never changed. */
#ifndef RADDLE_LISTS_H
#define RADDLE_LISTS_H

#include "hdf5.h"

/* Outcome of the settings for one file or dataset: names and reasons, ready to be logged. */
typedef struct {
    char set[768], kept[384], refused[384];
} outcome;

/* Returns copies of the program's lists (H5P_DEFAULT included) with settings, or the program's lists if there is
 * nothing to set. HDF5 refuses a page buffer only when the file is opened, if its pages do not support one. */
hid_t file_access_list(const hdf5 *library, hid_t own, hsize_t user_block, unsigned flags, bool with_page_buffer, outcome *what);
hid_t file_creation_list(const hdf5 *library, hid_t own, hid_t access, unsigned flags, outcome *what);
hid_t dataset_creation_list(const hdf5 *library, hid_t own, hid_t type, hid_t space, hid_t within);

/* Returns the access list for a dataset with this creation list and extent, with a cache for one sweep, whose size is
 * set in `bytes`; the program's list if its cache is large enough or was chosen by the program, or if the caches of open
 * datasets have reached their limit. `within` is the dataset if it is open, otherwise any object of the file. */
hid_t dataset_access_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within, hsize_t *bytes);

/* The parts that adapting shares. */

/* Lower bound of the default cache of every HDF5; asking the file takes longer than most of the rest. */
#define LEAST_DEFAULT_BYTES (1u << 20)

/* Length of the user block before a new file with this creation list. */
hsize_t user_block_of(const hdf5 *library, hid_t creation);
/* Whether HDF5 creates a file with this alignment after a user block, if there is one. */
bool fits_user_block(hsize_t alignment, hsize_t user_block);
/* Whether a file access list is for a file that ranks share through MPI-IO. */
bool is_parallel(const hdf5 *library, hid_t list);
bool is_small_dataset(const hdf5 *library, hid_t type, hid_t space);
hsize_t sweep_chunks(const hsize_t *extent, const hsize_t *chunk, int rank, hsize_t chunk_bytes, hsize_t most_bytes);
/* Index of the filter `wanted` in a creation list; -1 if it is absent. */
int filter_at(const hdf5 *library, hid_t list, int wanted);
/* Number of slots of a cache for this number of chunks. */
size_t slots_for(hsize_t chunks);
/* Returns a copy of `own` with this cache; `own` if the program has chosen a cache, or HDF5 refuses. */
hid_t list_with_cache(const hdf5 *library, hid_t own, size_t slots, size_t bytes);

/* Counts of this process, for its last log line. */
typedef struct {
    unsigned long long caches, largest_cache_bytes, beyond_limit, layouts;
} dataset_counts;
extern dataset_counts counted;

#endif
