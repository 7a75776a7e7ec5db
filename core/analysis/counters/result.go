package counters

import (
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	a.addProgram()
	c, err := profile.AddCounters(a.base, a.currentCounts())
	if err != nil || c == nil || a.auto && !c.Ops && !state {
		return // unreachable: segments of different programs are rejected when they are appended
	}
	if c.Touched = a.touched != nil; c.Touched {
		a.touched.result(c)
		if state {
			p.Segment.Touched = a.touched.encode()
		}
	}
	p.Counters = c
}

// Restore implements [contract.Analysis].
func (a *Analysis) Restore(p *profile.Profile) error {
	a.base = p.Counters
	if a.touched == nil {
		return nil
	}
	return a.touched.decode(p.Segment.Touched)
}

// Append implements [contract.Analysis]. Append adds the counts of the segment.
func (a *Analysis) Append(next *profile.Profile) (err error) {
	if a.base, err = profile.AddCounters(a.base, next.Counters); err != nil || a.touched == nil {
		return err
	}
	return a.touched.decode(next.Segment.Touched)
}

// currentCounts returns the counts that are not included in a.base, or nil if there are no such
// counts.
func (a *Analysis) currentCounts() *profile.Counters {
	s := &sum{
		c:          &profile.Counters{},
		code:       &a.code,
		kinds:      a.kinds,
		executed:   make([]uint64, len(a.code.kinds)),
		functions:  map[uint32]*profile.FunctionCounters{},
		tallies:    map[tallyKey]*profile.Tally{},
		executions: a.blockEntries(), rows: a.rows, bytes: a.bytes,
	}
	s.addSiteless(&a.siteless)
	if a.code.program != nil {
		s.addCode()
		s.addUnattributed()
	}
	if a.auto && !s.c.Blocks {
		return nil
	}
	return s.finish()
}

// blockEntries returns the number of entries of each block. Synthetic blocks are never entered.
func (a *Analysis) blockEntries() []uint64 {
	if !a.bySite() {
		return a.executions
	}
	entered := slices.Clone(a.executions)
	for n := range entered {
		b := &a.code.program.Blocks[n]
		for site := b.FirstSite; site < b.FirstSite+b.Sites && uint64(site) < uint64(len(a.rows)); site++ {
			if a.code.program.Sites[site].Kind <= trace.Modify {
				if b.Flags&trace.Synthetic == 0 {
					entered[n] = a.rows[site]
				}
				break
			}
		}
	}
	return entered
}

type sum struct {
	c                       *profile.Counters
	code                    *code
	kinds                   trace.Kinds
	executions, rows, bytes []uint64
	executed                []uint64 // number of executed instructions, by kind
	functions               map[uint32]*profile.FunctionCounters
	tallies                 map[tallyKey]*profile.Tally
}

// addSiteless adds the counts of references without a site, which do not belong to any function.
func (s *sum) addSiteless(r *siteless) {
	for kind := range trace.Kind(trace.NumKinds) {
		for size, n := range r.count[kind] {
			if n == 0 {
				continue
			}
			bytes, each := n*uint64(size), uint32(size)
			if size > maxSize {
				bytes, each = r.large[kind], 0
			}
			s.addReferences(&s.function(profile.NoFunction).Loose, kind, "", each, n, bytes)
		}
	}
}

// addCode adds the counts of all blocks that were entered. The parts of a basic block count as one
// block.
func (s *sum) addCode() {
	p := s.code.program
	for n := 0; n < len(s.executions); {
		first := n
		for n++; n < len(s.executions) && isLaterPart(&p.Blocks[n], &p.Blocks[first]); n++ {
		}
		s.addBasicBlock(first, n)
	}
}

// isLaterPart reports whether the parameters b and first are parts of the same basic block, and b
// is not the first part of this basic block.
func isLaterPart(b, first *trace.Block) bool {
	return b.Part > 0 && b.Function == first.Function && b.Label == first.Label && b.Flags&trace.Synthetic == 0
}

// addBasicBlock adds the counts of the blocks [first, end), which form one basic block.
func (s *sum) addBasicBlock(first, end int) {
	b := &s.code.program.Blocks[first]
	if !s.wasExecuted(first, end) {
		return
	}
	s.c.Blocks = true
	f := s.function(s.code.functionNumber(b.Function))
	row := profile.BlockCounters{
		Number: uint32(first), Function: f.Number, Label: b.Label, File: trace.BaseName(b.File),
		FirstLine: b.FirstLine, LastLine: b.LastLine, Executions: s.executions[first],
	}
	if b.Flags&trace.EntryBlock != 0 {
		f.Invocations += s.executions[first]
	}
	for n := first; n < end; n++ {
		part := &s.code.program.Blocks[n]
		if part.LastLine > row.LastLine && part.File == b.File {
			row.LastLine = part.LastLine
		}
		s.addBlock(&row.Counts, uint32(n))
	}
	s.c.Code = append(s.c.Code, row)
}

// wasExecuted reports whether one of the blocks [first, end) was entered, or made a reference that
// is counted one by one. If a block was entered at the end of the previous segment, the block can
// make references in this segment although this segment does not contain its entry.
func (s *sum) wasExecuted(first, end int) bool {
	for n := first; n < end; n++ {
		if s.executions[n] != 0 {
			return true
		}
		b := &s.code.program.Blocks[n]
		for site := b.FirstSite; site < b.FirstSite+b.Sites && uint64(site) < uint64(len(s.rows)); site++ {
			if b.Flags&trace.Synthetic == 0 && s.code.byRow[site] && s.rows[site] != 0 {
				return true
			}
		}
	}
	return false
}

