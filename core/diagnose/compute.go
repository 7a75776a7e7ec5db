package diagnose

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// compute adds findings about loops that wait for their own operations rather than for memory.
func (r *run) compute() {
	if r.cost.program == nil {
		return
	}
	others := r.out.Findings
	r.divisions()
	for b := range r.cost.program.Blocks {
		k := &r.cost.program.Blocks[b]
		t := &r.cost.hits.Blocks[b]
		if t.Cycles < leastCompute*r.out.Cycles || k.Loop == 0 {
			continue
		}
		saved := r.recurrence(b)
		at, instead := r.blockPlace(k), ""
		for _, of := range r.places {
			if text := r.instead[of]; text != "" && r.refersFrom(of, k) {
				instead = "; or " + text + ", so that each iteration of the innermost loop uses a different sum"
			}
		}
		chain := r.chain(b)
		if t.Bottleneck != pipeline.Recurrence || saved < t.Cycles/2 || at.wait > t.Cycles || at.dependent > 0 || r.found(others, k, saved) || r.overlapped(k, saved) || chain.loads == (chain.floats || chain.multiplies || chain.remainders || chain.tables) || chain.number >= partialSums || chain.floats && r.overlaps(k) {
			continue
		}
		each, iterations := r.sourceIteration(b)
		takes, need := number(t.Steady.Cycles/iterations)+" cycles", number(max(t.Steady.Ports, t.Steady.Dispatch)/iterations)+" cycles"
		f := Finding{Kind: Compute, Cost: t.Cycles, Saved: saved / uncertaintyDivisor, Least: 0, Most: saved,
			Why: each + " waits for a result of the previous iteration: this chain takes " + takes + "; without this wait, an iteration would take only " + need,
			Fix: "split the chain into several independent chains, such as four partial sums; for floating point, allow the compiler to reorder operations (-ffast-math or an OpenMP simd reduction)",
			How: "Modelled: the cycles that the loop would take if only the execution ports limited it.", IllegalIf: "the program needs exactly the same floating-point result, because another order of additions rounds differently",
			More: "pipeline"}
		if !chain.floats {
			f.Fix = "split the chain into several independent chains, such as four sums or checksums of every fourth element"
			f.IllegalIf = "the value depends on the order of the operations, like the value of a standard checksum"
		}
		switch {
		case chain.loads:
			f.Kind, f.IllegalIf = PointerChasing, ""
			f.Why = each + " uses an address that the previous iteration loads, and this load takes " + takes + " even if it hits in " + r.Machine.Levels[0].Name + "; without this wait, an iteration would take only " + need
			f.Fix = "keep the elements in an array, whose addresses do not depend on loads"
		case chain.tables:
			f.Why = each + " looks up an index that the previous iteration has loaded, like the state of an automaton; this look-up takes " + takes + " even if it hits in " + r.Machine.Levels[0].Name + "; without this wait, an iteration would take only " + need
			f.Fix, f.IllegalIf = "work on several parts of the input at a time, or perform several steps with each look-up", ""
		case chain.remainders && !chain.multiplies:
			if quick := r.withSums(b); quick > 0 {
				f.Saved = t.Cycles * (1 - quick/t.Steady.Cycles)
				f.Least, f.Most, f.Tried = f.Saved, f.Saved, true
				f.How = "Modelled: the loop with a sum in place of each remainder."
			}
			f.Why = each + " computes the remainder of a division for the next iteration; this division takes " + takes
			f.Fix, instead = "compute the remainder once for many iterations, before the sums overflow; if each value is needed, subtract the divisor whenever the sum has reached the divisor", ""
			f.IllegalIf = "the numbers are so large that even a few sums overflow"
		case chain.used: // for example a running sum: partial sums cannot break its chain
			f.Fix, instead = "compute the value of each iteration from its index instead of from the previous iteration, or work on several independent sequences at a time", ""
			f.IllegalIf = "there is only one sequence, and each of its values depends on the previous value"
		}
		if f.Kind == Compute {
			f.Fix += instead
			if chain.stored && !chain.used {
				f.Fix = "keep the result in a local variable and store it after the loop, and " + f.Fix
			}
		}
		if line := r.chainLine(b); line > 0 && path.Base(at.file) == path.Base(k.File) {
			at = &place{function: at.function, file: at.file, line: line, data: at.data}
		}
		r.add(at, f)
	}
}

