package communication

// among locates the references that are followed among those that are not.
type among struct {
	first uint64   // number of the first one of the batch that package sites took
	rows  []uint32 // rows of that batch, ascending: of each row that is followed; nil: all are
}

// row returns a row's index in the batch that package sites read.
func (m *among) row(i int) int {
	if m.rows == nil {
		return i
	}
	return int(m.rows[i])
}

// Among says that the next batch has some rows of the one that package sites read last, which
// begins with reference number first. Several rows may be parts of one reference.
func (a *Analysis) Among(rows []uint32, first uint64) { a.among = among{first, rows} }

// Reach counts references that are not followed, up to so many in all.
func (a *Analysis) Reach(references uint64) {
	if a.off {
		return
	}
	for a.windows.next < references {
		a.windows.turn(a.windows.next, &a.flows[words])
	}
	a.done = max(a.done, references)
}

// number counts the reference of a row, and returns its number.
func (a *Analysis) number(i int) uint64 {
	n := a.done
	if a.among.rows != nil {
		if n = a.among.first + uint64(a.among.rows[i]); n < a.done {
			return n // another part of it
		}
		a.Reach(n)
	}
	a.count()
	return n
}