func (s *sum) addBlock(counts *profile.Counts, n uint32) {
	b, times := &s.code.program.Blocks[n], s.executions[n]
	s.c.Ops = s.c.Ops || times > 0 && len(b.Ops) > 0
	for _, op := range s.code.blocks[n] {
		instructions := times * uint64(op.count)
		s.executed[op.kind] += instructions
		kind := &s.code.kinds[op.kind]
		for _, add := range kind.Adds {
			counts[add.Counter] += add.Amount * instructions
		}
		if kind.Callee != "" && instructions > 0 {
			s.tally(profile.Callees, kind.Callee, 0, 0).Count += instructions
		}
	}
	if times > 0 && b.Callee != "" {
		s.tally(profile.Callees, b.Callee, 0, 0).Count += times
	}
	for site := b.FirstSite; site < b.FirstSite+b.Sites && uint64(site) < uint64(len(s.code.program.Sites)); site++ {
		s.addSite(counts, site, times)
	}
}

func (s *sum) addSite(counts *profile.Counts, n uint32, times uint64) {
	site := &s.code.program.Sites[n]
	references, bytes := times, times*uint64(site.Bytes)
	if s.code.byRow[n] {
		bytes = s.bytes[n]
		if site.Kind < trace.RangeRead { // a range of 2^32 bytes or more is recorded as several records
			references = s.rows[n]
		}
	}
	if s.kinds.Has(site.Kind) && references|bytes != 0 {
		s.addReferences(counts, site.Kind, site.Type, site.Bytes, references, bytes)
	}
}

// addUnattributed adds the counts of sites that do not belong to a block that was entered.
func (s *sum) addUnattributed() {
	p := s.code.program
	for n := range s.code.byRow {
		site := &p.Sites[n]
		if !s.code.byRow[n] || s.rows[n] == 0 || uint64(site.Block) < uint64(len(p.Blocks)) && p.Blocks[site.Block].Flags&trace.Synthetic == 0 {
			continue
		}
		function := profile.NoFunction
		if f := s.code.functionOf[n]; f != 0 {
			function = f - 1
		}
		s.addReferences(&s.function(function).Loose, site.Kind, site.Type, site.Bytes, s.rows[n], s.bytes[n])
	}
}

type tallyKey struct {
	kind        profile.TallyKind
	name        string
	lanes, size uint32
}

func (s *sum) tally(kind profile.TallyKind, name string, lanes, size uint32) *profile.Tally {
	key := tallyKey{kind, name, lanes, size}
	t := s.tallies[key]
	if t == nil {
		t = &profile.Tally{Kind: kind, Name: name, Lanes: lanes, Size: size}
		s.tallies[key] = t
	}
	return t
}

// addReferences adds the counts of references of one kind and datatype. The parameter size is the
// size of every reference, or 0 if the sizes differ.
func (s *sum) addReferences(counts *profile.Counts, kind trace.Kind, datatype string, size uint32, references, bytes uint64) {
	switch kind {
	case trace.RangeRead:
		counts[profile.RangesRead] += references
		counts[profile.RangeBytesRead] += bytes
	case trace.RangeWrite:
		counts[profile.RangesWritten] += references
		counts[profile.RangeBytesWritten] += bytes
	}
	if kind == trace.Load || kind == trace.Modify {
		counts[profile.Loads] += references
		counts[profile.BytesLoaded] += bytes
		s.addType(profile.LoadTypes, datatype, size, references, bytes)
	}
	if kind == trace.Store || kind == trace.Modify {
		counts[profile.Stores] += references
		counts[profile.BytesStored] += bytes
		s.addType(profile.StoreTypes, datatype, size, references, bytes)
	}
}

func (s *sum) addType(kind profile.TallyKind, datatype string, size uint32, references, bytes uint64) {
	t := s.tally(kind, datatype, 0, size)
	t.Count += references
	t.Bytes += bytes
}

func (s *sum) function(number uint32) *profile.FunctionCounters {
	f := s.functions[number]
	if f == nil {
		f = &profile.FunctionCounters{Number: number}
		if number != profile.NoFunction {
			about := &s.code.program.Functions[number]
			f.Name, f.File, f.Line = about.Name, trace.BaseName(about.Place.File), about.Place.Line
		}
		s.functions[number] = f
	}
	return f
}

// finish sorts the lists and returns the counters.
func (s *sum) finish() *profile.Counters {
	c := s.c
	for n, times := range s.executed {
		if times == 0 {
			continue
		}
		kind := &s.code.kinds[n]
		s.tally(profile.Opcodes, kind.Opcode, 0, 0).Count += times
		if v := kind.Vector; v.Lanes != 0 {
			of := profile.IntegerVectors
			if v.Float {
				of = profile.FloatVectors
			}
			s.tally(of, "", uint32(v.Lanes), uint32(v.Bits)).Count += times
		}
	}
	for _, t := range s.tallies {
		c.Tallies = append(c.Tallies, *t)
	}
	sort.Slice(c.Tallies, func(i, j int) bool { return profile.CompareTallies(&c.Tallies[i], &c.Tallies[j]) < 0 })
	for _, f := range s.functions {
		c.Functions = append(c.Functions, *f)
	}
	sort.Slice(c.Functions, func(i, j int) bool { return c.Functions[i].Number < c.Functions[j].Number })
	return c
}
