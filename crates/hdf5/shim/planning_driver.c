/* Planning driver: libhdf5 writes metadata, the caller places raw data.
 *
 * A caller that has compressed a chunk itself and written it at an address of its choice (a claim) must make
 * libhdf5 index it there. It registers the claim and calls H5Dwrite_chunk with a placeholder pointer instead of the
 * bytes. This driver answers libhdf5's request for space with the claimed address and drops the write.
 *
 * The file has three parts, known from the start:
 *
 *     0 ............ region_end ................ raw_end ............
 *     metadata       raw data, written by others tail: metadata that did not fit in front
 *
 * An existing file is edited in the same way: its bytes are the front, which is full, raw data lies after its old end,
 * and metadata follows the raw data. libhdf5's changes below the old end go to the caller's overlay and never to the
 * file, so that readers see the unchanged file until the caller writes the changes.
 *
 * Invariants
 *  - While raw data may still grow, metadata is allocated below region_end only; after raw_end only once
 *    raddle_plan_open_tail has declared that no more raw data will be placed. Metadata and claims cannot overlap.
 *  - No byte between region_end and raw_end is ever written here; an attempt is a failure, never a write.
 *  - libhdf5 never sees an I/O error: after one it may crash when the file is closed, and files closed after a
 *    failed write have been seen to open with wrong content. The first failure is recorded per file, from then on
 *    writes are swallowed, and the caller asks raddle_plan_failure after every call.
 *  - In an edited file, no byte below its old end is written, and its length never falls below its old end.
 *  - There is no state outside the plan of a file, whose pointer is passed in the driver information of the access
 *    list.
 *
 * Reasons for the unusual parts, found by experiment with HDF5 2.2 (letters as in the notes on the prototype):
 *  a. While planning, get_eoa returns an address far beyond the file. libhdf5 extends a block that ends at the end
 *     of the allocated space by set_eoa, without calling alloc (H5FD__try_extend, also from the aggregators), which
 *     would overrun claims. Nothing ever ends at the far address, so every extension is refused. The exception is
 *     the growth, permitted by the caller, of an object header that ends where metadata ends, if there is room
 *     (extension_address). Without it, each further attribute of an object would take a separate block, and
 *     libhdf5 searches all of them for the next one.
 *  b. The first metadata is allocated by H5Fcreate itself; the front region contains it because libhdf5 allocates
 *     only through alloc, and the caller's claims start at region_end however much H5Fcreate took.
 *  c. Dropped raw writes do not advance eof, and truncate always sets the length: libhdf5 skips it if eof == eoa.
 *  d. Global heap collections (variable-length data) arrive with the type of raw data: a planned write is
 *     recognised by the placeholder pointer, never by type.
 *  e. Aggregation of small raw data would swallow claims in blocks, and aggregation of metadata would leave gaps of up
 *     to the block size: neither is advertised, so every request reaches alloc. The free-space map keeps raw data
 *     separate, so that a claim never comes from space freed by metadata.
 *  f. Page buffering copies raw data from the caller's buffer, which must never be accessed: the access list must
 *     not turn it on (it is off by default, and paged file space is never requested).
 */
#include "H5FDdevelop.h"
#include "hdf5.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Largest address: files end far below it, because the largest offset of a Linux file is 2^63 - 1. */
#define MAX_ADDRESS (((haddr_t)1 << 62) - 1)
/* Result of get_eoa while planning (a). */
#define FAR_ADDRESS ((haddr_t)1 << 61)
/* First of the addresses returned after a failure: unique, below FAR_ADDRESS, never written. */
#define LOST_ADDRESS ((haddr_t)1 << 60)

enum phase {
    CREATING = 0,  /* H5Fcreate or H5Fopen runs: get_eoa returns the true end of the space, which libhdf5 checks */
    PLANNING = 1,  /* objects are created, claims inserted */
    CLOSING = 2,   /* H5Fclose runs: get_eoa returns the true end of the space, for the superblock */
    ABANDONED = 3, /* the file is abandoned: nothing that libhdf5 does reaches the disk */
};

