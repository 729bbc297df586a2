#include "adapt.h"
#include "enter.h"
#include "given.h"
#include "objects.h"
#include "settings.h"

#include <stdio.h>
#include <string.h>

/* A compressed dataset that was not observed gets the cache of a sweep if that is at most this fraction of it. Filling
 * a cache the first time costs page faults, 1.4 to 2.2 ns per byte on the machine where it was measured; compressing
 * all of it takes 3 ns per byte or more. */
#define PARTS_OF_SWEEP 4
/* Maximum number of open datasets of a file among which another identifier of a dataset is searched. */
#define MOST_OPEN 256
/* Maximum length of runs, in bytes, for which reading a whole large chunk into the cache is faster than a call per
 * run. */
#define LONG_RUN_BYTES 1024

/* Whether packing and unpacking a chunk is so expensive that filling a cache costs little in comparison. */
static bool is_compressed(const hdf5 *library, hid_t creation) {
    int count = library->H5Pget_nfilters(creation);
    for (int at = 0; at < count; at++) {
        unsigned flags, values[8], configuration;
        size_t value_count = 8;
        char name[8];
        int filter = library->H5Pget_filter2(creation, (unsigned)at, &flags, &value_count, values, sizeof name, name, &configuration);
        if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SZIP || filter >= H5Z_FILTER_RESERVED) return true;
    }
    return false;
}

/* Finds the newest record of the file that contains `within`; false if there is none, or the file is left unchanged. */
static bool record_of(const hdf5 *library, hid_t within, file_record *found, int *place) {
    char name[sizeof found->name];
    hid_t file = library->H5Iget_file_id(within);
    if (file < 0) return false;
    ptrdiff_t length = library->H5Fget_name(file, name, sizeof name);
    library->H5Fclose(file);
    if (length <= 0 || (size_t)length >= sizeof name) return false;
    records_lock();
    const file_record *record = file_named(library, name);
    bool is_ours = record && !record->left;
    if (is_ours) {
        *place = file_place(record);
        /* Its decisions are not copied, because they are long. */
        found->order = record->order;
        found->is_read_only = record->is_read_only;
        found->refreshed_bytes = record->refreshed_bytes;
        found->has_own_cache = record->has_own_cache;
        found->usual_bytes = record->usual_bytes;
        found->usual_slots = record->usual_slots;
    }
    records_unlock();
    return is_ours;
}

static void full_name(const hdf5 *library, hid_t within, const char *name, char *full) {
    ptrdiff_t length = 0;
    if (*name != '/') {
        length = library->H5Iget_name(within, full, NAME_BYTES);
        if (length < 0 || length >= NAME_BYTES) length = 0;
    }
    const char *gap = length > 0 && full[length - 1] == '/' ? "" : *name == '/' ? "" : "/";
    snprintf(full + length, (size_t)(NAME_BYTES - length), "%s%s", gap, name);
}

/* Whether the open dataset has the intended cache; it does not if it was already open. */
static bool has_cache(const hdf5 *library, hid_t id, hsize_t wanted) {
    size_t slots, bytes = 0;
    double preemption;
    hid_t list = library->H5Dget_access_plist(id);
    if (list < 0) return false;
    library->H5Pget_chunk_cache(list, &slots, &bytes, &preemption);
    library->H5Pclose(list);
    return bytes >= wanted;
}

/* Chooses by evidence, or by the shape if there is none. `chunks` is set to the number of chunks that the cache should
 * hold. */
