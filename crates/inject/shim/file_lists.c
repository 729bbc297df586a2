/* File access and file creation lists.
 *
 * A setting is made only if the program left this libhdf5's default (read from a new list of the class), or the user
 * forces it. */
#include "outcome.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>

/* Returns a copy of the program's list, to be changed. */
static hid_t copy_of(const hdf5 *library, hid_t own, list_class class) {
    return own == H5P_DEFAULT ? library->H5Pcreate(class_id(class)) : library->H5Pcopy(own);
}

/* Sets a number whose getter and setter have the same type. */
#define SET_NUMBER(name, type, getter, setter)                                              \
    do {                                                                                    \
        if (setting(name)) {                                                                \
            type now = 0, usual = 0, wanted = (type)setting_number(name, 0);                \
            library->getter(list, &now);                                                    \
            library->getter(fresh, &usual);                                                 \
            if (now != usual && !is_forced(name)) say_kept(what, "%s=%llu", name, (unsigned long long)now); \
            else if (library->setter(list, wanted) < 0) say_refused(what, "%s", name);      \
            else say_set(what, "%s=%llu", name, (unsigned long long)wanted);                \
        }                                                                                   \
    } while (0)

hsize_t user_block_of(const hdf5 *library, hid_t creation) {
    hsize_t bytes = 0;
    return creation != H5P_DEFAULT && library->H5Pget_userblock(creation, &bytes) >= 0 ? bytes : 0;
}

bool fits_user_block(hsize_t alignment, hsize_t user_block) { return !user_block || !alignment || user_block % alignment == 0; }

static void set_alignment(const hdf5 *library, hid_t list, hid_t fresh, hsize_t user_block, outcome *what) {
    if (!setting("alignment")) return;
    hsize_t threshold = 1, now = 1, usual = 1, ignored, wanted = setting_number("alignment", 1);
    hsize_t from = setting_number("alignment_threshold", 65536);
    library->H5Pget_alignment(list, &threshold, &now);
    library->H5Pget_alignment(fresh, &ignored, &usual);
    if (now != usual && !is_forced("alignment")) say_kept(what, "alignment=%llu", now);
    else if (!fits_user_block(wanted, user_block)) say_kept(what, "alignment (user block of %llu bytes)", user_block);
    else if (library->H5Pset_alignment(list, from, wanted) < 0) say_refused(what, "alignment");
    else say_set(what, "alignment=%llu,alignment_threshold=%llu", wanted, from);
}

static void set_chunk_cache(const hdf5 *library, hid_t list, hid_t fresh, outcome *what) {
    if (!setting("chunk_cache") && !setting("chunk_cache_slots") && !setting("chunk_cache_preemption")) return;
    int ignored;
    size_t slots, bytes, usual_slots, usual_bytes;
    double preemption, usual_preemption;
    library->H5Pget_cache(list, &ignored, &slots, &bytes, &preemption);
    library->H5Pget_cache(fresh, &ignored, &usual_slots, &usual_bytes, &usual_preemption);
    bool is_own = slots != usual_slots || bytes != usual_bytes || preemption != usual_preemption;
    if (is_own && !is_forced("chunk_cache") && !is_forced("chunk_cache_slots")) {
        say_kept(what, "chunk_cache=%zu", bytes);
        return;
    }
    const char *fraction = setting("chunk_cache_preemption");
    slots = setting_number("chunk_cache_slots", slots);
    bytes = setting_number("chunk_cache", bytes);
    if (fraction) preemption = strtod(fraction, NULL);
    if (library->H5Pset_cache(list, 0, slots, bytes, preemption) < 0) say_refused(what, "chunk_cache");
    else say_set(what, "chunk_cache=%zu", bytes);
}

