/* What is said: a line per file, and one per process about datasets. Each is one write, so that lines of several processes
 * do not mix; nothing is said where the environment names no place for it. */
#ifndef RADDLE_LOG_H
#define RADDLE_LOG_H

#include <stdarg.h>
#include <stddef.h>

/* A file's path, or "-" for standard error. */
#define LOG_VARIABLE "RADDLE_APPLY_LOG"

/* A line under construction; what does not fit is cut. */
typedef struct {
    char text[2048];
    size_t length;
} line;

void line_begin(line *out);
void line_add(line *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A name from the program, with control characters as escapes. */
void line_add_name(line *out, const char *name);
void line_end(line *out);

#endif
