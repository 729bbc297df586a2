/* One rank omits a field, which makes the step fail on all ranks; the next step is written: one_rank_fails OUT.idx. Prints
 * RANK STATUS MESSAGE for each rank, in order of the ranks. */

#include <raddle_idx_mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    raddle_idx_mpi mpi;
    raddle_idx_writer *writer = NULL;
    double samples[4] = {1, 2, 3, 4};
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    raddle_idx_mpi_begin(&mpi, MPI_COMM_WORLD);
    const int rank = mpi.ranks.rank, last = mpi.ranks.size - 1;
    const uint64_t counts[2] = {4, (uint64_t)mpi.ranks.size}, start[2] = {0, (uint64_t)rank}, own[2] = {4, 1};
    int code = argc == 2 ? 0 : 2;
    code |= raddle_idx_create(argv[1], 2, counts, &mpi.ranks, &writer);
    code |= raddle_idx_add_field(writer, "rho", "float64", 1);
    code |= raddle_idx_set_box(writer, start, own);
    code |= raddle_idx_begin_step(writer, 0);
    if (rank != last) {
        code |= raddle_idx_write(writer, "rho", samples, sizeof samples);
    }
    const int failed = (int)raddle_idx_end_step(writer);
    char line[512] = {0}, lines[64 * sizeof line];
    snprintf(line, sizeof line, "%d %d %s", rank, failed, raddle_idx_error_message());
    MPI_Gather(line, sizeof line, MPI_CHAR, lines, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i <= last; i++) {
        printf("%s\n", lines + (size_t)i * sizeof line);
    }
    code |= raddle_idx_begin_step(writer, 0);
    code |= raddle_idx_write(writer, "rho", samples, sizeof samples);
    code |= raddle_idx_end_step(writer);
    code |= raddle_idx_close(writer);
    raddle_idx_mpi_end(&mpi);
    MPI_Finalize();
    return code;
}
