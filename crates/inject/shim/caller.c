/* Finds the libhdf5 that a call is meant for.
 *
 * RTLD_NEXT does not work: Python loads extension modules with RTLD_LOCAL, so the global scope contains no libhdf5, and a
 * process may hold several (the h5py, PyTables and netCDF4 wheels each contain one). The caller decides: its object is
 * found from the return address, and the function is looked up in that object's dependencies. */
#define _GNU_SOURCE
#include "hdf5.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MOST_LIBRARIES 16 /* at the same time; three were seen */
#define SITES 64          /* call sites remembered */

static hdf5 libraries[MOST_LIBRARIES];
static size_t library_count;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

/* The functions this thread has called, by call site: a lookup takes microseconds, and programs create thousands of
 * datasets. Remembered objects are never unloaded, because dlopen below increments their reference count. */
static __thread struct {
    const void *address;
    const hdf5 *library;
} sites[SITES];

static void *base_of(const void *address) {
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* Returns `found` if it belongs to a libhdf5, not to the shim itself. */
static void *foreign(void *found) {
    return found && base_of(found) != base_of((const void *)hdf5_of_caller) ? found : NULL;
}

/* For code without a libhdf5 among its dependencies: a plugin, or an object that found the function through dlsym. */
static int in_any_object(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    if (!object->dlpi_name || !*object->dlpi_name) return 0;
    void *handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return 0;
    void *function = foreign(dlsym(handle, "H5Fcreate"));
    if (function) *(void **)found = function;
    else dlclose(handle);
    return function != NULL;
}

static void *function_for(const void *return_address) {
    Dl_info caller;
    void *function = NULL;
    if (dladdr(return_address, &caller) && caller.dli_fname && *caller.dli_fname) {
        void *handle = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (handle) function = foreign(dlsym(handle, "H5Fcreate"));
    }
    if (!function) function = foreign(dlsym(RTLD_NEXT, "H5Fcreate"));
    if (!function) dl_iterate_phdr(in_any_object, &function);
    return function;
}

static list_class class_named(void *handle, const char *name) {
    return (list_class){dlsym(handle, name), dlsym(RTLD_DEFAULT, name)};
}

static void fill(hdf5 *library, void *handle) {
    bool is_whole = true;
#define FIND(result, function, parameters) *(void **)&library->function = dlsym(handle, #function);
#define NEEDED(result, function, parameters) \
    FIND(result, function, parameters)       \
    is_whole = is_whole && library->function;
    HDF5_FUNCTIONS(NEEDED)
    HDF5_MAYBE(FIND)
    library->file_access = class_named(handle, "H5P_CLS_FILE_ACCESS_ID_g");
    library->file_creation = class_named(handle, "H5P_CLS_FILE_CREATE_ID_g");
    library->dataset_access = class_named(handle, "H5P_CLS_DATASET_ACCESS_ID_g");
    library->dataset_creation = class_named(handle, "H5P_CLS_DATASET_CREATE_ID_g");
    library->is_whole = is_whole && library->file_access.own && library->file_creation.own && library->dataset_access.own &&
                        library->dataset_creation.own;
    unsigned major = 0, minor = 0, release = 0;
    /* Works without initialising the library. */
    if (library->H5get_libversion) library->H5get_libversion(&major, &minor, &release);
    snprintf(library->version, sizeof library->version, "%u.%u.%u", major, minor, release);
    library->is_known = library->is_whole && (major == 2 || (major == 1 && minor >= 10));
}

static const hdf5 *library_with(void *function) {
    Dl_info info;
    if (!dladdr(function, &info)) return NULL;
    const hdf5 *found = NULL;
    pthread_mutex_lock(&table);
    for (size_t at = 0; at < library_count && !found; at++)
        if (libraries[at].base == info.dli_fbase) found = &libraries[at];
    if (!found && library_count < MOST_LIBRARIES) {
        hdf5 *library = &libraries[library_count];
        void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            library->base = info.dli_fbase;
            fill(library, handle);
            library_count++;
            found = library;
        }
    }
    pthread_mutex_unlock(&table);
    return found;
}

const hdf5 *hdf5_of_caller(const void *return_address) {
    size_t site = ((uintptr_t)return_address >> 2) % SITES;
    if (sites[site].address == return_address) return sites[site].library;
    void *function = function_for(return_address);
    const hdf5 *library = function ? library_with(function) : NULL;
    if (library) {
        sites[site].address = return_address;
        sites[site].library = library;
    }
    return library;
}
