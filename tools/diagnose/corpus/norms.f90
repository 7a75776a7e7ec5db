! options: -O2
! Columns divided by their norm, element by element; the twin multiplies by its reciprocal.
subroutine normalise(a, n, norm)
  implicit none
  integer, intent(in) :: n
  real(8), intent(inout) :: a(n)
  real(8), intent(in) :: norm
  integer :: i
#ifdef FIXED
  real(8) :: r
  r = 1 / norm
  do i = 1, n
    a(i) = a(i) * r
  end do
#else
  do i = 1, n
    a(i) = a(i) / norm ! planted: compute
  end do
#endif
end subroutine

program norms
  implicit none
  integer, parameter :: n = 2000
  real(8) :: a(n)
  integer :: i, t
  do i = 1, n
    a(i) = i
  end do
  do t = 1, 600
    call normalise(a, n, 1.0d0 + 1.0d-3 * t)
  end do
  print *, a(n)
end program
