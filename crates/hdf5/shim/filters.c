/* Registration of filters for reading that libhdf5 was built without.
 *
 * In C so that the headers check the class, and because H5Epush2 is variadic.
 */
#include "hdf5.h"
/* Requires hdf5.h. */
#include "H5Zdevelop.h"

/* Called by H5Zregister (declared in H5Zprivate.h, which is not installed). H5Zregister refuses numbers below 256,
 * which belong to HDF5's own filters, including szip. This function merely replaces an entry of a table. The version
 * of libhdf5 is pinned, and if the function did not exist, linking would fail. */
herr_t H5Z_register(const H5Z_class2_t *definition);

/* Makes libhdf5 decode the filter with `undo`. Returns 1 if it is registered now, 0 if libhdf5 has the filter,
 * negative on failure. */
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

/* Adds the reason of a filter's failure to the error stack: libhdf5 itself only records that it failed. */
void raddle_push_filter_error(const char *reason)
{
    H5Epush2(H5E_DEFAULT, "raddle", "undo", 0, H5E_ERR_CLS, H5E_PLINE, H5E_READERROR, "%s", reason);
}
