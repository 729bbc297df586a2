/* Injects faults between a program and its C library, for tests: built with `cc -shared -fPIC`, loaded by LD_PRELOAD.
 *
 * Counts the calls that touch files under RADDLE_FAULT_UNDER. The RADDLE_FAULT_AT-th call (from 1) of those named in
 * RADDLE_FAULT_CALLS (separated by commas) does what RADDLE_FAULT_DO says:
 *
 * a number:   fail with this errno
 * short:      transfer a single byte (at least one is requested)
 * kill:       SIGKILL before the call
 * stop:N      send signal N to the process, then make the call
 * grow:FILE   append a byte to FILE first
 * cut:FILE    cut FILE to half of its length first
 *
 * With RADDLE_FAULT_STICKY, every later call does the same. Each fault adds a line to RADDLE_FAULT_LOG. Without
 * RADDLE_FAULT_AT, nothing happens. This code makes system calls directly, because the functions below are those of the
 * program.
 *
 * With RADDLE_FAULT_TRACE, each call that changed a file under RADDLE_FAULT_UNDER or its name, or synced it, is appended
 * to that file as a line "CALL LEN OFFSET PATH"; a write is followed by its LEN bytes. rename and link have two paths
 * separated by a tab; create has the flags in place of the offset, truncate the new length. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *under, *calls, *action, *log_path, *trace_path;
static long at;
static int sticky;
static atomic_long count;

__attribute__((constructor)) static void set_up(void)
{
    const char *text = getenv("RADDLE_FAULT_AT");
    under = getenv("RADDLE_FAULT_UNDER");
    calls = getenv("RADDLE_FAULT_CALLS");
    action = getenv("RADDLE_FAULT_DO");
    log_path = getenv("RADDLE_FAULT_LOG");
    trace_path = getenv("RADDLE_FAULT_TRACE");
    sticky = getenv("RADDLE_FAULT_STICKY") != NULL;
    at = text != NULL && under != NULL && calls != NULL && action != NULL ? atol(text) : 0;
}

static int is_named(const char *call)
{
    size_t len = strlen(call);
    for (const char *found = calls; (found = strstr(found, call)) != NULL; found += len)
        if ((found == calls || found[-1] == ',') && (found[len] == ',' || found[len] == 0))
            return 1;
    return 0;
}

static void note(const char *call, const char *path)
{
    char line[PATH_MAX + 64];
    int len, file;
    if (log_path == NULL)
        return;
    len = snprintf(line, sizeof line, "%s %s\n", call, path);
    file = (int)syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file >= 0) {
        syscall(SYS_write, file, line, len);
        syscall(SYS_close, file);
    }
}

/* Decides about a call: 0 to make it, -1 if it failed (errno is set), 1 to shorten it. */
static int fate(const char *call, const char *path)
{
    long number;
    if (at == 0 || strncmp(path, under, strlen(under)) != 0 || !is_named(call))
        return 0;
    number = atomic_fetch_add(&count, 1) + 1;
    if (number < at || (number > at && !sticky))
        return 0;
    note(call, path);
    if (strcmp(action, "kill") == 0) {
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        for (;;)
            ;
    }
    if (strcmp(action, "short") == 0)
        return 1;
    if (strncmp(action, "stop:", 5) == 0) {
        syscall(SYS_kill, syscall(SYS_getpid), atoi(action + 5));
        return 0;
    }
    if (strncmp(action, "grow:", 5) == 0) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, action + 5, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
        syscall(SYS_write, file, "x", 1);
        syscall(SYS_close, file);
        return 0;
    }
    if (strncmp(action, "cut:", 4) == 0) {
        struct stat status;
        int file = (int)syscall(SYS_openat, AT_FDCWD, action + 4, O_WRONLY | O_CLOEXEC, 0);
        if (fstat(file, &status) == 0)
            syscall(SYS_ftruncate, file, status.st_size / 2);
        syscall(SYS_close, file);
        return 0;
    }
    errno = atoi(action);
    return -1;
}

/* Finds the path of an open file; returns 0 if it has none. */
static int path_of_file(int file, char path[PATH_MAX])
{
    char link[64];
    ssize_t len;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    len = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    if (len <= 0)
        return 0;
    path[len] = 0;
    return 1;
}

/* Finds the absolute path of a name; returns 0 if it has none. Tests use absolute names or run inside the watched
 * folder. */