enum failure {
    NONE = 0,
    WRITE_FAILED = 1,       /* pwrite; error_number set */
    READ_FAILED = 2,        /* pread; error_number set */
    TRUNCATE_FAILED = 3,    /* ftruncate; error_number set */
    REGION_FULL = 4,        /* metadata did not fit and the tail was not open */
    WRITE_INTO_RAW = 5,     /* libhdf5 wrote its own bytes between region_end and raw_end */
    PLACEHOLDER_ASTRAY = 6, /* a placeholder was written outside of the claim */
};

struct raddle_failure {
    int kind;
    int error_number;
    uint64_t address;
    uint64_t len_bytes;
};

struct raddle_usage {
    uint64_t front_len_bytes; /* used part of the front region, including space freed again by libhdf5 */
    uint64_t tail_len_bytes;  /* metadata after the raw region */
    uint64_t raw_end;         /* end of the raw region; region_end if there is none */
    uint64_t end;             /* end of the allocated space as written to the superblock; while planning: so far */
    uint64_t write_count;     /* pwrite calls that wrote metadata */
    uint64_t write_len_bytes;
    uint64_t claim_count;     /* placeholder writes taken */
    uint64_t heap_len_bytes;  /* allocated for heap blocks (H5FD_MEM_LHEAP: local and fractal heaps) */
};

/* Changed bytes of an edited file, kept by the caller. The functions return 0 or an errno. */
struct raddle_overlay {
    void *context;
    int (*read)(void *context, uint64_t address, size_t len_bytes, void *out);
    int (*write)(void *context, uint64_t address, size_t len_bytes, const void *bytes);
};

typedef struct raddle_plan {
    int fd;
    int phase;
    int tail_open;
    const void *placeholder;
    uint64_t region_end;
    uint64_t front_next; /* next free address of the front region */
    uint64_t raw_end;    /* greatest end of a claim, or the end set by the caller */
    uint64_t tail_next;  /* next free address after the raw region, once tail_open */
    uint64_t end;        /* while creating and closing: end of the allocated space */
    uint64_t eof;        /* greatest end of a write that reached the file */
    uint64_t lost_next;
    uint64_t growth_len_bytes; /* maximum growth of the current object header; 0: none may be extended */
    uint64_t claim_address; /* the registered claim; claim_len_bytes == 0: none */
    uint64_t claim_len_bytes;
    int claim_allocated; /* alloc has returned it */
    int claim_written;   /* the placeholder was written */
    uint64_t old_end;    /* length of an edited file before the edit; 0: the file is new */
    struct raddle_overlay overlay;
    struct raddle_failure failure;
    struct raddle_usage usage;
} raddle_plan;

typedef struct {
    H5FD_t pub; /* must be first: libhdf5 sees only this */
    raddle_plan *plan;
} planning_file;

/* Driver information in the access property list; libhdf5 copies it as bytes. */
typedef struct {
    raddle_plan *plan;
} driver_information;

static raddle_plan *plan_of(const H5FD_t *file)
{
    return ((const planning_file *)file)->plan;
}

static void fail(raddle_plan *plan, int kind, int error_number, uint64_t address, uint64_t len_bytes)
{
    if (plan->failure.kind == NONE)
        plan->failure = (struct raddle_failure){kind, error_number, address, len_bytes};
}

static int is_lost(const raddle_plan *plan)
{
    return plan->phase == ABANDONED || plan->failure.kind != NONE;
}

/* ---- allocation ---- */

static haddr_t planning_alloc(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, hsize_t len_bytes)
{
    raddle_plan *plan = plan_of(file);
    haddr_t address;
    (void)dxpl;
    if (type == H5FD_MEM_DRAW && plan->claim_len_bytes == len_bytes && !plan->claim_allocated && len_bytes > 0) {
        plan->claim_allocated = 1;
        return plan->claim_address;
    }
    if (!is_lost(plan)) {
        if (type == H5FD_MEM_LHEAP)
            plan->usage.heap_len_bytes += len_bytes;
        /* The front is used first even if the tail is open, so that no reservation is wasted. */
        if (len_bytes <= plan->region_end - plan->front_next) {
            address = plan->front_next;
            plan->front_next += len_bytes;
            if (plan->end < plan->front_next)
                plan->end = plan->front_next;
            return address;
        }
        if (plan->tail_open && len_bytes < LOST_ADDRESS - plan->tail_next) {
            address = plan->tail_next;
            plan->tail_next += len_bytes;
            plan->usage.tail_len_bytes += len_bytes;
            if (plan->end < plan->tail_next)
                plan->end = plan->tail_next;
            return address;
        }
        fail(plan, REGION_FULL, 0, plan->front_next, len_bytes);
    }
    address = plan->lost_next;
    plan->lost_next += len_bytes;
    return address;
}

