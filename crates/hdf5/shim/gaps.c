/* libhdf5 calls that the Rust bindings do not provide, or provide in a form that Rust must not use.
 *
 * User-defined links: the bindings define the link class as an enumeration without the numbers 65 to 255, which Rust
 * must therefore never hold, and use the class structure of an older version. Comments: marked deprecated in the
 * bindings (HDF5 merely recommends attributes), but an output keeps the comments of its inputs.
 */
#include "H5Ldevelop.h"
#include "hdf5.h"

/* These links are never followed here. */
static hid_t refuse_to_follow(const char *name, hid_t group, const void *data, size_t len_bytes, hid_t lapl,
                              hid_t dxpl)
{
    (void)name;
    (void)group;
    (void)data;
    (void)len_bytes;
    (void)lapl;
    (void)dxpl;
    return H5I_INVALID_HID;
}

/* Makes libhdf5 accept links of the class. Returns 1 if it is registered now, 0 if it already was, negative on
 * failure. */
int raddle_provide_link_class(int class)
{
    H5L_class_t definition = {
        .version = H5L_LINK_CLASS_T_VERS,
        .id = (H5L_type_t)class,
        .comment = "kept as it is",
        .trav_func = refuse_to_follow,
    };
    htri_t registered = H5Lis_registered((H5L_type_t)class);
    if (registered != 0)
        return registered > 0 ? 0 : -1;
    return H5Lregister(&definition) < 0 ? -1 : 1;
}

herr_t raddle_withdraw_link_class(int class)
{
    return H5Lunregister((H5L_type_t)class);
}

herr_t raddle_create_user_link(hid_t group, const char *name, int class, const void *data, size_t len_bytes,
                               hid_t lcpl)
{
    return H5Lcreate_ud(group, name, (H5L_type_t)class, data, len_bytes, lcpl, H5P_DEFAULT);
}

herr_t raddle_set_comment(hid_t file, const char *object, const char *comment)
{
    return H5Oset_comment_by_name(file, object, comment, H5P_DEFAULT);
}

/* Returns 1 if the file keeps track of free space after it is closed, or allocates space in pages, otherwise 0;
 * negative on error. */
int raddle_manages_space(hid_t file)
{
    H5F_fspace_strategy_t strategy;
    hbool_t persists;
    hsize_t threshold;
    herr_t status;
    hid_t list = H5Fget_create_plist(file);
    if (list < 0)
        return -1;
    status = H5Pget_file_space_strategy(list, &strategy, &persists, &threshold);
    if (H5Pclose(list) < 0 || status < 0)
        return -1;
    return persists || strategy == H5F_FSPACE_STRATEGY_PAGE;
}