static int path_of_name(const char *name, char path[PATH_MAX])
{
    path[0] = 0;
    if (name[0] != '/') {
        if (getcwd(path, PATH_MAX / 2) == NULL)
            return 0;
        strcat(path, "/");
    }
    strncat(path, name, PATH_MAX - strlen(path) - 1);
    return 1;
}

static int fate_of_file(const char *call, int file)
{
    char path[PATH_MAX];
    return at != 0 && path_of_file(file, path) ? fate(call, path) : 0;
}

static int fate_of_path(const char *call, const char *name)
{
    char path[PATH_MAX];
    return at != 0 && path_of_name(name, path) ? fate(call, path) : 0;
}

static void trace(const char *call, const char *path, long long offset, const void *bytes, size_t len)
{
    char line[2 * PATH_MAX + 128];
    struct iovec pieces[2];
    int file;
    if (strncmp(path, under, strlen(under)) != 0)
        return;
    pieces[0].iov_base = line;
    pieces[0].iov_len = (size_t)snprintf(line, sizeof line, "%s %zu %lld %s\n", call, len, offset, path);
    pieces[1].iov_base = (void *)bytes;
    pieces[1].iov_len = len;
    file = (int)syscall(SYS_openat, AT_FDCWD, trace_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    syscall(SYS_writev, file, pieces, 2);
    syscall(SYS_close, file);
}

/* Traces a call on an open file that returned `outcome`, and returns `outcome`. */
static ssize_t traced_file(ssize_t outcome, const char *call, int file, long long offset, const void *bytes)
{
    char path[PATH_MAX];
    int error = errno;
    if (outcome >= 0 && trace_path != NULL && under != NULL && path_of_file(file, path))
        trace(call, path, offset, bytes, bytes == NULL ? 0 : (size_t)outcome);
    errno = error;
    return outcome;
}

/* Returns the offset at which a write that returned `outcome` began. */
static long long begun_at(int file, ssize_t outcome)
{
    return trace_path == NULL || outcome < 0 ? 0 : (long long)syscall(SYS_lseek, file, 0, SEEK_CUR) - outcome;
}

/* Traces a call on one or two names that returned `outcome`, and returns `outcome`; `to` may be NULL. */
static int traced_name(int outcome, const char *call, const char *from, const char *to, long long offset)
{
    char path[2 * PATH_MAX], second[PATH_MAX];
    int error = errno;
    if (outcome >= 0 && trace_path != NULL && under != NULL && path_of_name(from, path)) {
        if (to != NULL && path_of_name(to, second)) {
            strcat(path, "\t");
            strcat(path, second);
        }
        trace(call, path, offset, NULL, 0);
    }
    errno = error;
    return outcome;
}

#define SHORTENED(outcome, len) ((outcome) > 0 && (len) > 1 ? 1 : (len))

/* Memory requests are counted from the first call, whatever RADDLE_FAULT_UNDER says. The errno is that of malloc. */
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t number, size_t len);
void *__libc_realloc(void *old, size_t len);

static int has_memory(void)
{
    static atomic_int is_asked; /* 0 not yet known, 1 no, 2 yes: the environment is not read for every call */
    long number;
    if (at == 0)
        return 1;
    if (is_asked == 0)
        is_asked = 1 + is_named("malloc");
    if (is_asked == 1)
        return 1;
    number = atomic_fetch_add(&count, 1) + 1;
    if (number < at || (number > at && !sticky))
        return 1;
    if (number == at)
        note("malloc", "");
    errno = ENOMEM;
    return 0;
}

void *malloc(size_t len)
{
    return has_memory() ? __libc_malloc(len) : NULL;
}

void *calloc(size_t number, size_t len)
{
    return has_memory() ? __libc_calloc(number, len) : NULL;
}

void *realloc(void *old, size_t len)
{
    return has_memory() ? __libc_realloc(old, len) : NULL;
}

ssize_t write(int file, const void *bytes, size_t len)
{
    int outcome = fate_of_file("write", file);
    ssize_t written = outcome < 0 ? -1 : syscall(SYS_write, file, bytes, SHORTENED(outcome, len));
    return traced_file(written, "write", file, begun_at(file, written), bytes);
}

ssize_t writev(int file, const struct iovec *pieces, int number)
{
    int outcome = fate_of_file("write", file);
    if (outcome < 0)
        return -1;
    if (outcome > 0)
        return syscall(SYS_write, file, pieces[0].iov_base, SHORTENED(outcome, pieces[0].iov_len));
    if (trace_path != NULL)
        return write(file, pieces[0].iov_base, pieces[0].iov_len); /* the caller writes the rest with its next call */
    return syscall(SYS_writev, file, pieces, number);
}

