package stack

// Stamp has all lines of the stack stamped, or those below the top array.
func (m *Sets) Stamp(all bool) {
	m.exact.stampAll(all)
	m.switchTo(all || m.few())
}

// Follow has the lists of recency follow accesses, or falls, unless all lines are stamped.
func (m *Sets) Follow(accesses bool) { m.switchTo(accesses || m.exact.stamped) }

// Stamps reports whether all lines are stamped.
func (m *Sets) Stamps() (all bool) { return m.exact.stamped }

// FewNumbers has the moves numbered again, again and again.
func (m *Sets) FewNumbers() { m.last = 300 }

// Stamp has all lines of the stack stamped, or those below the top array.
func (m *Exact) Stamp(all bool) { m.stampAll(all) }

// NewShelvedInBlocks is [NewShelved] with blocks of so many bytes.
func NewShelvedInBlocks(shelf Shelf, sets SetNumbers, size int) *Shelved {
	m := NewShelved(shelf, sets)
	m.writer.size, m.adoptLines = size, size
	return m
}
