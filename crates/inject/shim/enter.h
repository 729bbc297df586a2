/* Declarations shared by the functions that intercept HDF5's. */
#ifndef RADDLE_ENTER_H
#define RADDLE_ENTER_H

#include "hdf5.h"

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define NO_ID ((hid_t)-1)

/* Prevents HDF5 from printing the errors of an attempt. */
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

/* Whether this thread is already in an intercepted call: libhdf5 may call itself by these names. */
extern __thread bool inside;

/* Returns the libhdf5 that the call belongs to; NULL, with a log entry, if it is unknown. */
const hdf5 *library_of(const void *caller);

#endif
