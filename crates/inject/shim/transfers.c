/* Reads and writes, which are observed. Only the filters of chunks written as they are stored are changed. */
#include "adapt.h"
#include "direct.h"
#include "enter.h"
#include "settings.h"

static void observe(const hdf5 *library, hid_t dataset, hid_t file_space) {
    if (!for_datasets.adapt || inside || !library->is_known) return;
    inside = true;
    adapt_access(library, dataset, file_space);
    inside = false;
}

EXPORTED herr_t H5Dread(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t transfer, void *values) {
    const hdf5 *library = library_of(CALLER);
    if (!library || !library->H5Dread) return -1;
    herr_t done = library->H5Dread(dataset, type, memory, file, transfer, values);
    if (done >= 0) observe(library, dataset, file);
    return done;
}

EXPORTED herr_t H5Dwrite(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t transfer, const void *values) {
    const hdf5 *library = library_of(CALLER);
    if (!library || !library->H5Dwrite) return -1;
    herr_t done = library->H5Dwrite(dataset, type, memory, file, transfer, values);
    if (done >= 0) observe(library, dataset, file);
    return done;
}

EXPORTED herr_t H5Dwrite_chunk(hid_t dataset, hid_t transfer, uint32_t skipped, const hsize_t *offset, size_t bytes, const void *chunk) {
    const hdf5 *library = library_of(CALLER);
    if (!library || !library->H5Dwrite_chunk) return -1;
    if (for_datasets.layout && !inside && library->is_known) {
        inside = true;
        silence was = be_silent(library);
        skipped |= noted_filters(library, dataset);
        speak(library, was);
        inside = false;
    }
    return library->H5Dwrite_chunk(dataset, transfer, skipped, offset, bytes, chunk);
}
