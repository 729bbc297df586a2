/* Ranks of an MPI communicator, for raddle_idx_create. This header contains the whole implementation and uses the caller's
 * mpi.h: the library does not link MPI and works with any MPI of version 3 or later. A multithreaded rank calls MPI on the
 * thread that calls the library, so MPI_THREAD_FUNNELED is enough.
 *
 *     raddle_idx_mpi mpi;
 *     raddle_idx_mpi_begin(&mpi, MPI_COMM_WORLD);
 *     raddle_idx_create(path, 3, counts, &mpi.ranks, &writer);
 *     ...
 *     raddle_idx_close(writer);
 *     raddle_idx_mpi_end(&mpi);
 *
 * Collectives are polled with growing pauses, so that a waiting rank yields its core to the threads of others. MPI errors
 * are handled by the error handler of the communicator, which by default aborts all ranks. */

#ifndef RADDLE_IDX_MPI_H
#define RADDLE_IDX_MPI_H

#include "raddle_idx.h"
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Ranks of an MPI communicator. The structure must not be moved while `ranks` is in use. */
typedef struct raddle_idx_mpi {
    /** Duplicate of the communicator, which keeps messages of the library apart from others. */
    MPI_Comm communicator;
    /** Argument for raddle_idx_create. */
    raddle_idx_ranks ranks;
} raddle_idx_mpi;

static inline int raddle_idx_mpi_wait(int code, MPI_Request *request) {
    int is_done = 0;
    for (uint32_t looks = 0; code == MPI_SUCCESS; looks += looks < UINT32_MAX) {
        code = MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
        if (is_done) {
            break;
        }
        raddle_idx_pause(looks);
    }
    return code;
}

static inline int raddle_idx_mpi_barrier(void *context) {
    MPI_Request request;
    return raddle_idx_mpi_wait(MPI_Ibarrier(*(MPI_Comm *)context, &request), &request);
}

static inline int raddle_idx_mpi_all_gather_words(void *context, uint64_t word, uint64_t *words) {
    MPI_Request request;
    int code = MPI_Iallgather(&word, 1, MPI_UINT64_T, words, 1, MPI_UINT64_T, *(MPI_Comm *)context, &request);
    return raddle_idx_mpi_wait(code, &request);
}

static inline int raddle_idx_mpi_all_to_all_words(void *context, const uint64_t *send, uint64_t *receive) {
    MPI_Request request;
    int code = MPI_Ialltoall(send, 1, MPI_UINT64_T, receive, 1, MPI_UINT64_T, *(MPI_Comm *)context, &request);
    return raddle_idx_mpi_wait(code, &request);
}

static inline int raddle_idx_mpi_all_gather_pieces(void *context, const void *send, int count, void *receive,
                                                   const int *counts, const int *starts) {
    MPI_Request request;
    int code = MPI_Iallgatherv(send, count, MPI_BYTE, receive, counts, starts, MPI_BYTE, *(MPI_Comm *)context, &request);
    return raddle_idx_mpi_wait(code, &request);
}

static inline int raddle_idx_mpi_all_to_all_pieces(void *context, const void *send, const int *send_counts,
                                                   const int *send_starts, void *receive, const int *receive_counts,
                                                   const int *receive_starts) {
    MPI_Request request;
    int code = MPI_Ialltoallv(send, send_counts, send_starts, MPI_BYTE, receive, receive_counts, receive_starts, MPI_BYTE,
                              *(MPI_Comm *)context, &request);
    return raddle_idx_mpi_wait(code, &request);
}

/** Collective. Creates the ranks of a communicator; returns an MPI error code. */
static inline int raddle_idx_mpi_begin(raddle_idx_mpi *mpi, MPI_Comm communicator) {
    int rank = 0, size = 0;
    int code = MPI_Comm_dup(communicator, &mpi->communicator);
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_rank(mpi->communicator, &rank);
    }
    if (code == MPI_SUCCESS) {
        code = MPI_Comm_size(mpi->communicator, &size);
    }
    mpi->ranks.context = &mpi->communicator;
    mpi->ranks.rank = rank;
    mpi->ranks.size = size;
    mpi->ranks.barrier = raddle_idx_mpi_barrier;
    mpi->ranks.all_gather_words = raddle_idx_mpi_all_gather_words;
    mpi->ranks.all_to_all_words = raddle_idx_mpi_all_to_all_words;
    mpi->ranks.all_gather_pieces = raddle_idx_mpi_all_gather_pieces;
    mpi->ranks.all_to_all_pieces = raddle_idx_mpi_all_to_all_pieces;
    return code;
}

/** Collective. Frees the result of raddle_idx_mpi_begin. To be called after closing the handles that use it and before
 * MPI_Finalize. */
static inline int raddle_idx_mpi_end(raddle_idx_mpi *mpi) {
    return MPI_Comm_free(&mpi->communicator);
}

#ifdef __cplusplus
}
#endif

#endif /* RADDLE_IDX_MPI_H */
