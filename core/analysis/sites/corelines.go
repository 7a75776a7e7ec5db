package sites

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// privateLines measures line utilisation in private caches. Each core has its own lines and caches.
// A store by another core invalidates the line in these caches. Mergeable runs do not measure
// utilisation in private caches, because the contents of the caches at the beginning of a segment
// are unknown.
type privateLines struct {
	options Options
	cores   []*lines              // indexed by core
	used    []profile.Utilisation // sum over all cores, by pair and capacity

	at      index.Cached
	holders []uint64 // the cores that may have accessed a line since the last store to the line, by line number
}

// measuresPrivate reports whether line utilisation is measured in private caches.
func (o *Options) measuresPrivate() bool { return o.Cores && len(o.Capacities) > 0 && !o.Mergeable }

func newPrivateLines(o Options) *privateLines {
	o.Previous = false
	return &privateLines{options: o}
}

func (p *privateLines) addPair() {
	if p != nil {
		p.used = append(p.used, make([]profile.Utilisation, len(p.options.Capacities))...)
	}
}

// copyFirstCore copies the state of the first core, before a second core makes its first access.
func (p *privateLines) copyFirstCore(l *lines) {
	p.used = slices.Clone(*l.used)
	first := *l
	first.previous, first.used = false, &p.used
	first.at = index.Cached{}
	for n, line := range l.list {
		first.at.Add(line, uint32(n))
		*p.holdersOf(line) = 1
	}
	first.list, first.last = slices.Clone(l.list), slices.Clone(l.last)
	first.stays, first.masks = slices.Clone(l.stays), slices.Clone(l.masks)
	first.sets = slices.Clone(l.sets)
	for i := range first.sets {
		first.sets[i].pages = slices.Clone(first.sets[i].pages)
		for k, page := range first.sets[i].pages {
			first.sets[i].pages[k] = slices.Clone(page)
		}
	}
	p.cores = []*lines{&first}
}

func (p *privateLines) core(number uint8) *lines {
	for len(p.cores) <= int(number) {
		l := newLines(p.options)
		l.used = &p.used
		p.cores = append(p.cores, l)
	}
	return p.cores[number]
}

// holdersOf returns the bit set of the cores whose caches may contain a line.
func (p *privateLines) holdersOf(line trace.Line) *uint64 {
	n, known := p.at.Find(line)
	if !known {
		n = uint32(len(p.holders))
		p.at.Add(line, n)
		p.holders = append(p.holders, 0)
	}
	return &p.holders[n]
}

// recordAccesses processes accesses. For each access, the parameters contain its core, its depth on
// the coherent stack of the core, and its pair.
func (p *privateLines) recordAccesses(x *locality.Accesses, cores []uint8, depths, pairs []uint32) {
	for i, d := range depths {
		line, row := x.Lines[i], x.Row(i)
		holders, bit := p.holdersOf(line), uint64(1)<<cores[i]
		if trace.WriteKinds.Has(x.Batch.Kind[row]) {
			for others := *holders &^ bit; others != 0; others &= others - 1 {
				p.cores[bits.TrailingZeros64(others)].invalidate(line)
			}
			*holders = 0
		}
		*holders |= bit
		l := p.core(cores[i])
		l.markUsed(line, l.number(line), d, pairs[i], x.Batch.Addr[row], x.Batch.Bytes[row])
	}
}

// invalidate removes a line from the set-associative caches.
func (l *lines) invalidate(line trace.Line) {
	n, known := l.at.Find(line)
	if !known {
		return
	}
	for c := range l.sets {
		s := &l.sets[c]
		if s.ways == 0 {
			continue
		}
		set := s.setOf(line)
		if way := slices.Index(set, n+1); way >= 0 {
			copy(set[way:], set[way+1:])
			set[len(set)-1] = 0
		}
	}
}

// utilisation returns the line utilisation, by pair and capacity, as if all lines left the caches
// now.
func (p *privateLines) utilisation() []profile.Utilisation {
	used := slices.Clone(p.used)
	for _, l := range p.cores {
		l.addUnfinished(used)
	}
	return used
}

// codePrivate reads or writes, for each core, the list of its lines, ascending. Each line is
// encoded as
//
//	uv line − previous line; for each capacity
//	  uv site and uv object that fetched the line · mask of the bytes used
//
// The list is followed by the sets of each set-associative cache. Each set contains the positions
// of its lines in the list, least recently used first. When reading, codePrivate subtracts the
// unfinished stays from the counts, which include them.
func (f *stateCoder) codePrivate(p *privateLines) {
	cores := len(p.cores)
	codec.Below(f.Coder, &cores, profile.MaxCores+1)
	for n := 0; n < cores && !f.Failed(); n++ {
		f.codePrivateCore(p, n)
	}
}

func (f *stateCoder) codePrivateCore(p *privateLines, core int) {
	l, order := p.core(uint8(core)), []uint32{}
	if !f.Reads() {
		order = l.sortedNumbers()
	}
	next, places := uint64(0), make([]uint32, len(order)) // indexed by line number
	for place, n := 0, f.Length(len(order), 1+2*len(l.capacities)); place < n && !f.Failed(); place++ {
		var s lineState
		if !f.Reads() {
			s = l.state(order[place])
			places[order[place]] = uint32(place)
		}
		if f.After(&s.line, &next, mostLines); f.Reads() {
			s = l.state(uint32(l.number(s.line)))
			*p.holdersOf(s.line) |= 1 << core
		}
		for c := range s.stays {
			mask := s.masks[c*l.words:][:l.words]
			f.pair(&s.stays[c].pair)
			if f.Words(mask); f.Reads() {
				l.resumeStay(s.stays[c].pair, c, mask)
			}
		}
	}
	for c := range l.sets {
		if s := &l.sets[c]; s.ways > 0 {
			there := s.oldestFirst(places)
			codec.Slice(f.Coder, &there, 1, func(place *uint32) {
				if codec.Below(f.Coder, place, uint64(len(l.list))); f.Reads() && !f.Failed() {
					s.touch(l.list[*place], int(*place))
				}
			})
		}
	}
}

// oldestFirst returns the positions of the lines of each set, least recently used first.
func (s *sets) oldestFirst(places []uint32) (list []uint32) {
	for _, page := range s.pages {
		for set := range slices.Chunk(page, s.ways) {
			for _, n := range slices.Backward(set) {
				if n > 0 {
					list = append(list, places[n-1])
				}
			}
		}
	}
	return list
}
