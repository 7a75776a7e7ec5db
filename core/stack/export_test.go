package stack

// Follow has the lists of recency follow accesses, or falls.
func (m *Sets) Follow(accesses bool) { m.follow(accesses) }

// Follows tells what they follow.
func (m *Sets) Follows() (accesses bool) { return m.exact.stamped }

// FewNumbers has the moves numbered anew, again and again.
func (m *Sets) FewNumbers() { m.last = 300 }

// Stamp has all lines of the stack stamped, or those below the top array.
func (m *Exact) Stamp(all bool) { m.stampAll(all) }

// NewShelvedInBlocks is [NewShelved] with blocks of so many bytes.
func NewShelvedInBlocks(shelf Shelf, sets bool, size int) *Shelved {
	m := NewShelved(shelf, sets)
	m.writer.size, m.adoptLines = size, size
	return m
}
