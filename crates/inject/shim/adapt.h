/* Chunk caches and alignment chosen by the program's behaviour: accesses are observed, and datasets and files opened
 * later get the settings that would have helped. Open ones are left unchanged, because HDF5 has no call to change them,
 * except for datasets of files opened for reading. */
#ifndef RADDLE_ADAPT_H
#define RADDLE_ADAPT_H

#include "lists.h"
#include "records.h"

/* Called before a file is opened: sets the alignment in `list`, a copy of the program's, and begins its record. */
void adapt_file(const hdf5 *library, hid_t list, const char *name, unsigned flags, bool creates, hsize_t user_block, outcome *what,
                file_record *record);
/* Called after a file was opened; `left` is why the file is left unchanged, or NULL. */
void adapt_file_opened(file_record *record, const char *left);

/* Called after opening a file that must not be observed, which may have been observed earlier. */
void adapt_file_left(const hdf5 *library, const char *name, const char *reason);

/* A dataset that is about to be opened. */
typedef struct {
    const hdf5 *library; /* NULL if it is not observed */
    uint64_t shape, name;
    int file;
    unsigned long long file_order;
    bool is_watched;
    hsize_t sweep_bytes; /* size of the cache for a sweep, if nothing is observed; 0 for the usual cache */
    dataset_facts facts;
    decision made;
} dataset_choice;

/* Returns the access list for a dataset `name` within `within`: `own`, or a copy with a cache size. */
hid_t adapt_access_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within, const char *name,
                        dataset_choice *choice);
/* Called after the dataset was opened as `id`. */
void adapt_dataset_opened(hid_t id, dataset_choice *choice);
/* Called after a successful read or write of a dataset. */
void adapt_access(const hdf5 *library, hid_t dataset, hid_t file_space);

#endif
