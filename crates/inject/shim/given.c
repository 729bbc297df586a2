#include "given.h"
#include "records.h"
#include "settings.h"

/* The caches of all open datasets together may take this many times the limit of one. */
#define LIMITS_TOGETHER 4
#define GIVEN 256

static struct {
    const hdf5 *library;
    hid_t id;
    hsize_t bytes;
} given[GIVEN];

bool has_room(hsize_t bytes) {
    hsize_t all = 0;
    bool has_place = false;
    for (int at = 0; at < GIVEN; at++) {
        records_lock();
        const hdf5 *library = given[at].library;
        hid_t id = given[at].id;
        hsize_t taken = given[at].bytes;
        records_unlock();
        if (library && library->H5Iis_valid(id) > 0) {
            all += taken;
            continue;
        }
        has_place = true;
        if (!library) continue;
        records_lock();
        if (given[at].library == library && given[at].id == id) given[at].library = NULL;
        records_unlock();
    }
    return has_place && all + bytes <= LIMITS_TOGETHER * for_datasets.auto_chunk_cache;
}

void note_given(const hdf5 *library, hid_t id, hsize_t bytes) {
    for (int at = 0; at < GIVEN; at++)
        if (!given[at].library) {
            given[at].library = library, given[at].id = id, given[at].bytes = bytes;
            return;
        }
}
