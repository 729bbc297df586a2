#define _GNU_SOURCE
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Standard error when the object is loaded. If the program closes it, the number passes to the next file that is
 * opened, which may be an HDF5 file. */
static struct stat first_error;
static bool has_error;

__attribute__((constructor)) static void look_at_error(void) { has_error = fstat(STDERR_FILENO, &first_error) == 0; }

static bool is_error_unchanged(void) {
    struct stat now;
    return has_error && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == first_error.st_dev && now.st_ino == first_error.st_ino;
}

void line_begin(line *out) {
    out->length = 0;
    line_add(out, "raddle apply: ");
}

void line_add(line *out, const char *format, ...) {
    size_t room = sizeof out->text - 1 - out->length; /* one left for the line's end */
    va_list values;
    va_start(values, format);
    int wanted = vsnprintf(out->text + out->length, room, format, values);
    va_end(values);
    if (wanted > 0) out->length += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

void line_add_name(line *out, const char *name) {
    for (size_t at = 0; name[at] && at < 1000; at++) {
        unsigned char byte = (unsigned char)name[at];
        if (byte < 0x20 || byte == 0x7f) line_add(out, "\\x%02x", byte);
        else line_add(out, "%c", byte);
    }
}

void line_end(line *out) {
    const char *place = getenv(LOG_VARIABLE);
    if (!place || !*place) return;
    int saved = errno;
    out->text[out->length++] = '\n';
    int file = strcmp(place, "-")       ? open(place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
               : is_error_unchanged() ? STDERR_FILENO
                                      : -1;
    /* If the log cannot be written, the program continues. */
    if (file >= 0) {
        ssize_t written = write(file, out->text, out->length);
        (void)written;
        if (file != STDERR_FILENO) close(file);
    }
    errno = saved;
}
