/* The functions that intercept HDF5's: each finds the libhdf5 that is meant, passes it lists with settings, and falls
 * back to the program's lists if HDF5 refuses.
 *
 * Invariants: a call with changed lists fails only if the same call with the program's lists fails; after a failure the
 * program finds HDF5's error stack as left by its own call, because nothing is called afterwards. */
#include "adapt.h"
#include "direct.h"
#include "enter.h"
#include "given.h"
#include "lists.h"
#include "log.h"
#include "settings.h"

#include <stdlib.h>

__thread bool inside;

const hdf5 *library_of(const void *caller) {
    const hdf5 *library = hdf5_of_caller(caller);
    if (!library) {
        line out;
        line_begin(&out);
        line_add(&out, "an HDF5 call came from code without a libhdf5");
        line_end(&out);
    }
    return library;
}

/* Returns the libhdf5 that is meant; `is_ours` is set if its lists may be changed. */
static const hdf5 *enter(const void *caller, bool *is_ours) {
    const hdf5 *library = library_of(caller);
    *is_ours = library && library->is_known && !inside && has_settings() && library->H5open() >= 0;
    return library;
}

static void tell(const hdf5 *library, const char *function, const char *name, const outcome *what) {
    line out;
    line_begin(&out);
    line_add_name(&out, name ? name : "?");
    line_add(&out, " (%s, HDF5 %s):", function, library->version);
    const char *gap = "";
    const struct {
        const char *word, *text;
    } parts[] = {{"set", what->set}, {"kept", what->kept}, {"refused", what->refused}};
    for (size_t at = 0; at < 3; at++)
        if (*parts[at].text) line_add(&out, "%s %s %s", gap, parts[at].word, parts[at].text), gap = ";";
    if (!*gap) line_add(&out, " nothing to set");
    line_end(&out);
}

/* A call that creates (`creates`) or opens a file. `own` performs it with any two lists. */
typedef struct {
    const char *function, *name;
    unsigned flags;
    hid_t creation, access;
    bool creates;
} file_call;

typedef hid_t (*file_action)(const hdf5 *, const void *, hid_t creation, hid_t access);

static hid_t with_settings(const hdf5 *library, const file_call *call, file_action act, const void *arguments) {
    outcome what = {0};
    file_record record;
    record.library = NULL;
    if (call->flags & H5F_ACC_SWMR) {
        outcome kept = {.kept = "all (single writer, multiple readers)"};
        tell(library, call->function, call->name, &kept);
        hid_t id = act(library, arguments, call->creation, call->access);
        if (id >= 0 && for_datasets.adapt) adapt_file_left(library, call->name, "one process writes it while others read");
        return id;
    }
    inside = true;
    silence was = be_silent(library);
    hid_t id = NO_ID;
    hsize_t user_block = call->creates ? user_block_of(library, call->creation) : 0;
    for (int with_page_buffer = setting("page_buffer") != NULL; id < 0 && with_page_buffer >= 0; with_page_buffer--) {
        what = (outcome){0};
        hid_t access = file_access_list(library, call->access, user_block, call->flags, with_page_buffer, &what);
        hid_t creation = call->creates ? file_creation_list(library, call->creation, access, call->flags, &what) : call->creation;
        if (for_datasets.adapt && access != call->access)
            adapt_file(library, access, call->name, call->flags, call->creates, user_block, &what, &record);
        if (access != call->access) id = act(library, arguments, creation, access);
        if (access != call->access) library->H5Pclose(access);
        if (creation != call->creation) library->H5Pclose(creation);
    }
    speak(library, was);
    inside = false;
    if (id >= 0) {
        adapt_file_opened(&record, NULL);
        /* Adapted files are logged at exit. */
        bool is_set = *what.set || *what.kept || *what.refused;
        if (is_set || !for_datasets.adapt) tell(library, call->function, call->name, &what);
        return id;
    }
    id = act(library, arguments, call->creation, call->access);
    if (id >= 0) {
        adapt_file_opened(&record, "HDF5 does not open it with other lists");
        outcome refused = {.refused = "all (HDF5 does not open the file with them)"};
        tell(library, call->function, call->name, &refused);
    }
    return id;
}

typedef struct {
    const char *app_file, *app_function;
    unsigned app_line;
    const char *name;
    unsigned flags;
    hid_t events;
} file_arguments;

static hid_t act_create(const hdf5 *library, const void *data, hid_t creation, hid_t access) {
    const file_arguments *a = data;
    return library->H5Fcreate(a->name, a->flags, creation, access);
}

static hid_t act_open(const hdf5 *library, const void *data, hid_t creation, hid_t access) {
    const file_arguments *a = data;
    (void)creation;
    return library->H5Fopen(a->name, a->flags, access);
}

static hid_t act_create_async(const hdf5 *library, const void *data, hid_t creation, hid_t access) {
    const file_arguments *a = data;
    return library->H5Fcreate_async(a->app_file, a->app_function, a->app_line, a->name, a->flags, creation, access, a->events);
}

