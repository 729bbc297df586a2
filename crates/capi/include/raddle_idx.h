/* Writing and reading IDX, arrays that can be read at any resolution, from C and C++.
 *
 * Made from crates/capi/src by its test `header`; not edited by hand. Every function that can fail returns a
 * raddle_idx_status, 0 if it did not; raddle_idx_error_message() has the words. A handle is used by one thread at a time. */

#ifndef RADDLE_IDX_H
#define RADDLE_IDX_H

#include <stdint.h>

/**
 * Most axes of a dataset.
 */
#define RADDLE_IDX_MAX_AXES 5

/**
 * Stands for the number of a step where a dataset has none.
 */
#define RADDLE_IDX_NO_STEP 18446744073709551615ull

/**
 * How a call ended. The numbers are those with which the command `raddle` ends, where it has them.
 */
typedef enum raddle_idx_status {
    /**
     * Everything asked for was done.
     */
    RADDLE_IDX_STATUS_OK = 0,
    /**
     * A defect of raddle itself.
     */
    RADDLE_IDX_STATUS_INTERNAL = 1,
    /**
     * The call makes no sense: an argument, or its time.
     */
    RADDLE_IDX_STATUS_USAGE = 2,
    /**
     * What is there or was given cannot be used: a file, a block, the boxes of the ranks.
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
     * Another rank failed, which has its own status, or a function of the ranks did.
     */
    RADDLE_IDX_STATUS_RANK = 9,
} raddle_idx_status;

/**
 * A dataset that is open for reading.
 */
typedef struct raddle_idx_reader raddle_idx_reader;

/**
 * A dataset that is being written.
 */
typedef struct raddle_idx_writer raddle_idx_writer;

/**
 * What a dataset holds. Numbers per axis are x first; axes that the dataset does not have start at 0 and have a count of 1.
 */
typedef struct raddle_idx_info {
    /**
     * First sample per axis, 0 in most datasets.
     */
    uint64_t start[RADDLE_IDX_MAX_AXES];
    /**
     * Samples per axis.
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
     * How many axes there are.
     */
    uint32_t axes;
    /**
     * How many fields there are.
     */
    uint32_t fields;
    /**
     * The highest resolution, which has all samples.
     */
    uint32_t resolution;
} raddle_idx_info;

/**
 * What a field is. The texts are there until the handle is closed.
 */
typedef struct raddle_idx_field {
    /**
     * Its name.
     */
    const char *name;
    /**
     * Type of its numbers, for example float64.
     */
    const char *number;
    /**
     * Numbers per sample.
     */
    uint32_t components;
    /**
     * Bytes per sample.
     */
    uint32_t sample_len_bytes;
} raddle_idx_field;

/**
 * What to read; raddle_idx_make_query makes one.
 */
typedef struct raddle_idx_query {
    /**
     * First sample per axis, x first.
     */
    uint64_t start[RADDLE_IDX_MAX_AXES];
    /**
     * Samples at full resolution per axis.
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
     * Highest level to read: of the samples in the box every so many along each axis.
     */
    uint32_t resolution;
    /**
     * Not 0: blocks that are not stored give the field's default value, where they are an error else.
     */
    uint32_t missing_as_default;
} raddle_idx_query;

/**
 * The ranks that write together, as functions that this library calls; raddle_idx_mpi.h makes them of an MPI communicator.
 * Each function is collective, is called on the thread that called the library, and returns 0, or another number if it
 * failed; what it was given is there until it returns. Counts and starts are in bytes, one per rank, and the messages of the
 * library must not meet others.
 */
