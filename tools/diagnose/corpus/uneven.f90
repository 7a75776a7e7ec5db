! Rows of a triangle: the last thread has most of the work.
program uneven
  use omp_lib
  implicit none
  integer, parameter :: n = 800
  real(8) :: s(n), t
  integer :: i, j
  s = 1
#ifdef FIXED
  !$omp parallel do schedule(static,1) private(j,t) num_threads(4)
#else
  !$omp parallel do schedule(static) private(j,t) num_threads(4)
#endif
  do i = 1, n ! planted: imbalance
    t = 0
    do j = 1, i
      t = t + s(j) * 0.5d0
    end do
    if (t < 0) s(i) = t
  end do
  !$omp end parallel do
  print *, s(10)
end program
