! Arrays, procedures and input and output as Fortran has them.
module grid
  implicit none
  real(8), allocatable :: field(:,:)
  integer :: steps = 0
contains
  subroutine relax(n)
    integer, intent(in) :: n
    integer :: i, j
    real(8) :: next(n, n)
    next = field
    do j = 2, n - 1
      do i = 2, n - 1
        next(i, j) = 0.25d0 * (field(i-1, j) + field(i+1, j) + field(i, j-1) + field(i, j+1))
      end do
    end do
    field = next
    steps = steps + 1
  end subroutine

  recursive integer function depth(k) result(d)
    integer, intent(in) :: k
    if (k <= 1) then
      d = 1
    else
      d = 1 + depth(k / 2)
    end if
  end function
end module

program arrays
  use grid
  implicit none
  integer, parameter :: n = 20
  integer :: i
  real(8) :: total
  character(len=12) :: word
  allocate(field(n, n))
  field = 0
  field(1, :) = 1
  do i = 1, 10
    call relax(n)
  end do
  total = 0
!$omp parallel do reduction(+:total)
  do i = 1, n
    total = total + sum(field(:, i))
  end do
!$omp end parallel do
  write (word, '(i6)') depth(1000)
  print '(a,f14.8,i5,a)', 'total', total, steps, trim(word)
  deallocate(field)
  if (steps /= 10) stop 3
end program