static hid_t act_open_async(const hdf5 *library, const void *data, hid_t creation, hid_t access) {
    const file_arguments *a = data;
    (void)creation;
    return library->H5Fopen_async(a->app_file, a->app_function, a->app_line, a->name, a->flags, access, a->events);
}

static hid_t file(const void *caller, file_call call, file_action act, const file_arguments *arguments) {
    bool is_ours;
    const hdf5 *library = enter(caller, &is_ours);
    if (!library) return NO_ID;
    if (!is_ours) return act(library, arguments, call.creation, call.access);
    return with_settings(library, &call, act, arguments);
}

EXPORTED hid_t H5Fcreate(const char *name, unsigned flags, hid_t creation, hid_t access) {
    file_arguments arguments = {.name = name, .flags = flags};
    return file(CALLER, (file_call){"H5Fcreate", name, flags, creation, access, true}, act_create, &arguments);
}

EXPORTED hid_t H5Fopen(const char *name, unsigned flags, hid_t access) {
    file_arguments arguments = {.name = name, .flags = flags};
    return file(CALLER, (file_call){"H5Fopen", name, flags, H5P_DEFAULT, access, false}, act_open, &arguments);
}

EXPORTED hid_t H5Fcreate_async(const char *app_file, const char *app_function, unsigned app_line, const char *name,
                               unsigned flags, hid_t creation, hid_t access, hid_t events) {
    file_arguments arguments = {app_file, app_function, app_line, name, flags, events};
    return file(CALLER, (file_call){"H5Fcreate_async", name, flags, creation, access, true}, act_create_async, &arguments);
}

EXPORTED hid_t H5Fopen_async(const char *app_file, const char *app_function, unsigned app_line, const char *name,
                             unsigned flags, hid_t access, hid_t events) {
    file_arguments arguments = {app_file, app_function, app_line, name, flags, events};
    return file(CALLER, (file_call){"H5Fopen_async", name, flags, H5P_DEFAULT, access, false}, act_open_async, &arguments);
}

/* Creates a dataset, with a link at `name` if there is one. */
static hid_t create_dataset(const hdf5 *library, hid_t within, const char *name, hid_t type, hid_t space, hid_t links,
                            hid_t creation, hid_t access) {
    return name ? library->H5Dcreate2(within, name, type, space, links, creation, access)
                : library->H5Dcreate_anon(within, type, space, creation, access);
}

/* Returns the access list of a dataset, chosen by the program's behaviour or by the shape alone. */
static hid_t cache_list(const hdf5 *library, hid_t own, hid_t creation, hid_t type, hid_t space, hid_t within, const char *name,
                        dataset_choice *choice) {
    choice->library = NULL;
    choice->sweep_bytes = 0;
    return for_datasets.adapt ? adapt_access_list(library, own, creation, type, space, within, name, choice)
                              : dataset_access_list(library, own, creation, type, space, within, &choice->sweep_bytes);
}

/* Called after a dataset was opened with the list that `choice` describes. */
static void dataset_opened(const hdf5 *library, hid_t id, dataset_choice *choice) {
    adapt_dataset_opened(id, choice);
    if (!choice->sweep_bytes) return;
    records_lock();
    note_given(library, id, choice->sweep_bytes);
    records_unlock();
}

static hid_t new_dataset(const void *caller, hid_t within, const char *name, hid_t type, hid_t space, hid_t links,
                         hid_t creation, hid_t access) {
    bool is_ours;
    const hdf5 *library = enter(caller, &is_ours);
    if (!library || (!name && !library->H5Dcreate_anon)) return NO_ID;
    if (is_ours) {
        inside = true;
        hid_t creation_list = dataset_creation_list(library, creation, type, space, within);
        uint32_t added = creation_list != creation ? added_filters(library, creation, creation_list) : 0;
        dataset_choice choice;
        hid_t access_list = cache_list(library, access, creation_list, type, space, within, name ? name : "", &choice), id = NO_ID;
        if (creation_list != creation || access_list != access) {
            silence was = be_silent(library);
            id = create_dataset(library, within, name, type, space, links, creation_list, access_list);
            speak(library, was);
        }
        if (creation_list != creation) library->H5Pclose(creation_list);
        if (access_list != access) library->H5Pclose(access_list);
        if (id < 0 && creation_list == creation && access_list == access) {
            inside = false;
            id = create_dataset(library, within, name, type, space, links, creation, access);
            inside = true;
            if (id < 0) {
                inside = false;
                return id;
            }
        }
        if (id >= 0) dataset_opened(library, id, &choice);
        if (id >= 0 && for_datasets.layout) note_added_filters(library, id, added);
        inside = false;
        if (id >= 0) return id;
    }
    return create_dataset(library, within, name, type, space, links, creation, access);
}

