/* Calls of libhdf5 that the Rust bindings do not give, or give in a form that Rust must not use.
 *
 * User-defined links: the bindings make the link class an enumeration without the numbers 65 to 255, which Rust must
 * never hold, and the class structure of an older version. Comments: marked deprecated in the bindings (HDF5 merely
 * recommends attributes), and an output keeps what its inputs have.
 */
#include "H5Ldevelop.h"
#include "hdf5.h"

/* Nobody follows these links here. */
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

/* Makes libhdf5 accept links of the class. 1: registered now; 0: it was registered before; negative: failed. */
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

/* Whether freed space of the file outlives its being open, or space is handed out in pages: 1 if so, negative: error. */
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
