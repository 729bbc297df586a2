/* Writes two steps and reads them, in the same process, while the current folder changes between calls: changes_folder
 * OUT.idx ELSEWHERE */

#include <raddle_idx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(raddle_idx_status status) {
    if (status != RADDLE_IDX_STATUS_OK) {
        fprintf(stderr, "%s\n", raddle_idx_error_message());
        exit((int)status);
    }
}

static void go_to(const char *folder) {
    if (chdir(folder) != 0) {
        perror(folder);
        exit(1);
    }
}

int main(int argc, char **argv) {
    const uint64_t counts[1] = {4};
    double samples[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, read[4] = {0};
    raddle_idx_writer *writer = NULL;
    raddle_idx_reader *reader = NULL;
    raddle_idx_query query;
    if (argc != 3) {
        return 2;
    }
    check(raddle_idx_create(argv[1], 1, counts, NULL, &writer));
    check(raddle_idx_add_field(writer, "rho", "float64", 1));
    for (uint64_t step = 0; step < 2; step++) {
        go_to(step == 0 ? argv[2] : "..");
        check(raddle_idx_begin_step(writer, step));
        check(raddle_idx_write(writer, "rho", samples[step], sizeof samples[step]));
        check(raddle_idx_end_step(writer));
    }
    check(raddle_idx_close(writer));

    check(raddle_idx_open(argv[1], &reader));
    go_to(argv[2]);
    check(raddle_idx_make_query(reader, "rho", &query));
    query.step = 1;
    check(raddle_idx_read(reader, &query, read, sizeof read));
    check(raddle_idx_close_reader(reader));
    printf("%g %g %g %g\n", read[0], read[1], read[2], read[3]);
    return 0;
}
