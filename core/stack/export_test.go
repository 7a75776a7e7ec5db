package stack

// Stamp stamps the lines below the top array or, if all is true, all lines of the stack.
func (m *Sets) Stamp(all bool) {
	m.exact.stampAll(all)
	m.switchTo(all || m.fewPerSet())
}

// Follow makes the recency lists follow accesses if the parameter accesses is true or all lines are
// stamped. Otherwise, the lists follow the lines that fall off the top array.
func (m *Sets) Follow(accesses bool) { m.switchTo(accesses || m.exact.stamped) }

// Stamps reports whether all lines are stamped.
func (m *Sets) Stamps() (all bool) { return m.exact.stamped }

// FewNumbers lowers the largest number that a move may have, so that a test renumbers the moves
// repeatedly.
func (m *Sets) FewNumbers() { m.last = 300 }

// Stamp stamps the lines below the top array or, if all is true, all lines of the stack.
func (m *Exact) Stamp(all bool) { m.stampAll(all) }

// NewShelvedInBlocks works like [NewShelved], but uses blocks of the given size in bytes.
func NewShelvedInBlocks(shelf Shelf, sets SetNumbers, size int) *Shelved {
	m := NewShelved(shelf, sets)
	m.writer.size, m.adoptLines = size, size
	return m
}
