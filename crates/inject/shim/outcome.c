/* Outcome of settings as text. */
#include "outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(char *text, size_t size, const char *format, va_list values) {
    size_t length = strlen(text);
    if (length && length + 1 < size) text[length++] = ' ', text[length] = 0;
    vsnprintf(text + length, size - length, format, values);
}

#define SAY(field)                                        \
    va_list values;                                       \
    va_start(values, format);                             \
    append(what->field, sizeof what->field, format, values); \
    va_end(values)

void say_set(outcome *what, const char *format, ...) { SAY(set); }
void say_kept(outcome *what, const char *format, ...) { SAY(kept); }
void say_refused(outcome *what, const char *format, ...) { SAY(refused); }
