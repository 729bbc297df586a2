/* Makes a file with three datasets and a chunked one, then prints the settings that HDF5 received, as lines NAME VALUES. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double values[150000];

int main(int count, char **arguments) {
    const char *own = count > 2 ? arguments[2] : "";
    hid_t access = H5P_DEFAULT;
    if (!strcmp(own, "own")) {
        access = H5Pcreate(H5P_FILE_ACCESS);
        H5Pset_alignment(access, 1, 4096);
    }
    hid_t file = H5Fcreate(arguments[1], !strcmp(own, "exclusive") ? H5F_ACC_EXCL : H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file < 0) return 3;
    hsize_t length = 150000;
    hid_t line = H5Screate_simple(1, &length, NULL);
    for (int number = 0; number < 3; number++) {
        char name[8];
        for (int at = 0; at < 150000; at++) values[at] = at + number;
        snprintf(name, sizeof name, "d%d", number);
        hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        printf("offset %llu\n", (unsigned long long)H5Dget_offset(dataset));
        H5Dclose(dataset);
    }
    /* A row is 40 chunks of 80,000 bytes: 3,200,000. */
    hsize_t extent[2] = {1000, 4000}, chunk[2] = {100, 100};
    hid_t plane = H5Screate_simple(2, extent, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_deflate(creation, 9);
    hid_t dataset = H5Dcreate2(file, "plane", H5T_NATIVE_DOUBLE, plane, H5P_DEFAULT, creation, H5P_DEFAULT);
    for (int again = 0; again < 2; again++) {
        size_t slots, bytes;
        double preemption;
        hid_t list = H5Dget_access_plist(dataset), used = H5Dget_create_plist(dataset);
        H5Pget_chunk_cache(list, &slots, &bytes, &preemption);
        unsigned flags, level[8];
        size_t values_of = 8;
        H5Pget_filter2(used, 0, &flags, &values_of, level, 0, NULL, NULL);
        printf("cache %zu\ngzip %u\n", bytes, level[0]);
        H5Pclose(list);
        H5Pclose(used);
        H5Dclose(dataset);
        dataset = H5Dopen2(file, "plane", H5P_DEFAULT);
    }
    H5Dclose(dataset);
    hid_t list = H5Fget_access_plist(file);
    hsize_t threshold, alignment, meta;
    size_t sieve;
    H5Pget_alignment(list, &threshold, &alignment);
    H5Pget_meta_block_size(list, &meta);
    H5Pget_sieve_buf_size(list, &sieve);
    H5AC_cache_config_t cache;
    cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    H5Pget_mdc_config(list, &cache);
    printf("alignment %llu %llu\nmeta_block %llu\nsieve %zu\nmetadata_cache %zu evictions %d\n", threshold, alignment, meta,
           sieve, cache.initial_size, (int)cache.evictions_enabled);
    H5Fclose(file);
    return 0;
}
