package loops

import (
	"math/bits"
	"slices"
)

// push appends a node whose parameters are the last n parameters in f.params.
func (f *Folder) push(shape uint32, n int) {
	number := f.base + len(f.nodes)
	slot := f.slotOf(shape)
	f.nodes = append(f.nodes, node{at: len(f.params) - n, prev: f.ends[slot], slot: slot})
	f.list = append(f.list, shape)
	f.ends[slot] = uint32(1 + number)
	if s := &f.tree.shapes.all[shape]; s.loop {
		f.loops = append(f.loops, loopAt{number, number + 1 + len(s.items)})
	}
}

// slotOf returns the slot that a node with the given shape would have if it followed the last node.
func (f *Folder) slotOf(shape uint32) uint32 {
	h := shape
	for i := len(f.list) - 1; i >= 0 && i > len(f.list)-chained; i-- {
		h = h*0x9e3779b1 + f.list[i]
	}
	return h * 0x9e3779b1 >> (32 - slotBits)
}

// pop removes the last node, but keeps its parameters in the list.
func (f *Folder) pop() {
	n := len(f.nodes) - 1
	f.ends[f.nodes[n].slot] = f.nodes[n].prev
	f.nodes, f.list = f.nodes[:n], f.list[:n]
	if l := len(f.loops); l > 0 && f.loops[l-1].number == f.base+n {
		f.loops = f.loops[:l-1]
	}
}

// removeLast removes the last n nodes and their parameters.
func (f *Folder) removeLast(n int) {
	at := f.nodes[len(f.nodes)-n].at
	for range n {
		f.pop()
	}
	f.params = f.params[:at]
}

// reduce folds the end of the list once, if possible, and reports whether it did. The last node is
// then a loop. reduce must not be called while a loop is running.
func (f *Folder) reduce() bool {
	return f.join() || f.absorb() || f.merge()
}

// join merges the last two nodes into one loop if the second loop continues the first.
func (f *Folder) join() bool {
	n := len(f.nodes)
	if n < 2 || f.list[n-1] != f.list[n-2] || !f.endsInLoop() {
		return false
	}
	a, b := f.params[f.nodes[n-2].at:], f.params[f.nodes[n-1].at:]
	if !isIteration(&f.tree.shapes.all[f.list[n-1]], a, b[1:]) {
		return false
	}
	a[0] += b[0]
	f.removeLast(1)
	return true
}

// absorb checks whether the nodes after a loop match a further iteration of the loop. If so, it
// removes these nodes, and increments the trip count.
func (f *Folder) absorb() bool {
	n := len(f.nodes)
	for i := len(f.loops) - 1; i >= 0 && i >= len(f.loops)-candidates; i-- {
		if f.loops[i].next != f.base+n {
			continue
		}
		p := f.loops[i].number - f.base
		s := &f.tree.shapes.all[f.list[p]]
		if !s.hasBody(f.list[p+1:]) {
			continue
		}
		a, b := f.params[f.nodes[p].at:], f.params[f.nodes[p+1].at:]
		if !isIteration(s, a, b) {
			continue
		}
		a[0]++
		f.removeLast(n - 1 - p)
		return true
	}
	return false
}

// isIteration reports whether b contains the parameters of the next iteration of a loop with the
// parameters a.
func isIteration(s *shape, a, b []uint64) bool {
	for i, step := range s.steps {
		if b[i] != a[1+i]+a[0]*step {
			return false
		}
	}
	return true
}

// merge turns equal sequences at the end of the list into a loop. First, it tries sequences that
// are shorter than the constant "chained". Then it tries longer sequences, whose length is the
// distance from the last node to an earlier node in the same slot. Almost all longer sequences
// differ, usually in the same node as in the last comparison, so merge compares this node first.
func (f *Folder) merge() bool {
	n := len(f.nodes)
	for k := 1; k < chained; k++ {
		if 2*k <= n && f.list[n-1] == f.list[n-1-k] && f.foldEqual(k) {
			return true
		}
	}
	if n < 2*chained {
		return false
	}
	list, nodes, unlike := f.list[:n], f.nodes[:n], f.unlike
	c := nodes[n-1].prev
	for range candidates {
		p := int(c) - 1 - f.base
		if p < 0 {
			return false
		}
		k := n - 1 - p
		if 2*k > n || k >= len(unlike) {
			return false
		}
		q := int(unlike[k]) - f.base
		if known := q > p && q < len(list) && list[q] != list[q-k]; !known && k >= chained && f.foldEqual(k) {
			return true
		}
		c = nodes[p].prev
	}
	return false
}

// foldEqual folds the last two sequences of k nodes into a loop if they are equal, or the last
// three sequences if their parameters are in arithmetic progression.
func (f *Folder) foldEqual(k int) bool {
	n := len(f.nodes)
	if at := f.lastDifference(n-k, k); at >= 0 {
		f.unlike[k] = uint32(f.base + at)
		return false
	}
	if f.sameTrips(k) {
		f.fold(k, 2)
		return true
	}
	if 3*k <= n && f.lastDifference(n-2*k, k) < 0 && f.inProgression(k) {
		f.fold(k, 3)
		return true
	}
	return false
}

// lastDifference compares the shapes of the k nodes that begin at index lo with the shapes of the k
// nodes before lo. It returns the index of the last node whose shape differs, or -1 if all shapes
// are equal.
func (f *Folder) lastDifference(lo, k int) int {
	b := f.list[lo : lo+k]
	a := f.list[lo-k:][:len(b)]
	for i := len(b) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return lo + i
		}
	}
	return -1
}

