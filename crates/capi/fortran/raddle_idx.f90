! Writing and reading IDX, arrays that can be read at any resolution, from Fortran. The functions have the same names as in
! raddle_idx.h, where they are documented. Compiled with the program.
!
! Strings are Fortran strings without trailing blanks. Numbers per axis are in Fortran order, with the first axis running
! fastest, but samples are counted from 0. Every function returns RADDLE_IDX_OK or an error status;
! raddle_idx_error_message() returns the error message. Samples are passed as c_loc(a) of an array a(component, x, y, z)
! without gaps that has the attribute TARGET and remains unchanged until raddle_idx_end_step has returned.
module raddle_idx
    use, intrinsic :: iso_c_binding
    implicit none
    private

    integer(c_int), parameter, public :: RADDLE_IDX_OK = 0, RADDLE_IDX_INTERNAL = 1, RADDLE_IDX_USAGE = 2, &
        RADDLE_IDX_INPUT = 3, RADDLE_IDX_OUTPUT = 5, RADDLE_IDX_LIMIT = 6, RADDLE_IDX_LOCKED = 7, RADDLE_IDX_RANK = 9
    integer, parameter, public :: RADDLE_IDX_MAX_AXES = 5
    ! All bits set.
    integer(c_int64_t), parameter, public :: RADDLE_IDX_NO_STEP = -1_c_int64_t

    type, bind(c), public :: raddle_idx_info
        integer(c_int64_t) :: start(RADDLE_IDX_MAX_AXES), counts(RADDLE_IDX_MAX_AXES), first_step, last_step
        integer(c_int32_t) :: axes, fields, resolution
    end type

    type, bind(c), public :: raddle_idx_query
        integer(c_int64_t) :: start(RADDLE_IDX_MAX_AXES), counts(RADDLE_IDX_MAX_AXES), step
        integer(c_int32_t) :: field, resolution, missing_as_default
    end type

    ! Description of a field, with Fortran strings.
    type, public :: raddle_idx_field
        character(:), allocatable :: name, number
        integer :: components, sample_len_bytes
    end type

    type, bind(c) :: field_of_c
        type(c_ptr) :: name, number
        integer(c_int32_t) :: components, sample_len_bytes
    end type

    public :: raddle_idx_error_message, raddle_idx_version, raddle_idx_create, raddle_idx_set_option, &
        raddle_idx_set_imposed_box, raddle_idx_add_field, raddle_idx_set_box, raddle_idx_add_box, raddle_idx_begin_step, &
        raddle_idx_write, raddle_idx_write_box, raddle_idx_end_step, raddle_idx_report, raddle_idx_close, raddle_idx_open, &
        raddle_idx_get_info, raddle_idx_get_field, raddle_idx_make_query, raddle_idx_query_counts, raddle_idx_read, &
        raddle_idx_close_reader, raddle_idx_mpi_begin_fortran, raddle_idx_mpi_end_fortran

    ! Functions without text arguments are bound to C directly.
    interface
        function raddle_idx_begin_step(writer, step) bind(c) result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int64_t), value :: step
            integer(c_int) :: status
        end function

        function raddle_idx_end_step(writer) bind(c) result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int) :: status
        end function

        function raddle_idx_close(writer) bind(c) result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int) :: status
        end function

        function raddle_idx_get_info(reader, info) bind(c) result(status)
            import
            type(c_ptr), value :: reader
            type(raddle_idx_info), intent(out) :: info
            integer(c_int) :: status
        end function

        function raddle_idx_query_counts(reader, query, counts) bind(c) result(status)
            import
            type(c_ptr), value :: reader
            type(raddle_idx_query), intent(in) :: query
            integer(c_int64_t), intent(out) :: counts(RADDLE_IDX_MAX_AXES)
            integer(c_int) :: status
        end function

        function raddle_idx_read(reader, query, samples, len_bytes) bind(c) result(status)
            import
            type(c_ptr), value :: reader
            type(raddle_idx_query), intent(in) :: query
            type(c_ptr), value :: samples
            integer(c_int64_t), value :: len_bytes
            integer(c_int) :: status
        end function

        function raddle_idx_close_reader(reader) bind(c) result(status)
            import
            type(c_ptr), value :: reader
            integer(c_int) :: status
        end function

        ! Collective. Returns the ranks of a communicator, for raddle_idx_create, or c_null_ptr. In raddle_idx_mpi_fortran.c.
        function raddle_idx_mpi_begin_fortran(communicator) bind(c) result(ranks)
            import
            integer(c_int), value :: communicator
            type(c_ptr) :: ranks
        end function

        ! Collective. Must be called before MPI_Finalize.
        subroutine raddle_idx_mpi_end_fortran(ranks) bind(c)
            import
            type(c_ptr), value :: ranks
        end subroutine
    end interface

    interface
        function c_error_message() bind(c, name="raddle_idx_error_message") result(text)
            import
            type(c_ptr) :: text
        end function

        function c_version() bind(c, name="raddle_idx_version") result(text)
            import
            type(c_ptr) :: text
        end function

        function c_report(writer) bind(c, name="raddle_idx_report") result(text)
            import
            type(c_ptr), value :: writer
            type(c_ptr) :: text
        end function

        function c_create(path, axes, counts, ranks, writer) bind(c, name="raddle_idx_create") result(status)
            import
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int32_t), value :: axes
            integer(c_int64_t), intent(in) :: counts(*)
            type(c_ptr), value :: ranks
            type(c_ptr), intent(out) :: writer
            integer(c_int) :: status
        end function

        function c_set_option(writer, name, value_text) bind(c, name="raddle_idx_set_option") result(status)
            import
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: name(*), value_text(*)
            integer(c_int) :: status
        end function

        function c_set_imposed_box(writer, counts) bind(c, name="raddle_idx_set_imposed_box") result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int) :: status
        end function

        function c_add_field(writer, name, number, components) bind(c, name="raddle_idx_add_field") result(status)
            import
            type(c_ptr), value :: writer
            character(kind=c_char), intent(in) :: name(*), number(*)
            integer(c_int32_t), value :: components
            integer(c_int) :: status
        end function

        function c_set_box(writer, start, counts) bind(c, name="raddle_idx_set_box") result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int64_t), intent(in) :: start(*), counts(*)
            integer(c_int) :: status
        end function

        function c_add_box(writer, start, counts, number) bind(c, name="raddle_idx_add_box") result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int64_t), intent(in) :: start(*), counts(*)
            integer(c_int32_t), intent(out) :: number
            integer(c_int) :: status
        end function

        function c_write_box(writer, number, field, samples, len_bytes) bind(c, name="raddle_idx_write_box") result(status)
            import
            type(c_ptr), value :: writer
            integer(c_int32_t), value :: number
            character(kind=c_char), intent(in) :: field(*)
            type(c_ptr), value :: samples
            integer(c_int64_t), value :: len_bytes
            integer(c_int) :: status
        end function

        function c_open(path, reader) bind(c, name="raddle_idx_open") result(status)
            import
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: reader
            integer(c_int) :: status
        end function

        function c_get_field(reader, number, field) bind(c, name="raddle_idx_get_field") result(status)
            import
            type(c_ptr), value :: reader
            integer(c_int32_t), value :: number
            type(field_of_c), intent(out) :: field
            integer(c_int) :: status
        end function

        function c_make_query(reader, field, query) bind(c, name="raddle_idx_make_query") result(status)
            import
            type(c_ptr), value :: reader
            character(kind=c_char), intent(in) :: field(*)
            type(raddle_idx_query), intent(out) :: query
            integer(c_int) :: status
        end function

        function c_length(text) bind(c, name="strlen") result(length)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
    end interface

