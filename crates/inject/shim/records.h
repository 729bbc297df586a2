/* What is remembered of files and datasets while a program is adapted to, and what is said of it at the end.
 *
 * Everything here is guarded by one lock. Invariant: HDF5 is never called with the lock held, for a call may wait for another
 * thread that is in HDF5 and waits for the lock. */
#ifndef RADDLE_RECORDS_H
#define RADDLE_RECORDS_H

#include "evidence.h"

#define NAME_BYTES 256
#define DECISIONS 16

/* How a dataset's chunk cache was decided. */
typedef enum {
    LEFT_UNKNOWN,   /* nothing was observed before */
    LEFT_WHOLE,     /* whole chunks are accessed */
    LEFT_NEAR,      /* the usual cache holds what is returned to */
    LEFT_ONCE,      /* nothing is returned to */
    LEFT_FAR,       /* what is returned to does not fit the limit */
    LEFT_LATER,     /* too much to be given while it is open */
    LEFT_RUNS,      /* long runs of large chunks, which HDF5 moves without its cache */
    LEFT_TOGETHER,  /* the caches of open datasets have reached their limit */
    LEFT_OWN,       /* the program has set it */
    LEFT_OPEN,      /* the dataset is open elsewhere, with the cache that it has */
    GIVEN_BY_SHAPE, /* compressed, nothing was observed before */
    GIVEN_BY_EVIDENCE,
    GIVEN_WHILE_OPEN /* to a dataset of a file that is only read */
} cache_choice;

typedef struct {
    cache_choice choice;
    uint64_t shape;
    hsize_t cache_bytes;
    unsigned long long datasets;
    char name[NAME_BYTES], chunks[128];
    hsize_t chunk_bytes;
    evidence seen;
} decision;

/* A file that the program has opened. */
typedef struct {
    const hdf5 *library; /* NULL for none */
    char name[1024];
    unsigned long long order;
    bool is_read_only;
    const char *left; /* why it is left as it is; NULL if it is not */
    bool has_own_cache;
    hsize_t refreshed_bytes; /* of cache that its datasets get by H5Drefresh; 0 if they do not */
    size_t usual_bytes, usual_slots;
    hsize_t alignment, threshold; /* 0 if not set */
    decision decisions[DECISIONS];
    int decision_count;
} file_record;

/* Datasets of one shape and name: what is observed holds for those that come later. */
typedef struct {
    uint64_t shape, name;
    unsigned long long opened;
    evidence seen;
} dataset_kind;

/* What accesses to a dataset are measured by. */
typedef struct {
    int rank;
    hsize_t chunk[OBSERVED_DIMENSIONS], grid[OBSERVED_DIMENSIONS]; /* elements of a chunk, chunks of the dataset */
    hsize_t element_bytes, chunk_bytes, usual_slots, usual_chunks, most_chunks;
    hsize_t refreshed_bytes; /* of cache that it may get while it is open; 0 if it may not */
    bool bypasses;           /* HDF5 moves a part of a chunk without bringing all of it into the cache */
} dataset_facts;

/* An open dataset that is observed. */
typedef struct {
    const hdf5 *library; /* NULL for none */
    hid_t id;
    int file, decision, kind; /* places in their tables; -1 for none */
    unsigned accesses;
    dataset_facts facts;
    access_trail trail;
} dataset_watch;

void records_lock(void);
void records_unlock(void);

/* All below: with the lock held. */

/* The record of a file, the newest of that name; NULL if there is none. */
file_record *file_named(const hdf5 *library, const char *name);
/* A record for `found`. It replaces an earlier one that says the same, or the oldest, which is logged first. */
file_record *file_add(const file_record *found);
int file_place(const file_record *record);
/* Whether any file's datasets may be refreshed; may be asked without the lock. */
bool any_refreshed(void);
/* Counts a dataset under the decision of its file, if that still has its record; -1 if not, or if there is no room. */
int decision_add(int file, unsigned long long file_order, const decision *made);

/* The kind of this shape and name; -1 if there is no room. */
int kind_place(uint64_t shape, uint64_t name);
/* What was observed of the kind or, where that says nothing, of others of its shape, if they agree. */
evidence kind_evidence(int place, uint64_t shape);
/* Counts an opening. */
void kind_opened(int place);
/* Whether datasets of the kind are opened for an access or two each, of no more than `chunks`: what their cache is does not matter. */
bool is_opened_for_each(int place, hsize_t chunks);

/* Whether any dataset was ever watched; may be asked without the lock. */
bool has_watches(void);
dataset_watch *watch_of(const hdf5 *library, hid_t id);
dataset_watch *watch_new(const hdf5 *library, hid_t id);
/* Counts what was found of a watched dataset; ends the watch when that is enough. True if a larger cache would help it now. */
bool watch_found(dataset_watch *watch, const evidence *found);
/* What was found of datasets of its kind. */
evidence watch_evidence(const dataset_watch *watch);
/* Ends a watch and counts the dataset under another choice of its file, with `bytes` of cache. */
void watch_decided(dataset_watch *watch, cache_choice choice, hsize_t bytes);

#endif
