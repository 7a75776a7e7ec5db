package counters

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// touchedBytes counts the accesses to each byte, and records which functions touched the byte.
//
// Memory is divided into pages of 512 bytes, which are found in a small array of recent pages or in
// a hash table. A page counts accesses to whole aligned 8-byte words. Half words and bytes have
// separate counters, which exist only if half words or bytes of the page have been accessed. The
// number of accesses to a byte is the sum of three counters: the counters of its word, of its half
// word, and of the byte itself. Counters have 32 bits, and a map counts how often each counter has
// wrapped around.
type touchedBytes struct {
	pages  map[uint64]*page
	recent [recentPages]recentPage
	slab   []page
	wraps  map[granule]uint64
}

const (
	pageBits    = 9
	pageBytes   = 1 << pageBits
	recentPages = 256
	slabPages   = 64
)

type recentPage struct {
	number uint64 // 1 + the number of the page; 0: none
	page   *page
}

type page struct {
	words  [pageBytes / 8]uint32
	halves *[pageBytes / 4]uint32
	bytes  *[pageBytes]uint32
	by     []touchedBy // the functions that touched the page, most recent first
}

type touchedBy struct {
	function uint32 // 1 + the number of the function; 0: none
	set      byteSet
}

type byteSet [pageBytes / 64]uint64

type granule struct {
	page  uint64
	bytes uint8 // 8, 4 or 1
	index uint16
}

func newTouched() *touchedBytes {
	return &touchedBytes{pages: map[uint64]*page{}, wraps: map[granule]uint64{}}
}

// addRows counts the references of a batch. The parameter functionOf is indexed by site, or is nil
// if the trace has no sites.
func (t *touchedBytes) addRows(b *trace.Batch, functionOf []uint32) {
	for i, k := range b.Kind {
		if !k.IsReference() || k == trace.Fetch {
			continue
		}
		function := uint32(0)
		if functionOf != nil {
			if site := b.Site[i]; uint64(site) < uint64(len(functionOf)) {
				function = functionOf[site]
			}
		}
		bytes := uint64(max(b.Bytes[i], 1))
		t.add(b.Addr[i], bytes, function)
		if k == trace.Modify { // a modify is a load and a store
			t.add(b.Addr[i], bytes, function)
		}
	}
}

func (t *touchedBytes) add(addr, bytes uint64, function uint32) {
	for {
		p := t.pageAt(addr >> pageBits)
		offset := addr % pageBytes
		here := min(bytes, pageBytes-offset)
		t.count(p, addr>>pageBits, offset, here)
		p.setOf(function).add(offset, here)
		if bytes -= here; bytes == 0 {
			return
		}
		addr += here
	}
}

// count counts one access to the bytes [offset, offset + bytes) of a page.
func (t *touchedBytes) count(p *page, number, offset, bytes uint64) {
	for end := offset + bytes; offset < end; {
		switch {
		case offset%8 == 0 && end-offset >= 8:
			if p.words[offset/8]++; p.words[offset/8] == 0 {
				t.wraps[granule{number, 8, uint16(offset / 8)}]++
			}
			offset += 8
		case offset%4 == 0 && end-offset >= 4:
			if p.halves == nil {
				p.newCounters(4)
			}
			if p.halves[offset/4]++; p.halves[offset/4] == 0 {
				t.wraps[granule{number, 4, uint16(offset / 4)}]++
			}
			offset += 4
		default:
			if p.bytes == nil {
				p.newCounters(1)
			}
			if p.bytes[offset]++; p.bytes[offset] == 0 {
				t.wraps[granule{number, 1, uint16(offset)}]++
			}
			offset++
		}
	}
}

func (t *touchedBytes) pageAt(number uint64) *page {
	r := &t.recent[number%recentPages]
	if r.number != number+1 {
		p := t.pages[number]
		if p == nil {
			if len(t.slab) == 0 {
				t.slab = make([]page, slabPages)
			}
			p, t.slab = &t.slab[0], t.slab[1:]
			t.pages[number] = p
		}
		*r = recentPage{number + 1, p}
	}
	return r.page
}