/* Returns the end address at which an object header may be extended. libhdf5 uses it as the end of all object headers,
 * including those that it reads: it must not lie before any of them. */
static haddr_t extension_address(const raddle_plan *plan)
{
    if (plan->growth_len_bytes == 0 || is_lost(plan))
        return FAR_ADDRESS;
    if (plan->usage.tail_len_bytes > 0)
        return plan->tail_next;
    return plan->region_end - plan->front_next < plan->growth_len_bytes ? FAR_ADDRESS : plan->front_next;
}

/* libhdf5 has extended the object header that ended at extension_address, or has freed one there. */
static void extend(raddle_plan *plan, haddr_t address)
{
    int is_tail = plan->usage.tail_len_bytes > 0;
    uint64_t *next = is_tail ? &plan->tail_next : &plan->front_next;
    if (address > (is_tail ? LOST_ADDRESS : plan->region_end)) {
        fail(plan, REGION_FULL, 0, *next, address - *next);
        return;
    }
    if (is_tail)
        plan->usage.tail_len_bytes += address - *next;
    if (plan->end == *next || plan->end < address)
        plan->end = address;
    *next = address;
}

static haddr_t planning_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    const raddle_plan *plan = plan_of(file);
    if (plan->phase == PLANNING && type == H5FD_MEM_OHDR)
        return extension_address(plan);
    if (plan->phase == PLANNING || is_lost(plan))
        return FAR_ADDRESS; /* (a) */
    return plan->end;
}

static herr_t planning_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
    raddle_plan *plan = plan_of(file);
    if (plan->phase == PLANNING && type == H5FD_MEM_OHDR && extension_address(plan) != FAR_ADDRESS)
        extend(plan, address);
    /* While closing, libhdf5 returns free space at the end of the file, metadata only: never truncate raw data. While
     * creating, only the (empty) user block is set. */
    if (plan->phase == CLOSING && address >= plan->usage.raw_end)
        plan->end = address;
    /* A file being opened gets the end stated in its superblock. */
    if (plan->phase == CREATING && plan->old_end > 0)
        plan->end = address;
    return 0;
}

static haddr_t planning_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return plan_of(file)->eof;
}

/* ---- input and output ---- */

static herr_t planning_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t len_bytes, void *out)
{
    raddle_plan *plan = plan_of(file);
    char *next = out;
    (void)type;
    (void)dxpl;
    if (address < plan->old_end) {
        size_t below = len_bytes < plan->old_end - address ? len_bytes : (size_t)(plan->old_end - address);
        int error_number = plan->overlay.read(plan->overlay.context, address, below, next);
        if (error_number != 0) {
            fail(plan, READ_FAILED, error_number, address, len_bytes);
            memset(next, 0, len_bytes);
            return 0;
        }
        next += below;
        address += below;
        len_bytes -= below;
    }
    while (len_bytes > 0) {
        ssize_t done = address < LOST_ADDRESS ? pread(plan->fd, next, len_bytes, (off_t)address) : 0;
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            fail(plan, READ_FAILED, errno, address, len_bytes);
        if (done <= 0) {
            /* Space beyond the end of the file was allocated but not written yet: zeros. */
            memset(next, 0, len_bytes);
            return 0;
        }
        next += done;
        address += (haddr_t)done;
        len_bytes -= (size_t)done;
    }
    return 0;
}

