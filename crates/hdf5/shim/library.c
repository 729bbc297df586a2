/* Set-up of libhdf5 for this process.
 *
 * In C because the headers then check the calls: the Rust bindings declare H5PLset_loading_state with a pointer
 * where the library takes the mask by value.
 */
#include "hdf5.h"

/* Returns 0, or a number that tells the step that failed. */
int raddle_library_initialize(void)
{
    /* Outputs are closed by their owner or abandoned on purpose; an exit handler that flushes a half-made file
     * after a failure would write metadata that nobody planned. Must come before H5open. */
    if (H5dont_atexit() < 0)
        return 1;
    if (H5open() < 0)
        return 2;
    /* Errors become values; nothing may be printed to the user's terminal behind our back. */
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return 3;
    /* Never load a shared object because a file or HDF5_PLUGIN_PATH says so. */
    if (H5PLset_loading_state(0) < 0)
        return 4;
    return 0;
}
