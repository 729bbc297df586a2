/* Objects of a file as numbers, to compare and to remember them. */
#ifndef RADDLE_OBJECTS_H
#define RADDLE_OBJECTS_H

#include "hdf5.h"

#define HASH_SEED 14695981039346656037u

/* FNV-1a. */
static inline uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    for (size_t of = 0; of < length; of++) seed = (seed ^ at[of]) * 1099511628211u;
    return seed;
}

/* Returns the address of an object in its file; 0 if it is unknown. */
static inline uint64_t object_address(const hdf5 *library, hid_t object) {
    uint64_t address = 0;
    bool is_found = library->H5Rcreate && library->H5Rcreate(&address, object, ".", H5R_OBJECT, (hid_t)-1) >= 0;
    return is_found ? address : 0;
}

#endif
