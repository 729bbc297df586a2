/* Writing and reading IDX, arrays that can be read at any resolution, from C and C++.
 *
 * Generated from crates/capi/src by its test `header`; do not edit. Every function that can fail returns a
 * raddle_idx_status, which is 0 on success; raddle_idx_error_message() returns the error message. A handle must not be
 * used by more than one thread at a time. */

#ifndef RADDLE_IDX_H
#define RADDLE_IDX_H

#include <stdint.h>

/**
 * Maximum number of axes of a dataset.
 */
#define RADDLE_IDX_MAX_AXES 5

/**
 * Step number of a dataset without time steps.
 */
#define RADDLE_IDX_NO_STEP 18446744073709551615ull

/**
 * Result of a call. The numbers are the exit codes of the command `raddle`, where it has them.
 */
typedef enum raddle_idx_status {
    /**
     * The call succeeded.
     */
    RADDLE_IDX_STATUS_OK = 0,
    /**
     * A defect of raddle itself.
     */
    RADDLE_IDX_STATUS_INTERNAL = 1,
    /**
     * The call is invalid: because of an argument, or because it is not allowed at this time.
     */
    RADDLE_IDX_STATUS_USAGE = 2,
    /**
     * Existing or supplied data cannot be used: a file, a block, the boxes of the ranks.
     */
    RADDLE_IDX_STATUS_INPUT = 3,
    /**
     * The output exists or could not be written.
     */
    RADDLE_IDX_STATUS_OUTPUT = 5,
    /**
     * A limit was reached: memory, threads.
     */
    RADDLE_IDX_STATUS_LIMIT = 6,
    /**
     * Another process writes the same dataset.
     */
    RADDLE_IDX_STATUS_LOCKED = 7,
    /**
     * Another rank failed, which has its own status, or a function of the ranks failed.
     */
    RADDLE_IDX_STATUS_RANK = 9,
} raddle_idx_status;

/**
 * A dataset opened for reading.
 */
typedef struct raddle_idx_reader raddle_idx_reader;

/**
 * A dataset that is being written.
 */
typedef struct raddle_idx_writer raddle_idx_writer;

/**
 * Description of a dataset. Numbers per axis are in the order x first; axes beyond those of the dataset start at 0 and
 * have a count of 1.
 */
typedef struct raddle_idx_info {
    /**
     * First sample per axis, 0 in most datasets.
     */
    uint64_t start[RADDLE_IDX_MAX_AXES];
    /**
     * Number of samples per axis.
     */
    uint64_t counts[RADDLE_IDX_MAX_AXES];
    /**
     * First time step, or RADDLE_IDX_NO_STEP if there are none.
     */
    uint64_t first_step;
    /**
     * Last time step, or RADDLE_IDX_NO_STEP.
     */
    uint64_t last_step;
    /**
     * Number of axes.
     */
    uint32_t axes;
    /**
     * Number of fields.
     */
    uint32_t fields;
    /**
     * Highest resolution, which contains all samples.
     */
    uint32_t resolution;
} raddle_idx_info;

/**
 * Description of a field. The strings are valid until the handle is closed.
 */
typedef struct raddle_idx_field {
    /**
     * Name of the field.
     */
    const char *name;
    /**
     * Type of its numbers, for example float64.
     */
    const char *number;
    /**
     * Number of components per sample.
     */
    uint32_t components;
    /**
     * Number of bytes per sample.
     */
    uint32_t sample_len_bytes;
} raddle_idx_field;

/**
 * Part of a dataset to read; created by raddle_idx_make_query.
 */
typedef struct raddle_idx_query {
    /**
     * First sample per axis, x first.
     */
    uint64_t start[RADDLE_IDX_MAX_AXES];
    /**
     * Number of samples per axis, at full resolution.
     */
    uint64_t counts[RADDLE_IDX_MAX_AXES];
    /**
     * Time step, or RADDLE_IDX_NO_STEP.
     */
    uint64_t step;
    /**
     * Number of the field, from 0.
     */
    uint32_t field;
    /**
     * Highest level to read; lower levels contain every n-th sample of the box along each axis.
     */
    uint32_t resolution;
    /**
     * If not 0, missing blocks are read as the field's default value; otherwise they are an error.
     */
    uint32_t missing_as_default;
} raddle_idx_query;

/**
 * The ranks that write together, as functions that this library calls; raddle_idx_mpi.h implements them for an MPI
 * communicator. Each function is collective, is called on the thread that called the library, and returns 0 on success
 * and another number on failure; its arguments are valid until it returns. Counts and starts are in bytes, one per
 * rank. Messages of the library must be kept apart from other messages.
 */
