/* A file driver that aligns raw data and places metadata in separate regions, for programs with a statically linked
 * HDF5, which a preloaded object cannot reach. HDF5 (1.13.0 or later) loads it as a plugin.
 *
 * It calls no HDF5 function, so that one object works with every HDF5, static or not, and can be built without one:
 * the structures below are those of H5FDdevelop.h, class version 1, unchanged from 1.14 to 2.x. Only placement is
 * changed; caches and formats are left to HDF5. It reads and writes like HDF5's default driver, so files are ordinary.
 * */
#define _GNU_SOURCE
#include "../shim/log.h"
#include "../shim/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int64_t hid_t;
typedef int herr_t;
typedef unsigned long long hsize_t;
typedef uint64_t haddr_t;

#define DRIVER_NAME "raddle_apply"
/* HDF5 requires a number of 256 or more; those below 512 are registered with the HDF Group. */
#define DRIVER_VALUE 1907
#define NO_ADDRESS ((haddr_t)-1)
#define H5F_ACC_RDWR 0x1u
#define H5F_ACC_TRUNC 0x2u
#define H5F_ACC_EXCL 0x4u
#define H5F_ACC_CREAT 0x10u

enum { MEM_DEFAULT, MEM_SUPER, MEM_BTREE, MEM_DRAW, MEM_GHEAP, MEM_LHEAP, MEM_OHDR, MEM_TYPES };

#define FEATURE_AGGREGATE_METADATA 0x1
#define FEATURE_ACCUMULATE_METADATA 0x6
#define FEATURE_DATA_SIEVE 0x8
#define FEATURE_AGGREGATE_SMALL_DATA 0x10
#define FEATURE_POSIX_HANDLE 0x80
#define FEATURE_DEFAULT_COMPATIBLE 0x8000

struct H5FD_class_t;
typedef struct {
    hid_t driver_id;
    const struct H5FD_class_t *cls;
    unsigned long fileno;
    unsigned access_flags;
    unsigned long feature_flags;
    haddr_t maxaddr, base_addr;
    hsize_t threshold, alignment;
    bool paged_aggr;
} H5FD_t;

typedef struct H5FD_class_t {
    unsigned version;
    int value;
    const char *name;
    haddr_t maxaddr;
    int fc_degree;
    herr_t (*terminate)(void);
    hsize_t (*sb_size)(H5FD_t *);
    herr_t (*sb_encode)(H5FD_t *, char *, unsigned char *);
    herr_t (*sb_decode)(H5FD_t *, const char *, const unsigned char *);
    size_t fapl_size;
    void *(*fapl_get)(H5FD_t *);
    void *(*fapl_copy)(const void *);
    herr_t (*fapl_free)(void *);
    size_t dxpl_size;
    void *(*dxpl_copy)(const void *);
    herr_t (*dxpl_free)(void *);
    H5FD_t *(*open)(const char *, unsigned, hid_t, haddr_t);
    herr_t (*close)(H5FD_t *);
    int (*cmp)(const H5FD_t *, const H5FD_t *);
    herr_t (*query)(const H5FD_t *, unsigned long *);
    herr_t (*get_type_map)(const H5FD_t *, int *);
    haddr_t (*alloc)(H5FD_t *, int, hid_t, hsize_t);
    herr_t (*free)(H5FD_t *, int, hid_t, haddr_t, hsize_t);
    haddr_t (*get_eoa)(const H5FD_t *, int);
    herr_t (*set_eoa)(H5FD_t *, int, haddr_t);
    haddr_t (*get_eof)(const H5FD_t *, int);
    herr_t (*get_handle)(H5FD_t *, hid_t, void **);
    herr_t (*read)(H5FD_t *, int, hid_t, haddr_t, size_t, void *);
    herr_t (*write)(H5FD_t *, int, hid_t, haddr_t, size_t, const void *);
    void (*vectors_and_selections[4])(void);
    herr_t (*flush)(H5FD_t *, hid_t, bool);
    herr_t (*truncate)(H5FD_t *, hid_t, bool);
    herr_t (*lock)(H5FD_t *, bool);
    herr_t (*unlock)(H5FD_t *);
    herr_t (*del)(const char *, hid_t);
    herr_t (*ctl)(H5FD_t *, uint64_t, uint64_t, const void *, void **);
    int fl_map[MEM_TYPES];
} H5FD_class_t;

