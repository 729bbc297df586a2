#include "settings.h"

#include <stdlib.h>
#include <string.h>

/* More than the number of names. */
#define MOST_SETTINGS 64

/* The environment when the object is loaded: searching it again for each dataset takes longer than everything else done
 * for a dataset that is left unchanged. */
static struct {
    const char *name;
    size_t length;
    bool forced;
} known[MOST_SETTINGS];
static size_t known_count;
dataset_settings for_datasets;

static bool is_any_set(const char *const *names) {
    for (; *names; names++)
        if (setting(*names)) return true;
    return false;
}

/* Uses a copy, because the program may change its environment. */
__attribute__((constructor)) static void read_environment(void) {
    const char *all = getenv(SETTINGS_VARIABLE);
    char *text = all ? strdup(all) : NULL;
    for (char *at = text; at && *at && known_count < MOST_SETTINGS; at = strchr(at, ';'), at += at != NULL) {
        bool forced = *at == '!';
        const char *name = at + forced, *equals = strchr(name, '=');
        if (!equals) break;
        known[known_count].name = name;
        known[known_count].length = (size_t)(equals - name);
        known[known_count++].forced = forced;
    }
    for_datasets.layout = is_any_set((const char *const[]){"chunk", "compact", "gzip", "fletcher32", "no_fill", NULL});
    for_datasets.auto_chunk_cache = setting_number("auto_chunk_cache", 0);
    for_datasets.adapt = setting_number("adapt", 0) != 0;
    for_datasets.block = setting_number("adapt_block", 0);
}

static size_t place_of(const char *name) {
    size_t length = strlen(name), at = 0;
    while (at < known_count && (known[at].length != length || memcmp(known[at].name, name, length))) at++;
    return at;
}

const char *setting(const char *name) {
    size_t at = place_of(name);
    return at < known_count ? known[at].name + known[at].length + 1 : NULL;
}

bool is_forced(const char *name) {
    size_t at = place_of(name);
    return at < known_count && known[at].forced;
}

bool has_settings(void) { return known_count > 0; }

unsigned long long setting_number(const char *name, unsigned long long otherwise) {
    const char *value = setting(name);
    char *end;
    if (!value) return otherwise;
    unsigned long long number = strtoull(value, &end, 10);
    return end == value ? otherwise : number;
}
