/* Property lists with settings in them: copies, never the program's own. */
#ifndef RADDLE_LISTS_H
#define RADDLE_LISTS_H

#include "hdf5.h"

/* What became of the settings for one file or dataset; names and reasons, ready to be said. */
typedef struct {
    char set[768], kept[384], refused[384];
} outcome;

/* Copies of the program's lists (H5P_DEFAULT included) with settings; the program's where there is nothing to set. A page
 * buffer is refused by HDF5 only when the file is opened, if its pages are not of that kind. */
hid_t file_access_list(const hdf5 *library, hid_t own, unsigned flags, bool with_page_buffer, outcome *what);
hid_t file_creation_list(const hdf5 *library, hid_t own, hid_t access, outcome *what);
hid_t dataset_creation_list(const hdf5 *library, hid_t own, hid_t type, hid_t space);

/* The access list for a dataset with this creation list and extent, its cache sized to one sweep through it; the program's
 * where the cache is large enough or the program's choice. `within` is any object of the file. */
hid_t dataset_access_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within);

/* The parts of that which adapting shares. */

/* What every HDF5 gives by default at least; asking the file takes longer than most of the rest. */
#define LEAST_DEFAULT_BYTES (1u << 20)

bool is_small_dataset(const hdf5 *library, hid_t type, hid_t space);
hsize_t sweep_chunks(const hsize_t *extent, const hsize_t *chunk, int rank, hsize_t chunk_bytes, hsize_t most_bytes);
/* Where a creation list has the filter `wanted`; -1 if it has not. */
int filter_at(const hdf5 *library, hid_t list, int wanted);
/* Slots of a cache for this number of chunks. */
size_t slots_for(hsize_t chunks);
/* A copy of `own` with this cache; `own` if the program has chosen a cache, or HDF5 refuses. */
hid_t list_with_cache(const hdf5 *library, hid_t own, size_t slots, size_t bytes);

/* Counts of this process, for its last line. */
typedef struct {
    unsigned long long caches, largest_cache_bytes, layouts;
} dataset_counts;
extern dataset_counts counted;

#endif