typedef struct {
    H5FD_t public; /* first: HDF5 accesses the rest only through it */
    int descriptor;
    haddr_t end_of_addresses, end_of_file;
    dev_t device;
    ino_t inode;
    /* Unused part of the current region for metadata. */
    haddr_t region, region_end;
    hsize_t threshold, alignment, region_bytes;
} open_file;

static void tell(const char *name, const char *what) {
    line out;
    line_begin(&out);
    line_add_name(&out, name);
    line_add(&out, " (driver %s): %s", DRIVER_NAME, what);
    line_end(&out);
}

static void tell_failure(const char *operation) {
    line out;
    line_begin(&out);
    line_add(&out, "driver %s: %s failed: %s", DRIVER_NAME, operation, strerror(errno));
    line_end(&out);
}

static void tell_settings(const char *name, const open_file *file) {
    line out;
    line_begin(&out);
    line_add_name(&out, name);
    line_add(&out, " (driver %s):", DRIVER_NAME);
    if (file->alignment > 1) line_add(&out, " set alignment=%llu,alignment_threshold=%llu", file->alignment, file->threshold);
    if (file->region_bytes) line_add(&out, " set meta_block=%llu", file->region_bytes);
    if (file->alignment <= 1 && !file->region_bytes) line_add(&out, " nothing to set");
    line_end(&out);
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t list, haddr_t most) {
    (void)list, (void)most;
    int how = (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY) | (flags & H5F_ACC_TRUNC ? O_TRUNC : 0) |
              (flags & H5F_ACC_CREAT ? O_CREAT : 0) | (flags & H5F_ACC_EXCL ? O_EXCL : 0);
    int descriptor = open(name, how | O_CLOEXEC, 0666);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) < 0) {
        tell(name, strerror(errno));
        if (descriptor >= 0) close(descriptor);
        return NULL;
    }
    open_file *file = calloc(1, sizeof *file);
    if (!file) {
        close(descriptor);
        return NULL;
    }
    file->descriptor = descriptor;
    file->end_of_file = (haddr_t)status.st_size;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->alignment = setting_number("alignment", 1);
    file->threshold = setting_number("alignment_threshold", 65536);
    file->region_bytes = setting_number("meta_block", 0);
    if (flags & H5F_ACC_RDWR) tell_settings(name, file);
    return &file->public;
}

static herr_t driver_close(H5FD_t *given) {
    open_file *file = (open_file *)given;
    int result = close(file->descriptor);
    if (result < 0) tell_failure("close");
    free(file);
    return result < 0 ? -1 : 0;
}

static int driver_cmp(const H5FD_t *left, const H5FD_t *right) {
    const open_file *a = (const open_file *)left, *b = (const open_file *)right;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* SUPPORTS_SWMR_IO is not set, because it is untested; HDF5 then refuses SWMR. */
static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    *flags = FEATURE_AGGREGATE_METADATA | FEATURE_ACCUMULATE_METADATA | FEATURE_DATA_SIEVE | FEATURE_AGGREGATE_SMALL_DATA |
             FEATURE_POSIX_HANDLE | FEATURE_DEFAULT_COMPATIBLE;
    return 0;
}

static haddr_t aligned(haddr_t address, hsize_t alignment) {
    haddr_t past = alignment > 1 ? address % alignment : 0;
    return past ? address + (alignment - past) : address;
}

static haddr_t driver_alloc(H5FD_t *given, int type, hid_t list, hsize_t bytes) {
    (void)list;
    open_file *file = (open_file *)given;
    haddr_t address = file->end_of_addresses;
    /* HDF5 expects consecutive pages, and if the program has set an alignment, it takes the gap before the end for free
     * space. */
    bool is_free = !given->paged_aggr && given->alignment <= 1;
    if (is_free && type != MEM_DRAW && type != MEM_GHEAP && type != MEM_SUPER && file->region_bytes) {
        if (file->region_end - file->region < bytes) {
            file->region = file->end_of_addresses;
            file->region_end = file->region + (bytes > file->region_bytes ? bytes : file->region_bytes);
            file->end_of_addresses = file->region_end;
        }
        address = file->region;
        file->region += bytes;
        return address;
    }
    if (is_free && bytes >= file->threshold) address = aligned(address, file->alignment);
    file->end_of_addresses = address + bytes;
    return address;
}

