/* Prints the contents of a dataset and reads a box of a field: read IN.idx FIELD STEP RESOLUTION OUT.raw [X NX Y NY Z NZ]. A
 * step of -1 means no step. */

#include <raddle_idx.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(raddle_idx_status status) {
    if (status != RADDLE_IDX_STATUS_OK) {
        fprintf(stderr, "%s\n", raddle_idx_error_message());
        exit((int)status);
    }
}

int main(int argc, char **argv) {
    raddle_idx_reader *reader = NULL;
    raddle_idx_info info;
    raddle_idx_field field;
    raddle_idx_query query;
    uint64_t counts[RADDLE_IDX_MAX_AXES];
    if (argc < 6) {
        return 2;
    }
    check(raddle_idx_open(argv[1], &reader));
    check(raddle_idx_get_info(reader, &info));
    printf("%" PRIu32 " axes %" PRIu32 " fields resolution %" PRIu32 " counts", info.axes, info.fields, info.resolution);
    for (uint32_t axis = 0; axis < info.axes; axis++) {
        printf(" %" PRIu64, info.counts[axis]);
    }
    printf("\n");
    for (uint32_t i = 0; i < info.fields; i++) {
        check(raddle_idx_get_field(reader, i, &field));
        printf("%s %s %" PRIu32 "\n", field.name, field.number, field.components);
    }
    check(raddle_idx_make_query(reader, argv[2], &query));
    query.step = (uint64_t)strtoll(argv[3], NULL, 10);
    query.resolution = (uint32_t)atoi(argv[4]);
    for (int axis = 0; axis < (argc - 6) / 2; axis++) {
        query.start[axis] = strtoull(argv[6 + 2 * axis], NULL, 10);
        query.counts[axis] = strtoull(argv[7 + 2 * axis], NULL, 10);
    }
    check(raddle_idx_query_counts(reader, &query, counts));
    check(raddle_idx_get_field(reader, query.field, &field));
    uint64_t len_bytes = field.sample_len_bytes;
    for (int axis = 0; axis < RADDLE_IDX_MAX_AXES; axis++) {
        len_bytes *= counts[axis];
    }
    void *samples = malloc(len_bytes);
    if (samples == NULL) {
        return 6;
    }
    check(raddle_idx_read(reader, &query, samples, len_bytes));
    check(raddle_idx_close_reader(reader));
    FILE *out = fopen(argv[5], "wb");
    if (out == NULL || fwrite(samples, 1, len_bytes, out) != len_bytes || fclose(out) != 0) {
        return 5;
    }
    free(samples);
    return 0;
}
