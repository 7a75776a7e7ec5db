package diagnose

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// compute adds loops that wait for their own operations, where memory is not what they wait
// for.
func (r *run) compute() {
	if r.cost.program == nil {
		return
	}
	for b := range r.cost.program.Blocks {
		k := &r.cost.program.Blocks[b]
		t := &r.cost.hits.Blocks[b]
		if t.Cycles < leastCompute*r.out.Cycles || k.Loop == 0 {
			continue
		}
		saved := r.recurrence(b)
		at := &place{function: "", file: k.File, line: k.LastLine}
		if k.Function != trace.NoFunction {
			at.function = r.Readable(r.cost.program.Functions[k.Function].Name)
		}
		waits, dependent := 0.0, 0.0
		for _, of := range r.places {
			if !r.refersFrom(of, k) {
				continue
			}
			waits += of.wait
			dependent += of.dependent
			if of.line > 0 {
				at.file, at.line = of.file, of.line
			}
		}
		loads, floats := r.chain(b)
		if t.Bottleneck != pipeline.Recurrence || saved < t.Cycles/2 || waits > t.Cycles || dependent > 0 || r.found(k) || loads == floats {
			continue
		}
		if loads {
			r.add(at, Finding{Kind: PointerChasing, Cost: t.Cycles, Saved: saved / carefully, Least: 0, Most: saved,
				Why:  "each iteration takes its address from a load of the one before: that takes " + number(t.Steady.Cycles) + " cycles even where it hits in the first level, and the ports would need " + number(max(t.Steady.Ports, t.Steady.Dispatch)),
				Fix:  "keep the elements in an array, whose addresses do not depend on loads",
				How:  "Modelled: what the loop would take if its ports were the limit.",
				More: "pipeline"})
			continue
		}
		r.add(at, Finding{Kind: Compute, Cost: t.Cycles, Saved: saved / carefully, Least: 0, Most: saved,
			Why:       "each iteration waits for a result of the one before: that takes " + number(t.Steady.Cycles) + " cycles, and the ports would need " + number(max(t.Steady.Ports, t.Steady.Dispatch)),
			Fix:       "split the chain into several that do not need each other, such as four partial sums; for floating point, allow the compiler to reorder (-ffast-math or an OpenMP simd reduction)",
			How:       "Modelled: what the loop would take if its ports were the limit.",
			IllegalIf: "the result must be the same to the last bit, because the order of floating-point additions changes",
			More:      "pipeline"})
	}
}

// refersFrom reports whether a block holds a reference of a place. Lines would not do: code
// that was inlined can be of another file than the place that it counts for.
func (r *run) refersFrom(at *place, k *trace.Block) bool {
	return slices.ContainsFunc(at.sites, func(i int) bool {
		number := r.p.Sites.Code[i].Number
		return number != profile.NoSite && number >= k.FirstSite && number < k.FirstSite+k.Sites
	})
}

// leastCompute is the smallest share of the run's cycles of a block that is looked at.
const leastCompute = 0.05

// found reports whether a finding about memory is in the lines of a block.
func (r *run) found(k *trace.Block) bool {
	for i := range r.out.Findings {
		f := &r.out.Findings[i]
		if f.File == k.File && f.Line >= k.FirstLine && f.Line <= k.LastLine && f.Saved > Least*r.out.Cycles {
			return true
		}
	}
	return false
}

// chain tells what the recurrence of a block goes through: a load, and operations on
// floating-point numbers.
func (r *run) chain(b int) (loads, floats bool) {
	k := &r.cost.program.Blocks[b]
	for _, op := range r.cost.hits.Blocks[b].Steady.Cycle {
		if int(op) >= len(k.Instrs) {
			continue
		}
		switch in := &k.Instrs[op]; {
		case in.Opcode == "store": // it keeps a sum in memory, as code does that was not optimised
			return false, false
		case in.Opcode == "load" && in.Type == "ptr":
			loads = true
		case in.Opcode == "fadd" || in.Opcode == "fsub" || in.Opcode == "fmul" || strings.HasPrefix(in.Opcode, "llvm.fm"):
			floats = true
		}
	}
	return loads, floats
}
