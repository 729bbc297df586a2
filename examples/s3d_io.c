/* An I/O kernel like that of the combustion code S3D: every rank holds a box of four variables, pressure and temperature
 * (one double per sample), velocity (3) and species (11), and writes all of them in 20 time steps.
 *
 *     s3d_io OUT.idx [steps=20] [side=30] [grid=XxYxZ] [OPTION=VALUE ...]
 *
 * side: samples per axis of each rank. grid (instead of side): samples per axis of all ranks together. Other options are
 * those of raddle idx write, for example compress=lz4. Without MPI:
 *
 *     cc s3d_io.c $(pkg-config --cflags --libs raddle-idx) -o s3d_io
 *
 * With any MPI: mpicc -DUSE_MPI, and the same arguments. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef USE_MPI
#include <raddle_idx_mpi.h>
#else
#include <raddle_idx.h>
#endif

enum { AXES = 3, VARIABLES = 4 };

static const struct {
    const char *name;
    uint32_t components;
} VARIABLE[VARIABLES] = {{"pressure", 1}, {"temperature", 1}, {"velocity", 3}, {"species", 11}};

/* The number of ranks, and this rank. */
static int rank = 0, size = 1;

static void stop(int code) {
#ifdef USE_MPI
    MPI_Abort(MPI_COMM_WORLD, code);
#endif
    exit(code);
}

/* Checks the status of a call that concerns only this rank. The message is valid until the next call fails. */
static void check(raddle_idx_status status) {
    if (status != RADDLE_IDX_STATUS_OK) {
        fprintf(stderr, "rank %d: %s\n", rank, raddle_idx_error_message());
        stop((int)status);
    }
}

/* Checks the status of a collective call. It fails on all ranks and one prints the reason, so no rank needs to abort the
 * others. */
static void check_together(raddle_idx_status status) {
    if (status != RADDLE_IDX_STATUS_OK) {
        if (status != RADDLE_IDX_STATUS_RANK) {
            fprintf(stderr, "rank %d: %s\n", rank, raddle_idx_error_message());
        }
#ifdef USE_MPI
        MPI_Finalize();
#endif
        exit((int)status);
    }
}

/* Computes the number of ranks along each axis: each prime factor of the total goes to the axis with the fewest ranks. */
static void lay_out(uint64_t along[AXES]) {
    along[0] = along[1] = along[2] = 1;
    int rest = size;
    for (int factor = 2; rest > 1; factor++) {
        while (rest % factor == 0) {
            int fewest = 0;
            for (int axis = 1; axis < AXES; axis++) {
                if (along[axis] < along[fewest]) {
                    fewest = axis;
                }
            }
            along[fewest] *= (uint64_t)factor;
            rest /= factor;
        }
    }
}

/* Returns a value that encodes its position, in whole 1024ths, so that it is the same on any machine. */
static double value(uint64_t place, uint64_t step, uint32_t variable, uint32_t component) {
    return (double)(place * 32 + step * 7 + variable * 5 + component) / 1024.0;
}

static void compute(double *samples, const uint64_t grid[AXES], const uint64_t start[AXES], const uint64_t counts[AXES],
                    uint64_t step, uint32_t variable) {
    for (uint64_t z = start[2]; z < start[2] + counts[2]; z++) {
        for (uint64_t y = start[1]; y < start[1] + counts[1]; y++) {
            for (uint64_t x = start[0]; x < start[0] + counts[0]; x++) {
                uint64_t place = x + grid[0] * (y + grid[1] * z);
                for (uint32_t component = 0; component < VARIABLE[variable].components; component++) {
                    *samples++ = value(place, step, variable, component);
                }
            }
        }
    }
}

