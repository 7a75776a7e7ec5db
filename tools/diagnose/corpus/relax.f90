! A relaxation step whose inner loop runs over the second index of a Fortran array.
program relax
  implicit none
  integer, parameter :: n = 700
  real(8) :: u(n, n), v(n, n)
  integer :: i, j
  do j = 1, n
    do i = 1, n
      u(i, j) = i + j
    end do
  end do
#ifdef FIXED
  do j = 2, n - 1
    do i = 2, n - 1
#else
  do i = 2, n - 1
    do j = 2, n - 1
#endif
      v(i, j) = 0.25d0 * (u(i-1, j) + u(i+1, j) + u(i, j-1) + u(i, j+1)) ! planted: stride
    end do
  end do
  print *, v(5, 7)
end program