// chainLine returns the source line of the recurrence of block b: the line with the most loads in
// the chain. If the chain contains no load, chainLine returns the line with the most loads whose
// values enter the chain. It returns 0 if there is no such load in the file of the block.
func (r *run) chainLine(b int) (line uint32) {
	k := &r.cost.program.Blocks[b]
	in := map[int32]bool{}
	for _, op := range r.cost.hits.Blocks[b].Steady.Cycle {
		if int(op) < len(k.Instrs) {
			in[int32(op)] = true
		}
	}
	loads := map[uint32]int{}
	count := func(op int32) {
		if i := &k.Instrs[op]; i.Opcode == "load" && i.Site > 0 {
			if at := r.cost.program.Sites[k.FirstSite+i.Site-1].Place; at.Line > 0 && at.File == k.File {
				loads[at.Line]++
			}
		}
	}
	for op := range in {
		count(op)
	}
	if len(loads) == 0 {
		entered := map[int32]bool{}
		var enter func(op int32)
		enter = func(op int32) {
			for _, use := range k.Instrs[op].Uses {
				if use < 0 || in[use] || entered[use] {
					continue
				}
				entered[use] = true
				if count(use); k.Instrs[use].Opcode != "load" {
					enter(use)
				}
			}
		}
		for op := range in {
			enter(op)
		}
	}
	most := 0
	for of, times := range loads {
		if times > most || times == most && of < line {
			line, most = of, times
		}
	}
	return line
}

// sourceIteration returns the number of source iterations in an iteration of a block's loop. It
// also returns a phrase for texts that state the cycles of an iteration: the phrase is "each
// iteration" or, if the compiler has unrolled the loop by an unknown factor, "each iteration of the
// compiled loop".
func (r *run) sourceIteration(b int) (each string, iterations float64) {
	k := &r.cost.program.Blocks[b]
	for i := range r.nestsIn(k) {
		r.rollNest(r.loops.Loops[i].Nest)
	}
	copies, known := uint64(0), true
	same := map[trace.Site]bool{} // the references of the source
	again := false
	for n := k.FirstSite; n < k.FirstSite+k.Sites; n++ {
		s := r.cost.program.Sites[n]
		if !s.Kind.IsReference() {
			continue
		}
		own := r.copies(n)
		known = known && (copies == 0 || copies == own)
		copies = own
		like := trace.Site{Kind: s.Kind, Bytes: s.Bytes, Place: s.Place, Object: s.Object, Offset: s.Offset}
		again = again || s.Place.Line > 0 && same[like]
		same[like] = true
	}
	switch {
	case known && copies > 1:
		return "each iteration", float64(copies)
	case again || !known:
		return "each iteration of the compiled loop", 1
	}
	return "each iteration", 1
}

// nestsIn iterates over the loops that contain references of a block.
func (r *run) nestsIn(k *trace.Block) iter.Seq[int] {
	return func(yield func(int) bool) {
		if r.loops == nil {
			return
		}
		for i := range r.loops.Loops {
			if r.loops.Loops[i].Depth > 0 {
				continue
			}
			in := slices.ContainsFunc(r.loops.Refs(i), func(ref loops.Reference) bool {
				s := r.loops.Place(ref)
				return s != nil && s.Number >= k.FirstSite && s.Number < k.FirstSite+k.Sites
			})
			if in && !yield(i) {
				return
			}
		}
	}
}

// withSums returns the cycles that an iteration of a block's loop would take with additions instead
// of remainders.
func (r *run) withSums(b int) float64 {
	instrs := slices.Clone(r.cost.program.Blocks[b].Instrs)
	for n := range instrs {
		if i := &instrs[n]; isRemainder(i.Opcode) {
			i.Opcode = "add"
		}
	}
	return r.steady(b, instrs).Cycles
}

