#define _GNU_SOURCE
#include "records.h"
#include "log.h"
#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FILES 64
#define KINDS 256
#define WATCHES 1024 /* a power of two */
#define PLACES 4     /* for a watch; further ids with the same places replace the first */
/* Number of accesses after which an open dataset is no longer observed: if the verdict is clear, and in any case. An
 * observation takes 0.3 us. */
#define ENOUGH_ACCESSES 64
#define MOST_ACCESSES 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static file_record files[FILES];
static unsigned long long file_order;
static dataset_kind kinds[KINDS];
static int kind_count;
static dataset_watch watches[WATCHES];
static bool is_watching, is_refreshing;

void records_lock(void) { pthread_mutex_lock(&lock); }
void records_unlock(void) { pthread_mutex_unlock(&lock); }

/* A child process has no thread that would release the lock. It logs its own files; kinds are kept, because it is the
 * same program. */
static void child_begins(void) {
    for (int at = 0; at < FILES; at++)
        for (int of = 0; of < files[at].decision_count; of++) {
            files[at].decisions[of].datasets = 0;
            memset(&files[at].decisions[of].seen, 0, sizeof files[at].decisions[of].seen);
        }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(records_lock, records_unlock, child_begins); }

static const char *reason(cache_choice choice) {
    switch (choice) {
    case LEFT_UNKNOWN: return "left: nothing was observed before it was opened";
    case LEFT_WHOLE: return "left: whole chunks are accessed";
    case LEFT_NEAR: return "left: the usual cache holds the chunks that are accessed again";
    case LEFT_ONCE: return "left: no chunk is accessed again";
    case LEFT_FAR: return "left: the chunks that are accessed again exceed the limit";
    case LEFT_LATER: return "left: it needs more than an open dataset can get; the next one gets it";
    case LEFT_RUNS: return "left: accesses are long runs in chunks that bypass the cache";
    case LEFT_TOGETHER: return "left: the caches of open datasets have reached their limit";
    case LEFT_OWN: return "kept: it was set already";
    case LEFT_OPEN: return "left: the dataset is open already";
    case GIVEN_BY_SHAPE: return "by its shape, because it is compressed and was not observed before";
    case GIVEN_BY_EVIDENCE: return "by accesses observed before it was opened";
    case GIVEN_WHILE_OPEN: return "by observed accesses, while it was open, because the file is only read";
    }
    return "";
}

static void tell_decision(const file_record *record, const decision *made) {
    line out;
    line_begin(&out);
    line_add_name(&out, record->name);
    line_add(&out, ": ");
    line_add_name(&out, made->name);
    if (made->datasets > 1) line_add(&out, " and %llu more opened", made->datasets - 1);
    line_add(&out, " (chunks %s, %llu bytes): chunk cache ", made->chunks, made->chunk_bytes);
    if (made->choice >= GIVEN_BY_SHAPE) line_add(&out, "%llu bytes ", made->cache_bytes);
    line_add(&out, "%s", reason(made->choice));
    const evidence *seen = &made->seen;
    if (seen->accesses) {
        line_add(&out, "; observed %llu accesses", seen->accesses);
        if (seen->whole) line_add(&out, ", %llu of whole chunks", seen->whole);
        if (seen->near) line_add(&out, ", %llu returning to chunks in the usual cache", seen->near);
        if (seen->returns) line_add(&out, ", %llu returning to %llu chunks that it does not hold", seen->returns, seen->chunks);
        if (seen->far) line_add(&out, ", %llu returning beyond the limit", seen->far);
    }
    if (made->choice == LEFT_UNKNOWN && evidence_verdict(seen) == IS_RETURNING)
        line_add(&out, "; HDF5 takes a larger cache only when a dataset is opened: the next one gets it");
    line_end(&out);
}

static void tell_file(const file_record *record) {
    if (record->left) {
        line out;
        line_begin(&out);
        line_add_name(&out, record->name);
        line_add(&out, ": left as it is: %s", record->left);
        line_end(&out);
    }
    for (int at = 0; at < record->decision_count; at++)
        if (record->decisions[at].datasets) tell_decision(record, &record->decisions[at]);
}

__attribute__((destructor)) static void tell_files(void) {
    if (!for_datasets.adapt) return;
    for (;;) {
        /* In the order in which they were opened. */
        file_record *next = NULL;
        for (int at = 0; at < FILES; at++)
            if (files[at].library && (!next || files[at].order < next->order)) next = &files[at];
        if (!next) break;
        tell_file(next);
        next->library = NULL;
    }
}

file_record *file_named(const hdf5 *library, const char *name) {
    file_record *found = NULL;
    for (int at = 0; at < FILES; at++)
        if (files[at].library == library && !strcmp(files[at].name, name) && (!found || files[at].order > found->order))
            found = &files[at];
    return found;
}

int file_place(const file_record *record) { return (int)(record - files); }

static void forget(file_record *record) {
    tell_file(record);
    for (int at = 0; at < WATCHES; at++)
        if (watches[at].file == file_place(record)) watches[at].library = NULL;
    record->library = NULL;
}

bool any_refreshed(void) { return __atomic_load_n(&is_refreshing, __ATOMIC_RELAXED); }

