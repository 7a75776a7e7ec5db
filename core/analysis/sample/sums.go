package sample

// sums is a Fenwick tree (1994) that counts live stamps. sums[0] is unused.
type sums []uint32

// newSums makes room for stamps, the first of which are live.
func newSums(room, live int) sums {
	s := make(sums, room+1)
	for i := range live {
		s[i+1] = 1
	}
	for i := 1; i < len(s); i++ {
		if up := i + i&-i; up < len(s) {
			s[up] += s[i]
		}
	}
	return s
}

func (s sums) add(stamp uint32) {
	for i := stamp + 1; int(i) < len(s); i += i & -i {
		s[i]++
	}
}

func (s sums) remove(stamp uint32) {
	for i := stamp + 1; int(i) < len(s); i += i & -i {
		s[i]--
	}
}

// upto returns the number of live stamps among the first ones.
func (s sums) upto(stamps uint32) (n int) {
	for i := stamps; i > 0; i -= i & -i {
		n += int(s[i])
	}
	return n
}
