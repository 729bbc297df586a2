/* Reads or writes two fields of 400 rows row by row, in chunks of 50x50; prints the cache of each before and after, and a sum. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell_cache(const char *when, hid_t dataset) {
    size_t slots, bytes;
    double preemption;
    hid_t list = H5Dget_access_plist(dataset);
    H5Pget_chunk_cache(list, &slots, &bytes, &preemption);
    H5Pclose(list);
    printf("%s %zu\n", when, bytes);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    int writes = !strcmp(arguments[2], "write");
    hsize_t columns = strtoull(arguments[3], NULL, 10);
    hsize_t extent[2] = {400, columns}, chunk[2] = {50, 50}, line[2] = {1, columns};
    double *row = calloc(columns, sizeof *row);
    double sum = 0;
    hid_t file = writes ? H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                        : H5Fopen(arguments[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, extent, NULL), memory = H5Screate_simple(2, line, NULL);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    for (int step = 0; step < 2; step++) {
        char name[16];
        snprintf(name, sizeof name, "step%d", step);
        hid_t dataset = writes ? H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT)
                               : H5Dopen2(file, name, H5P_DEFAULT);
        tell_cache("before", dataset);
        for (hsize_t y = 0; y < extent[0]; y++) {
            hsize_t start[2] = {y, 0};
            H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, line, NULL);
            for (hsize_t x = 0; writes && x < columns; x++) row[x] = step + y * 0.5 + x;
            herr_t done = writes ? H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row)
                                 : H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row);
            if (done < 0) return 3;
            for (hsize_t x = 0; x < columns; x++) sum += row[x];
        }
        tell_cache("after", dataset);
        H5Dclose(dataset);
    }
    printf("sum %.1f\n", sum);
    return H5Fclose(file) < 0;
}
