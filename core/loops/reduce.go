package loops

import "math/bits"

// push appends a node whose parameters are the last n.
func (f *Folder) push(shape uint32, n int) {
	number := f.base + len(f.nodes)
	slot := f.slotOf(shape)
	f.nodes = append(f.nodes, node{
		shape: shape, at: len(f.params) - n, prev: f.ends[slot], slot: slot,
		hash: f.hashAt(len(f.nodes)-1)*radix + mix(uint64(shape)),
	})
	f.ends[slot] = 1 + number
	if s := &f.tree.shapes.all[shape]; s.loop {
		f.loops = append(f.loops, loopAt{number, number + 1 + len(s.items)})
	}
}

// slotOf gives the slot of what would end with a shape.
func (f *Folder) slotOf(shape uint32) uint32 {
	h := shape
	for i := len(f.nodes) - 1; i >= 0 && i > len(f.nodes)-chained; i-- {
		h = h*0x9e3779b1 + f.nodes[i].shape
	}
	return h * 0x9e3779b1 >> (32 - slotBits)
}

// pop takes the last node away, and leaves its parameters.
func (f *Folder) pop() {
	n := len(f.nodes) - 1
	f.ends[f.nodes[n].slot] = f.nodes[n].prev
	f.nodes = f.nodes[:n]
	if l := len(f.loops); l > 0 && f.loops[l-1].number == f.base+n {
		f.loops = f.loops[:l-1]
	}
}

// cut takes the last n nodes away, with their parameters.
func (f *Folder) cut(n int) {
	at := f.nodes[len(f.nodes)-n].at
	for range n {
		f.pop()
	}
	f.params = f.params[:at]
}

func (f *Folder) hashAt(i int) uint64 {
	if i < 0 {
		return f.before
	}
	return f.nodes[i].hash
}

// hashOf is the hash of n nodes from lo on.
func (f *Folder) hashOf(lo, n int) uint64 {
	return f.hashAt(lo+n-1) - f.hashAt(lo-1)*f.powers[n]
}

// reduce folds the end of the list once, if it can. The last node is a loop then. The
// nodes that it looks at are closed: none of them runs.
func (f *Folder) reduce() bool {
	return f.join() || f.absorb() || f.merge()
}

// join makes one loop of two, of which one goes on where the other ends.
func (f *Folder) join() bool {
	n := len(f.nodes)
	if n < 2 || f.nodes[n-1].shape != f.nodes[n-2].shape || !f.endsInLoop() {
		return false
	}
	a, b := f.params[f.nodes[n-2].at:], f.params[f.nodes[n-1].at:]
	if !isIteration(&f.tree.shapes.all[f.nodes[n-1].shape], a, b[1:]) {
		return false
	}
	a[0] += b[0]
	f.cut(1)
	return true
}

// absorb makes what is behind a loop a further iteration of it.
func (f *Folder) absorb() bool {
	n := len(f.nodes)
	for i := len(f.loops) - 1; i >= 0 && i >= len(f.loops)-candidates; i-- {
		if f.loops[i].next != f.base+n {
			continue
		}
		p := f.loops[i].number - f.base
		s := &f.tree.shapes.all[f.nodes[p].shape]
		if !s.over(f.nodes[p+1:]) {
			continue
		}
		a, b := f.params[f.nodes[p].at:], f.params[f.nodes[p+1].at:]
		if !isIteration(s, a, b) {
			continue
		}
		a[0]++
		f.cut(n - 1 - p)
		return true
	}
	return false
}

// isIteration tells whether b are the parameters of the iteration that is next in a
// loop with the parameters a.
func isIteration(s *shape, a, b []uint64) bool {
	for i, step := range s.steps {
		if b[i] != a[1+i]+a[0]*step {
			return false
		}
	}
	return true
}

// merge makes a loop of equal sequences at the end: of a few nodes, and of those that
// begin where one ended with the same nodes.
func (f *Folder) merge() bool {
	n := len(f.nodes)
	for k := 1; k < chained; k++ {
		if 2*k <= n && f.nodes[n-1].shape == f.nodes[n-1-k].shape && f.repeats(k) {
			return true
		}
	}
	if n < 2*chained {
		return false
	}
	c := f.nodes[n-1].prev
	for range candidates {
		if c <= f.base {
			return false
		}
		p := c - 1 - f.base
		k := n - 1 - p
		if 2*k > n || k > f.window {
			return false
		}
		if f.nodes[p+1].shape == f.nodes[p+1-k].shape && k >= chained && f.repeats(k) {
			return true
		}
		c = f.nodes[p].prev
	}
	return false
}

// repeats makes a loop of the last sequences of k nodes, if they are equal.
func (f *Folder) repeats(k int) bool {
	n := len(f.nodes)
	if !f.equal(n-2*k, n-k, k) {
		return false
	}
	if f.sameTrips(k) {
		f.fold(k, 2)
		return true
	}
	if 3*k <= n && f.equal(n-3*k, n-2*k, k) && f.progress(k) {
		f.fold(k, 3)
		return true
	}
	return false
}