// setOf returns the set of bytes that a function touched, and creates the set if necessary. setOf
// also moves the set to the front of the list.
func (p *page) setOf(function uint32) *byteSet {
	if len(p.by) > 0 && p.by[0].function == function {
		return &p.by[0].set
	}
	at := slices.IndexFunc(p.by, func(x touchedBy) bool { return x.function == function })
	if at < 0 {
		at = len(p.by)
		p.by = append(p.by, touchedBy{function: function})
	}
	p.by[0], p.by[at] = p.by[at], p.by[0]
	return &p.by[0].set
}

func (s *byteSet) add(offset, bytes uint64) {
	for bytes > 0 {
		here := min(bytes, 64-offset%64)
		s[offset/64] |= (^uint64(0) >> (64 - here)) << (offset % 64)
		offset, bytes = offset+here, bytes-here
	}
}

func (s *byteSet) len() (n uint64) {
	for _, word := range s {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

// eachRun calls the function yield for each run of adjacent bytes of a page that have the same
// number of accesses.
func (t *touchedBytes) eachRun(number uint64, p *page, yield func(accesses, bytes uint64)) {
	for w := range uint64(pageBytes / 8) {
		word := t.fullCount(granule{number, 8, uint16(w)}, p.words[w])
		if p.halves == nil && p.bytes == nil {
			yield(word, 8)
			continue
		}
		for h := 2 * w; h < 2*w+2; h++ {
			half := word
			if p.halves != nil {
				half += t.fullCount(granule{number, 4, uint16(h)}, p.halves[h])
			}
			if p.bytes == nil {
				yield(half, 4)
				continue
			}
			for b := 4 * h; b < 4*h+4; b++ {
				yield(half+t.fullCount(granule{number, 1, uint16(b)}, p.bytes[b]), 1)
			}
		}
	}
}

// fullCount returns the value of a counter, including its wrap-arounds.
func (t *touchedBytes) fullCount(g granule, counter uint32) uint64 {
	if len(t.wraps) == 0 {
		return uint64(counter)
	}
	return uint64(counter) + t.wraps[g]<<32
}

func (t *touchedBytes) result(c *profile.Counters) {
	var few [1 << 12]uint64 // number of bytes by number of accesses
	many := map[uint64]uint64{}
	unique := map[uint32]uint64{}
	for number, p := range t.pages {
		t.eachRun(number, p, func(accesses, bytes uint64) {
			if accesses < uint64(len(few)) {
				few[accesses] += bytes
			} else {
				many[accesses] += bytes
			}
		})
		for i := range p.by {
			unique[p.by[i].function] += p.by[i].set.len()
		}
	}
	for accesses, bytes := range few {
		if bytes > 0 && accesses > 0 {
			many[uint64(accesses)] = bytes
		}
	}
	c.UniqueBytes, c.Usage = usage(many)
	for i := range c.Functions {
		c.Functions[i].UniqueBytes = unique[c.Functions[i].Number+1]
	}
}

// usage returns the number of distinct bytes and, for each share of all accesses, the minimum
// number of bytes that receive this share. For each n > 0, bytes[n] is the number of bytes with n
// accesses.
func usage(bytes map[uint64]uint64) (unique uint64, steps [profile.UsageSteps]uint64) {
	total := uint64(0)
	for n, count := range bytes {
		total += n * count
	}
	held, step := uint64(0), uint64(0)
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(bytes))) {
		for ; step < profile.UsageSteps; step++ {
			want := shareOf(total, step+1)
			if held+n*bytes[n] < want {
				break
			}
			steps[step] = unique + (want-held+n-1)/n
		}
		held += n * bytes[n]
		unique += bytes[n]
	}
	return unique, steps
}

// shareOf returns total × part / 20, rounded up.
func shareOf(total, part uint64) uint64 {
	const parts = profile.UsageSteps
	return total/parts*part + (total%parts*part+parts-1)/parts
}
