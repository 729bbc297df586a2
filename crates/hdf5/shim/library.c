/* Initialisation of libhdf5 for this process.
 *
 * In C so that the headers check the calls: the Rust bindings declare H5PLset_loading_state with a pointer
 * where the library takes the mask by value.
 */
#include "hdf5.h"
#include <string.h>

#ifdef __APPLE__
#include <crt_externs.h>
#define ENVIRONMENT (*_NSGetEnviron())
#else
extern char **environ;
#define ENVIRONMENT environ
#endif

/* Variables from which libhdf5 takes the driver and the connector of all files. They are meant for the user's other
 * programs: this build loads no plug-ins and has few drivers, so that H5open fails for most values. */
static const char *const DEFAULTS[] = {"HDF5_DRIVER=", "HDF5_VOL_CONNECTOR="};
enum { DEFAULT_COUNT = sizeof DEFAULTS / sizeof DEFAULTS[0] };

/* Returns the place of a variable in the environment, whose name ends in '='; NULL if it is not set. */
static char **find_variable(const char *name)
{
    char **place = ENVIRONMENT;
    while (place != NULL && *place != NULL && strncmp(*place, name, strlen(name)) != 0)
        place++;
    return place == NULL || *place == NULL ? NULL : place;
}

/* Calls H5open while DEFAULTS are hidden. Only pointers in the environment are exchanged, because setenv and unsetenv
 * must not run while other threads call getenv. */
static herr_t open_with_own_defaults(void)
{
    static char hidden[] = "RADDLE_HIDDEN=";
    char **places[DEFAULT_COUNT];
    char *values[DEFAULT_COUNT];
    for (int i = 0; i < DEFAULT_COUNT; i++) {
        places[i] = find_variable(DEFAULTS[i]);
        if (places[i] != NULL) {
            values[i] = *places[i];
            *places[i] = hidden;
        }
    }
    herr_t status = H5open();
    for (int i = 0; i < DEFAULT_COUNT; i++)
        if (places[i] != NULL)
            *places[i] = values[i];
    return status;
}

/* Returns 0, or the number of the step that failed. */
int raddle_library_initialize(void)
{
    /* Outputs are closed by their owner or abandoned on purpose; an exit handler that flushes an incomplete file
     * after a failure would write metadata that was not planned. Must come before H5open. */
    if (H5dont_atexit() < 0)
        return 1;
    if (open_with_own_defaults() < 0)
        return 2;
    /* Errors become values; libhdf5 must not print to the user's terminal. */
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return 3;
    /* Never load a shared object on behalf of a file or HDF5_PLUGIN_PATH. */
    if (H5PLset_loading_state(0) < 0)
        return 4;
    return 0;
}