ssize_t pwrite64(int file, const void *bytes, size_t len, off64_t offset)
{
    int outcome = fate_of_file("pwrite", file);
    ssize_t written = outcome < 0 ? -1 : syscall(SYS_pwrite64, file, bytes, SHORTENED(outcome, len), offset);
    return traced_file(written, "write", file, offset, bytes);
}

ssize_t pwrite(int file, const void *bytes, size_t len, off_t offset)
{
    return pwrite64(file, bytes, len, offset);
}

ssize_t read(int file, void *bytes, size_t len)
{
    int outcome = fate_of_file("read", file);
    return outcome < 0 ? -1 : syscall(SYS_read, file, bytes, SHORTENED(outcome, len));
}

ssize_t pread64(int file, void *bytes, size_t len, off64_t offset)
{
    int outcome = fate_of_file("pread", file);
    return outcome < 0 ? -1 : syscall(SYS_pread64, file, bytes, SHORTENED(outcome, len), offset);
}

ssize_t pread(int file, void *bytes, size_t len, off_t offset)
{
    return pread64(file, bytes, len, offset);
}

int fsync(int file)
{
    int outcome = fate_of_file("fsync", file) < 0 ? -1 : (int)syscall(SYS_fsync, file);
    return (int)traced_file(outcome, "sync", file, 0, NULL);
}

int fdatasync(int file)
{
    int outcome = fate_of_file("fdatasync", file) < 0 ? -1 : (int)syscall(SYS_fdatasync, file);
    return (int)traced_file(outcome, "sync", file, 0, NULL);
}

int ftruncate64(int file, off64_t len)
{
    int outcome = fate_of_file("ftruncate", file) < 0 ? -1 : (int)syscall(SYS_ftruncate, file, len);
    return (int)traced_file(outcome, "truncate", file, len, NULL);
}

int ftruncate(int file, off_t len)
{
    return ftruncate64(file, len);
}

int close(int file)
{
    int outcome = fate_of_file("close", file);
    int error = errno;
    int closed = (int)syscall(SYS_close, file); /* a close that fails has closed the file anyway */
    if (outcome < 0) {
        errno = error;
        return -1;
    }
    return closed;
}

int rename(const char *from, const char *to)
{
    int outcome = fate_of_path("rename", to) < 0 ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    return traced_name(outcome, "rename", from, to, 0);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    int outcome = fate_of_path("rename", to);
    outcome = outcome < 0 ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
    return traced_name(outcome, "rename", from, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    int outcome = fate_of_path("rename", to);
    outcome = outcome < 0 ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    return traced_name(outcome, "rename", from, to, 0);
}

int link(const char *from, const char *to)
{
    int outcome = fate_of_path("link", to) < 0 ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    return traced_name(outcome, "link", from, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    int outcome = fate_of_path("link", to);
    outcome = outcome < 0 ? -1 : (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    return traced_name(outcome, "link", from, to, 0);
}

int unlink(const char *path)
{
    int outcome = fate_of_path("unlink", path) < 0 ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    return traced_name(outcome, "unlink", path, NULL, 0);
}

static int opened(const char *path, int folder, int flags, mode_t mode)
{
    int file;
    if (flags & (O_CREAT | O_WRONLY | O_RDWR) ? fate_of_path("create", path) < 0 : fate_of_path("open", path) < 0)
        return -1;
    file = (int)syscall(SYS_openat, folder, path, flags, mode);
    return flags & (O_CREAT | O_TRUNC) ? traced_name(file, "create", path, NULL, flags) : file;
}

#define MODE(flags, mode)                              \
    mode_t mode = 0;                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {             \
        va_list rest;                                  \
        va_start(rest, flags);                         \
        mode = (mode_t)va_arg(rest, int);              \
        va_end(rest);                                  \
    }

int open64(const char *path, int flags, ...)
{
    MODE(flags, mode)
    return opened(path, AT_FDCWD, flags, mode);
}

int open(const char *path, int flags, ...)
{
    MODE(flags, mode)
    return opened(path, AT_FDCWD, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    MODE(flags, mode)
    return opened(path, folder, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE(flags, mode)
    return opened(path, folder, flags, mode);
}
