package branches

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// LeastWindows are sampled of each block, or all if there are fewer; of blocks that run more
// than 100 times as often, 1 % of the windows.
const LeastWindows = 30

// OneInHundred is the share of windows below which their numbers are looked at.
const OneInHundred = (1 << 64) / 100

// WindowNumber hashes an execution of a block. It alone decides which windows are sampled.
func WindowNumber(seed uint64, block uint32, before uint64) uint64 {
	return index.Hash(seed ^ index.Hash(uint64(block)<<32^index.Hash(before)))
}

// WindowSampler samples executions of blocks (windows), and computes the stack distances of
// their references: the conditional reuse profiles P(Δ|block) of Santhi and Chennupati, Compute Node
// Models, part 2, as Algorithm 3 of Barai et al., PPT-SASMM, takes them ("typically 1 %").
// They stand beside those of all references, which cost nothing here (blocks.Run.Reuse),
// to tell what the sample loses.
//
// A window's number is a hash of the seed, the block and how often the block ran before.
// Those of the lowest numbers are looked at: so it is known when a window begins, in
// one pass, and each is as likely as any other. Distances are of the whole trace.
type WindowSampler struct {
	seed    uint64
	shift   uint
	program func() *trace.Program
	model   *stack.Exact
	blocks  []sampled
	now     *window // that the last reference belongs to; nil: it is not looked at
	block   uint32  // of that reference, its site and thread
	site    uint32
	thread  uint32
	began   bool

	lines     []trace.Line
	of        []*window // of each line
	distances []uint32
}

type sampled struct {
	executions uint64
	sum        *window   // of all windows of one in a hundred; nil: none
	windows    uint64    // in sum
	lowest     []*window // of the lowest numbers, ascending
}

// window is one or several executions of a block.
type window struct {
	number uint64
	bins   []profile.BinCount // cold ones behind the last bin; in no order
	total  uint64             // references
	into   *window            // that takes what is still to be counted; nil: this
}

// NewWindowSampler samples at a line size. program returns what the trace has told of its code.
func NewWindowSampler(lineBytes uint32, seed uint64, program func() *trace.Program) *WindowSampler {
	return &WindowSampler{seed: seed, shift: uint(bits.TrailingZeros32(lineBytes)), program: program, model: stack.NewExact()}
}

const mostLines = 4096 // that are gathered at a time

// Consume reads the next references, among other rows.
func (w *WindowSampler) Consume(b *trace.Batch) error {
	if b.Site == nil {
		return nil
	}
	for i, k := range b.Kind {
		if !k.IsReference() {
			continue
		}
		thread := uint32(0)
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		if err := w.begin(b.Site[i], thread); err != nil {
			return err
		}
		last := (b.Addr[i] + uint64(max(b.Bytes[i], 1)) - 1) >> w.shift
		for line := b.Addr[i] >> w.shift; ; line++ {
			if len(w.lines) == mostLines {
				w.flush()
			}
			w.lines, w.of = append(w.lines, line), append(w.of, w.now)
			if line == last {
				break
			}
		}
	}
	w.flush()
	return nil
}

func (w *WindowSampler) begin(site, thread uint32) error {
	p := w.program()
	if p == nil || uint64(site) >= uint64(len(p.Sites)) {
		return &contract.UnknownError{What: "site", Number: site, Without: "blocks"}
	}
	block := p.Sites[site].Block
	if !w.began || block != w.block || thread != w.thread || site <= w.site {
		for uint64(block) >= uint64(len(w.blocks)) {
			w.blocks = append(w.blocks, make([]sampled, len(w.blocks)+64)...)
		}
		s := &w.blocks[block]
		w.now = s.window(WindowNumber(w.seed, block, s.executions))
		s.executions++
	}
	w.began, w.block, w.site, w.thread = true, block, site, thread
	if w.now != nil {
		if w.now.into != nil {
			w.now = w.now.into
		}
		w.now.total++
	}
	return nil
}

// window returns where an execution with that number counts, or nil.
func (s *sampled) window(number uint64) *window {
	if number < OneInHundred {
		if s.windows++; s.sum == nil {
			s.sum = &window{}
		}
	}
	if s.windows >= LeastWindows && len(s.lowest) > 0 {
		s.gather()
	}
	switch {
	case s.windows >= LeastWindows && number < OneInHundred:
		return s.sum
	case s.windows >= LeastWindows:
		return nil
	}
	at := sort.Search(len(s.lowest), func(i int) bool { return s.lowest[i].number > number })
	if at == LeastWindows {
		return nil
	}
	if len(s.lowest) == LeastWindows {
		s.lowest = s.lowest[:LeastWindows-1] // what it still counts is nobody's
	}
	made := &window{number: number}
	s.lowest = slices.Insert(s.lowest, at, made)
	return made
}

// gather replaces the lowest numbers by all of 1 %, which are as many now.
func (s *sampled) gather() {
	for _, one := range s.lowest {
		if one.number < OneInHundred {
			s.sum.add(one)
			one.into = s.sum
		}
	}
	s.lowest = nil
}

func (w *window) add(one *window) {
	w.total += one.total
	for _, b := range one.bins {
		w.count(b.Bin, b.Count)
	}
}

func (w *window) count(bin uint8, n uint64) {
	if w.into != nil {
		w = w.into
	}
	for i := range w.bins {
		if w.bins[i].Bin == bin {
			w.bins[i].Count += n
			return
		}
	}
	w.bins = append(w.bins, profile.BinCount{Bin: bin, Count: n})
}

// flush computes the stack distances of the gathered lines.
func (w *WindowSampler) flush() {
	if len(w.lines) == 0 {
		return
	}
	if len(w.distances) < len(w.lines) {
		w.distances = make([]uint32, mostLines)
	}
	distances := w.distances[:len(w.lines)]
	w.model.Distances(w.lines, distances)
	for i, d := range distances {
		switch of := w.of[i]; {
		case of == nil:
		case d == stack.Cold:
			of.count(coldBin, 1)
		default:
			of.count(uint8(profile.SiteBin(d)), 1)
		}
	}
	w.lines, w.of = w.lines[:0], w.of[:0]
}

const coldBin = profile.SiteBins // first accesses

// Result returns what is known of each block of the program.
func (w *WindowSampler) Result() []blocks.SampledReuse {
	list := make([]blocks.SampledReuse, len(w.blocks))
	for b := range w.blocks {
		s, out := &w.blocks[b], &list[b]
		sum := window{}
		out.Executions, out.Windows = s.executions, s.windows
		if s.windows >= LeastWindows {
			sum.add(s.sum)
		} else {
			out.Windows = uint64(len(s.lowest))
			for _, one := range s.lowest {
				sum.add(one)
			}
		}
		out.References = sum.total
		sort.Slice(sum.bins, func(i, j int) bool { return sum.bins[i].Bin < sum.bins[j].Bin })
		for _, bin := range sum.bins {
			if bin.Bin == coldBin {
				out.Cold = bin.Count
			} else {
				out.Bins = append(out.Bins, bin)
			}
		}
	}
	return list
}
