#ifndef RADDLE_OUTCOME_H
#define RADDLE_OUTCOME_H

#include "lists.h"

/* Each function adds a few words to the outcome of a file. */
void say_set(outcome *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_kept(outcome *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_refused(outcome *what, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
