/* Dataset creation and access lists: the layout, if the user allows changes, and the chunk cache. */
#include "given.h"
#include "lists.h"
#include "settings.h"

#include <stdlib.h>

dataset_counts counted;

/* Slots per chunk of a sweep, as HDF5's documentation advises, and their maximum number: 8 bytes each, per open
 * dataset. */
#define SLOTS_PER_CHUNK 100
#define MOST_SLOTS 200003

int filter_at(const hdf5 *library, hid_t list, int wanted) {
    int count = library->H5Pget_nfilters(list);
    for (int at = 0; at < count; at++) {
        unsigned flags, values[8], configuration;
        size_t value_count = 8;
        char name[8];
        if (library->H5Pget_filter2(list, (unsigned)at, &flags, &value_count, values, sizeof name, name, &configuration) == wanted)
            return at;
    }
    return -1;
}

/* Parses elements along each dimension, such as 256x16; returns 0 if the text is not a shape. */
static int shape_of(const char *text, hsize_t *shape) {
    for (int rank = 0; rank < MOST_DIMENSIONS;) {
        char *end;
        shape[rank] = strtoull(text, &end, 10);
        if (end == text || !shape[rank]) return 0;
        rank++;
        if (*end != 'x') return *end && *end != ';' ? 0 : rank;
        text = end + 1;
    }
    return 0;
}

/* Sets chunks for a dataset that the program left contiguous. */
static bool set_chunk(const hdf5 *library, hid_t list, hid_t space) {
    const char *text = setting("chunk");
    hsize_t shape[MOST_DIMENSIONS], now[MOST_DIMENSIONS], most[MOST_DIMENSIONS];
    if (!text || library->H5Pget_layout(list) != H5D_CONTIGUOUS || library->H5Pget_external_count(list) > 0) return false;
    int rank = shape_of(text, shape);
    if (!rank || library->H5Sget_simple_extent_dims(space, NULL, NULL) != rank) return false;
    library->H5Sget_simple_extent_dims(space, now, most);
    /* HDF5 refuses chunks that are longer than a fixed extent. */
    for (int at = 0; at < rank; at++)
        if (shape[at] > now[at]) return false;
    return library->H5Pset_chunk(list, rank, shape) >= 0;
}

/* Returns the access list of the file that contains `within`; -1 if there is none. Collective for files that ranks
 * share through MPI-IO, because the list contains a copy of their communicator. */
static hid_t access_list_of_file(const hdf5 *library, hid_t within) {
    hid_t file = library->H5Iget_file_id(within), list = file < 0 ? -1 : library->H5Fget_access_plist(file);
    if (file >= 0) library->H5Fclose(file);
    return list;
}

/* Whether ranks share the file that contains `within`. Collective. */
static bool is_in_shared_file(const hdf5 *library, hid_t within) {
    if (!library->H5FD_mpio_init) return false;
    hid_t list = access_list_of_file(library, within);
    bool is_shared = list >= 0 && is_parallel(library, list);
    if (list >= 0) library->H5Pclose(list);
    return is_shared;
}

static bool set_compact(const hdf5 *library, hid_t list, hid_t type, hid_t space) {
    unsigned long long most = setting_number("compact", 0), bytes = library->H5Tget_size(type);
    hsize_t now[MOST_DIMENSIONS], limit[MOST_DIMENSIONS];
    if (!most || library->H5Pget_layout(list) != H5D_CONTIGUOUS || library->H5Pget_external_count(list) > 0) return false;
    int rank = library->H5Sget_simple_extent_dims(space, NULL, NULL);
    if (rank < 0 || rank > MOST_DIMENSIONS) return false;
    if (rank) library->H5Sget_simple_extent_dims(space, now, limit);
    for (int at = 0; at < rank; at++) {
        if (now[at] != limit[at] || (now[at] && bytes > most / now[at])) return false;
        bytes *= now[at];
    }
    return bytes && bytes <= most && library->H5Pset_layout(list, H5D_COMPACT) >= 0;
}

