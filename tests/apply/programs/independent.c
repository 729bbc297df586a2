/* All ranks create a file with three datasets collectively; each writes its rows independently. Then rank 0 alone opens and
 * reads a dataset. Prints what rank 0 read. */
#include <hdf5.h>
#include <stdio.h>

#define ROWS 10
#define COLUMNS 40000

static double values[ROWS * COLUMNS];

static int write_rows(hid_t file, const char *name, hsize_t columns, hid_t creation, int rank, int size) {
    hsize_t extent[2] = {(hsize_t)size * ROWS, columns}, start[2] = {(hsize_t)rank * ROWS, 0}, rows[2] = {ROWS, columns};
    hid_t space = H5Screate_simple(2, extent, NULL), memory = H5Screate_simple(2, rows, NULL);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, rows, NULL);
    for (hsize_t at = 0; at < ROWS * columns; at++) values[at] = rank * 1e6 + (double)at;
    herr_t done = H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values);
    H5Dclose(dataset);
    return done < 0;
}

int main(int count, char **arguments) {
    int rank, size;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), chunked = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hsize_t chunk[2] = {5, 50}, row[2] = {1, COLUMNS}, start[2] = {3, 0};
    H5Pset_chunk(chunked, 2, chunk);
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    int failed = file < 0 || write_rows(file, "small", 100, H5P_DEFAULT, rank, size) ||
                 write_rows(file, "plain", COLUMNS, H5P_DEFAULT, rank, size) || write_rows(file, "chunked", COLUMNS, chunked, rank, size);
    if (failed || H5Fclose(file) < 0) MPI_Abort(MPI_COMM_WORLD, 3);
    file = H5Fopen(arguments[1], H5F_ACC_RDONLY, access);
    if (!rank) {
        hid_t dataset = H5Dopen2(file, "chunked", H5P_DEFAULT), space = H5Dget_space(dataset), memory = H5Screate_simple(2, row, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL);
        H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values);
        printf("read %g\n", values[7]);
        H5Dclose(dataset);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    H5Fclose(file);
    MPI_Finalize();
    return 0;
}
