program gemm
  implicit none
  integer, parameter :: n = 20
  real(8) :: a(n, n), b(n, n), c(n, n)
  integer :: i, j, k
  do j = 1, n
     do i = 1, n
        a(i, j) = i + j
        b(i, j) = i - j
        c(i, j) = 0
     end do
  end do
  do j = 1, n
     do k = 1, n
        do i = 1, n
           c(i, j) = c(i, j) + a(i, k) * b(k, j)
        end do
     end do
  end do
  print *, sum(c), c(3, 4)
end program gemm