// equal tells whether k nodes from a on have the shapes of those from b on.
func (f *Folder) equal(a, b, k int) bool {
	if f.hashOf(a, k) != f.hashOf(b, k) {
		return false
	}
	for i := range k {
		if f.nodes[a+i].shape != f.nodes[b+i].shape {
			return false
		}
	}
	return true
}

// sameTrips tells whether trip counts are equal in the last two sequences of k nodes.
func (f *Folder) sameTrips(k int) bool {
	n := len(f.nodes)
	for i := n - k; i < n; i++ {
		for _, trip := range f.tree.shapes.all[f.nodes[i].shape].trips {
			if f.params[f.nodes[i].at+int(trip)] != f.params[f.nodes[i-k].at+int(trip)] {
				return false
			}
		}
	}
	return true
}

// progress tells whether all parameters are in arithmetic progression in the last
// three sequences of k nodes.
func (f *Folder) progress(k int) bool {
	n := len(f.nodes)
	a, b, c := f.nodes[n-3*k].at, f.nodes[n-2*k].at, f.nodes[n-k].at
	for i := range b - a {
		if f.params[c+i]-f.params[b+i] != f.params[b+i]-f.params[a+i] {
			return false
		}
	}
	return true
}

// fold makes the last sequences of k nodes, as many as trips says, a loop.
func (f *Folder) fold(k int, trips uint64) {
	n := len(f.nodes)
	first := f.nodes[n-k*int(trips):]
	a, b := first[0].at, first[k].at
	f.scratch = f.scratch[:0]
	for i := range b - a {
		f.scratch = append(f.scratch, f.params[b+i]-f.params[a+i])
	}
	shapes := len(f.tree.shapes.all)
	id := f.tree.shapes.loop(first[:k], f.scratch)
	if int(id) < shapes {
		f.use(id) // it comes more than once
	}
	for range first {
		f.pop()
	}
	copy(f.params[a+1:], f.params[a:b])
	f.params[a] = trips
	f.params = f.params[:b+1]
	f.push(id, b-a+1)
}

// retire finishes the first n nodes of the window.
func (f *Folder) retire(n int) {
	if n == 0 {
		return
	}
	for i := range f.nodes[:n] {
		f.finish(&f.nodes[i])
	}
	at := len(f.params)
	if n < len(f.nodes) {
		at = f.nodes[n].at
	}
	f.params = append(f.params[:0], f.params[at:]...)
	f.before = f.nodes[n-1].hash
	f.nodes = append(f.nodes[:0], f.nodes[n:]...)
	for i := range f.nodes {
		f.nodes[i].at -= at
	}
	f.base += n
	gone := 0
	for gone < len(f.loops) && f.loops[gone].number < f.base {
		gone++
	}
	f.loops = append(f.loops[:0], f.loops[gone:]...)
}

// finish adds a node to the tree; the leaves of a loop instead, if it is not worth its
// bytes.
func (f *Folder) finish(n *node) {
	t := f.tree
	s := &t.shapes.all[n.shape]
	p := f.params[n.at : n.at+s.params]
	if !s.loop || !s.isDear(p[0], f.isUsed(n.shape)) {
		f.use(n.shape)
		t.nodes, t.params = append(t.nodes, n.shape), append(t.params, p...)
		return
	}
	for i := range p[0] {
		for j := range s.items {
			t.nodes = append(t.nodes, s.items[j].shape)
			t.params = append(t.params, p[1+j]+s.steps[j]*i)
		}
	}
}

// isDear tells of a loop over leaves that takes more bytes than its few rows as they are.
// As leaves each further iteration takes its steps. As a loop it takes a byte for trips
// and another for its number; where the shape is written for it alone, the steps, and a
// byte for each item and for the loop.
func (s *shape) isDear(trips uint64, used bool) bool {
	if !s.flat || trips > mostDear {
		return false
	}
	leaves, loop := 0, 1+len(s.items)
	for i := range s.items {
		n := varintBytes(s.steps[i])
		loop += n
		if !s.items[i].wild {
			leaves += int(trips-1) * n
		}
	}
	if used {
		loop = 2
	}
	return leaves < loop
}

// mostDear is the most iterations of loops that may not be worth their bytes.
const mostDear = 3

// varintBytes is the length of a difference as a zigzag varint.
func varintBytes(d uint64) int { return (bits.Len64(d<<1^uint64(int64(d)>>63)|1) + 6) / 7 }

// isUsed tells whether finished nodes have a shape, or one that it is in, or whether
// nodes came to have it twice.
func (f *Folder) isUsed(shape uint32) bool { return int(shape) < len(f.used) && f.used[shape] }

// use takes note that a shape is not for one node alone.
func (f *Folder) use(shape uint32) {
	s := &f.tree.shapes.all[shape]
	if !s.loop || f.isUsed(shape) {
		return
	}
	for int(shape) >= len(f.used) {
		f.used = append(f.used, false)
	}
	f.used[shape] = true
	for i := range s.items {
		f.use(s.items[i].shape)
	}
}
