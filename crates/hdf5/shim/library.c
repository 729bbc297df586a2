/* Initialisation of libhdf5 for this process.
 *
 * In C so that the headers check the calls: the Rust bindings declare H5PLset_loading_state with a pointer
 * where the library takes the mask by value.
 */
#include "hdf5.h"

/* Returns 0, or the number of the step that failed. */
int raddle_library_initialize(void)
{
    /* Outputs are closed by their owner or abandoned on purpose; an exit handler that flushes an incomplete file
     * after a failure would write metadata that was not planned. Must come before H5open. */
    if (H5dont_atexit() < 0)
        return 1;
    if (H5open() < 0)
        return 2;
    /* Errors become values; libhdf5 must not print to the user's terminal. */
    if (H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return 3;
    /* Never load a shared object on behalf of a file or HDF5_PLUGIN_PATH. */
    if (H5PLset_loading_state(0) < 0)
        return 4;
    return 0;
}
