#include "direct.h"
#include "objects.h"
#include "records.h"

#include <stdlib.h>

/* Datasets with added filters, in a hash table: a program may create many, and reopen them later. The lock of the
 * records guards it. */
typedef struct {
    uint64_t key; /* 0 for none */
    uint32_t filters;
} widened;

static widened *table;
static size_t places, taken; /* a power of two, or 0 */

/* Returns a number for the dataset, by the name of its file and its address there; 0 if it is unknown. */
static uint64_t key_of(const hdf5 *library, hid_t dataset) {
    char name[1024];
    uint64_t address = object_address(library, dataset);
    hid_t file = library->H5Iget_file_id(dataset);
    ptrdiff_t length = file < 0 ? 0 : library->H5Fget_name(file, name, sizeof name);
    if (file >= 0) library->H5Fclose(file);
    if (!address || length <= 0) return 0;
    size_t known = (size_t)length < sizeof name ? (size_t)length : sizeof name - 1;
    return hash_bytes(hash_bytes(HASH_SEED, &address, sizeof address), name, known) | 1;
}

static widened *place_for(uint64_t key) {
    size_t at = key & (places - 1);
    while (table[at].key && table[at].key != key) at = (at + 1) & (places - 1);
    return &table[at];
}

/* Makes room for one more dataset; returns whether there was memory for it. */
static bool grow(void) {
    if (taken < places / 2) return true;
    size_t count = places;
    widened *all = table, *larger = calloc(count ? 2 * count : 256, sizeof *larger);
    if (!larger) return false;
    table = larger;
    places = count ? 2 * count : 256;
    for (size_t at = 0; at < count; at++)
        if (all[at].key) *place_for(all[at].key) = all[at];
    free(all);
    return true;
}

uint32_t added_filters(const hdf5 *library, hid_t own, hid_t with) {
    int before = own == H5P_DEFAULT ? 0 : library->H5Pget_nfilters(own), after = library->H5Pget_nfilters(with);
    uint32_t filters = 0;
    /* They are added at the end. */
    for (int at = before; at >= 0 && at < after && at < 32; at++) filters |= (uint32_t)1 << at;
    return filters;
}

void note_added_filters(const hdf5 *library, hid_t dataset, uint32_t filters) {
    uint64_t key = filters || taken ? key_of(library, dataset) : 0;
    if (!key) return;
    records_lock();
    widened *place = places ? place_for(key) : NULL;
    if (place && place->key) place->filters = filters;
    else if (filters && grow()) {
        *place_for(key) = (widened){key, filters};
        taken++;
    }
    records_unlock();
}

uint32_t noted_filters(const hdf5 *library, hid_t dataset) {
    uint64_t key = taken ? key_of(library, dataset) : 0;
    if (!key) return 0;
    records_lock();
    uint32_t filters = place_for(key)->filters;
    records_unlock();
    return filters;
}
