package diagnose

import (
	"iter"
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/trace"
)

// fusedWork returns the cycles that fusing loops saves in the core: the sum over all pairs of
// neighbouring loops.
func (r *run) fusedWork(n *loops.Nest, by change.Change, g *group) (cycles float64) {
	if fuse, ok := by.(change.Fuse); ok && r.cost.program != nil && len(fuse.First) > 0 {
		for i := range fuse.More + 1 {
			cycles += r.pairWork(n, change.Fuse{First: fuse.Loop(i)}, g)
		}
	}
	return min(cycles, g.cycles/2)
}

// pairWork returns the cycles that fusing two loops saves in the core. The fused loop counts its
// iterations once, keeps values of the first loop in registers, and omits stores whose values the
// second loop overwrites. A chain of results in one loop overlaps with the operations of the other
// loop.
func (r *run) pairWork(n *loops.Nest, fuse change.Fuse, g *group) float64 {
	a, b := fuse.First.Loop(n), fuse.Loop(1).Loop(n)
	if a == nil || b == nil {
		return 0
	}
	times, depth := g.times, len(fuse.First)-1
	for d := range depth {
		times *= float64(fuse.First[:d+1].Loop(n).Trips)
	}
	// fuse the inner loops of both loops, too
	for ; a.Trips == b.Trips && onlyLoop(a) != nil && onlyLoop(b) != nil; depth++ {
		times *= float64(a.Trips)
		a, b = onlyLoop(a), onlyLoop(b)
	}
	if hasLoop(a.Body) || hasLoop(b.Body) {
		return 0
	}
	// The fused loop uses the shorter of the two loops' vectors.
	lanesOfA, lanesOfB := r.lanes(a, depth)+1, r.lanes(b, depth)+1
	fewest := min(lanesOfA, lanesOfB)
	fused := r.operationsOf(a, lanesOfA/fewest, func(k *trace.Block, i int) bool {
		leaf := r.leafOf(a, k, i)
		return leaf != nil && leaf.Ref.Kind == trace.Store && slices.ContainsFunc(b.Body, func(it loops.Item) bool { return it.Ref.Kind == trace.Store && again(leaf, &it, depth) })
	})
	fused = append(fused, r.operationsOf(b, lanesOfB/fewest, func(k *trace.Block, i int) bool {
		known := func(i int) bool {
			leaf := r.leafOf(b, k, i)
			return leaf != nil && slices.ContainsFunc(a.Body, func(it loops.Item) bool { return again(&it, leaf, depth) })
		}
		switch k.Instrs[i].Opcode {
		case "load":
			return known(i)
		case "getelementptr":
			for n := range k.Instrs {
				if slices.Contains(k.Instrs[n].Uses, int32(i)) && known(n) {
					return true
				}
			}
		}
		return countsIterations(k.Instrs, i)
	})...)
	body := pipeline.Body{Processor: r.Processor, Ops: fused}
	t := body.Steady()
	before, after := 0.0, max(t.Ports, t.Dispatch)
	for _, l := range []*loops.Item{a, b} {
		cycles, chain := r.cyclesOfLoop(l)
		before += cycles
		after = max(after, chain)
	}
	return times * max(0, before-after)
}

// operationsOf returns the operations of all iterations of an innermost loop. It omits the
// operations for which the function without returns true. The operations are independent of each
// other. The number of executions of each operation is its number of executions in the run,
// multiplied by the parameter times.
func (r *run) operationsOf(l *loops.Item, times float64, without func(k *trace.Block, instr int) bool) (list []pipeline.Op) {
	for b, each := range r.codeOf(l) {
		k := &r.cost.program.Blocks[b]
		for _, op := range r.Processor.NewBody(k.Instrs, pipeline.Options{Target: r.cost.program.TargetOf(uint32(b))}).Ops {
			if !without(k, int(op.Instr)) {
				op.Waits, op.Weight = nil, op.Weight*each*times*r.compiledTrips(l)
				list = append(list, op)
			}
		}
	}
	return list
}

// cyclesOfLoop returns the cycles of all iterations of an innermost loop, and the cycles of its
// chain of results. The cycles of the chain are 0 if the operations take longer.
func (r *run) cyclesOfLoop(l *loops.Item) (cycles, chain float64) {
	for b, each := range r.codeOf(l) {
		t := &r.cost.hits.Blocks[b]
		cycles += share(t.Cycles, r.cost.visits[b]) * each * r.compiledTrips(l)
		if t.Bottleneck == pipeline.Recurrence {
			chain = max(chain, t.Steady.Cycles*r.compiledTrips(l))
		}
	}
	return cycles, chain
}

// compiledTrips returns the trip count of an innermost loop as it was compiled.
func (r *run) compiledTrips(l *loops.Item) float64 {
	for _, it := range leavesOf(l.Body) {
		return float64(l.Trips) / float64(r.copies(it.Ref.Site))
	}
	return float64(l.Trips)
}

// codeOf iterates over the blocks of an innermost loop, with the number of executions of each block
// in an iteration.
func (r *run) codeOf(l *loops.Item) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		blocks := r.cost.program.Blocks
		first := slices.IndexFunc(blocks, func(k trace.Block) bool {
			return slices.ContainsFunc(leavesOf(l.Body), func(it *loops.Item) bool {
				s := r.loops.Place(it.Ref)
				return s != nil && s.Number >= k.FirstSite && s.Number < k.FirstSite+k.Sites
			})
		})
		if first < 0 {
			return
		}
		head := blocks[first].Loop
		if head == 0 {
			yield(first, 1)
			return
		}
		for b := range blocks {
			if blocks[b].Loop == head && !yield(b, share(r.cost.visits[b], r.cost.visits[head-1])) {
				return
			}
		}
	}
}

// leafOf returns the reference that an instruction makes in a loop, or nil if it makes no
// reference.
func (r *run) leafOf(l *loops.Item, k *trace.Block, instr int) *loops.Item {
	if k.Instrs[instr].Site == 0 {
		return nil
	}
	site := k.FirstSite + k.Instrs[instr].Site - 1
	if of, ok := r.sources[site]; ok {
		site = of.head
	}
	for _, it := range leavesOf(l.Body) {
		if s := r.loops.Place(it.Ref); s != nil && s.Number == site {
			return it
		}
	}
	return nil
}

// countsIterations reports whether an instruction counts the iterations of a loop, or ends the
// loop.
func countsIterations(instrs []trace.Instr, i int) bool {
	switch in := &instrs[i]; in.Opcode {
	case "icmp", "br":
		return true
	case "add":
		return slices.Contains(in.Uses, -2-int32(i))
	}
	return false
}