static herr_t planning_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t len_bytes,
                             const void *bytes)
{
    raddle_plan *plan = plan_of(file);
    const char *next = bytes;
    (void)type; /* (d) */
    (void)dxpl;
    if (bytes == plan->placeholder) {
        if (plan->claim_allocated && address == plan->claim_address && len_bytes == plan->claim_len_bytes) {
            plan->claim_written = 1;
            plan->usage.claim_count++;
        } else {
            fail(plan, PLACEHOLDER_ASTRAY, 0, address, len_bytes);
        }
        return 0; /* (c): eof stays */
    }
    if (is_lost(plan))
        return 0;
    /* Without raw data the tail follows the front directly, and libhdf5 combines writes to both. */
    if (address < plan->raw_end && len_bytes > 0 && address + len_bytes > plan->region_end &&
        !(plan->tail_open && plan->raw_end == plan->region_end)) {
        fail(plan, WRITE_INTO_RAW, 0, address, len_bytes);
        return 0;
    }
    plan->usage.write_count++;
    plan->usage.write_len_bytes += len_bytes;
    if (address < plan->old_end) {
        size_t below = len_bytes < plan->old_end - address ? len_bytes : (size_t)(plan->old_end - address);
        int error_number = plan->overlay.write(plan->overlay.context, address, below, next);
        if (error_number != 0) {
            fail(plan, WRITE_FAILED, error_number, address, len_bytes);
            return 0;
        }
        next += below;
        address += below;
        len_bytes -= below;
    }
    while (len_bytes > 0) {
        ssize_t done = pwrite(plan->fd, next, len_bytes, (off_t)address);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            /* A write of zero bytes without an error would loop forever. */
            fail(plan, WRITE_FAILED, done < 0 ? errno : EIO, address, len_bytes);
            return 0;
        }
        next += done;
        address += (haddr_t)done;
        len_bytes -= (size_t)done;
        if (plan->eof < address)
            plan->eof = address;
    }
    return 0;
}

static herr_t planning_truncate(H5FD_t *file, hid_t dxpl, bool closing)
{
    raddle_plan *plan = plan_of(file);
    (void)dxpl;
    (void)closing;
    if (plan->phase != CLOSING || is_lost(plan))
        return 0;
    while (ftruncate(plan->fd, (off_t)plan->end) != 0) { /* (c) */
        if (errno == EINTR)
            continue;
        fail(plan, TRUNCATE_FAILED, errno, plan->end, 0);
        return 0;
    }
    plan->eof = plan->end;
    return 0;
}

/* ---- lifecycle of a file ---- */

static H5FD_t *planning_open(const char *name, unsigned flags, hid_t fapl, haddr_t max_address)
{
    const driver_information *information = H5Pget_driver_info(fapl);
    planning_file *file;
    (void)name; /* The caller has opened the file; it also closes it. */
    (void)flags;
    (void)max_address;
    if (information == NULL || information->plan == NULL)
        return NULL;
    file = calloc(1, sizeof *file);
    if (file == NULL)
        return NULL;
    file->plan = information->plan;
    return &file->pub;
}

static herr_t planning_close(H5FD_t *file)
{
    free(file);
    return 0;
}

static herr_t planning_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    /* (e) Accumulation only joins neighbouring metadata writes. No data sieve: raw writes must arrive unchanged. */
    *flags = H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