static cache_choice choose(const dataset_choice *choice, const evidence *seen, bool compressed, const hsize_t *extent,
                           const hsize_t *most, hsize_t *chunks) {
    switch (evidence_verdict(seen)) {
    case IS_WHOLE: return LEFT_WHOLE;
    case IS_NEAR: return LEFT_NEAR;
    case IS_ONCE: return LEFT_ONCE;
    case IS_FAR: return LEFT_FAR;
    case IS_RETURNING:
        *chunks = evidence_chunks(seen, choice->facts.grid, choice->facts.rank);
        if (*chunks > choice->facts.most_chunks) return LEFT_FAR;
        if (*chunks <= choice->facts.usual_chunks) return LEFT_NEAR;
        return choice->facts.bypasses && seen->run_bytes > LONG_RUN_BYTES ? LEFT_RUNS : GIVEN_BY_EVIDENCE;
    case IS_UNKNOWN: break;
    }
    if (!compressed) return LEFT_UNKNOWN;
    hsize_t all = 1, limit = choice->facts.most_chunks;
    bool grows = false;
    for (int at = 0; at < choice->facts.rank; at++) {
        grows |= extent[at] != most[at];
        all = choice->facts.grid[at] && all < ((hsize_t)1 << 40) / choice->facts.grid[at] ? all * choice->facts.grid[at] : all;
    }
    if (!grows && limit > all / PARTS_OF_SWEEP) limit = all / PARTS_OF_SWEEP;
    if (!limit) return LEFT_UNKNOWN;
    *chunks = sweep_chunks(extent, choice->facts.chunk, choice->facts.rank, choice->made.chunk_bytes, limit * choice->made.chunk_bytes);
    return *chunks > choice->facts.usual_chunks ? GIVEN_BY_SHAPE : LEFT_UNKNOWN;
}

static void describe(decision *made, const hsize_t *chunk, int rank, hsize_t element_bytes) {
    size_t length = 0;
    for (int at = 0; at < rank && length < sizeof made->chunks - 24; at++)
        length += (size_t)snprintf(made->chunks + length, sizeof made->chunks - length, "%s%llu", at ? "x" : "", chunk[at]);
    snprintf(made->chunks + length, sizeof made->chunks - length, " of %llu-byte elements", element_bytes);
}

hid_t adapt_access_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within, const char *name,
                        dataset_choice *choice) {
    unsigned long long most_bytes = for_datasets.auto_chunk_cache;
    hsize_t chunk[MOST_DIMENSIONS], extent[MOST_DIMENSIONS], most[MOST_DIMENSIONS];
    choice->library = NULL;
    choice->is_watched = false;
    if (!most_bytes || creation == H5P_DEFAULT || is_small_dataset(library, type, space)) return own;
    if (library->H5Pget_layout(creation) != H5D_CHUNKED) return own;
    int rank = library->H5Pget_chunk(creation, MOST_DIMENSIONS, chunk);
    if (rank < 1 || rank > MOST_DIMENSIONS || library->H5Sget_simple_extent_dims(space, NULL, NULL) != rank) return own;
    library->H5Sget_simple_extent_dims(space, extent, most);
    hsize_t chunk_bytes = choice->facts.element_bytes = library->H5Tget_size(type);
    for (int at = 0; at < rank; at++) {
        if (!chunk_bytes || chunk[at] > most_bytes / chunk_bytes) return own;
        chunk_bytes *= chunk[at];
    }
    /* A sweep along the only dimension holds one chunk. */
    bool is_plain = (rank == 1 && chunk_bytes <= LEAST_DEFAULT_BYTES) || rank > OBSERVED_DIMENSIONS;
    if (is_plain && !any_refreshed()) return own;
    file_record record;
    if (!record_of(library, within, &record, &choice->file)) return own;
    if (is_plain) return record.refreshed_bytes ? list_with_cache(library, own, record.usual_slots, record.usual_bytes) : own;
    for (int at = 0; at < rank; at++) {
        choice->facts.chunk[at] = chunk[at];
        choice->facts.grid[at] = extent[at] ? (extent[at] - 1) / chunk[at] + 1 : 0;
    }
    choice->library = library;
    choice->file_order = record.order;
    choice->facts.rank = rank;
    bool compressed = is_compressed(library, creation);
    hsize_t header[] = {(hsize_t)rank, choice->facts.element_bytes, compressed, record.is_read_only};
    choice->shape = hash_bytes(hash_bytes(HASH_SEED, header, sizeof header), chunk, (size_t)rank * sizeof *chunk);
    choice->made = (decision){.shape = choice->shape, .chunk_bytes = chunk_bytes};
    full_name(library, within, name, choice->made.name);
    choice->name = hash_bytes(HASH_SEED, choice->made.name, strlen(choice->made.name));
    describe(&choice->made, chunk, rank, choice->facts.element_bytes);
    choice->facts.chunk_bytes = chunk_bytes;
    choice->facts.usual_slots = record.usual_slots;
    choice->facts.bypasses = !compressed && chunk_bytes > record.usual_bytes;
    choice->facts.most_chunks = most_bytes / chunk_bytes;
    choice->facts.usual_chunks = record.usual_bytes / chunk_bytes;
    if (choice->facts.usual_chunks > record.usual_slots) choice->facts.usual_chunks = record.usual_slots;
    if (record.has_own_cache && !is_forced("auto_chunk_cache")) {
        choice->made.choice = LEFT_OWN;
        return own;
    }
    records_lock();
    int kind = kind_place(choice->shape, choice->name);
    evidence seen = kind_evidence(kind, choice->shape);
    bool for_each = kind >= 0 && is_opened_for_each(kind, choice->facts.usual_chunks);
    records_unlock();
    hsize_t chunks = 0;
    choice->is_watched = true;
    choice->facts.refreshed_bytes = record.refreshed_bytes;
    choice->made.choice = choose(choice, &seen, compressed, extent, most, &chunks);
    /* If the cache can still be set later, no guess is needed. */
    if (choice->made.choice == GIVEN_BY_SHAPE && chunks * chunk_bytes <= record.refreshed_bytes) choice->made.choice = LEFT_UNKNOWN;
    if (choice->made.choice < GIVEN_BY_SHAPE) {
        if (!record.refreshed_bytes || for_each) return own;
        hid_t usual = list_with_cache(library, own, record.usual_slots, record.usual_bytes);
        if (usual == own) choice->made.choice = LEFT_OWN, choice->is_watched = false;
        return usual;
    }
    hsize_t bytes = chunks * chunk_bytes > record.usual_bytes ? chunks * chunk_bytes : record.usual_bytes;
    if (!has_room(bytes)) {
        choice->made.choice = LEFT_TOGETHER;
        return own;
    }
    hid_t list = list_with_cache(library, own, slots_for(chunks), (size_t)bytes);
    if (list == own) {
        choice->made.choice = LEFT_OWN;
        choice->is_watched = false;
        return own;
    }
    choice->made.cache_bytes = bytes;
    return list;
}

