/* Ranks of a Fortran communicator. Compiled with the program (mpicc -c), because it depends on the MPI implementation, unlike
 * the library. The interfaces are in the module raddle_idx. */

#include "raddle_idx_mpi.h"
#include <stdlib.h>

/** Collective. Creates the ranks of a communicator; returns NULL if MPI or memory allocation fails. */
raddle_idx_ranks *raddle_idx_mpi_begin_fortran(MPI_Fint communicator);

/** Collective. Frees the ranks; does nothing for NULL. */
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
        /* The context points to the communicator, which is the first member of the structure. */
        raddle_idx_mpi *mpi = (raddle_idx_mpi *)ranks->context;
        raddle_idx_mpi_end(mpi);
        free(mpi);
    }
}
