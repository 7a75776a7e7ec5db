package communication

// among says where references are among others, which are not followed.
type among struct {
	first uint64   // number of the first one of the batch that package sites took
	rows  []uint32 // rows of that batch, ascending: of each row that is followed; nil: all are
}

// row gives the row in the batch that package sites took.
func (m *among) row(i int) int {
	if m.rows == nil {
		return i
	}
	return int(m.rows[i])
}

// Among has the next batch be some rows of the one that package sites took last, which
// begins with reference number first. A row may be there several times: each is a part
// of the reference.
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

// number counts the reference of a row, and gives its number.
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
