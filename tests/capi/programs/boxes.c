/* Writes a dataset with AXES axes and without steps from two boxes, and prints the report: boxes OUT.idx AXES NO_SYNC */

#include <raddle_idx.h>
#include <stdio.h>
#include <stdlib.h>

static void check(raddle_idx_status status) {
    if (status != RADDLE_IDX_STATUS_OK) {
        fprintf(stderr, "%s\n", raddle_idx_error_message());
        exit((int)status);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        return 2;
    }
    const uint64_t counts[RADDLE_IDX_MAX_AXES] = {7, 5, 4, 3, 3}, imposed[RADDLE_IDX_MAX_AXES] = {4, 4, 4, 2, 2};
    uint32_t axes = (uint32_t)atoi(argv[2]), number = 99;
    uint64_t rows = counts[axes - 1], in_row = 1, lower = rows - 1;
    for (uint32_t axis = 0; axis + 1 < axes; axis++) {
        in_row *= counts[axis];
    }
    float *heights = malloc(rows * in_row * sizeof *heights);
    uint8_t *colours = malloc(rows * in_row * 3);
    if (heights == NULL || colours == NULL) {
        return 6;
    }
    for (uint64_t i = 0; i < rows * in_row; i++) {
        heights[i] = (float)i / 4;
    }
    for (uint64_t i = 0; i < rows * in_row * 3; i++) {
        colours[i] = (uint8_t)(i * 37);
    }

    raddle_idx_writer *writer = NULL;
    check(raddle_idx_create(argv[1], axes, counts, NULL, &writer));
    check(raddle_idx_add_field(writer, "height", "float32", 1));
    check(raddle_idx_add_field(writer, "colour", "uint8", 3));
    check(raddle_idx_set_option(writer, "bits-per-block", "4"));
    check(raddle_idx_set_option(writer, "order", "hz"));
    check(raddle_idx_set_option(writer, "no-sync", argv[3]));
    check(raddle_idx_set_imposed_box(writer, imposed));
    /* All rows along the slowest axis except one, and that one. */
    uint64_t start[RADDLE_IDX_MAX_AXES] = {0}, part[RADDLE_IDX_MAX_AXES];
    for (uint32_t axis = 0; axis < axes; axis++) {
        part[axis] = counts[axis];
    }
    part[axes - 1] = lower;
    check(raddle_idx_set_box(writer, start, part));
    start[axes - 1] = lower;
    part[axes - 1] = 1;
    check(raddle_idx_add_box(writer, start, part, &number));
    check(raddle_idx_begin_step(writer, RADDLE_IDX_NO_STEP));
    check(raddle_idx_write(writer, "height", heights, lower * in_row * sizeof *heights));
    check(raddle_idx_write(writer, "colour", colours, lower * in_row * 3));
    check(raddle_idx_write_box(writer, number, "height", heights + lower * in_row, in_row * sizeof *heights));
    check(raddle_idx_write_box(writer, number, "colour", colours + lower * in_row * 3, in_row * 3));
    if (raddle_idx_report(writer) != NULL) {
        return 1;
    }
    check(raddle_idx_end_step(writer));
    printf("%s\n", raddle_idx_report(writer));
    check(raddle_idx_close(writer));
    free(heights);
    free(colours);
    return 0;
}