static bool set_filters(const hdf5 *library, hid_t list, bool is_shared) {
    bool changed = false;
    int gzip = filter_at(library, list, H5Z_FILTER_DEFLATE), count = library->H5Pget_nfilters(list);
    /* HDF5 refuses to write filtered chunks unless all ranks write together. */
    if (is_shared && count <= 0) return false;
    if (setting("gzip")) {
        unsigned level = (unsigned)setting_number("gzip", 0);
        if (gzip >= 0 && level) changed |= library->H5Pmodify_filter(list, H5Z_FILTER_DEFLATE, 1, 1, &level) >= 0;
        else if (gzip >= 0 && is_forced("gzip")) changed |= library->H5Premove_filter(list, H5Z_FILTER_DEFLATE) >= 0;
        else if (gzip < 0 && level && !count) {
            /* Must come before the compressor to have an effect. */
            if (setting_number("shuffle", 0)) library->H5Pset_shuffle(list);
            changed |= library->H5Pset_deflate(list, level) >= 0;
        }
    }
    if (setting_number("fletcher32", 0) && filter_at(library, list, H5Z_FILTER_FLETCHER32) < 0)
        changed |= library->H5Pset_fletcher32(list) >= 0;
    return changed;
}

/* Sets the fill time of a dataset for which the program has not chosen a fill value. */
static bool set_no_fill(const hdf5 *library, hid_t list) {
    int fill_time = H5D_FILL_TIME_IFSET, value = H5D_FILL_VALUE_DEFAULT;
    if (!setting_number("no_fill", 0) || library->H5Pget_fill_time(list, &fill_time) < 0 || fill_time != H5D_FILL_TIME_IFSET) return false;
    library->H5Pfill_value_defined(list, &value);
    if (value == H5D_FILL_VALUE_USER_DEFINED && !is_forced("no_fill")) return false;
    return library->H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0;
}

hid_t dataset_creation_list(const hdf5 *library, hid_t own, hid_t type, hid_t space, hid_t within) {
    if (!for_datasets.layout) return own;
    bool is_shared = is_in_shared_file(library, within);
    hid_t list = own == H5P_DEFAULT ? library->H5Pcreate(class_id(library->dataset_creation)) : library->H5Pcopy(own);
    if (list < 0) return own;
    /* A compact dataset is written as metadata, of which only one rank's copy reaches the file. */
    bool changed = !is_shared && set_compact(library, list, type, space);
    changed |= set_chunk(library, list, space);
    if (library->H5Pget_layout(list) == H5D_CHUNKED) changed |= set_filters(library, list, is_shared);
    changed |= set_no_fill(library, list);
    if (changed) {
        __atomic_fetch_add(&counted.layouts, 1, __ATOMIC_RELAXED);
        return list;
    }
    library->H5Pclose(list);
    return own;
}

/* Returns the largest sweep within `most_bytes`, in chunks. A sweep goes along one axis, with all chunks along the
 * other axes open at once. A program that writes row by row touches every chunk of a row repeatedly until it is full;
 * with a smaller cache, each chunk is written and read once per row. The axis is unknown before the first access, but a
 * cache size is an upper bound, not allocated memory, so this takes the axis with the most chunks that fit. */
hsize_t sweep_chunks(const hsize_t *extent, const hsize_t *chunk, int rank, hsize_t chunk_bytes, hsize_t most_bytes) {
    hsize_t most = most_bytes / chunk_bytes, best = 1;
    for (int along = 0; along < rank; along++) {
        hsize_t chunks = 1;
        for (int at = 0; at < rank && chunks <= most; at++) {
            hsize_t count = extent[at] ? (extent[at] - 1) / chunk[at] + 1 : 1;
            if (at == along) continue;
            chunks = count > most / chunks ? most + 1 : chunks * count;
        }
        if (chunks <= most && chunks > best) best = chunks;
    }
    return best;
}

static size_t prime_from(size_t number) {
    for (number |= 1;; number += 2) {
        size_t divisor = 3;
        while (divisor * divisor <= number && number % divisor) divisor += 2;
        if (divisor * divisor > number) return number;
    }
}

/* Returns the chunk cache size of the open dataset `within`; if it is not a dataset, the default of its file. Ranks may
 * open datasets of a shared file independently, so the file is asked only where a dataset is created. */
