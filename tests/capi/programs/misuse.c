/* Makes calls that are refused and prints a line for each: STATUS NAME: MESSAGE. Afterwards the handle can still write: misuse
 * OUT.idx */

#include <raddle_idx.h>
#include <stdio.h>
#include <string.h>

static void tell(const char *name, raddle_idx_status status) {
    printf("%d %s: %s\n", (int)status, name, status == RADDLE_IDX_STATUS_OK ? "" : raddle_idx_error_message());
}

static int nothing(void *context) {
    (void)context;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    const char *path = argv[1];
    const uint64_t counts[3] = {4, 3, 2}, start[3] = {0, 0, 0}, far_start[3] = {UINT64_MAX, 0, 0}, outside[3] = {1, 0, 0};
    double samples[24] = {0};
    raddle_idx_writer *writer = NULL, *other = NULL;
    raddle_idx_ranks ranks;
    memset(&ranks, 0, sizeof ranks);
    printf("first message: \"%s\"\n", raddle_idx_error_message());

    tell("create null path", raddle_idx_create(NULL, 3, counts, NULL, &writer));
    tell("create null counts", raddle_idx_create(path, 3, NULL, NULL, &writer));
    tell("create null writer", raddle_idx_create(path, 3, counts, NULL, NULL));
    tell("create no axes", raddle_idx_create(path, 0, counts, NULL, &writer));
    tell("create six axes", raddle_idx_create(path, 6, counts, NULL, &writer));
    tell("create no rank", raddle_idx_create(path, 3, counts, &ranks, &writer));
    ranks.size = 1;
    ranks.barrier = nothing;
    tell("create null function", raddle_idx_create(path, 3, counts, &ranks, &writer));
    printf("writer is %s\n", writer == NULL ? "NULL" : "something");

    tell("create", raddle_idx_create(path, 3, counts, NULL, &writer));
    tell("option null writer", raddle_idx_set_option(NULL, "compress", "zip"));
    tell("option null value", raddle_idx_set_option(writer, "compress", NULL));
    tell("option unknown", raddle_idx_set_option(writer, "compression", "zip"));
    tell("option value", raddle_idx_set_option(writer, "compress", "png"));
    tell("option text", raddle_idx_set_option(writer, "compress", "\xff"));
    tell("imposed null", raddle_idx_set_imposed_box(writer, NULL));
    tell("field type", raddle_idx_add_field(writer, "rho", "double", 1));
    tell("field components", raddle_idx_add_field(writer, "rho", "float64", 0));
    tell("field space", raddle_idx_add_field(writer, "mass density", "float64", 1));
    tell("field plus", raddle_idx_add_field(writer, "a+b", "float64", 3));
    tell("field empty", raddle_idx_add_field(writer, "", "float64", 1));
    tell("step without fields", raddle_idx_begin_step(writer, 0));
    tell("end without fields", raddle_idx_end_step(writer));
    tell("field", raddle_idx_add_field(writer, "rho", "float64", 1));
    tell("field twice", raddle_idx_add_field(writer, "rho", "float32", 3));
    tell("box null", raddle_idx_set_box(writer, NULL, counts));
    tell("box beyond", raddle_idx_set_box(writer, far_start, counts));
    tell("write without step", raddle_idx_write(writer, "rho", samples, sizeof samples));
    tell("end without step", raddle_idx_end_step(writer));

    tell("begin", raddle_idx_begin_step(writer, 3));
    tell("begin twice", raddle_idx_begin_step(writer, 4));
    tell("option late", raddle_idx_set_option(writer, "compress", "lz4"));
    tell("field late", raddle_idx_add_field(writer, "p", "float64", 1));
    tell("box late", raddle_idx_set_box(writer, start, counts));
    tell("write unknown", raddle_idx_write(writer, "p", samples, sizeof samples));
    tell("write no box", raddle_idx_write_box(writer, 1, "rho", samples, sizeof samples));
    tell("write short", raddle_idx_write(writer, "rho", samples, sizeof samples - 8));
    tell("write null", raddle_idx_write(writer, "rho", NULL, sizeof samples));
    tell("end without samples", raddle_idx_end_step(writer));

    tell("box outside", raddle_idx_set_box(writer, outside, counts));
    tell("begin outside", raddle_idx_begin_step(writer, 3));
    tell("write outside", raddle_idx_write(writer, "rho", samples, sizeof samples));
    tell("end outside", raddle_idx_end_step(writer));

    tell("box", raddle_idx_set_box(writer, start, counts));
    tell("begin again", raddle_idx_begin_step(writer, 3));
    tell("write", raddle_idx_write(writer, "rho", samples, sizeof samples));
    tell("write twice", raddle_idx_write(writer, "rho", samples, sizeof samples));
    tell("end", raddle_idx_end_step(writer));
    tell("begin unnumbered", raddle_idx_begin_step(writer, RADDLE_IDX_NO_STEP));
    tell("begin open", raddle_idx_begin_step(writer, 4));
    tell("close open", raddle_idx_close(writer));
    tell("close null", raddle_idx_close(NULL));

    tell("create again", raddle_idx_create(path, 3, counts, NULL, &other));
    tell("field again", raddle_idx_add_field(other, "rho", "float64", 1));
    tell("begin there", raddle_idx_begin_step(other, 9));
    tell("write there", raddle_idx_write(other, "rho", samples, sizeof samples));
    tell("end there", raddle_idx_end_step(other));
    /* Nothing has been written, so options may still change. */
    tell("append", raddle_idx_set_option(other, "append", "true"));
    tell("begin appended", raddle_idx_begin_step(other, 9));
    tell("write appended", raddle_idx_write(other, "rho", samples, sizeof samples));
    tell("end appended", raddle_idx_end_step(other));
    tell("close", raddle_idx_close(other));

    raddle_idx_reader *reader = NULL;
    raddle_idx_info info;
    raddle_idx_field field;
    raddle_idx_query query;
    uint64_t got[RADDLE_IDX_MAX_AXES];
    tell("open missing", raddle_idx_open("no/such.idx", &reader));
    tell("open null", raddle_idx_open(NULL, &reader));
    tell("open", raddle_idx_open(path, &reader));
    tell("info null", raddle_idx_get_info(NULL, &info));
    tell("info no place", raddle_idx_get_info(reader, NULL));
    tell("info", raddle_idx_get_info(reader, &info));
    printf("steps %d to %d\n", (int)info.first_step, (int)info.last_step);
    tell("get field", raddle_idx_get_field(reader, 1, &field));
    tell("query unknown", raddle_idx_make_query(reader, "p", &query));
    tell("query", raddle_idx_make_query(reader, "rho", &query));
    tell("read short", raddle_idx_read(reader, &query, samples, 8));
    tell("read null", raddle_idx_read(reader, &query, NULL, sizeof samples));
    query.step = 5;
    tell("read missing step", raddle_idx_read(reader, &query, samples, sizeof samples));
    query.step = 77;
    tell("counts no step", raddle_idx_query_counts(reader, &query, got));
    query.step = 3;
    query.resolution = 40;
    tell("counts resolution", raddle_idx_query_counts(reader, &query, got));
    query.counts[0] = UINT64_MAX;
    query.start[0] = 1;
    tell("counts beyond", raddle_idx_query_counts(reader, &query, got));
    tell("counts null", raddle_idx_query_counts(reader, NULL, got));
    tell("close reader", raddle_idx_close_reader(reader));
    tell("close no reader", raddle_idx_close_reader(NULL));
    return 0;
}
