/* Derives the chunk cache that a program needs from its accesses to a chunked dataset.
 *
 * Numbers only: nothing here calls HDF5. A cache helps if accesses return to chunks that earlier accesses touched and
 * left incomplete, and if it holds all chunks touched in between. */
#ifndef RADDLE_EVIDENCE_H
#define RADDLE_EVIDENCE_H

#include "hdf5.h"

#define OBSERVED_DIMENSIONS 8 /* datasets with more dimensions are left unchanged */
#define TRAIL_BOXES 48

/* The chunks that an access touches, by their indexes along each dimension. */
typedef struct {
    hsize_t low[OBSERVED_DIMENSIONS], high[OBSERVED_DIMENSIONS];
    int along; /* the dimension along which ordered accesses were joined; -1 for none */
} chunk_box;

/* One read or write. */
typedef struct {
    chunk_box box;
    hsize_t grid[OBSERVED_DIMENSIONS]; /* number of chunks of the dataset */
    bool is_whole;                     /* whether every touched chunk is touched entirely */
    hsize_t run_bytes;                 /* length of contiguous runs in each chunk */
} chunk_access;

/* The latest accesses to an open dataset. */
typedef struct {
    int rank, count;
    chunk_box boxes[TRAIL_BOXES];
} access_trail;

/* Counts of accesses by kind. */
typedef struct {
    unsigned long long accesses, whole;
    unsigned long long near, returns, far; /* to chunks that the usual cache holds, a larger one would hold, none would hold */
    hsize_t chunks;                        /* maximum number of chunks that a return needs */
    hsize_t span[OBSERVED_DIMENSIONS];     /* span of those chunks along each dimension */
    bool full[OBSERVED_DIMENSIONS];        /* whether the span was that of the dataset */
    hsize_t run_bytes;                     /* longest run of the returning accesses */
    hsize_t largest;                       /* maximum number of chunks of one access */
} evidence;

typedef enum { IS_UNKNOWN, IS_WHOLE, IS_NEAR, IS_RETURNING, IS_FAR, IS_ONCE } verdict;

/* Returns the evidence that an access adds: counts are 0 or 1. `usual_chunks` fit the present cache of the dataset,
 * `most_chunks` the largest that it may get. */
evidence trail_add(access_trail *trail, const chunk_access *access, hsize_t usual_chunks, hsize_t most_chunks);
void evidence_add(evidence *sum, const evidence *more);
verdict evidence_verdict(const evidence *of);
/* Number of chunks that returns need in a dataset of `grid` chunks. */
hsize_t evidence_chunks(const evidence *of, const hsize_t *grid, int rank);

#endif