// steady returns the cycles that an iteration of a block's loop would take if the loop contained
// the given instructions instead.
func (r *run) steady(b int, instrs []trace.Instr) pipeline.Steady {
	hit := func(int, uint32) float64 { return r.Machine.Levels[0].LatencyCycles }
	return r.Processor.NewBody(instrs, pipeline.Options{Target: r.cost.program.TargetOf(uint32(b)), LoadLatency: hit}).Steady()
}

// divisions adds findings about loops that spend most of their time on divisions by a loop
// invariant.
func (r *run) divisions() {
	for b := range r.cost.program.Blocks {
		k, t := &r.cost.program.Blocks[b], &r.cost.hits.Blocks[b]
		if t.Cycles < leastCompute*r.out.Cycles || k.Loop == 0 || t.Steady.Cycles <= 0 {
			continue
		}
		instrs, fractions, integers := slices.Clone(k.Instrs), 0, 0
		for n := range instrs {
			i := &instrs[n]
			if len(i.Uses) != 2 || i.Uses[1] != -1 {
				continue
			}
			switch i.Opcode {
			case "fdiv":
				i.Opcode = "fmul"
				fractions++
			case "sdiv", "udiv", "srem", "urem":
				i.Opcode = "mul"
				integers++
			}
		}
		if fractions+integers == 0 || r.inOtherBlocks(b) {
			continue
		}
		quick := r.steady(b, instrs)
		at := r.blockPlace(k)
		saved := t.Cycles*(1-min(1, quick.Cycles/t.Steady.Cycles)) - at.wait
		if saved < t.Cycles/2 {
			continue
		}
		each, iterations := r.sourceIteration(b)
		fix, illegalIf := replaceDivisions(fractions, integers)
		r.add(at, Finding{Kind: Compute, Cost: t.Cycles, Saved: saved, Tried: true,
			Why:       each + " divides by a number that does not change in the loop: an iteration takes " + number(t.Steady.Cycles/iterations) + " cycles, and would take " + number(quick.Cycles/iterations) + " with multiplications",
			Fix:       fix,
			How:       "Modelled: the loop with a multiplication in place of each such division.",
			IllegalIf: illegalIf,
			More:      "pipeline"})
	}
}

// replaceDivisions describes how to replace divisions of floating-point numbers and of integers
// with multiplications, and when this change is not allowed.
func replaceDivisions(fractions, integers int) (fix, illegalIf string) {
	const (
		reciprocal = "compute the reciprocal before the loop, and multiply by it (-freciprocal-math lets the compiler do so)"
		integer    = "make the divisor a constant or a power of two; to map a hash value to a range, multiply it by the size of the range and use the upper half of the product"
		rounding   = "the program needs exactly the same floating-point result, because a product with the reciprocal is rounded twice"
	)
	switch {
	case integers == 0:
		return reciprocal, rounding
	case fractions == 0:
		return integer, ""
	}
	return reciprocal + "; for integers, " + integer, rounding
}

// blockPlace returns the source location of a block, including the waits of the block's references.
func (r *run) blockPlace(k *trace.Block) *place {
	at := &place{file: k.File, line: k.LastLine}
	if k.Function != trace.NoFunction {
		at.function = r.Readable(r.cost.program.Functions[k.Function].Name)
	}
	for _, of := range r.places {
		if !r.refersFrom(of, k) {
			continue
		}
		at.wait += of.wait
		at.dependent += of.dependent
		if of.line > 0 {
			at.file, at.line = of.file, of.line
		}
	}
	return at
}

// inOtherBlocks reports whether the loop of a block has other blocks, which may compute values that
// the block uses.
func (r *run) inOtherBlocks(b int) bool {
	blocks := r.cost.program.Blocks
	for n := range blocks {
		if n != b && blocks[n].Loop == blocks[b].Loop {
			return true
		}
	}
	return false
}

// partialSums is the number of independent chains with which a loop no longer waits for the results
// of a chain.
const partialSums = 4

