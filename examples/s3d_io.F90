! The I/O kernel of s3d_io.c in Fortran, the language of S3D, with the same arguments and the same files.
!
!     s3d_io OUT.idx [steps=20] [side=30] [grid=XxYxZ] [OPTION=VALUE ...]
!
! Without MPI, with F=$(pkg-config --variable=fortrandir raddle-idx):
!
!     gfortran $F/raddle_idx.f90 s3d_io.F90 $(pkg-config --libs raddle-idx) -o s3d_io
!
! With MPI:
!
!     mpicc -c $F/raddle_idx_mpi_fortran.c $(pkg-config --cflags raddle-idx)
!     mpif90 -DUSE_MPI $F/raddle_idx.f90 s3d_io.F90 raddle_idx_mpi_fortran.o $(pkg-config --libs raddle-idx) -o s3d_io
program s3d_io
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    use raddle_idx
#ifdef USE_MPI
    use mpi
#endif
    implicit none

    integer, parameter :: components(4) = [1, 1, 3, 11]
    character(11), parameter :: names(4) = [character(11) :: "pressure", "temperature", "velocity", "species"]

    type :: variable
        ! Component, x, y, z.
        real(c_double), allocatable :: samples(:, :, :, :)
    end type

    type(variable), target :: variables(4)
    type(c_ptr) :: ranks, writer
    integer :: rank, rank_count, i, axis, equals, factor, rest, place
#ifdef USE_MPI
    integer :: provided, mpi_status
#endif
    integer(c_int64_t) :: steps, side, step, along(3), grid(3), start(3), counts(3), begun, ended, ticks_per_s
    character(4096) :: path, argument
    real(c_double) :: written_s

    rank = 0
    rank_count = 1
    ranks = c_null_ptr
#ifdef USE_MPI
    call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, mpi_status)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, mpi_status)
    call MPI_Comm_size(MPI_COMM_WORLD, rank_count, mpi_status)
    ranks = raddle_idx_mpi_begin_fortran(MPI_COMM_WORLD)
    if (.not. c_associated(ranks)) call stop_all("no MPI ranks", 1)
#endif
    if (command_argument_count() < 1) then
        call stop_all("usage: s3d_io OUT.idx [steps=20] [side=30] [grid=XxYxZ] [OPTION=VALUE ...]", 2)
    end if
    steps = 20
    side = 30
    grid = 0
    do i = 2, command_argument_count()
        call get_command_argument(i, argument)
        if (index(argument, "steps=") == 1) read (argument(7:), *) steps
        if (index(argument, "side=") == 1) read (argument(6:), *) side
        if (index(argument, "grid=") == 1) then
            argument = argument(6:)
            do axis = 1, len_trim(argument)
                if (argument(axis:axis) == "x") argument(axis:axis) = " "
            end do
            read (argument, *) grid
        end if
    end do

    ! Returns the number of ranks along each axis: each prime factor of the total goes to the axis with the fewest ranks.
    along = 1
    rest = rank_count
    factor = 2
    do while (rest > 1)
        if (mod(rest, factor) == 0) then
            axis = minloc(along, 1)
            along(axis) = along(axis) * factor
            rest = rest / factor
        else
            factor = factor + 1
        end if
    end do
    ! The box of this rank.
    rest = rank
    do axis = 1, 3
        if (grid(axis) == 0) grid(axis) = side * along(axis)
        place = mod(rest, int(along(axis)))
        rest = rest / int(along(axis))
        start(axis) = grid(axis) * place / along(axis)
        counts(axis) = grid(axis) * (place + 1) / along(axis) - start(axis)
    end do

    call get_command_argument(1, path)
    call check(raddle_idx_create(path, grid, writer, ranks))
    do i = 2, command_argument_count()
        call get_command_argument(i, argument)
        equals = index(argument, "=")
        if (equals == 0) call stop_all(trim(argument)//" is not OPTION=VALUE", 2)
        select case (argument(:equals - 1))
        case ("steps", "side", "grid")
        case default
            call check(raddle_idx_set_option(writer, argument(:equals - 1), argument(equals + 1:)))
        end select
    end do
    do i = 1, 4
        call check(raddle_idx_add_field(writer, names(i), "float64", components(i)))
        allocate (variables(i)%samples(components(i), counts(1), counts(2), counts(3)))
    end do
    call check(raddle_idx_set_box(writer, start, counts))

    written_s = 0
    call system_clock(count_rate=ticks_per_s)
    do step = 0, steps - 1
        do i = 1, 4
            call compute(variables(i)%samples, i)
        end do
        call system_clock(begun)
        call check(raddle_idx_begin_step(writer, step))
        do i = 1, 4
            call check(raddle_idx_write(writer, names(i), c_loc(variables(i)%samples), 8 * components(i) * product(counts)))
        end do
        call check_together(raddle_idx_end_step(writer))
        call system_clock(ended)
        written_s = written_s + real(ended - begun, c_double) / real(ticks_per_s, c_double)
    end do
    call check(raddle_idx_close(writer))
    if (rank == 0) then
        print '(i0," steps of ",i0,"x",i0,"x",i0," samples by ",i0," ranks: ",f0.1," MB in ",f0.2," s")', steps, grid, &
            rank_count, 128 * real(product(grid) * steps, c_double) / 1e6, written_s
    end if
#ifdef USE_MPI
    call raddle_idx_mpi_end_fortran(ranks)
    call MPI_Finalize(mpi_status)
#endif

contains

    ! Computes values that encode their positions, in whole 1024ths, so that they are the same on any machine.
    subroutine compute(samples, number)
        real(c_double), intent(out) :: samples(:, :, :, :)
        integer, intent(in) :: number
        integer(c_int64_t) :: x, y, z, at
        integer :: component
        do z = 1, counts(3)
            do y = 1, counts(2)
                do x = 1, counts(1)
                    at = start(1) + x - 1 + grid(1) * (start(2) + y - 1 + grid(2) * (start(3) + z - 1))
                    do component = 1, components(number)
                        samples(component, x, y, z) = &
                            real(at * 32 + step * 7 + (number - 1) * 5 + component - 1, c_double) / 1024
                    end do
                end do
            end do
        end do
    end subroutine

    ! Checks the status of a call that concerns only this rank.
    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status /= RADDLE_IDX_OK) call stop_all(raddle_idx_error_message(), status)
    end subroutine

    ! Checks the status of a collective call. It fails on all ranks and one prints the reason, so no rank needs to abort the others.
    subroutine check_together(status)
        integer(c_int), intent(in) :: status
        if (status == RADDLE_IDX_OK) return
        if (status /= RADDLE_IDX_RANK) write (error_unit, '("rank ",i0,": ",a)') rank, raddle_idx_error_message()
#ifdef USE_MPI
        call MPI_Finalize(mpi_status)
#endif
        call exit_with(status)
    end subroutine

    subroutine stop_all(message, code)
        character(*), intent(in) :: message
        integer, intent(in) :: code
        write (error_unit, '("rank ",i0,": ",a)') rank, message
#ifdef USE_MPI
        call MPI_Abort(MPI_COMM_WORLD, code, mpi_status)
#endif
        call exit_with(code)
    end subroutine

    subroutine exit_with(code)
        integer, intent(in) :: code
        interface
            subroutine c_exit(code) bind(c, name="exit")
                import :: c_int
                integer(c_int), value :: code
            end subroutine
        end interface
        call c_exit(int(code, c_int))
    end subroutine
end program
