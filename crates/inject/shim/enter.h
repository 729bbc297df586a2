/* What the functions that stand before HDF5's share. */
#ifndef RADDLE_ENTER_H
#define RADDLE_ENTER_H

#include "hdf5.h"

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define NO_ID ((hid_t)-1)

/* Keeps HDF5 from printing the errors of a try. */
typedef struct {
    void *function, *data;
    bool is_off;
} silence;

static inline silence be_silent(const hdf5 *library) {
    silence was = {0};
    was.is_off = library->H5Eget_auto2(H5E_DEFAULT, &was.function, &was.data) >= 0 &&
                 library->H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0;
    return was;
}

static inline void speak(const hdf5 *library, silence was) {
    if (was.is_off) library->H5Eset_auto2(H5E_DEFAULT, was.function, was.data);
}

/* Whether this thread is in a call already: libhdf5 may call itself through these names. */
extern __thread bool inside;

/* The libhdf5 that the call belongs to; NULL, which is logged, if it is unknown. */
const hdf5 *library_of(const void *caller);

#endif
