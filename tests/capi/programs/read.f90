! Like read.c, for all samples of a field of doubles: read IN.idx FIELD STEP RESOLUTION OUT.raw. Also makes calls that are
! refused.
program read_idx
    use, intrinsic :: iso_c_binding
    use raddle_idx
    implicit none

    type(c_ptr) :: reader, writer
    type(raddle_idx_info) :: info
    type(raddle_idx_field) :: field
    type(raddle_idx_query) :: query
    integer(c_int64_t) :: counts(RADDLE_IDX_MAX_AXES)
    real(c_double), allocatable, target :: samples(:)
    character(4096) :: arguments(5)
    integer :: i, unit

    do i = 1, 5
        call get_command_argument(i, arguments(i))
    end do
    call check(raddle_idx_open(arguments(1), reader))
    call check(raddle_idx_get_info(reader, info))
    print '(i0," axes ",i0," fields resolution ",i0," counts",*(1x,i0))', info%axes, info%fields, info%resolution, &
        info%counts(:info%axes)
    do i = 0, info%fields - 1
        call check(raddle_idx_get_field(reader, i, field))
        print '(a,1x,a,1x,i0)', field%name, field%number, field%components
    end do
    call check(raddle_idx_make_query(reader, arguments(2), query))
    read (arguments(3), *) query%step
    read (arguments(4), *) query%resolution
    call check(raddle_idx_query_counts(reader, query, counts))
    call check(raddle_idx_get_field(reader, int(query%field), field))
    allocate (samples(product(counts) * field%components))
    if (raddle_idx_read(reader, query, c_loc(samples), 8_c_int64_t) /= RADDLE_IDX_USAGE) stop 1
    print '(a)', raddle_idx_error_message()
    call check(raddle_idx_read(reader, query, c_loc(samples), size(samples, kind=c_int64_t) * 8))
    call check(raddle_idx_close_reader(reader))
    open (newunit=unit, file=arguments(5), access="stream", form="unformatted", status="new")
    write (unit) samples
    close (unit)

    call check(raddle_idx_create("none.idx", [4_c_int64_t, 4_c_int64_t], writer))
    call check(raddle_idx_set_option(writer, "no-sync", "true"))
    if (raddle_idx_set_option(writer, "compress", "png") /= RADDLE_IDX_USAGE) stop 1
    print '(a)', raddle_idx_error_message()
    if (raddle_idx_report(writer) /= "") stop 1
    call check(raddle_idx_close(writer))
    print '(a)', raddle_idx_version()

contains

    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status == RADDLE_IDX_OK) return
        print '(a)', raddle_idx_error_message()
        stop 1
    end subroutine
end program