static void set_metadata_cache(const hdf5 *library, hid_t list, hid_t fresh, outcome *what) {
    bool defer = setting_number("defer_flush", 0);
    if (!setting("metadata_cache") && !defer) return;
    metadata_cache_config now, usual;
    memset(&now, 0, sizeof now);
    memset(&usual, 0, sizeof usual);
    now.version = usual.version = 1;
    if (library->H5Pget_mdc_config(list, &now) < 0 || library->H5Pget_mdc_config(fresh, &usual) < 0) {
        say_refused(what, "metadata_cache");
        return;
    }
    bool is_own = now.initial_size != usual.initial_size || now.max_size != usual.max_size ||
                  now.evictions_enabled != usual.evictions_enabled || now.incr_mode != usual.incr_mode;
    if (is_own && !is_forced("metadata_cache") && !is_forced("defer_flush")) {
        say_kept(what, "metadata_cache=%zu", now.initial_size);
        return;
    }
    now.set_initial_size = true;
    now.initial_size = setting_number("metadata_cache", now.initial_size);
    if (now.max_size < now.initial_size) now.max_size = now.initial_size;
    if (defer) {
        now.evictions_enabled = false;
        /* Required if evictions are off, because a cache that resizes itself evicts. */
        now.incr_mode = now.flash_incr_mode = now.decr_mode = 0;
    }
    if (library->H5Pset_mdc_config(list, &now) < 0) say_refused(what, "metadata_cache");
    else say_set(what, "metadata_cache=%zu%s", now.initial_size, defer ? ",defer_flush" : "");
}

/* Returns the number of a version bound in H5F_libver_t; -1 if it is unknown. */
static int bound_of(const char *name) {
    static const struct {
        const char *name;
        int number;
    } bounds[] = {{"v18", 1}, {"v110", 2}, {"v112", 3}, {"v114", 4}};
    for (size_t at = 0; at < sizeof bounds / sizeof *bounds; at++) {
        size_t length = strlen(bounds[at].name);
        if (!strncmp(name, bounds[at].name, length) && (!name[length] || name[length] == ';')) return bounds[at].number;
    }
    return -1;
}

static void set_format(const hdf5 *library, hid_t list, hid_t fresh, outcome *what) {
    const char *name = setting("libver");
    if (!name) return;
    int low, high, usual_low, usual_high, wanted;
    library->H5Pget_libver_bounds(list, &low, &high);
    library->H5Pget_libver_bounds(fresh, &usual_low, &usual_high);
    wanted = strncmp(name, "latest", 6) ? bound_of(name) : usual_high;
    if ((low != usual_low || high != usual_high) && !is_forced("libver")) say_kept(what, "libver=%d,%d", low, high);
    else if (wanted >= 0 && wanted <= low) say_kept(what, "libver=%d,%d", low, high);
    /* The upper bound is kept: a program may need a version newer than the lower bound for a single object. */
    else if (wanted < 0 || library->H5Pset_libver_bounds(list, wanted, high) < 0) say_refused(what, "libver");
    else say_set(what, "libver=%.*s", (int)strcspn(name, ";"), name);
}

bool is_parallel(const hdf5 *library, hid_t list) {
    return library->H5FD_mpio_init && library->H5Pget_driver(list) == library->H5FD_mpio_init();
}

