! Longest common subsequence, the table is filled row by row; all references are in the arms of a condition.
! options: -O1
program lcs
  implicit none
  integer, parameter :: n = 900
  integer, allocatable :: t(:, :)
  integer :: a(n), b(n), i, j
  allocate(t(0:n, 0:n))
  do i = 1, n
    a(i) = mod(i * 7, 5)
    b(i) = mod(i * i, 5)
  end do
  t = 0
#ifdef FIXED
  do j = 1, n
    do i = 1, n
#else
  do i = 1, n
    do j = 1, n
#endif
      if (a(i) == b(j)) then
        t(i, j) = t(i - 1, j - 1) + 1
      else
        t(i, j) = max(t(i - 1, j), t(i, j - 1)) ! planted: stride
      end if
    end do
  end do
  print *, t(n, n)
end program
