/* What a program's accesses to a chunked dataset say about the chunk cache that it needs.
 *
 * Numbers only: nothing here calls HDF5. A cache helps where an access returns to chunks that earlier ones touched and left
 * incomplete, if it holds all chunks touched in between. */
#ifndef RADDLE_EVIDENCE_H
#define RADDLE_EVIDENCE_H

#include "hdf5.h"

#define OBSERVED_DIMENSIONS 8 /* datasets of more are left alone */
#define TRAIL_BOXES 48

/* Chunks that an access touches, by their numbers along each dimension. */
typedef struct {
    hsize_t low[OBSERVED_DIMENSIONS], high[OBSERVED_DIMENSIONS];
    int along; /* the dimension along which accesses in order were joined; -1 if none were */
} chunk_box;

/* One read or write. */
typedef struct {
    chunk_box box;
    hsize_t grid[OBSERVED_DIMENSIONS]; /* chunks of the dataset */
    bool is_whole;                     /* every chunk that it touches is touched entirely */
    hsize_t run_bytes;                 /* contiguous in each chunk */
} chunk_access;

/* The last accesses to an open dataset. */
typedef struct {
    int rank, count;
    chunk_box boxes[TRAIL_BOXES];
} access_trail;

/* Accesses, counted by what they say. */
typedef struct {
    unsigned long long accesses, whole;
    unsigned long long near, returns, far; /* to chunks that the usual cache holds, that a larger one would, that none would */
    hsize_t chunks;                        /* most chunks that a return needs */
    hsize_t span[OBSERVED_DIMENSIONS];     /* of those chunks, along each dimension */
    bool full[OBSERVED_DIMENSIONS];        /* whether the span was that of the dataset */
    hsize_t run_bytes;                     /* longest of the returning accesses */
    hsize_t largest;                       /* most chunks of one access */
} evidence;

typedef enum { IS_UNKNOWN, IS_WHOLE, IS_NEAR, IS_RETURNING, IS_FAR, IS_ONCE } verdict;

/* What an access adds to the evidence: the counts are 0 or 1. `usual_chunks` fit into the cache that the dataset has,
 * `most_chunks` into the largest that it may get. */
evidence trail_add(access_trail *trail, const chunk_access *access, hsize_t usual_chunks, hsize_t most_chunks);
void evidence_add(evidence *sum, const evidence *more);
verdict evidence_verdict(const evidence *of);
/* Chunks that returns need in a dataset of `grid` chunks. */
hsize_t evidence_chunks(const evidence *of, const hsize_t *grid, int rank);

#endif
