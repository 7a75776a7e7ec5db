! Solves a system of linear equations, and prints how well the solution satisfies it.
program solve
  implicit none
  integer, parameter :: n = 250
  double precision :: a(n, n), lu(n, n), x(n), b(n)
  integer :: pivots(n), info, i, j
  do j = 1, n
    do i = 1, n
      a(i, j) = mod(i * 37 + j * 101 + i * j, 211) / 211d0
    end do
    a(j, j) = a(j, j) + 10
    b(j) = j
  end do
  lu = a
  x = b
  call dgesv(n, 1, lu, n, pivots, x, n, info)
  print '(i0, 1x, l1)', info, maxval(abs(matmul(a, x) - b)) < 1d-9
end program