typedef struct raddle_idx_ranks {
    /**
     * Given to every function. It must stay until the handle is closed.
     */
    void *context;
    /**
     * Number of this rank, from 0.
     */
    int32_t rank;
    /**
     * How many there are.
     */
    int32_t size;
    /**
     * Returns when all ranks have called it.
     */
    int (*barrier)(void *context);
    /**
     * Puts the word of rank i into words[i].
     */
    int (*all_gather_words)(void *context, uint64_t word, uint64_t *words);
    /**
     * Sends send[i] to rank i, and puts what comes from rank i into receive[i].
     */
    int (*all_to_all_words)(void *context, const uint64_t *send, uint64_t *receive);
    /**
     * Puts the count bytes of rank i to receive + starts[i], where counts[i] are expected.
     */
    int (*all_gather_pieces)(void *context,
                             const void *send,
                             int count,
                             void *receive,
                             const int *counts,
                             const int *starts);
    /**
     * Sends the send_counts[i] bytes at send + send_starts[i] to rank i, and puts the receive_counts[i] that come from it to
     * receive + receive_starts[i].
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
 * What the last call that failed on this thread says: what is wrong, where, and what to do. The text is there until the next
 * call fails on this thread; it is empty before the first does.
 */
const char *raddle_idx_error_message(void);

/**
 * The version of raddle, for example "0.1.0".
 */
const char *raddle_idx_version(void);

/**
 * For functions of ranks that look again and again whether others have come: leaves the core to other threads, the longer
 * the more often one has looked.
 */
void raddle_idx_pause(uint32_t looks);

/**
 * Opens a dataset for reading. reader: where the handle goes, which raddle_idx_close_reader takes back.
 */
enum raddle_idx_status raddle_idx_open(const char *path, struct raddle_idx_reader **reader);

/**
 * Tells what the dataset holds.
 */
enum raddle_idx_status raddle_idx_get_info(const struct raddle_idx_reader *reader, struct raddle_idx_info *info);

/**
 * Tells what the field of a number is, from 0.
 */
enum raddle_idx_status raddle_idx_get_field(const struct raddle_idx_reader *reader,
                                            uint32_t number,
                                            struct raddle_idx_field *field);

/**
 * Makes a query for all samples of the field of a name, at the first time step if there are any; what is to be read of them
 * is then set in it.
 */
enum raddle_idx_status raddle_idx_make_query(const struct raddle_idx_reader *reader,
                                             const char *field,
                                             struct raddle_idx_query *query);

/**
 * Tells how many samples a query gives along each of RADDLE_IDX_MAX_AXES axes, x first.
 */
enum raddle_idx_status raddle_idx_query_counts(const struct raddle_idx_reader *reader,
                                               const struct raddle_idx_query *query,
                                               uint64_t *counts);

/**
 * Reads into memory of the caller, as raddle_idx_write has samples lie there; len_bytes, its length, is that of the samples
 * of the query. If it fails, the memory may be partly written.
 */
enum raddle_idx_status raddle_idx_read(const struct raddle_idx_reader *reader,
                                       const struct raddle_idx_query *query,
                                       void *samples,
                                       uint64_t len_bytes);

/**
 * Ends the use of a handle, which must not be used again; of NULL, nothing.
 */
enum raddle_idx_status raddle_idx_close_reader(struct raddle_idx_reader *reader);

/**
 * Makes a handle for writing a dataset; nothing is written before a step ends. Numbers per axis are x first in all functions:
 * the axis along which samples lie next to each other in memory, which is the last of an array of C and the first of one of
 * Fortran. Every rank makes a handle with the same arguments, but for ranks.
 *
 * path: the .idx file to be; its blocks lie in the folder of that name beside it. axes, counts: how many samples the whole
 * dataset has along each axis. ranks: NULL for one process; what it says is copied. writer: where the handle goes, which
 * raddle_idx_close takes back.
 */
enum raddle_idx_status raddle_idx_create(const char *path,
                                         uint32_t axes,
                                         const uint64_t *counts,
                                         const struct raddle_idx_ranks *ranks,
                                         struct raddle_idx_writer **writer);

/**
 * Sets an option, before the first step begins, on every rank the same but for jobs and memory. Names and values are those
 * of raddle idx write: compress (zip, lz4, zfp, zfp:precision=N, zfp:accuracy=X, none), order (rows, hz), bitmask (such as
 * V012012), bits-per-block, blocks-per-file, split-vectors (never, wide, all), phases (one, two, three), box (default,
 * expanded, cube), aggregators, jobs (threads of this rank), memory (such as 512MiB), force, append and no-sync (true, false).
 * split-vectors says which vectors are written as one field per component, NAME_0, NAME_1, ...; wide stands for those that
 * OpenVisus does not read. With no-sync the disk is not waited for: a crash of the machine can lose or damage what was
 * written.
 */
enum raddle_idx_status raddle_idx_set_option(struct raddle_idx_writer *writer,
                                             const char *name,
                                             const char *value);

/**
 * Sets the size of the power-of-two boxes of the first phase, x first, each rounded up to a power of two.
 */
enum raddle_idx_status raddle_idx_set_imposed_box(struct raddle_idx_writer *writer, const uint64_t *counts);

/**
 * Adds a field, before the first step begins, on every rank the same. Its samples are so many components, which lie together,
 * of a type: uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32 or float64.
 */
enum raddle_idx_status raddle_idx_add_field(struct raddle_idx_writer *writer,
                                            const char *name,
                                            const char *number,
                                            uint32_t components);

/**
 * Says which box of the dataset this rank holds from now on, in the place of all others: its first sample and its samples
 * per axis, x first. A rank that holds nothing has a box with a count of 0. The boxes of all ranks are disjoint and together
 * the dataset. Until it says so, one process holds all of it and one of several ranks nothing. Not while a step is open.
 */
enum raddle_idx_status raddle_idx_set_box(struct raddle_idx_writer *writer,
                                          const uint64_t *start,
                                          const uint64_t *counts);

/**
 * Says that this rank holds one more box than before. Its number, by which raddle_idx_write_box knows it, goes to number unless that is
 * NULL; they are 0 for that of raddle_idx_set_box, and then 1, 2, ...
 */
enum raddle_idx_status raddle_idx_add_box(struct raddle_idx_writer *writer,
                                          const uint64_t *start,
                                          const uint64_t *counts,
                                          uint32_t *number);

/**
 * Begins a step, by its number, or with RADDLE_IDX_NO_STEP the only one of a dataset without numbered steps. Steps may come
 * in any order.
 */
enum raddle_idx_status raddle_idx_begin_step(struct raddle_idx_writer *writer,
                                             uint64_t step);

/**
 * Gives the samples of a field in the box of raddle_idx_set_box. They are not copied: the memory must stay as it is until
 * raddle_idx_end_step has returned, which writes them. Samples lie as in an array of C a[z][y][x][component], or of Fortran
 * a(component, x, y, z), without gaps. len_bytes: length of all, by which mistakes are found.
 */
enum raddle_idx_status raddle_idx_write(struct raddle_idx_writer *writer,
                                        const char *field,
                                        const void *samples,
                                        uint64_t len_bytes);

/**
 * The same in the box of a number, for ranks that hold several.
 */
enum raddle_idx_status raddle_idx_write_box(struct raddle_idx_writer *writer,
                                            uint32_t number,
                                            const char *field,
                                            const void *samples,
                                            uint64_t len_bytes);

/**
 * Collective. Writes the step that is open, whole or not at all, and ends it: when it returns 0 on any rank, readers see the
 * step, and unless no-sync was set it survives a crash. If it fails, it fails on every rank, nothing of the step is written,
 * and the next may begin.
 */
enum raddle_idx_status raddle_idx_end_step(struct raddle_idx_writer *writer);

/**
 * What writing the last step took, as JSON: the fields of raddle idx write --report. NULL before the first step is written.
 * The text is there until the next step ends.
 */
const char *raddle_idx_report(const struct raddle_idx_writer *writer);

/**
 * Ends the use of a handle, which must not be used again; of NULL, nothing. A step that is open is given up, which this says
 * with RADDLE_IDX_STATUS_USAGE.
 */
enum raddle_idx_status raddle_idx_close(struct raddle_idx_writer *writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RADDLE_IDX_H */
