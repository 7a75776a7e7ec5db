!mod$ v1 sum:6694639c26294f9b
module grid
real(8),allocatable::field(:,:)
integer(4)::steps
contains
subroutine relax(n)
integer(4),intent(in)::n
end
recursive function depth(k) result(d)
integer(4),intent(in)::k
integer(4)::d
end
end