/* No cmp: files are created exclusively, so two handles never refer to the same file. No lock: same reason. */
static const H5FD_class_t PLANNING_DRIVER = {
    .version = H5FD_CLASS_VERSION,
    .value = 614, /* 512 to 65535 are free for use without registration */
    .name = "raddle_planning",
    .maxaddr = MAX_ADDRESS,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(driver_information),
    .open = planning_open,
    .close = planning_close,
    .query = planning_query,
    .alloc = planning_alloc,
    .get_eoa = planning_get_eoa,
    .set_eoa = planning_set_eoa,
    .get_eof = planning_get_eof,
    .read = planning_read,
    .write = planning_write,
    .truncate = planning_truncate,
    /* (e) Metadata shares one free list; raw data and global heaps use a separate one. */
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- interface for the caller ---- */

void raddle_plan_open_tail(raddle_plan *plan, uint64_t raw_end);

/* Creates a plan for the empty file behind `fd`, which must stay open until the plan is freed. Returns NULL if out of
 * memory. */
raddle_plan *raddle_plan_new(int fd, uint64_t region_end, const void *placeholder)
{
    raddle_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return NULL;
    plan->fd = fd;
    plan->placeholder = placeholder;
    plan->region_end = region_end;
    plan->raw_end = region_end;
    plan->lost_next = LOST_ADDRESS;
    return plan;
}

/* Turns a new plan into one for editing an existing file of `old_end` bytes, with raw data between there and
 * `raw_end`. */
void raddle_plan_edit(raddle_plan *plan, uint64_t old_end, uint64_t raw_end, struct raddle_overlay overlay)
{
    plan->old_end = old_end;
    plan->overlay = overlay;
    plan->region_end = plan->front_next = old_end;
    plan->raw_end = old_end;
    raddle_plan_open_tail(plan, raw_end);
    plan->eof = plan->raw_end;
}

/* Resets the plan after H5Fclose has succeeded, for the H5Fopen that follows. */
void raddle_plan_reopen(raddle_plan *plan)
{
    plan->phase = CREATING;
}

/* Detaches the file, which the caller closes, from a plan that libhdf5 may hold forever (after a failed close). */
void raddle_plan_detach(raddle_plan *plan)
{
    plan->phase = ABANDONED;
    plan->fd = -1;
}

/* Frees the plan. Call only after H5Fclose has succeeded or H5Fcreate has failed: libhdf5 must no longer hold it. */
void raddle_plan_free(raddle_plan *plan)
{
    free(plan);
}

/* Makes the access list use the planning driver with this plan. Registers the driver on first use, under a single
 * identifier for the process. The caller holds libhdf5's lock. */
herr_t raddle_plan_attach(raddle_plan *plan, hid_t fapl)
{
    static hid_t driver = H5I_INVALID_HID;
    driver_information information = {plan};
    if (driver < 0)
        driver = H5FDregister(&PLANNING_DRIVER);
    if (driver < 0)
        return -1;
    return H5Pset_driver(fapl, driver, &information);
}

/* Starts planning, after H5Fcreate or H5Fopen has returned. */
void raddle_plan_begin(raddle_plan *plan)
{
    plan->phase = PLANNING;
}

/* Assigns this address to the next request for raw space of exactly this length. */
void raddle_plan_claim(raddle_plan *plan, uint64_t address, uint64_t len_bytes)
{
    plan->claim_address = address;
    plan->claim_len_bytes = len_bytes;
    plan->claim_allocated = plan->claim_written = 0;
    if (plan->raw_end < address + len_bytes)
        plan->raw_end = address + len_bytes;
}

/* Withdraws the claim; returns whether libhdf5 took the address and wrote the placeholder there. */
int raddle_plan_take_claim(raddle_plan *plan)
{
    int taken = plan->claim_allocated && plan->claim_written;
    plan->claim_len_bytes = 0;
    plan->claim_allocated = plan->claim_written = 0;
    return taken;
}

/* Until the next call, object headers at the end of the metadata may be extended by at most this length each time. */
void raddle_plan_expect_growth(raddle_plan *plan, uint64_t len_bytes)
{
    plan->growth_len_bytes = len_bytes;
}

/* Declares that all raw data lies below `raw_end` (or below the greatest end of a claim, if that is greater), so that
 * metadata may be placed after it. */
void raddle_plan_open_tail(raddle_plan *plan, uint64_t raw_end)
{
    if (plan->raw_end < raw_end)
        plan->raw_end = raw_end;
    if (!plan->tail_open) {
        plan->tail_open = 1;
        plan->tail_next = plan->raw_end;
    }
}

/* Prepares for H5Fclose, which must be called next. */
void raddle_plan_begin_close(raddle_plan *plan)
{
    raddle_plan_open_tail(plan, 0);
    plan->phase = CLOSING;
    /* Without raw data the file ends with the metadata, not with the reservation. */
    plan->usage.raw_end = plan->raw_end > plan->region_end || plan->old_end > 0 ? plan->raw_end : 0;
    if (plan->end < plan->usage.raw_end)
        plan->end = plan->usage.raw_end;
}

/* Abandons the file; H5Fclose may follow and will not modify it. */
void raddle_plan_abandon(raddle_plan *plan)
{
    plan->phase = ABANDONED;
}

uint64_t raddle_plan_front_left(const raddle_plan *plan)
{
    return plan->tail_open ? UINT64_MAX : plan->region_end - plan->front_next;
}

struct raddle_failure raddle_plan_failure(const raddle_plan *plan)
{
    return plan->failure;
}

struct raddle_usage raddle_plan_usage(const raddle_plan *plan)
{
    struct raddle_usage usage = plan->usage;
    usage.front_len_bytes = plan->front_next;
    usage.raw_end = plan->raw_end;
    usage.end = plan->end;
    return usage;
}
