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

/* Counts of this process, for its last line. */
typedef struct {
    unsigned long long caches, largest_cache_bytes, layouts;
} dataset_counts;
extern dataset_counts counted;

#endif
