package stack

// Follow has the lists of recency follow accesses, or falls.
func (m *Sets) Follow(accesses bool) { m.follow(accesses) }

// Follows tells what they follow.
func (m *Sets) Follows() (accesses bool) { return m.follows }

// FewNumbers has the moves numbered anew, again and again.
func (m *Sets) FewNumbers() { m.last = 300 }
