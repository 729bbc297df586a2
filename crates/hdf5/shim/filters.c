/* Filters that libhdf5 was built without, given to it by the caller for reading.
 *
 * In C because the headers then check the class, and because H5Epush2 takes any number of arguments.
 */
#include "hdf5.h"
/* Needs the other. */
#include "H5Zdevelop.h"

/* What H5Zregister calls (H5Zprivate.h, which is not installed): it refuses the numbers below 256, which are HDF5's own
 * filters, and szip is one of them. It replaces an entry of a table, no more. The version of libhdf5 is pinned, and
 * without this function nothing links. */
herr_t H5Z_register(const H5Z_class2_t *definition);

/* Makes libhdf5 undo the filter by a function. 1: registered now; 0: it has the filter; negative: failed. */
int raddle_provide_filter(int id, H5Z_func_t undo)
{
    H5Z_class2_t definition = {
        .version = H5Z_CLASS_T_VERS,
        .id = id,
        .encoder_present = 0,
        .decoder_present = 1,
        .name = "decoded by raddle",
        .filter = undo,
    };
    htri_t there = H5Zfilter_avail(id);
    if (there != 0)
        return there > 0 ? 0 : -1;
    return H5Z_register(&definition) < 0 ? -1 : 1;
}

/* Adds why a filter failed to the error stack: libhdf5 itself tells only that it did. */
void raddle_push_filter_error(const char *reason)
{
    H5Epush2(H5E_DEFAULT, "raddle", "undo", 0, H5E_ERR_CLS, H5E_PLINE, H5E_READERROR, "%s", reason);
}
