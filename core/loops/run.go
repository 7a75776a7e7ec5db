package loops

import "github.com/stackglass/stackglass/core/trace"

// endsInLoop tells whether the last node is a loop.
func (f *Folder) endsInLoop() bool {
	n := len(f.nodes)
	return n > 0 && f.tree.shapes.all[f.nodes[n-1].shape].loop
}

// run has the last node, a loop, say what comes next: another iteration.
func (f *Folder) run() {
	tail := &f.nodes[len(f.nodes)-1]
	s := &f.tree.shapes.all[tail.shape]
	p := f.params[tail.at:]
	t := f.walk.enter(s, ^uint64(0), p[1:])
	t.done = p[0]
	for i, step := range s.steps {
		t.cur[i] += step * t.done
	}
	f.walk.settle(f.tree.shapes.all)
}

// accepts passes a row if it is as the loop that runs says.
func (f *Folder) accepts(id uint32, addr trace.Addr) bool {
	w := &f.walk
	if w.stuck {
		return false
	}
	t := &w.frames[w.depth-1]
	it := &t.items[t.pos]
	if it.ref != id || !it.wild && addr != t.cur[t.at] {
		return false
	}
	if it.wild {
		f.tree.streams[id].add(addr)
	}
	f.habits[id].seen++
	f.habits[id].last = addr
	t.pos++
	t.at++
	w.settle(f.tree.shapes.all)
	return true
}

// stop ends the loop that runs behind its last whole iteration. The parts of one that
// has begun become nodes behind it; the last may be a loop that goes on.
func (f *Folder) stop() {
	w := &f.walk
	if w.depth == 0 {
		return
	}
	f.params[f.nodes[len(f.nodes)-1].at] = w.frames[0].done
	for d := range w.depth {
		t := &w.frames[d]
		if d > 0 {
			above := &w.frames[d-1]
			it := &above.items[above.pos]
			start := above.cur[above.at+1 : above.at+int(it.params)]
			switch t.done {
			case 0:
			case 1:
				f.pushItems(t.items, start)
			default:
				f.params = append(append(f.params, t.done), start...)
				f.push(it.shape, int(it.params))
			}
		}
		f.pushItems(t.items[:t.pos], t.cur)
	}
	w.depth, w.stuck = 0, false
}

// pushItems appends items of a body as nodes; params are the body's.
func (f *Folder) pushItems(items []item, params []uint64) {
	for i := range items {
		it := &items[i]
		f.params = append(f.params, params[it.at:it.at+it.params]...)
		f.push(it.shape, int(it.params))
	}
}

// lengthen looks whether a row goes on with the loop at the end of the last node, a
// loop between two iterations: an inner loop that runs longer than it did. If so, it
// takes the last iteration apart, so that this inner loop is the last node.
func (f *Folder) lengthen(id uint32, addr trace.Addr) bool {
	tail := f.nodes[len(f.nodes)-1]
	s := &f.tree.shapes.all[tail.shape]
	end := s.items[len(s.items)-1]
	if !end.loop {
		return false
	}
	p := f.params[tail.at:]
	trips := p[0]
	f.scratch = f.scratch[:0]
	for i, step := range s.steps {
		f.scratch = append(f.scratch, p[1+i]+step*(trips-1))
	}
	iteration := f.scratch
	if !f.goesOn(end.shape, iteration[end.at:end.at+end.params], id, addr) {
		return false
	}
	switch trips {
	case 1, 2:
		f.pop()
		first := append([]uint64(nil), f.params[tail.at+1:]...)
		f.params = f.params[:tail.at]
		if trips == 2 {
			f.pushItems(s.items, first)
		}
	default:
		f.params[tail.at]--
	}
	f.pushItems(s.items, iteration)
	return true
}

// goesOn tells whether another iteration of a loop, or of the loop at its end, and so
// on, begins with a row.
func (f *Folder) goesOn(loop uint32, p []uint64, id uint32, addr trace.Addr) bool {
	all := f.tree.shapes.all
	s := &all[loop]
	trips := p[0]
	for first, i := s.items[0], 0; ; i++ {
		value := p[1+i] + s.steps[i]*trips
		if !first.loop {
			if first.ref == id && (first.wild || value == addr) {
				return true
			}
			break
		}
		if int64(value) < 1 {
			break
		}
		first = all[first.shape].items[0]
	}
	end := s.items[len(s.items)-1]
	if !end.loop {
		return false
	}
	lo := len(f.scratch)
	for i := end.at; i < end.at+end.params; i++ {
		f.scratch = append(f.scratch, p[1+i]+s.steps[i]*(trips-1))
	}
	return f.goesOn(end.shape, f.scratch[lo:], id, addr)
}