// sameTrips reports whether the last two sequences of k nodes have equal trip counts.
func (f *Folder) sameTrips(k int) bool {
	n := len(f.nodes)
	for i := n - k; i < n; i++ {
		for _, trip := range f.tree.shapes.all[f.list[i]].trips {
			if f.params[f.nodes[i].at+int(trip)] != f.params[f.nodes[i-k].at+int(trip)] {
				return false
			}
		}
	}
	return true
}

// inProgression reports whether all parameters of the last three sequences of k nodes are in
// arithmetic progression.
func (f *Folder) inProgression(k int) bool {
	n := len(f.nodes)
	a, b, c := f.nodes[n-3*k].at, f.nodes[n-2*k].at, f.nodes[n-k].at
	for i := range b - a {
		if f.params[c+i]-f.params[b+i] != f.params[b+i]-f.params[a+i] {
			return false
		}
	}
	return true
}

// fold replaces the last k·trips nodes by a loop whose body consists of k nodes.
func (f *Folder) fold(k int, trips uint64) {
	n := len(f.nodes)
	first := n - k*int(trips)
	a, b := f.nodes[first].at, f.nodes[first+k].at
	f.scratch = f.scratch[:0]
	for i := range b - a {
		f.scratch = append(f.scratch, f.params[b+i]-f.params[a+i])
	}
	shapes := len(f.tree.shapes.all)
	id := f.tree.shapes.loop(f.list[first:first+k], f.scratch)
	if int(id) < shapes {
		f.markUsed(id) // the shape has occurred more than once
	}
	for range n - first {
		f.pop()
	}
	copy(f.params[a+1:], f.params[a:b])
	f.params[a] = trips
	f.params = f.params[:b+1]
	f.push(id, b-a+1)
}

// retire finishes the first n nodes of the window, and removes them from the window.
func (f *Folder) retire(n int) {
	if n == 0 {
		return
	}
	for i := range f.nodes[:n] {
		f.finish(f.list[i], f.params[f.nodes[i].at:])
	}
	at := len(f.params)
	if n < len(f.nodes) {
		at = f.nodes[n].at
	}
	f.params, f.nodes, f.list = slices.Delete(f.params, 0, at), slices.Delete(f.nodes, 0, n), slices.Delete(f.list, 0, n)
	for i := range f.nodes {
		f.nodes[i].at -= at
	}
	f.base += n
	f.loops = slices.DeleteFunc(f.loops, func(l loopAt) bool { return l.number < f.base })
	if f.base >= maxNumber {
		f.renumber()
	}
}

// renumber makes the node numbers begin at 0 again, before they exceed 32 bits.
func (f *Folder) renumber() {
	since := func(end uint32) uint32 { return uint32(max(0, int(end)-f.base)) }
	for slot, end := range f.ends {
		f.ends[slot] = since(end)
	}
	for i := range f.nodes {
		f.nodes[i].prev = since(f.nodes[i].prev)
	}
	for i := range f.loops {
		f.loops[i].number -= f.base
		f.loops[i].next -= f.base
	}
	f.base = 0
}

// finish adds a node to the tree. If the leaves of a loop take fewer bytes than the loop, it adds
// the leaves instead. The slice p begins with the parameters of the node.
func (f *Folder) finish(id uint32, p []uint64) {
	t := f.tree
	s := &t.shapes.all[id]
	if !s.loop {
		t.nodes, t.params = append(t.nodes, id), append(t.params, p[0])
		return
	}
	if !s.exceedsLeaves(p[0], f.isUsed(id)) {
		f.markUsed(id)
		t.nodes, t.params = append(t.nodes, id), append(t.params, p[:s.params]...)
		return
	}
	for i := range p[0] {
		for j := range s.items {
			t.nodes = append(t.nodes, s.items[j].shape)
			t.params = append(t.params, p[1+j]+s.steps[j]*i)
		}
	}
}

// exceedsLeaves reports whether a loop over leaves takes more bytes than its records as separate
// leaves. If the loop is replaced by separate leaves, each iteration after the first takes the
// bytes of the steps. A loop takes one byte for the trip count and one byte for the number of its
// shape. If the shape is used only once, the loop also takes the bytes of the definition: the
// bytes of the steps, one byte for each item, and one byte for the loop.
func (s *shape) exceedsLeaves(trips uint64, used bool) bool {
	if !s.flat || trips > maxExpandedTrips {
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

// maxExpandedTrips is the maximum trip count of loops that are replaced by separate leaves.
const maxExpandedTrips = 3

// varintBytes returns the number of bytes that a difference takes as a zigzag varint.
func varintBytes(d uint64) int { return (bits.Len64(d<<1^uint64(int64(d)>>63)|1) + 6) / 7 }

// isUsed reports whether a shape is expected to be used more than once: it has occurred twice, or
// it is part of a finished node.
func (f *Folder) isUsed(shape uint32) bool { return int(shape) < len(f.used) && f.used[shape] }

// markUsed marks a shape, and all shapes that it contains, as used.
func (f *Folder) markUsed(shape uint32) {
	s := &f.tree.shapes.all[shape]
	if !s.loop || f.isUsed(shape) {
		return
	}
	for int(shape) >= len(f.used) {
		f.used = append(f.used, false)
	}
	f.used[shape] = true
	for i := range s.items {
		f.markUsed(s.items[i].shape)
	}
}
