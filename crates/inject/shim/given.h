/* Chunk caches given to datasets that are still open, and the limit of all of them together: a program may keep hundreds
 * of datasets open and fill the cache of each. */
#ifndef RADDLE_GIVEN_H
#define RADDLE_GIVEN_H

#include "hdf5.h"

/* Whether another `bytes` of cache fit the limit. Must be called without the lock of the records. */
bool has_room(hsize_t bytes);
/* Counts the cache of the dataset that was opened as `id`. Must be called with the lock held. */
void note_given(const hdf5 *library, hid_t id, hsize_t bytes);

#endif