// overlaps reports whether several executions of a block's loop fit in the core's instruction
// window. The chains of these executions then overlap, for example in sums of short rows.
func (r *run) overlaps(k *trace.Block) bool {
	entries := r.entriesOf(k.Loop)
	each := share(r.cost.visits[k.Loop-1], entries) * float64(len(k.Instrs))
	return k.Depth > 1 && entries > 0 && partialSums*each < float64(r.Processor.Window)
}

// refersFrom reports whether a block contains one of the references of a source location. It does
// not compare line numbers, because inlined code can come from a different file than the source
// location to which the code is attributed.
func (r *run) refersFrom(at *place, k *trace.Block) bool {
	return slices.ContainsFunc(at.sites, func(i int) bool {
		number := r.p.Sites.Code[i].Number
		return number != profile.NoSite && number >= k.FirstSite && number < k.FirstSite+k.Sites
	})
}

// leastCompute is the minimum share of the run's cycles for which a block is examined.
const leastCompute = 0.05

// overlapped reports whether a finding fuses the loop of a block with other loops and saves more than
// half of the given cycles. The chain of the block then overlaps with the operations of these loops.
func (r *run) overlapped(k *trace.Block, saved float64) bool {
	for _, at := range r.places {
		if i, ok := r.fused[at]; ok && r.refersFrom(at, k) && r.out.Findings[i].Saved > saved/2 {
			return true
		}
	}
	return false
}

// found reports whether the list contains a finding about a block that may save more than half of
// the given cycles. The finding must be at one of the block's source lines, or at the source
// location of one of the block's references.
func (r *run) found(list []Finding, k *trace.Block, saved float64) bool {
	return slices.ContainsFunc(list, func(f Finding) bool {
		return max(f.Saved, f.Most) > saved/2 && (f.File == k.File && f.Line >= k.FirstLine && f.Line <= k.LastLine ||
			slices.ContainsFunc(r.places, func(at *place) bool {
				return at.file == f.File && at.line == f.Line && r.refersFrom(at, k)
			}))
	})
}

// chained describes the recurrence (chain of dependent results) of a block.
type chained struct {
	loads  bool
	floats bool // the chain contains floating-point operations
	// multiplies is set for integer products that each iteration combines with new data, for
	// example in checksums. multiplies is not set for integer sums, which take one cycle each, or
	// for random number generators, which use no data.
	multiplies bool
	remainders bool // set for remainders that each iteration combines with new data, for example in checksums modulo a prime
	tables     bool // loaded numbers determine the address of the next load
	// other instructions of each iteration need the result of the chain, or the chain multiplies it
	// in each iteration
	used   bool
	stored bool // each iteration stores a result at the same address
	number int  // number of chains of the same kind in the block
}

// isFloat reports whether an operation is a floating-point addition or multiplication.
func isFloat(opcode string) bool {
	return opcode == "fadd" || opcode == "fsub" || opcode == "fmul" || strings.HasPrefix(opcode, "llvm.fm")
}

func isRemainder(opcode string) bool { return opcode == "urem" || opcode == "srem" }

