package loops

// endsInLoop reports whether the last node is a loop.
func (f *Folder) endsInLoop() bool {
	n := len(f.nodes)
	return n > 0 && f.tree.shapes.all[f.list[n-1]].loop
}

// run turns the last node, which must be a loop, into the running loop. The loop then predicts a
// further iteration.
func (f *Folder) run() {
	last := len(f.nodes) - 1
	s := &f.tree.shapes.all[f.list[last]]
	p := f.params[f.nodes[last].at:]
	t := f.walk.enter(s, ^uint64(0), p[1:])
	t.done = p[0]
	for i, step := range s.steps {
		t.cur[i] += step * t.done
	}
	f.walk.settle(f.tree.shapes.all)
}

// accept consumes a row if the running loop predicts it. Otherwise, it returns false.
func (f *Folder) accept(c candidate) bool {
	w := &f.walk
	if w.stuck {
		return false
	}
	t := &w.frames[w.depth-1]
	it := &t.items[t.pos]
	if !c.fits(it, t.cur[t.at]) {
		return false
	}
	if !c.replayed {
		if it.wild {
			f.tree.streams[c.ref].add(c.addr)
		}
		h := f.habit(c.ref, c.context)
		h.seen++
		h.last = c.addr
	}
	t.pos++
	t.at++
	w.settle(f.tree.shapes.all)
	return true
}

// stopLoop ends the running loop after its last complete iteration. The items of an unfinished
// iteration become separate nodes after the loop. The last of these nodes may be a loop that can
// continue. If the parameter "fold" is true, stopLoop tries to merge the ended loop with the
// nodes before it. After a merge, stopLoop returns the number of nodes after the merged loop,
// because these nodes may belong to the next iteration of the loop. Otherwise, stopLoop returns
// 0.
func (f *Folder) stopLoop(fold bool) (parts int) {
	w := &f.walk
	if w.depth == 0 {
		return 0
	}
	f.params[f.nodes[len(f.nodes)-1].at] = w.frames[0].done
	folded := fold && !w.isIterationEmpty() && f.reduce()
	before := len(f.nodes)
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
	if !folded {
		return 0
	}
	return len(f.nodes) - before
}

// replay removes the last nodes, restarts the loop before them, and consumes the rows of the
// removed nodes again. If there are too many rows, replay keeps the nodes. If the last of these
// nodes is a loop, it becomes the running loop.
func (f *Folder) replay(parts int) {
	if !f.expandLast(parts) {
		if f.endsInLoop() {
			f.run()
		}
		return
	}
	f.removeLast(parts)
	f.run()
	for _, c := range f.past {
		if f.walk.depth > 0 && f.accept(c) || f.continuesElsewhere(c) {
			continue
		}
		f.leaf(c)
	}
}

// expandLast appends the rows of the last nodes to f.past. It returns false if there are too many
// rows.
func (f *Folder) expandLast(nodes int) bool {
	f.past = f.past[:0]
	all := f.tree.shapes.all
	w := &f.walk // no loop is running, so f.walk is free
	for i := len(f.nodes) - nodes; i < len(f.nodes); i++ {
		s := &all[f.list[i]]
		p := f.params[f.nodes[i].at:]
		if !s.loop {
			f.past = append(f.past, candidate{ref: s.ref, addr: p[0], replayed: true, wild: s.wild})
		} else {
			w.enter(s, p[0], p[1:s.params])
			for w.settle(all); w.depth > 0 && !w.stuck && len(f.past) <= maxAgain; w.settle(all) {
				t := &w.frames[w.depth-1]
				it := &t.items[t.pos]
				f.past = append(f.past, candidate{ref: it.ref, addr: t.cur[t.at], replayed: true, wild: it.wild})
				t.pos++
				t.at++
			}
			stuck := w.stuck
			w.depth, w.stuck = 0, false
			if stuck {
				return false
			}
		}
		if len(f.past) > maxAgain {
			return false
		}
	}
	return true
}

// pushItems appends the items of a body as separate nodes. The slice "params" contains the
// parameters of the body. Loops that do not run are skipped.
func (f *Folder) pushItems(items []item, params []uint64) {
	for i := range items {
		it := &items[i]
		if it.loop && int64(params[it.at]) < 1 {
			continue
		}
		f.params = append(f.params, params[it.at:it.at+it.params]...)
		f.push(it.shape, int(it.params))
	}
}

// extendInnerLoop checks whether a row continues the inner loop at the end of the last node. If so,
// it splits the last iteration off the outer loop, so that the inner loop becomes the last node.
// All iterations of the outer loop must be complete.
func (f *Folder) extendInnerLoop(c candidate) bool {
	tail := f.nodes[len(f.nodes)-1]
	s := &f.tree.shapes.all[f.list[len(f.nodes)-1]]
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
	if !f.continues(end.shape, iteration[end.at:end.at+end.params], c) {
		return false
	}
	switch trips {
	case 1, 2:
		f.pop()
		lo := len(f.scratch)
		f.scratch = append(f.scratch, f.params[tail.at+1:]...)
		first := f.scratch[lo:]
		iteration = f.scratch[:lo]
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

// continues reports whether a row begins a further iteration of a loop, or of an inner loop at the
// end of its body. Such an inner loop is the last item of the body, or the last item of this item,
// and so on.
func (f *Folder) continues(loop uint32, p []uint64, c candidate) bool {
	all := f.tree.shapes.all
	s := &all[loop]
	trips := p[0]
	if int64(trips) < 1 {
		return false
	}
	for first, i := s.items[0], 0; ; i++ {
		value := p[1+i] + s.steps[i]*trips
		if !first.loop {
			if c.fits(&first, value) {
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
	return f.continues(end.shape, f.scratch[lo:], c)
}
