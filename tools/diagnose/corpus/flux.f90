! Fluxes, then the update that needs them.
! options: -O2
program flux
  implicit none
  integer, parameter :: n = 500
  real(8), allocatable :: u(:, :), f(:, :), v(:, :)
  integer :: i, j, t
  allocate(u(n, n), f(n, n), v(n, n))
  do j = 1, n
    do i = 1, n
      u(i, j) = mod(i * j, 11)
    end do
  end do
  do t = 1, 3
#ifdef FIXED
    do j = 1, n
      do i = 1, n
        f(i, j) = 0.5d0 * u(i, j) * u(i, j)
        v(i, j) = u(i, j) - 0.1d0 * f(i, j)
      end do
    end do
#else
    do j = 1, n
      do i = 1, n
        f(i, j) = 0.5d0 * u(i, j) * u(i, j)
      end do
    end do
    do j = 1, n
      do i = 1, n
        v(i, j) = u(i, j) - 0.1d0 * f(i, j) ! planted: fusion
      end do
    end do
#endif
  end do
  print *, v(3, 4)
end program
