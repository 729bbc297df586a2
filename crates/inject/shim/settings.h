/* Settings from `raddle apply`, passed in the environment: NAME=VALUE pairs separated by ";", with names as in
 * profiles, and "!" before a name that overrides the program's choice. */
#ifndef RADDLE_SETTINGS_H
#define RADDLE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SETTINGS_VARIABLE "RADDLE_APPLY"

/* Settings needed for every dataset, read once. */
typedef struct {
    bool layout;                         /* whether any setting changes its contents */
    unsigned long long auto_chunk_cache; /* maximum size of a cache sized to a dataset; 0 for none */
    bool adapt;                          /* whether caches and alignment follow the program's behaviour */
    unsigned long long block;            /* allocation unit of the file system, for alignment; 0 if unknown */
} dataset_settings;
extern dataset_settings for_datasets;

/* Returns the value of `name`, up to the next ";" or the end; NULL if it is not set. */
const char *setting(const char *name);
/* Whether it overrides the program's choice. */
bool is_forced(const char *name);
/* Whether there are any settings. */
bool has_settings(void);
/* Returns its value as a number; `otherwise` if there is none. */
unsigned long long setting_number(const char *name, unsigned long long otherwise);

#endif
