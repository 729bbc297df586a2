/* Records of files and datasets while a program is adapted to, and their log at the end.
 *
 * One lock guards all of this. Invariant: HDF5 is never called with the lock held, because a call may wait for another
 * thread that is in HDF5 and waits for the lock. */
#ifndef RADDLE_RECORDS_H
#define RADDLE_RECORDS_H

#include "evidence.h"

#define NAME_BYTES 256
#define DECISIONS 16

/* How the chunk cache of a dataset was decided. */
typedef enum {
    LEFT_UNKNOWN,   /* nothing was observed before */
    LEFT_WHOLE,     /* whole chunks are accessed */
    LEFT_NEAR,      /* the usual cache holds the chunks that are accessed again */
    LEFT_ONCE,      /* no chunk is accessed again */
    LEFT_FAR,       /* the chunks that are accessed again exceed the limit */
    LEFT_LATER,     /* needs more than it can get while it is open */
    LEFT_RUNS,      /* long runs in large chunks, which HDF5 moves without its cache */
    LEFT_TOGETHER,  /* the caches of open datasets have reached their limit */
    LEFT_OWN,       /* the program has set it */
    LEFT_OPEN,      /* the dataset is already open, with its present cache */
    GIVEN_BY_SHAPE, /* compressed, nothing was observed before */
    GIVEN_BY_EVIDENCE,
    GIVEN_WHILE_OPEN /* while open, to a dataset of a file opened for reading */
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
    const char *left; /* why it is left unchanged, or NULL */
    bool has_own_cache;
    hsize_t refreshed_bytes; /* cache size that its datasets get by H5Drefresh; 0 for none */
    size_t usual_bytes, usual_slots;
    hsize_t alignment, threshold; /* 0 if not set */
    decision decisions[DECISIONS];
    int decision_count;
} file_record;

/* Datasets with the same shape and name: observations apply to those that come later. */
typedef struct {
    uint64_t shape, name;
    unsigned long long opened;
    evidence seen;
} dataset_kind;

/* Facts about a dataset that its accesses are judged by. */
typedef struct {
    int rank;
    hsize_t chunk[OBSERVED_DIMENSIONS], grid[OBSERVED_DIMENSIONS]; /* elements per chunk, chunks of the dataset */
    hsize_t element_bytes, chunk_bytes, usual_slots, usual_chunks, most_chunks;
    hsize_t refreshed_bytes; /* cache size that it may get while it is open; 0 for none */
    bool bypasses;           /* whether HDF5 moves parts of chunks without reading whole chunks into the cache */
} dataset_facts;

/* An open dataset that is observed. */
typedef struct {
    const hdf5 *library; /* NULL for none */
    hid_t id;
    int file, decision, kind; /* indexes in their tables; -1 for none */
    unsigned accesses;
    dataset_facts facts;
    access_trail trail;
} dataset_watch;

void records_lock(void);
void records_unlock(void);

/* All functions below must be called with the lock held. */

/* Returns the newest record of a file with this name; NULL if there is none. */
file_record *file_named(const hdf5 *library, const char *name);
/* Adds a record for `found`. It replaces an earlier record with the same contents, or the oldest, which is logged
 * first. */
file_record *file_add(const file_record *found);
int file_place(const file_record *record);
/* Whether datasets of any file may be refreshed; may be called without the lock. */
bool any_refreshed(void);
/* Counts a dataset under the decision of its file, if the file still has its record; -1 if not, or if there is no
 * room. */
int decision_add(int file, unsigned long long file_order, const decision *made);

/* Returns the kind with this shape and name; -1 if there is no room. */
int kind_place(uint64_t shape, uint64_t name);
/* Returns the observations of the kind or, if they are inconclusive, of other kinds with the same shape, if those
 * agree. */
evidence kind_evidence(int place, uint64_t shape);
/* Counts an opening. */
void kind_opened(int place);
/* Whether datasets of the kind are opened for only one or two accesses of at most `chunks` chunks, so that their cache
 * does not matter. */
bool is_opened_for_each(int place, hsize_t chunks);

/* Whether any dataset was ever watched; may be called without the lock. */
bool has_watches(void);
dataset_watch *watch_of(const hdf5 *library, hid_t id);
dataset_watch *watch_new(const hdf5 *library, hid_t id);
/* Counts the observation of a watched dataset and ends the watch if there are enough. Returns whether a larger cache
 * would help it now. */
bool watch_found(dataset_watch *watch, const evidence *found);
/* Returns the observations of datasets of its kind. */
evidence watch_evidence(const dataset_watch *watch);
/* Ends a watch and counts the dataset under another choice of its file, with `bytes` of cache. */
void watch_decided(dataset_watch *watch, cache_choice choice, hsize_t bytes);

#endif