void adapt_dataset_opened(hid_t id, dataset_choice *choice) {
    if (!choice->library) return;
    if (choice->made.choice >= GIVEN_BY_SHAPE && !has_cache(choice->library, id, choice->made.cache_bytes)) {
        choice->made.choice = LEFT_OPEN;
        choice->made.cache_bytes = 0;
    }
    records_lock();
    int kind = kind_place(choice->shape, choice->name);
    if (kind >= 0) kind_opened(kind);
    int place = decision_add(choice->file, choice->file_order, &choice->made);
    if (choice->made.choice >= GIVEN_BY_SHAPE) note_given(choice->library, id, choice->made.cache_bytes);
    if (choice->is_watched && kind >= 0) {
        dataset_watch *watch = watch_new(choice->library, id);
        watch->file = place < 0 ? -1 : choice->file;
        watch->decision = place;
        watch->kind = kind;
        watch->facts = choice->facts;
        if (choice->made.choice >= GIVEN_BY_SHAPE) watch->facts.refreshed_bytes = 0;
        watch->trail.rank = choice->facts.rank;
    }
    records_unlock();
}

/* Finds the chunks that an access touches; false if there are none, or they are unknown. */
static bool look(const hdf5 *library, hid_t space, const dataset_facts *facts, chunk_access *access) {
    int rank = facts->rank;
    hsize_t extent[MOST_DIMENSIONS], most[MOST_DIMENSIONS], begin[MOST_DIMENSIONS], end[MOST_DIMENSIONS], volume = 1;
    access->is_whole = true;
    if (space == H5S_ALL) {
        for (int at = 0; at < rank; at++) {
            access->box.low[at] = 0;
            access->box.high[at] = facts->grid[at] ? facts->grid[at] - 1 : 0;
        }
        memcpy(access->grid, facts->grid, sizeof access->grid);
        return true;
    }
    /* Small numbers are constants with special meanings. */
    if (space < 16 || library->H5Sget_simple_extent_dims(space, extent, most) != rank) return false;
    long long points = library->H5Sget_select_npoints(space);
    if (points <= 0 || library->H5Sget_select_bounds(space, begin, end) < 0) return false;
    for (int at = 0; at < rank; at++) {
        access->box.low[at] = begin[at] / facts->chunk[at];
        access->box.high[at] = end[at] / facts->chunk[at];
        access->grid[at] = extent[at] ? (extent[at] - 1) / facts->chunk[at] + 1 : 0;
        volume *= end[at] - begin[at] + 1;
        access->is_whole &= begin[at] % facts->chunk[at] == 0 && ((end[at] + 1) % facts->chunk[at] == 0 || end[at] + 1 >= extent[at]);
    }
    access->is_whole &= (hsize_t)points == volume;
    access->run_bytes = facts->element_bytes;
    for (int at = rank - 1; at >= 0; at--) {
        hsize_t length = end[at] - begin[at] + 1, run = length < facts->chunk[at] ? length : facts->chunk[at];
        access->run_bytes *= run;
        if (run < facts->chunk[at]) break;
    }
    return true;
}

