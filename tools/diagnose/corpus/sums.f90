! Each thread of an OpenMP team adds to its element of one array.
! options: -O0
program sums
  use omp_lib
  implicit none
#ifdef FIXED
  integer, parameter :: pitch = 8
#else
  integer, parameter :: pitch = 1
#endif
  integer(8), save :: part(pitch, 0:3)
  integer :: i, me
  part = 0
  !$omp parallel num_threads(4) private(i, me)
  me = omp_get_thread_num()
  do i = 1, 20000
    part(1, me) = part(1, me) + mod(i, 7) ! planted: false-sharing
  end do
  !$omp end parallel
  print *, sum(part)
end program
