! A parallel loop over a field in three dimensions, the last index innermost.
! options: -O3
subroutine smooth(u, v, n)
  integer :: n, i, j, k
  real(4) :: u(n, n, n), v(n, n, n)
  !$omp parallel do num_threads(2) private(j, k)
#ifdef FIXED
  do k = 1, n
    do j = 1, n
      do i = 1, n
#else
  do i = 1, n
    do j = 1, n
      do k = 1, n
#endif
        v(i, j, k) = v(i, j, k) + 2 * u(i, j, k) ! planted: stride
      end do
    end do
  end do
end subroutine

program field
  use omp_lib
  real(4), allocatable :: u(:, :, :), v(:, :, :)
  allocate (u(90, 90, 90), v(90, 90, 90))
  u = 1
  v = 2
  call smooth(u, v, 90)
  print *, v(3, 4, 5)
end program