// chain describes the recurrence of block b.
func (r *run) chain(b int) (c chained) {
	k := &r.cost.program.Blocks[b]
	in := map[int32]bool{}
	stores, products, remainders, data, chosen := false, false, false, false, false
	for _, op := range r.cost.hits.Blocks[b].Steady.Cycle {
		if int(op) >= len(k.Instrs) {
			continue
		}
		in[int32(op)] = true
		switch i := &k.Instrs[op]; {
		case i.Opcode == "store":
			stores = true
		case i.Opcode == "load" && i.Type == "ptr":
			c.loads = true
		case isFloat(i.Opcode):
			c.floats = true
		case strings.HasPrefix(i.Opcode, "mul"):
			products = true
		case isRemainder(i.Opcode):
			remainders = true
		case i.Opcode == "load":
			c.tables = true
		// the chain contains decisions, as in a binary search
		case i.Opcode == "icmp" || i.Opcode == "select" || i.Opcode == "fcmp":
			chosen = true
		}
	}
	c.tables = c.tables && !chosen
	for op := range in {
		data = data || slices.ContainsFunc(k.Instrs[op].Uses, func(use int32) bool { return use >= 0 && !in[use] })
	}
	c.multiplies, c.remainders = products && data, remainders && data
	if stores { // the chain keeps a variable in memory, as unoptimised code does
		c.loads = false
		c.number = len(r.cost.sums(r, uint32(b)))
		return c
	}
	carried := map[int32]bool{} // results that the next iteration needs
	for i := range k.Instrs {
		for operand, use := range k.Instrs[i].Uses {
			from := use
			if use <= -2 {
				from = -2 - use
				carried[from] = from < int32(len(k.Instrs)) && isFloat(k.Instrs[from].Opcode)
			}
			factor := operand < 2 && strings.HasPrefix(k.Instrs[i].Opcode, "llvm.fm")
			fixed := r.cost.variable(r, k, &k.Instrs[i]) != nil // stored at the same address in each iteration
			c.stored = c.stored || in[from] && fixed
			c.used = c.used || in[from] && !fixed && (factor || !in[int32(i)]) && k.Instrs[i].Opcode != "phi"
		}
	}
	for _, same := range carried {
		if same {
			c.number++
		}
	}
	return c
}

// sums finds the floating-point variables that a loop's block keeps in memory, for example in
// unoptimised code. For each variable, it returns the load, and the store of the result computed
// from the loaded value.
func (c *costs) sums(r *run, b uint32) (list [][2]int32) {
	k := &c.program.Blocks[b]
	for n := range k.Instrs {
		store := &k.Instrs[n]
		to := c.variable(r, k, store)
		if store.Opcode != "store" || to == nil || len(store.Uses) == 0 || store.Uses[0] < 0 || !isFloat(k.Instrs[store.Uses[0]].Opcode) {
			continue
		}
		for _, from := range k.Instrs[store.Uses[0]].Uses {
			if from < 0 || k.Instrs[from].Opcode != "load" {
				continue
			}
			if of := c.variable(r, k, &k.Instrs[from]); of != nil && of.Variable == to.Variable && of.Bytes == to.Bytes {
				list = append(list, [2]int32{from, int32(n)})
			}
		}
	}
	return list
}

// variable returns the site of a load or store in a block if its address is always the same, and
// otherwise nil.
func (c *costs) variable(r *run, k *trace.Block, i *trace.Instr) *profile.Site {
	if at, ok := c.byNumber[k.FirstSite+i.Site-1]; ok && i.Site > 0 && r.p.Sites.Code[at].Stride() == profile.ZeroStride {
		return &r.p.Sites.Code[at]
	}
	return nil
}

// waitForSums adds the waits due to the variables that [costs.sums] finds. Each iteration of a loop
// must store the variable before the next iteration can load it.
func (c *costs) waitForSums(r *run) {
	for b := range c.program.Blocks {
		k, t := &c.program.Blocks[b], &c.hits.Blocks[b]
		if k.Loop == 0 || t.Cycles <= 0 || t.Bottleneck == pipeline.Recurrence {
			continue
		}
		sums := c.sums(r, uint32(b))
		if len(sums) == 0 {
			continue
		}
		instrs := slices.Clone(k.Instrs)
		for _, sum := range sums {
			instrs[sum[0]].Uses = append(slices.Clone(instrs[sum[0]].Uses), -2-sum[1])
		}
		chain := r.steady(b, instrs)
		if chain.Bottleneck != pipeline.Recurrence || chain.Cycles <= t.Steady.Cycles {
			continue
		}
		more := c.visits[b] * (chain.Cycles - t.Steady.Cycles)
		chain.Ports, chain.Dispatch, chain.Transfers = t.Steady.Ports, t.Steady.Dispatch, t.Steady.Transfers
		t.Cycles, t.Bottleneck, t.Steady = t.Cycles+more, pipeline.Recurrence, chain
		c.hits.Cycles += more
	}
}