static size_t usual_cache(const hdf5 *library, hid_t within) {
    int ignored;
    size_t slots, bytes = 0;
    double preemption;
    bool is_dataset = library->H5Iget_type(within) == H5I_DATASET;
    hid_t list = is_dataset ? library->H5Dget_access_plist(within) : access_list_of_file(library, within);
    if (list < 0) return 0;
    if (is_dataset) library->H5Pget_chunk_cache(list, &slots, &bytes, &preemption);
    else library->H5Pget_cache(list, &ignored, &slots, &bytes, &preemption);
    library->H5Pclose(list);
    return bytes;
}

/* Whether a dataset fits HDF5's default cache, decided without its creation list, which is slower to query: programs
 * that create thousands of datasets create small ones. With a fixed extent, no chunk is longer than the dataset. */
bool is_small_dataset(const hdf5 *library, hid_t type, hid_t space) {
    hsize_t extent[MOST_DIMENSIONS], most[MOST_DIMENSIONS], bytes = library->H5Tget_size(type);
    int rank = library->H5Sget_simple_extent_dims(space, extent, most);
    if (rank < 0 || !bytes || bytes > LEAST_DEFAULT_BYTES) return false;
    for (int at = 0; at < rank; at++) {
        if (extent[at] != most[at] || extent[at] > LEAST_DEFAULT_BYTES / bytes) return false;
        bytes *= extent[at] ? extent[at] : 1;
    }
    return true;
}

size_t slots_for(hsize_t chunks) {
    return chunks > MOST_SLOTS / SLOTS_PER_CHUNK ? MOST_SLOTS : prime_from((size_t)chunks * SLOTS_PER_CHUNK);
}

hid_t list_with_cache(const hdf5 *library, hid_t own, size_t wanted_slots, size_t wanted) {
    hid_t list = own == H5P_DEFAULT ? library->H5Pcreate(class_id(library->dataset_access)) : library->H5Pcopy(own);
    if (list < 0) return own;
    /* A new list returns (size_t)-1, which means the file's default. */
    hid_t fresh = library->H5Pcreate(class_id(library->dataset_access));
    size_t slots, bytes, usual_slots, usual_bytes;
    double preemption, usual_preemption;
    library->H5Pget_chunk_cache(list, &slots, &bytes, &preemption);
    library->H5Pget_chunk_cache(fresh, &usual_slots, &usual_bytes, &usual_preemption);
    library->H5Pclose(fresh);
    bool is_own = bytes != usual_bytes || slots != usual_slots;
    if ((is_own && !is_forced("auto_chunk_cache")) ||
        library->H5Pset_chunk_cache(list, wanted_slots, wanted, preemption) < 0) {
        library->H5Pclose(list);
        return own;
    }
    return list;
}

hid_t dataset_access_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within, hsize_t *bytes) {
    unsigned long long most_bytes = for_datasets.auto_chunk_cache;
    hsize_t chunk[MOST_DIMENSIONS], extent[MOST_DIMENSIONS], most[MOST_DIMENSIONS];
    if (!most_bytes || creation == H5P_DEFAULT || is_small_dataset(library, type, space)) return own;
    if (library->H5Pget_layout(creation) != H5D_CHUNKED) return own;
    int rank = library->H5Pget_chunk(creation, MOST_DIMENSIONS, chunk);
    if (rank < 1 || rank > MOST_DIMENSIONS || library->H5Sget_simple_extent_dims(space, NULL, NULL) != rank) return own;
    library->H5Sget_simple_extent_dims(space, extent, most);
    hsize_t chunk_bytes = library->H5Tget_size(type);
    for (int at = 0; at < rank; at++) {
        if (!chunk_bytes || chunk[at] > most_bytes / chunk_bytes) return own;
        chunk_bytes *= chunk[at];
    }
    hsize_t chunks = sweep_chunks(extent, chunk, rank, chunk_bytes, most_bytes);
    size_t wanted = (size_t)(chunks * chunk_bytes);
    if (wanted <= LEAST_DEFAULT_BYTES || wanted <= usual_cache(library, within)) return own;
    if (!has_room(wanted)) {
        __atomic_fetch_add(&counted.beyond_limit, 1, __ATOMIC_RELAXED);
        return own;
    }
    hid_t list = list_with_cache(library, own, slots_for(chunks), wanted);
    if (list == own) return own;
    *bytes = wanted;
    __atomic_fetch_add(&counted.caches, 1, __ATOMIC_RELAXED);
    if (counted.largest_cache_bytes < wanted) counted.largest_cache_bytes = wanted;
    return list;
}