/* Whether the dataset is, or may be, open under another identifier too. Refreshing one of them makes reads through the
 * other fail (seen in HDF5 1.10.8: the index of the chunks is closed). */
static bool is_open_twice(const hdf5 *library, hid_t dataset) {
    hid_t open[MOST_OPEN], file = library->H5Iget_file_id(dataset);
    if (file < 0) return true;
    ptrdiff_t count = library->H5Fget_obj_count(file, H5F_OBJ_DATASET);
    if (count > MOST_OPEN || library->H5Fget_obj_ids(file, H5F_OBJ_DATASET, MOST_OPEN, open) != count) count = -1;
    library->H5Fclose(file);
    uint64_t address = object_address(library, dataset);
    bool is_twice = count < 0 || !address;
    for (ptrdiff_t at = 0; at < count && !is_twice; at++) {
        uint64_t other = open[at] == dataset ? 0 : object_address(library, open[at]);
        is_twice = open[at] != dataset && (!other || other == address);
    }
    return is_twice;
}

/* Gives an open dataset of a file opened for reading the cache size of its file, which is as large as allowed:
 * H5Drefresh closes the dataset and reopens it with the default list, under the same identifier. Datasets of files
 * opened for writing are left unchanged. */
static void refresh(const hdf5 *library, hid_t dataset, const evidence *seen, const dataset_facts *facts) {
    hsize_t chunks = evidence_chunks(seen, facts->grid, facts->rank), bytes = facts->refreshed_bytes;
    cache_choice choice = GIVEN_WHILE_OPEN;
    if (chunks > bytes / facts->chunk_bytes || chunks > facts->usual_slots) choice = LEFT_LATER;
    else if (facts->bypasses && seen->run_bytes > LONG_RUN_BYTES) choice = LEFT_RUNS;
    else if (!has_room(bytes)) choice = LEFT_TOGETHER;
    /* With more references, the identifier could not be reused. */
    else if (library->H5Iget_ref(dataset) != 1 || is_open_twice(library, dataset)) choice = LEFT_OPEN;
    silence was = be_silent(library);
    /* It has no effect if the program has also opened the file for writing. */
    if (choice == GIVEN_WHILE_OPEN && (library->H5Drefresh(dataset) < 0 || !has_cache(library, dataset, bytes))) choice = LEFT_OPEN;
    speak(library, was);
    records_lock();
    if (choice == GIVEN_WHILE_OPEN) note_given(library, dataset, bytes);
    dataset_watch *watch = watch_of(library, dataset);
    if (watch) watch_decided(watch, choice, choice == GIVEN_WHILE_OPEN ? bytes : 0);
    records_unlock();
}

void adapt_access(const hdf5 *library, hid_t dataset, hid_t file_space) {
    if (!has_watches()) return;
    dataset_facts facts;
    chunk_access access;
    records_lock();
    dataset_watch *watch = watch_of(library, dataset);
    if (watch) facts = watch->facts;
    records_unlock();
    if (!watch) return;
    bool is_seen = look(library, file_space, &facts, &access);
    records_lock();
    /* Another thread may have ended the watch in the meantime. */
    watch = watch_of(library, dataset);
    bool is_short = false;
    evidence seen;
    if (watch) {
        evidence found = {.accesses = 1};
        if (is_seen && watch->facts.rank == facts.rank)
            found = trail_add(&watch->trail, &access, watch->facts.usual_chunks, watch->facts.most_chunks);
        is_short = watch_found(watch, &found);
        seen = watch_evidence(watch);
        facts = watch->facts;
        memcpy(facts.grid, access.grid, sizeof facts.grid);
    }
    records_unlock();
    if (is_short) refresh(library, dataset, &seen, &facts);
}