static double now_s(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    const raddle_idx_ranks *ranks = NULL;
#ifdef USE_MPI
    raddle_idx_mpi mpi;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    raddle_idx_mpi_begin(&mpi, MPI_COMM_WORLD);
    ranks = &mpi.ranks;
    rank = mpi.ranks.rank;
    size = mpi.ranks.size;
#endif
    if (argc < 2) {
        fprintf(stderr, "usage: s3d_io OUT.idx [steps=20] [side=30] [grid=XxYxZ] [OPTION=VALUE ...]\n");
        stop(2);
    }
    uint64_t steps = 20, side = 30, grid[AXES] = {0, 0, 0};
    for (int i = 2; i < argc; i++) {
        if (sscanf(argv[i], "steps=%" SCNu64, &steps) == 1 || sscanf(argv[i], "side=%" SCNu64, &side) == 1 ||
            sscanf(argv[i], "grid=%" SCNu64 "x%" SCNu64 "x%" SCNu64, &grid[0], &grid[1], &grid[2]) == AXES) {
            argv[i] = NULL;
        }
    }

    /* The box of this rank. */
    uint64_t along[AXES], start[AXES], counts[AXES], samples = 1;
    lay_out(along);
    uint64_t number = (uint64_t)rank;
    for (int axis = 0; axis < AXES; axis++) {
        if (grid[axis] == 0) {
            grid[axis] = side * along[axis];
        }
        uint64_t place = number % along[axis];
        number /= along[axis];
        start[axis] = grid[axis] * place / along[axis];
        counts[axis] = grid[axis] * (place + 1) / along[axis] - start[axis];
        samples *= counts[axis];
    }

    raddle_idx_writer *writer = NULL;
    check(raddle_idx_create(argv[1], AXES, grid, ranks, &writer));
    for (int i = 2; i < argc; i++) {
        char *equals = argv[i] == NULL ? NULL : strchr(argv[i], '=');
        if (argv[i] != NULL && equals == NULL) {
            fprintf(stderr, "%s is not OPTION=VALUE\n", argv[i]);
            stop(2);
        }
        if (equals != NULL) {
            *equals = '\0';
            check(raddle_idx_set_option(writer, argv[i], equals + 1));
        }
    }
    double *variables[VARIABLES];
    for (uint32_t i = 0; i < VARIABLES; i++) {
        check(raddle_idx_add_field(writer, VARIABLE[i].name, "float64", VARIABLE[i].components));
        uint64_t len_bytes = samples * VARIABLE[i].components * sizeof(double);
        variables[i] = malloc(len_bytes > 0 ? len_bytes : 1);
        if (variables[i] == NULL) {
            fprintf(stderr, "rank %d: no memory for %s\n", rank, VARIABLE[i].name);
            stop(6);
        }
    }
    check(raddle_idx_set_box(writer, start, counts));

    double written_s = 0;
    for (uint64_t step = 0; step < steps; step++) {
        for (uint32_t i = 0; i < VARIABLES; i++) {
            compute(variables[i], grid, start, counts, step, i);
        }
        double begun_s = now_s();
        check(raddle_idx_begin_step(writer, step));
        for (uint32_t i = 0; i < VARIABLES; i++) {
            uint64_t len_bytes = samples * VARIABLE[i].components * sizeof(double);
            check(raddle_idx_write(writer, VARIABLE[i].name, variables[i], len_bytes));
        }
        check_together(raddle_idx_end_step(writer));
        written_s += now_s() - begun_s;
    }
    check(raddle_idx_close(writer));
    if (rank == 0) {
        double all_bytes = 8.0 * 16.0 * (double)(grid[0] * grid[1] * grid[2]) * (double)steps;
        printf("%" PRIu64 " steps of %" PRIu64 "x%" PRIu64 "x%" PRIu64 " samples by %d ranks: %.1f MB in %.2f s\n", steps,
               grid[0], grid[1], grid[2], size, all_bytes / 1e6, written_s);
    }
    for (uint32_t i = 0; i < VARIABLES; i++) {
        free(variables[i]);
    }
#ifdef USE_MPI
    raddle_idx_mpi_end(&mpi);
    MPI_Finalize();
#endif
    return 0;
}