static haddr_t driver_get_eoa(const H5FD_t *file, int type) {
    (void)type;
    return ((const open_file *)file)->end_of_addresses;
}

/* HDF5 extends and frees space at the end of the file without calling alloc. */
static herr_t driver_set_eoa(H5FD_t *given, int type, haddr_t address) {
    (void)type;
    open_file *file = (open_file *)given;
    if (address < file->region_end) file->region = file->region_end = 0;
    file->end_of_addresses = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, int type) {
    (void)type;
    return ((const open_file *)file)->end_of_file;
}

static herr_t driver_get_handle(H5FD_t *file, hid_t list, void **handle) {
    (void)list;
    *handle = &((open_file *)file)->descriptor;
    return 0;
}

static herr_t driver_read(H5FD_t *given, int type, hid_t list, haddr_t address, size_t bytes, void *buffer) {
    (void)type, (void)list;
    char *at = buffer;
    while (bytes) {
        ssize_t count = pread(((open_file *)given)->descriptor, at, bytes, (off_t)address);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            tell_failure("read");
            return -1;
        }
        if (!count) {
            memset(at, 0, bytes); /* beyond the end of the file, like the default driver */
            break;
        }
        at += count, address += (haddr_t)count, bytes -= (size_t)count;
    }
    return 0;
}

static herr_t driver_write(H5FD_t *given, int type, hid_t list, haddr_t address, size_t bytes, const void *buffer) {
    (void)type, (void)list;
    open_file *file = (open_file *)given;
    const char *at = buffer;
    while (bytes) {
        ssize_t count = pwrite(file->descriptor, at, bytes, (off_t)address);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            tell_failure("write");
            return -1;
        }
        at += count, address += (haddr_t)count, bytes -= (size_t)count;
    }
    if (address > file->end_of_file) file->end_of_file = address;
    return 0;
}

static herr_t driver_truncate(H5FD_t *given, hid_t list, bool closing) {
    (void)list, (void)closing;
    open_file *file = (open_file *)given;
    if (file->end_of_addresses == file->end_of_file) return 0;
    if (ftruncate(file->descriptor, (off_t)file->end_of_addresses) < 0) {
        tell_failure("truncate");
        return -1;
    }
    file->end_of_file = file->end_of_addresses;
    return 0;
}

/* Called only if HDF5_USE_FILE_LOCKING and the program allow it. On a file system without locks there are no
 * conflicts. */
static herr_t driver_lock(H5FD_t *file, bool is_exclusive) {
    int result = flock(((open_file *)file)->descriptor, (is_exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
    return result < 0 && errno != ENOSYS ? -1 : 0;
}

static herr_t driver_unlock(H5FD_t *file) {
    return flock(((open_file *)file)->descriptor, LOCK_UN) < 0 && errno != ENOSYS ? -1 : 0;
}

static herr_t driver_del(const char *name, hid_t list) {
    (void)list;
    return unlink(name) < 0 ? -1 : 0;
}

static const H5FD_class_t driver = {
    .version = 1,
    .value = DRIVER_VALUE,
    .name = DRIVER_NAME,
    .maxaddr = ((haddr_t)1 << 62) - 1,
    .fc_degree = 1, /* H5F_CLOSE_WEAK */
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_cmp,
    .query = driver_query,
    .alloc = driver_alloc,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .get_handle = driver_get_handle,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .lock = driver_lock,
    .unlock = driver_unlock,
    .del = driver_del,
    /* H5FD_FLMAP_DICHOTOMY: separate free space for metadata and for raw data. */
    .fl_map = {MEM_SUPER, MEM_SUPER, MEM_SUPER, MEM_DRAW, MEM_DRAW, MEM_SUPER, MEM_SUPER},
};

__attribute__((visibility("default"))) int H5PLget_plugin_type(void) { return 2; /* H5PL_TYPE_VFD */ }
__attribute__((visibility("default"))) const void *H5PLget_plugin_info(void) { return &driver; }