typedef struct raddle_idx_ranks {
    /**
     * Passed to every function. It must remain valid until the handle is closed.
     */
    void *context;
    /**
     * Number of this rank, from 0.
     */
    int32_t rank;
    /**
     * Number of ranks.
     */
    int32_t size;
    /**
     * Returns once all ranks have called it.
     */
    int (*barrier)(void *context);
    /**
     * Stores the word of rank i in words[i].
     */
    int (*all_gather_words)(void *context, uint64_t word, uint64_t *words);
    /**
     * Sends send[i] to rank i, and stores the word from rank i in receive[i].
     */
    int (*all_to_all_words)(void *context, const uint64_t *send, uint64_t *receive);
    /**
     * Stores the count bytes of rank i at receive + starts[i], where counts[i] bytes are expected.
     */
    int (*all_gather_pieces)(void *context,
                             const void *send,
                             int count,
                             void *receive,
                             const int *counts,
                             const int *starts);
    /**
     * Sends the send_counts[i] bytes at send + send_starts[i] to rank i, and stores the receive_counts[i] bytes from
     * it at receive + receive_starts[i].
     */
    int (*all_to_all_pieces)(void *context,
                             const void *send,
                             const int *send_counts,
                             const int *send_starts,
                             void *receive,
                             const int *receive_counts,
                             const int *receive_starts);
} raddle_idx_ranks;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the message of the last call that failed on this thread: the problem, its location, and the remedy. The text
 * remains valid until the next call fails on this thread; it is empty before the first failure.
 */
const char *raddle_idx_error_message(void);

/**
 * Returns the version of raddle, for example "0.1.0".
 */
const char *raddle_idx_version(void);

/**
 * Yields the core to other threads, for a time that grows with the number of polls so far. For functions of ranks that
 * poll whether other ranks have arrived.
 */
void raddle_idx_pause(uint32_t looks);

/**
 * Opens a dataset for reading. path: the .idx file; a relative path is resolved by this call. reader: receives the
 * handle, which must be released with raddle_idx_close_reader.
 */
enum raddle_idx_status raddle_idx_open(const char *path, struct raddle_idx_reader **reader);

/**
 * Describes the dataset.
 */
enum raddle_idx_status raddle_idx_get_info(const struct raddle_idx_reader *reader, struct raddle_idx_info *info);

/**
 * Describes the field with the given number, counted from 0.
 */
enum raddle_idx_status raddle_idx_get_field(const struct raddle_idx_reader *reader,
                                            uint32_t number,
                                            struct raddle_idx_field *field);

/**
 * Creates a query for all samples of the named field, at the first time step if there are any; restrict it by changing
 * its members.
 */
enum raddle_idx_status raddle_idx_make_query(const struct raddle_idx_reader *reader,
                                             const char *field,
                                             struct raddle_idx_query *query);

/**
 * Returns in counts how many samples a query yields along each of RADDLE_IDX_MAX_AXES axes, x first.
 */
enum raddle_idx_status raddle_idx_query_counts(const struct raddle_idx_reader *reader,
                                               const struct raddle_idx_query *query,
                                               uint64_t *counts);

/**
 * Reads into the caller's memory, with the sample layout of raddle_idx_write. len_bytes is the length of the memory
 * and must match the samples of the query. On failure, the memory may be partly written.
 */
enum raddle_idx_status raddle_idx_read(const struct raddle_idx_reader *reader,
                                       const struct raddle_idx_query *query,
                                       void *samples,
                                       uint64_t len_bytes);

/**
 * Closes a handle, which must not be used again; does nothing for NULL.
 */
enum raddle_idx_status raddle_idx_close_reader(struct raddle_idx_reader *reader);

/**
 * Creates a handle for writing a dataset; nothing is written until a step ends. Numbers per axis are in the order x
 * first in all functions: x is the axis along which samples are contiguous in memory, which is the last axis of an
 * array in C and the first in Fortran. Every rank must create a handle with the same arguments, except for ranks.
 *
 * path: the .idx file to create; its blocks are stored in a folder with the same name next to it. A relative path is
 * resolved by this call. axes, counts: number of samples of the whole dataset along each axis. ranks: NULL for a single
 * process; the structure is copied. writer: receives the handle, which must be released with raddle_idx_close.
 */
enum raddle_idx_status raddle_idx_create(const char *path,
                                         uint32_t axes,
                                         const uint64_t *counts,
                                         const struct raddle_idx_ranks *ranks,
                                         struct raddle_idx_writer **writer);

