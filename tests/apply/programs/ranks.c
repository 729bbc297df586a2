/* All ranks create one file collectively; each writes its row. Rank 0 prints the settings that HDF5 received. */
#include <hdf5.h>
#include <stdio.h>

int main(int count, char **arguments) {
    (void)count;
    int rank, size;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0) MPI_Abort(MPI_COMM_WORLD, 3);
    hsize_t extent[2] = {(hsize_t)size, 100000}, start[2] = {(hsize_t)rank, 0}, row[2] = {1, 100000};
    static double values[100000];
    for (int at = 0; at < 100000; at++) values[at] = rank * 1e6 + at;
    hid_t space = H5Screate_simple(2, extent, NULL), memory = H5Screate_simple(2, row, NULL);
    hid_t dataset = H5Dcreate2(file, "rows", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL);
    H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values);
    hid_t list = H5Fget_access_plist(file);
    hsize_t threshold, alignment;
    hbool_t reads, writes;
    H5Pget_alignment(list, &threshold, &alignment);
    H5Pget_all_coll_metadata_ops(list, &reads);
    H5Pget_coll_metadata_write(list, &writes);
    if (!rank)
        printf("alignment %llu\noffset %llu\ncollective %d %d\n", alignment, (unsigned long long)H5Dget_offset(dataset), (int)reads,
               (int)writes);
    H5Pclose(list);
    H5Dclose(dataset);
    H5Fclose(file);
    MPI_Finalize();
    return 0;
}