hid_t file_access_list(const hdf5 *library, hid_t own, hsize_t user_block, unsigned flags, bool with_page_buffer, outcome *what) {
    hid_t list = copy_of(library, own, library->file_access), fresh = library->H5Pcreate(class_id(library->file_access));
    if (list < 0 || fresh < 0) return own;
    set_alignment(library, list, fresh, user_block, what);
    SET_NUMBER("meta_block", hsize_t, H5Pget_meta_block_size, H5Pset_meta_block_size);
    SET_NUMBER("small_data_block", hsize_t, H5Pget_small_data_block_size, H5Pset_small_data_block_size);
    SET_NUMBER("sieve", size_t, H5Pget_sieve_buf_size, H5Pset_sieve_buf_size);
    set_chunk_cache(library, list, fresh, what);
    set_metadata_cache(library, list, fresh, what);
    set_format(library, list, fresh, what);
    bool parallel = is_parallel(library, list);
    if (setting_number("collective_metadata", 0)) {
        if (!parallel) say_kept(what, "collective_metadata (one process)");
        else if (!library->H5Pset_all_coll_metadata_ops || !library->H5Pset_coll_metadata_write ||
                 library->H5Pset_all_coll_metadata_ops(list, true) < 0 ||
                 library->H5Pset_coll_metadata_write(list, true) < 0)
            say_refused(what, "collective_metadata");
        else say_set(what, "collective_metadata");
    }
    if (setting("page_buffer")) {
        size_t now = 0;
        unsigned metadata, raw;
        if (!library->H5Pset_page_buffer_size || !library->H5Pget_page_buffer_size) say_refused(what, "page_buffer (HDF5 %s has none)", library->version);
        else if (parallel) say_kept(what, "page_buffer (parallel)");
        else if (!with_page_buffer) say_refused(what, "page_buffer");
        /* A creation that failed because of it would leave the file behind, and the second attempt would then fail
         * too. */
        else if (flags & H5F_ACC_EXCL) say_kept(what, "page_buffer (exclusive creation)");
        else if (library->H5Pget_page_buffer_size(list, &now, &metadata, &raw) >= 0 && now && !is_forced("page_buffer"))
            say_kept(what, "page_buffer=%zu", now);
        else if (library->H5Pset_page_buffer_size(list, setting_number("page_buffer", 0), 0, 0) < 0)
            say_refused(what, "page_buffer");
        else say_set(what, "page_buffer=%llu", setting_number("page_buffer", 0));
    }
    if (parallel && setting("compact")) say_kept(what, "compact (parallel)");
    if (parallel && (setting("gzip") || setting("fletcher32"))) say_kept(what, "filters of datasets without any (parallel)");
    library->H5Pclose(fresh);
    return list;
}

/* Returns why HDF5 may refuse to create a file with pages, although it accepts the list; NULL if it does not. */
static const char *reason_against_pages(const hdf5 *library, hid_t access, hid_t creation, hsize_t page, unsigned flags) {
    if (is_parallel(library, access)) return "parallel";
    if (!fits_user_block(page, user_block_of(library, creation))) return "user block";
    hid_t fresh = library->H5Pcreate(class_id(library->file_access));
    int low, high = 0, usual_low, usual_high = 0;
    library->H5Pget_libver_bounds(access, &low, &high);
    library->H5Pget_libver_bounds(fresh, &usual_low, &usual_high);
    bool is_usual_driver = library->H5Pget_driver(access) == library->H5Pget_driver(fresh);
    library->H5Pclose(fresh);
    if (high < usual_high && high < bound_of("v110")) return "format of HDF5 1.8";
    /* A creation that failed would leave the file behind, and the second attempt would then fail too. */
    return flags & H5F_ACC_EXCL && !is_usual_driver ? "exclusive creation with another driver" : NULL;
}

hid_t file_creation_list(const hdf5 *library, hid_t own, hid_t access, unsigned flags, outcome *what) {
    unsigned long long page = setting_number("file_page", 0);
    if (!page) return own;
    if (!library->H5Pset_file_space_strategy || !library->H5Pset_file_space_page_size) {
        say_refused(what, "file_page (HDF5 %s has none)", library->version);
        return own;
    }
    const char *reason = reason_against_pages(library, access, own, page, flags);
    if (reason) {
        say_kept(what, "file_page (%s)", reason);
        return own;
    }
    hid_t list = copy_of(library, own, library->file_creation);
    int strategy = H5F_FSPACE_STRATEGY_FSM_AGGR;
    bool persists;
    hsize_t threshold;
    library->H5Pget_file_space_strategy(list, &strategy, &persists, &threshold);
    if (strategy != H5F_FSPACE_STRATEGY_FSM_AGGR && !is_forced("file_page")) {
        say_kept(what, "file_page");
    } else if (library->H5Pset_file_space_strategy(list, H5F_FSPACE_STRATEGY_PAGE, false, 1) < 0 ||
               library->H5Pset_file_space_page_size(list, page) < 0) {
        say_refused(what, "file_page");
    } else {
        say_set(what, "file_page=%llu", page);
        return list;
    }
    library->H5Pclose(list);
    return own;
}