/**
 * Sets an option. Must be called before the first step begins, with the same value on every rank except for jobs and
 * memory. Names and values are those of raddle idx write: compress (zip, lz4, zfp, zfp:precision=N, zfp:accuracy=X,
 * none), order (rows, hz), bitmask (such as V012012), bits-per-block, blocks-per-file, split-vectors (never, wide,
 * all), phases (one, two, three), box (default, expanded, cube), aggregators, jobs (threads of this rank), memory
 * (such as 512MiB), force, append and no-sync (true, false). split-vectors selects the vectors to write as one field
 * per component, NAME_0, NAME_1, ...; wide selects those that OpenVisus cannot read. With no-sync, data is not synced
 * to disk: if the machine crashes, data can be lost or corrupted.
 */
enum raddle_idx_status raddle_idx_set_option(struct raddle_idx_writer *writer, const char *name, const char *value);

/**
 * Sets the size of the power-of-two boxes of the first phase, x first; each number is rounded up to a power of two.
 */
enum raddle_idx_status raddle_idx_set_imposed_box(struct raddle_idx_writer *writer, const uint64_t *counts);

/**
 * Adds a field. Must be called before the first step begins, identically on every rank. A sample consists of the given
 * number of contiguous components of type uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32 or
 * float64. A name has no white space, no '+' and no unpaired parentheses, and does not begin with '(' or '#'.
 */
enum raddle_idx_status raddle_idx_add_field(struct raddle_idx_writer *writer,
                                            const char *name,
                                            const char *number,
                                            uint32_t components);

/**
 * Sets the box of the dataset that this rank holds from now on, replacing all previous boxes: its first sample and
 * number of samples per axis, x first. A rank without samples has a box with a count of 0. The boxes of all ranks must
 * be disjoint and cover the dataset. By default, a single process holds the whole dataset, and each of several ranks
 * holds nothing. Must not be called while a step is open.
 */
enum raddle_idx_status raddle_idx_set_box(struct raddle_idx_writer *writer,
                                          const uint64_t *start,
                                          const uint64_t *counts);

/**
 * Adds another box to those that this rank holds. Stores its number for raddle_idx_write_box in number, unless that is
 * NULL; the box of raddle_idx_set_box has number 0, added boxes have 1, 2, ...
 */
enum raddle_idx_status raddle_idx_add_box(struct raddle_idx_writer *writer,
                                          const uint64_t *start,
                                          const uint64_t *counts,
                                          uint32_t *number);

/**
 * Begins the step with the given number, or with RADDLE_IDX_NO_STEP the only step of a dataset without numbered steps.
 * Steps may be written in any order.
 */
enum raddle_idx_status raddle_idx_begin_step(struct raddle_idx_writer *writer, uint64_t step);

/**
 * Passes the samples of a field in the box of raddle_idx_set_box. They are not copied: the memory must remain
 * unchanged until raddle_idx_end_step, which writes them, has returned. The samples are laid out as in an array
 * a[z][y][x][component] in C, or a(component, x, y, z) in Fortran, without gaps. len_bytes: total length, used to
 * detect mistakes.
 */
enum raddle_idx_status raddle_idx_write(struct raddle_idx_writer *writer,
                                        const char *field,
                                        const void *samples,
                                        uint64_t len_bytes);

/**
 * Passes the samples of a field in the box with the given number, for ranks that hold several boxes.
 */
enum raddle_idx_status raddle_idx_write_box(struct raddle_idx_writer *writer,
                                            uint32_t number,
                                            const char *field,
                                            const void *samples,
                                            uint64_t len_bytes);

/**
 * Collective. Writes the open step, completely or not at all, and ends it. When it returns 0 on any rank, readers see
 * the step and, unless no-sync was set, it survives a crash. If it fails, it fails on every rank, nothing of the step
 * is written, and the next step may begin.
 */
enum raddle_idx_status raddle_idx_end_step(struct raddle_idx_writer *writer);

/**
 * Returns statistics of writing the last step, as JSON with the fields of raddle idx write --report. NULL before the
 * first step is written. The text is valid until the next step ends.
 */
const char *raddle_idx_report(const struct raddle_idx_writer *writer);

/**
 * Closes a handle, which must not be used again; does nothing for NULL. An open step is discarded, which is reported
 * as RADDLE_IDX_STATUS_USAGE.
 */
enum raddle_idx_status raddle_idx_close(struct raddle_idx_writer *writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RADDLE_IDX_H */
