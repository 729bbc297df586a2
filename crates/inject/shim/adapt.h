/* Chunk caches and alignment chosen by what the program does: its accesses are observed, and datasets and files that it opens
 * later get what would have helped. What is open is left alone, for HDF5 has no call to change it, except datasets of files that are
 * only read. */
#ifndef RADDLE_ADAPT_H
#define RADDLE_ADAPT_H

#include "lists.h"
#include "records.h"

/* Before a file is opened: sets the alignment in `list`, a copy of the program's, and begins its record. */
void adapt_file(const hdf5 *library, hid_t list, const char *name, unsigned flags, bool creates, outcome *what, file_record *record);
/* After it was; `left` is why the file is left as it is, NULL if it is not. */
void adapt_file_opened(file_record *record, const char *left);

/* After a file was opened that is not to be looked at, which may have been earlier. */
void adapt_file_left(const hdf5 *library, const char *name, const char *reason);

/* A dataset about to be opened. */
typedef struct {
    const hdf5 *library; /* NULL if it is not looked at */
    uint64_t shape, name;
    int file;
    unsigned long long file_order;
    bool is_watched;
    dataset_facts facts;
    decision made;
} dataset_choice;

/* The access list for a dataset `name` within `within`: `own`, or a copy with a cache. */
hid_t adapt_access_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within, const char *name,
                        dataset_choice *choice);
/* After it was opened as `id`. */
void adapt_dataset_opened(hid_t id, dataset_choice *choice);
/* A read or write of a dataset that succeeded. */
void adapt_access(const hdf5 *library, hid_t dataset, hid_t file_space);

#endif
