/* The log: a line per file, and one per process about datasets. Each line is a single write, so that lines of several
 * processes do not mix; without the environment variable, nothing is logged. */
#ifndef RADDLE_LOG_H
#define RADDLE_LOG_H

#include <stdarg.h>
#include <stddef.h>

/* Environment variable with the path of a file, or "-" for standard error. */
#define LOG_VARIABLE "RADDLE_APPLY_LOG"

/* A line under construction; text that does not fit is cut off. */
typedef struct {
    char text[2048];
    size_t length;
} line;

void line_begin(line *out);
void line_add(line *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a name from the program, with control characters escaped. */
void line_add_name(line *out, const char *name);
void line_end(line *out);

#endif