EXPORTED hid_t H5Dcreate2(hid_t within, const char *name, hid_t type, hid_t space, hid_t links, hid_t creation, hid_t access) {
    /* Without a name the call is an error, which libhdf5 reports. */
    return new_dataset(CALLER, within, name ? name : "", type, space, links, creation, access);
}

EXPORTED hid_t H5Dcreate1(hid_t within, const char *name, hid_t type, hid_t space, hid_t creation) {
    return new_dataset(CALLER, within, name ? name : "", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
}

EXPORTED hid_t H5Dcreate_anon(hid_t within, hid_t type, hid_t space, hid_t creation, hid_t access) {
    return new_dataset(CALLER, within, NULL, type, space, H5P_DEFAULT, creation, access);
}

/* Returns the list with which the open dataset `id` should have been opened; `own` if that is equally good. */
static hid_t better_access_list(const hdf5 *library, hid_t id, hid_t own, dataset_choice *choice) {
    hid_t type = library->H5Dget_type(id), space = library->H5Dget_space(id), list = own;
    choice->library = NULL;
    choice->sweep_bytes = 0;
    /* Checked before the creation list, which takes longer to copy. */
    if (type >= 0 && space >= 0 && !is_small_dataset(library, type, space)) {
        hid_t creation = library->H5Dget_create_plist(id);
        if (creation >= 0 && library->H5Pget_layout(creation) == H5D_CHUNKED) {
            char name[NAME_BYTES] = "";
            if (for_datasets.adapt) library->H5Iget_name(id, name, sizeof name);
            list = cache_list(library, own, creation, type, space, id, name, choice);
        }
        if (creation >= 0) library->H5Pclose(creation);
    }
    if (type >= 0) library->H5Tclose(type);
    if (space >= 0) library->H5Sclose(space);
    return list;
}

/* Returns the dataset `id`, or one reopened in its place, by `name` within `within`, with a larger cache. A dataset's
 * cache is created when it is first opened, so the first handle is closed before. */
static hid_t with_cache(const hdf5 *library, hid_t id, hid_t own, hid_t within, const char *name) {
    dataset_choice choice;
    hid_t list = better_access_list(library, id, own, &choice);
    if (list != own) {
        library->H5Dclose(id);
        hid_t again = library->H5Dopen2(within, name, list);
        library->H5Pclose(list);
        id = again >= 0 ? again : library->H5Dopen2(within, name, own);
    }
    if (id >= 0) dataset_opened(library, id, &choice);
    return id;
}

static hid_t open_dataset(const void *caller, hid_t within, const char *name, hid_t access) {
    bool is_ours;
    const hdf5 *library = enter(caller, &is_ours);
    if (!library) return NO_ID;
    hid_t id = library->H5Dopen2(within, name, access);
    if (id < 0 || !is_ours || !for_datasets.auto_chunk_cache) return id;
    inside = true;
    id = with_cache(library, id, access, within, name);
    inside = false;
    return id;
}

EXPORTED hid_t H5Dopen2(hid_t within, const char *name, hid_t access) { return open_dataset(CALLER, within, name, access); }

EXPORTED hid_t H5Dopen1(hid_t within, const char *name) { return open_dataset(CALLER, within, name, H5P_DEFAULT); }

/* h5py opens everything with this function, which takes no access list. The object may be in another file than
 * `within`, behind an external link, so it is reopened by its path in its own file. */
EXPORTED hid_t H5Oopen(hid_t within, const char *name, hid_t links) {
    bool is_ours;
    const hdf5 *library = enter(CALLER, &is_ours);
    if (!library) return NO_ID;
    hid_t id = library->H5Oopen(within, name, links);
    if (id < 0 || !is_ours || !for_datasets.auto_chunk_cache || library->H5Iget_type(id) != H5I_DATASET) return id;
    char path[1024];
    inside = true;
    ptrdiff_t length = library->H5Iget_name(id, path, sizeof path);
    hid_t file = length > 0 && (size_t)length < sizeof path ? library->H5Iget_file_id(id) : NO_ID;
    if (file >= 0) {
        id = with_cache(library, id, H5P_DEFAULT, file, path);
        library->H5Fclose(file);
    }
    inside = false;
    return id;
}

/* Logs once what was done for datasets. */
__attribute__((destructor)) static void tell_counts(void) {
    if (!counted.caches && !counted.layouts) return;
    line out;
    line_begin(&out);
    line_add(&out, "datasets:");
    if (counted.caches)
        line_add(&out, " chunk cache sized to a sweep %llu times, at most %llu bytes", counted.caches, counted.largest_cache_bytes);
    if (counted.beyond_limit)
        line_add(&out, ", left %llu times, because the caches of open datasets had reached their limit", counted.beyond_limit);
    if (counted.layouts) line_add(&out, "%s layout changed %llu times", counted.caches ? ";" : "", counted.layouts);
    line_end(&out);
}
