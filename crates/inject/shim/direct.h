/* Chunks that the program writes as they are stored (H5Dwrite_chunk). The program has applied its own filters to them,
 * not those that a setting has added to the dataset, so these must be marked as skipped in each chunk. */
#ifndef RADDLE_DIRECT_H
#define RADDLE_DIRECT_H

#include "hdf5.h"

/* Returns the filters of the creation list `with` that `own`, the program's, does not have: a bit for each. */
uint32_t added_filters(const hdf5 *library, hid_t own, hid_t with);
/* Remembers the filters that were added to a dataset that the program has created; 0 for none. */
void note_added_filters(const hdf5 *library, hid_t dataset, uint32_t filters);
/* Returns the filters that were added to a dataset; 0 for none. */
uint32_t noted_filters(const hdf5 *library, hid_t dataset);

#endif
