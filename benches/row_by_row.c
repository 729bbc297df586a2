/* Writes an ocean model's field row by row into one compressed dataset, with HDF5's default settings: each row covers an
   eighth of 24 chunks, 3 MB together, and HDF5 1.10 has a chunk cache of 1 MiB. */
#include <hdf5.h>
#include <math.h>

enum { LEVELS = 66, ROWS = 64, LONGITUDES = 1440 };

static float row[LEVELS][LONGITUDES];

int main(int count, char **arguments) {
    if (count != 2) return 2;
    hsize_t extent[3] = {LEVELS, ROWS, LONGITUDES}, chunk[3] = {11, 8, 360}, line[3] = {LEVELS, 1, LONGITUDES};
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(3, extent, NULL), memory = H5Screate_simple(3, line, NULL);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 3, chunk);
    H5Pset_deflate(creation, 1);
    hid_t dataset = H5Dcreate2(file, "temperature", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    unsigned noise = 1;
    for (int y = 0; y < ROWS; y++) {
        for (int z = 0; z < LEVELS; z++)
            for (int x = 0; x < LONGITUDES; x++) {
                noise = noise * 1664525u + 1013904223u;
                row[z][x] = roundf(20000 * expf(-z / 20.0f) * cosf(y * 0.01f) * (1 + 0.1f * sinf(x * 0.02f)) + (noise >> 29)) / 1000;
            }
        hsize_t start[3] = {0, y, 0};
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, line, NULL);
        if (H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, row) < 0) return 3;
    }
    H5Dclose(dataset);
    return H5Fclose(file) < 0;
}
