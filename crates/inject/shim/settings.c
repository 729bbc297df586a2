#include "settings.h"

#include <stdlib.h>
#include <string.h>

/* The environment is asked each time: a program may change what its children are given, and it takes less than a call of
 * HDF5. The pair's name begins at the result. */
static const char *pair(const char *name, bool *forced) {
    size_t length = strlen(name);
    for (const char *at = getenv(SETTINGS_VARIABLE); at && *at; at = strchr(at, ';'), at += at != NULL) {
        const char *key = at + (*at == '!');
        if (!strncmp(key, name, length) && key[length] == '=') {
            if (forced) *forced = key != at;
            return key;
        }
    }
    return NULL;
}

const char *setting(const char *name) {
    const char *found = pair(name, NULL);
    return found ? found + strlen(name) + 1 : NULL;
}

bool is_forced(const char *name) {
    bool forced = false;
    pair(name, &forced);
    return forced;
}

bool has_settings(void) {
    const char *all = getenv(SETTINGS_VARIABLE);
    return all && *all;
}

unsigned long long setting_number(const char *name, unsigned long long otherwise) {
    const char *value = setting(name);
    char *end;
    if (!value) return otherwise;
    unsigned long long number = strtoull(value, &end, 10);
    return end == value ? otherwise : number;
}
