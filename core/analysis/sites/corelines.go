package sites

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// privateLines measures utilisation in private caches: each core has lines and caches of
// its own, from which other cores' stores take lines. A segment does not know the caches
// of earlier ones, so only runs that are not appended to measure it.
type privateLines struct {
	options Options
	cores   []*lines              // by core
	used    []profile.Utilisation // of all cores, by pair and capacity

	at      index.Table
	holders []uint64 // by number of a line: the cores that accessed it since the last store, and others perhaps
}

// measuresPrivate reports whether utilisation is measured in private caches where there
// are several cores.
func (o *Options) measuresPrivate() bool { return o.Cores && len(o.Capacities) > 0 && !o.Mergeable }

func newPrivateLines(o Options) *privateLines {
	o.Previous = false
	return &privateLines{options: o}
}

// addPair makes room for another pair.
func (p *privateLines) addPair() {
	if p != nil {
		p.used = append(p.used, make([]profile.Utilisation, len(p.options.Capacities))...)
	}
}

// begin copies the state of the first core, which ran alone until now.
func (p *privateLines) begin(l *lines) {
	p.used = slices.Clone(*l.used)
	first := *l
	first.previous, first.used = false, &p.used
	first.at = index.Table{}
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

// core gives the caches of a core.
func (p *privateLines) core(number uint8) *lines {
	for len(p.cores) <= int(number) {
		l := newLines(p.options)
		l.used = &p.used
		p.cores = append(p.cores, l)
	}
	return p.cores[number]
}

// holdersOf gives the cores that may have a line.
func (p *privateLines) holdersOf(line trace.Line) *uint64 {
	n, known := p.at.Find(line)
	if !known {
		n = uint32(len(p.holders))
		p.at.Add(line, n)
		p.holders = append(p.holders, 0)
	}
	return &p.holders[n]
}

// writes are the kinds that take lines from other cores.
const writes = trace.Kinds(1<<trace.Store | 1<<trace.Modify | 1<<trace.RangeWrite)

// follow takes accesses of cores with their pairs, and their depths on the coherent
// stacks.
func (p *privateLines) follow(x *locality.Accesses, cores []uint8, depths, pairs []uint32) {
	for i, d := range depths {
		line, row := x.Lines[i], x.First+i
		if x.Rows != nil {
			row = x.First + int(x.Rows[i])
		}
		holders, bit := p.holdersOf(line), uint64(1)<<cores[i]
		if writes.Has(x.Batch.Kind[row]) {
			for others := *holders &^ bit; others != 0; others &= others - 1 {
				p.cores[bits.TrailingZeros64(others)].lose(line)
			}
			*holders = 0
		}
		*holders |= bit
		l := p.core(cores[i])
		l.use(line, l.number(line), d, pairs[i], x.Batch.Addr[row], x.Batch.Bytes[row])
	}
}

// lose removes a line from the caches in sets, where its way becomes free.
func (l *lines) lose(line trace.Line) {
	n, known := l.at.Find(line)
	if !known {
		return
	}
	for c := range l.sets {
		s := &l.sets[c]
		if s.ways == 0 {
			continue
		}
		set := s.of(line)
		if way := slices.Index(set, n+1); way >= 0 {
			copy(set[way:], set[way+1:])
			set[len(set)-1] = 0
		}
	}
}

// ended gives the utilisation as if all stays ended now, by pair and capacity.
func (p *privateLines) ended() []profile.Utilisation {
	used := slices.Clone(p.used)
	for _, l := range p.cores {
		l.endIn(used)
	}
	return used
}

// appendPrivate writes, of each core, the list of its lines, ascending, each
//
//	uv line − the one before; for each capacity: uv site · uv object, that fetched it · mask
//	of the bytes used
//
// and for each capacity with sets the list of lines in them, by their place in the list,
// each set from the line that was used least recently.
func (s *summary) appendPrivate(b []byte) []byte {
	p := s.a.cores.private
	b = binary.AppendUvarint(b, uint64(len(p.cores)))
	for _, l := range p.cores {
		order := l.inOrder()
		b = binary.AppendUvarint(b, uint64(len(order)))
		last, places := trace.Line(0), make([]uint64, len(order))
		for place, n := range order {
			b = binary.AppendUvarint(b, l.list[n]-last)
			last, places[n] = l.list[n], uint64(place)
			for c := range l.capacities {
				at := int(n)*len(l.capacities) + c
				b = appendMask(s.appendPair(b, l.stays[at].pair), l.mask(at))
			}
		}
		for c := range l.sets {
			if l.sets[c].ways == 0 {
				continue
			}
			var there []uint64
			for _, page := range l.sets[c].pages {
				for set := range slices.Chunk(page, l.sets[c].ways) {
					for way := len(set) - 1; way >= 0; way-- {
						if set[way] > 0 {
							there = append(there, places[set[way]-1])
						}
					}
				}
			}
			b = binary.AppendUvarint(b, uint64(len(there)))
			for _, place := range there {
				b = binary.AppendUvarint(b, place)
			}
		}
	}
	return b
}

// private reads what appendPrivate wrote. A stay in a cache that continues is no longer
// counted as ended.
func (r *loader) private(p *privateLines) {
	for core := range r.UintBelow(profile.MaxCores + 1) {
		l := p.core(uint8(core))
		line := trace.Line(0)
		for i := range r.Length(1 + 2*len(l.capacities)) {
			step := r.Uint()
			if r.wrong = r.wrong || r.Err() != nil || i > 0 && step == 0; r.wrong {
				return
			}
			line += step
			n := l.number(line)
			for c := range l.capacities {
				at := n*len(l.capacities) + c
				l.stays[at] = stay{pair: r.pair()}
				copy(l.mask(at), r.mask(nil, l.words))
				u := &p.used[int(l.stays[at].pair)*len(l.capacities)+c]
				u.Fetched--
				u.BytesUsed -= count(l.mask(at))
			}
			*p.holdersOf(line) |= 1 << core
		}
		for c := range l.sets {
			if l.sets[c].ways == 0 {
				continue
			}
			for range r.Length(1) {
				if n := r.UintBelow(uint64(len(l.list))); r.Err() == nil {
					l.sets[c].touch(l.list[n], int(n))
				}
			}
		}
	}
}
