/* Records and alignment of the files of an adapted program. */
#include "adapt.h"
#include "outcome.h"
#include "settings.h"

#include <string.h>
#include <sys/stat.h>

/* Objects of fewer blocks are not aligned: each alignment adds up to one block. */
#define LEAST_BLOCKS 100

/* A refreshed dataset gets this fraction of the limit, independent of its need: a file has a single default, set when
 * it is opened. */
#define PARTS_OF_REFRESHED 4

/* The file system whose block size the command has determined: that of the folder in which the program started. */
static dev_t asked_system;
static bool is_asked;

__attribute__((constructor)) static void look_around(void) {
    struct stat folder;
    is_asked = stat(".", &folder) == 0;
    asked_system = folder.st_dev;
}

static bool is_on_asked_system(const char *path) {
    char folder[1024];
    struct stat found;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof folder) return false;
    memcpy(folder, path, length);
    folder[length] = 0;
    return is_asked && stat(length ? folder : ".", &found) == 0 && found.st_dev == asked_system;
}

/* Chooses the alignment of a new file, so that it cannot grow by more than 1 %, whatever is written. Earlier files are
 * no reliable guide: metadata lies between objects, and after each metadata block an aligned object leaves a gap. */
static void choose_alignment(const hdf5 *library, hid_t list, hid_t fresh, hsize_t user_block, outcome *what, file_record *record) {
    hsize_t block = for_datasets.block, ignored, now, usual;
    if (!block || setting("alignment")) return;
    /* A block size named by the user applies everywhere. */
    if (!is_forced("adapt_block") && !is_on_asked_system(record->name)) return;
    library->H5Pget_alignment(list, &ignored, &now);
    library->H5Pget_alignment(fresh, &ignored, &usual);
    if (now != usual) {
        say_kept(what, "alignment=%llu", now);
    } else if (!fits_user_block(block, user_block)) {
        say_kept(what, "alignment (user block of %llu bytes)", user_block);
    } else if (library->H5Pset_alignment(list, block * LEAST_BLOCKS, block) >= 0) {
        record->alignment = block;
        record->threshold = block * LEAST_BLOCKS;
        say_set(what, "alignment=%llu,alignment_threshold=%llu", record->alignment, record->threshold);
    }
}

void adapt_file(const hdf5 *library, hid_t list, const char *name, unsigned flags, bool creates, hsize_t user_block, outcome *what,
                file_record *record) {
    memset(record, 0, sizeof *record);
    size_t length = name ? strlen(name) : 0;
    if (!length || length >= sizeof record->name) return;
    hid_t fresh = library->H5Pcreate(class_id(library->file_access));
    if (fresh < 0) return;
    memcpy(record->name, name, length + 1);
    record->library = library;
    record->is_read_only = !creates && !(flags & H5F_ACC_RDWR);
    int nothing;
    size_t slots, bytes, refreshed = for_datasets.auto_chunk_cache / PARTS_OF_REFRESHED;
    double preemption, usual_preemption;
    library->H5Pget_cache(list, &nothing, &record->usual_slots, &record->usual_bytes, &preemption);
    library->H5Pget_cache(fresh, &nothing, &slots, &bytes, &usual_preemption);
    record->has_own_cache = slots != record->usual_slots || bytes != record->usual_bytes || preemption != usual_preemption;
    /* Ranks must agree, but none knows the accesses of the others. */
    if (is_parallel(library, list))
        record->left = "ranks share it through MPI-IO, and none sees the accesses of the others";
    else if (library->H5Pget_driver(list) != library->H5Pget_driver(fresh))
        record->left = "it is not opened by HDF5's usual driver";
    else if (creates)
        choose_alignment(library, list, fresh, user_block, what, record);
    else if (record->is_read_only && !record->has_own_cache && library->H5Drefresh && refreshed > record->usual_bytes &&
             library->H5Pset_cache(list, 0, record->usual_slots, refreshed, preemption) >= 0)
        /* The default of its datasets; each of them is opened with the usual cache instead until it is refreshed. */
        record->refreshed_bytes = refreshed;
    library->H5Pclose(fresh);
}

void adapt_file_opened(file_record *record, const char *left) {
    if (!record->library) return;
    if (left) {
        record->left = left;
        record->refreshed_bytes = 0;
        record->alignment = record->threshold = 0;
    }
    records_lock();
    file_add(record);
    records_unlock();
}

void adapt_file_left(const hdf5 *library, const char *name, const char *reason) {
    file_record record = {.library = library};
    if (!name || strlen(name) >= sizeof record.name) return;
    strcpy(record.name, name);
    adapt_file_opened(&record, reason);
}
