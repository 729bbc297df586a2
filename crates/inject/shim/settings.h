/* What to set, as `raddle apply` says it in the environment: NAME=VALUE pairs with ";" between them, names as in profiles,
 * "!" before the name where the program's own choice is to give way. */
#ifndef RADDLE_SETTINGS_H
#define RADDLE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SETTINGS_VARIABLE "RADDLE_APPLY"

/* What is asked for every dataset, read once. */
typedef struct {
    bool layout;                         /* anything that changes what it holds */
    unsigned long long auto_chunk_cache; /* most bytes of a cache sized to it; 0 for none */
    bool adapt;                          /* caches and alignment by what the program does */
    unsigned long long block;            /* bytes that the file system hands out at once, for alignment; 0 if unknown */
} dataset_settings;
extern dataset_settings for_datasets;

/* The value of `name`, up to the next ";" or the end; NULL if it is not to be set. */
const char *setting(const char *name);
/* Whether it is to be set against the program's own choice. */
bool is_forced(const char *name);
/* Whether there is anything to set. */
bool has_settings(void);
/* Its value as a number; `otherwise` if there is none. */
unsigned long long setting_number(const char *name, unsigned long long otherwise);

#endif