contains

    function raddle_idx_error_message() result(message)
        character(:), allocatable :: message
        message = text_of(c_error_message())
    end function

    function raddle_idx_version() result(version)
        character(:), allocatable :: version
        version = text_of(c_version())
    end function

    ! ranks: the result of raddle_idx_mpi_begin_fortran; if absent, a single process.
    function raddle_idx_create(path, counts, writer, ranks) result(status)
        character(*), intent(in) :: path
        integer(c_int64_t), intent(in) :: counts(:)
        type(c_ptr), intent(out) :: writer
        type(c_ptr), intent(in), optional :: ranks
        integer(c_int) :: status
        type(c_ptr) :: given
        given = c_null_ptr
        if (present(ranks)) given = ranks
        status = c_create(c_text(path), int(size(counts), c_int32_t), counts, given, writer)
    end function

    function raddle_idx_set_option(writer, name, value_text) result(status)
        type(c_ptr), intent(in) :: writer
        character(*), intent(in) :: name, value_text
        integer(c_int) :: status
        status = c_set_option(writer, c_text(name), c_text(value_text))
    end function

    ! counts: one element per axis.
    function raddle_idx_set_imposed_box(writer, counts) result(status)
        type(c_ptr), intent(in) :: writer
        integer(c_int64_t), intent(in) :: counts(:)
        integer(c_int) :: status
        status = c_set_imposed_box(writer, counts)
    end function

    function raddle_idx_add_field(writer, name, number, components) result(status)
        type(c_ptr), intent(in) :: writer
        character(*), intent(in) :: name, number
        integer, intent(in) :: components
        integer(c_int) :: status
        status = c_add_field(writer, c_text(name), c_text(number), int(components, c_int32_t))
    end function

    ! start, counts: one element per axis.
    function raddle_idx_set_box(writer, start, counts) result(status)
        type(c_ptr), intent(in) :: writer
        integer(c_int64_t), intent(in) :: start(:), counts(:)
        integer(c_int) :: status
        status = c_set_box(writer, start, counts)
    end function

    function raddle_idx_add_box(writer, start, counts, number) result(status)
        type(c_ptr), intent(in) :: writer
        integer(c_int64_t), intent(in) :: start(:), counts(:)
        integer(c_int32_t), intent(out) :: number
        integer(c_int) :: status
        status = c_add_box(writer, start, counts, number)
    end function

    function raddle_idx_write(writer, field, samples, len_bytes) result(status)
        type(c_ptr), intent(in) :: writer
        character(*), intent(in) :: field
        type(c_ptr), intent(in) :: samples
        integer(c_int64_t), intent(in) :: len_bytes
        integer(c_int) :: status
        status = raddle_idx_write_box(writer, 0_c_int32_t, field, samples, len_bytes)
    end function

    function raddle_idx_write_box(writer, number, field, samples, len_bytes) result(status)
        type(c_ptr), intent(in) :: writer
        integer(c_int32_t), intent(in) :: number
        character(*), intent(in) :: field
        type(c_ptr), intent(in) :: samples
        integer(c_int64_t), intent(in) :: len_bytes
        integer(c_int) :: status
        status = c_write_box(writer, number, c_text(field), samples, len_bytes)
    end function

    ! Empty before the first step is written.
    function raddle_idx_report(writer) result(report)
        type(c_ptr), intent(in) :: writer
        character(:), allocatable :: report
        report = text_of(c_report(writer))
    end function

    function raddle_idx_open(path, reader) result(status)
        character(*), intent(in) :: path
        type(c_ptr), intent(out) :: reader
        integer(c_int) :: status
        status = c_open(c_text(path), reader)
    end function

    ! number: from 0.
    function raddle_idx_get_field(reader, number, field) result(status)
        type(c_ptr), intent(in) :: reader
        integer, intent(in) :: number
        type(raddle_idx_field), intent(out) :: field
        integer(c_int) :: status
        type(field_of_c) :: got
        status = c_get_field(reader, int(number, c_int32_t), got)
        if (status /= RADDLE_IDX_OK) return
        field%name = text_of(got%name)
        field%number = text_of(got%number)
        field%components = got%components
        field%sample_len_bytes = got%sample_len_bytes
    end function

    function raddle_idx_make_query(reader, field, query) result(status)
        type(c_ptr), intent(in) :: reader
        character(*), intent(in) :: field
        type(raddle_idx_query), intent(out) :: query
        integer(c_int) :: status
        status = c_make_query(reader, c_text(field), query)
    end function

    ! Converts a string to a NUL-terminated C string.
    function c_text(text) result(characters)
        character(*), intent(in) :: text
        character(kind=c_char) :: characters(len_trim(text) + 1)
        integer :: i
        do i = 1, len_trim(text)
            characters(i) = text(i:i)
        end do
        characters(size(characters)) = c_null_char
    end function

    ! Converts a C string; a null pointer gives an empty string.
    function text_of(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer :: i, length
        length = 0
        if (c_associated(pointer)) length = int(c_length(pointer))
        allocate (character(length) :: text)
        if (length == 0) return
        call c_f_pointer(pointer, characters, [length])
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function
end module