file_record *file_add(const file_record *found) {
    if (found->refreshed_bytes) __atomic_store_n(&is_refreshing, true, __ATOMIC_RELAXED);
    file_record *record = file_named(found->library, found->name);
    bool is_same = record && record->left == found->left && record->is_read_only == found->is_read_only &&
                   record->usual_bytes == found->usual_bytes && record->usual_slots == found->usual_slots &&
                   record->has_own_cache == found->has_own_cache && record->alignment == found->alignment &&
                   record->threshold == found->threshold && record->refreshed_bytes == found->refreshed_bytes;
    if (is_same) {
        record->order = ++file_order;
        return record;
    }
    file_record *oldest = &files[0];
    for (int at = 0; at < FILES && oldest->library; at++)
        if (!files[at].library || files[at].order < oldest->order) oldest = &files[at];
    if (oldest->library) forget(oldest);
    *oldest = *found;
    oldest->order = ++file_order;
    return oldest;
}

int decision_add(int file, unsigned long long file_order, const decision *made) {
    file_record *record = &files[file];
    if (!record->library || record->order < file_order) return -1;
    for (int at = 0; at < record->decision_count; at++) {
        decision *known = &record->decisions[at];
        if (known->choice != made->choice || known->shape != made->shape || known->cache_bytes != made->cache_bytes) continue;
        known->datasets++;
        return at;
    }
    if (record->decision_count == DECISIONS) return -1;
    record->decisions[record->decision_count] = *made;
    record->decisions[record->decision_count].datasets = 1;
    return record->decision_count++;
}

int kind_place(uint64_t shape, uint64_t name) {
    for (int at = 0; at < kind_count; at++)
        if (kinds[at].shape == shape && kinds[at].name == name) return at;
    if (kind_count == KINDS) {
        for (int at = 0; at < KINDS; at++)
            if (kinds[at].shape == shape) return at;
        return -1;
    }
    kinds[kind_count] = (dataset_kind){.shape = shape, .name = name};
    return kind_count++;
}

evidence kind_evidence(int place, uint64_t shape) {
    if (place >= 0 && evidence_verdict(&kinds[place].seen) != IS_UNKNOWN) return kinds[place].seen;
    evidence all = {0};
    verdict agreed = IS_UNKNOWN;
    for (int at = 0; at < kind_count; at++) {
        verdict of = kinds[at].shape == shape ? evidence_verdict(&kinds[at].seen) : IS_UNKNOWN;
        if (of == IS_UNKNOWN) continue;
        if (agreed != IS_UNKNOWN && of != agreed) return (evidence){0};
        agreed = of;
        evidence_add(&all, &kinds[at].seen);
    }
    return all;
}

void kind_opened(int place) { kinds[place].opened++; }

bool is_opened_for_each(int place, hsize_t chunks) {
    const dataset_kind *kind = &kinds[place];
    return kind->opened >= 4 && kind->seen.accesses <= 2 * kind->opened && kind->seen.largest <= chunks;
}

static size_t watch_slot(hid_t id, int place) { return ((size_t)id * 7 + (size_t)place) % WATCHES; }

bool has_watches(void) { return __atomic_load_n(&is_watching, __ATOMIC_RELAXED); }

dataset_watch *watch_of(const hdf5 *library, hid_t id) {
    for (int place = 0; place < PLACES; place++) {
        dataset_watch *watch = &watches[watch_slot(id, place)];
        if (watch->library == library && watch->id == id) return watch;
    }
    return NULL;
}

dataset_watch *watch_new(const hdf5 *library, hid_t id) {
    dataset_watch *watch = watch_of(library, id);
    for (int place = 0; place < PLACES && !watch; place++)
        if (!watches[watch_slot(id, place)].library) watch = &watches[watch_slot(id, place)];
    if (!watch) watch = &watches[watch_slot(id, 0)];
    __atomic_store_n(&is_watching, true, __ATOMIC_RELAXED);
    watch->library = library;
    watch->id = id;
    watch->accesses = 0;
    watch->trail.count = 0;
    return watch;
}

bool watch_found(dataset_watch *watch, const evidence *found) {
    evidence_add(&kinds[watch->kind].seen, found);
    if (watch->file >= 0) evidence_add(&files[watch->file].decisions[watch->decision].seen, found);
    watch->accesses++;
    verdict now = watch->accesses < ENOUGH_ACCESSES ? IS_UNKNOWN : evidence_verdict(&kinds[watch->kind].seen);
    /* Otherwise later accesses may still return: the duration of the first sweep is unknown. */
    bool stands = now == IS_RETURNING || now == IS_WHOLE || now == IS_FAR;
    if (stands || watch->accesses >= MOST_ACCESSES) watch->library = NULL;
    return watch->library && watch->facts.refreshed_bytes && found->returns && evidence_verdict(&kinds[watch->kind].seen) == IS_RETURNING;
}

evidence watch_evidence(const dataset_watch *watch) { return kinds[watch->kind].seen; }

void watch_decided(dataset_watch *watch, cache_choice choice, hsize_t bytes) {
    watch->library = NULL;
    if (watch->file < 0) return;
    decision *was = &files[watch->file].decisions[watch->decision];
    decision made = *was;
    made.choice = choice;
    made.cache_bytes = bytes;
    int place = decision_add(watch->file, 0, &made);
    /* With its observations, if it is the only one. */
    if (place >= 0 && was->datasets) was->datasets--;
}
