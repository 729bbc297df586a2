/* The ranks of a communicator of Fortran. Compiled with the program (mpicc -c), for it is for one MPI, which the library is
 * not. The module raddle_idx has the interfaces. */

#include "raddle_idx_mpi.h"
#include <stdlib.h>

/** Collective. Ranks of a communicator, or NULL if MPI or memory fails. */
raddle_idx_ranks *raddle_idx_mpi_begin_fortran(MPI_Fint communicator);

/** Collective. Frees them; of NULL, nothing. */
void raddle_idx_mpi_end_fortran(raddle_idx_ranks *ranks);

raddle_idx_ranks *raddle_idx_mpi_begin_fortran(MPI_Fint communicator) {
    raddle_idx_mpi *mpi = (raddle_idx_mpi *)malloc(sizeof *mpi);
    if (mpi == NULL) {
        return NULL;
    }
    if (raddle_idx_mpi_begin(mpi, MPI_Comm_f2c(communicator)) != MPI_SUCCESS) {
        free(mpi);
        return NULL;
    }
    return &mpi->ranks;
}

void raddle_idx_mpi_end_fortran(raddle_idx_ranks *ranks) {
    if (ranks != NULL) {
        /* Its context is the communicator, with which the structure begins. */
        raddle_idx_mpi *mpi = (raddle_idx_mpi *)ranks->context;
        raddle_idx_mpi_end(mpi);
        free(mpi);
    }
}
