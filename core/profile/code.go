package profile

import (
	"encoding/binary"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// coder writes or reads the payload of a section. Each method that is called "code" both encodes
// and decodes a section that sections.go describes, or a part of such a section.
type coder struct {
	*codec.Coder
	names   stringTable
	full    func([]byte) // while writing: receives every full buffer; may be nil
	version uint64       // while reading: version of the profile
	of      *Profile     // while reading: the sections that have been read so far

	// Limits while reading.
	room    *uint64 // number of bytes that further histograms may allocate
	above   uint32  // previous line size
	most    uint64  // the maximum possible distance
	pages   int     // number of pages in all histograms of the section so far
	crowded string  // error message if the histograms have too many pages; "": no limit

	capacities int
	// memory for the lists of all sites: a few large slices instead of a million small ones
	bins   []BinCount
	used   []Utilisation
	before []SiteCount
}

// stringTable numbers strings in the order of their first use.
type stringTable struct {
	number map[string]uint64
	list   []string
}

// index returns the number of a string, and adds the string if necessary.
func (t *stringTable) index(s string) uint64 {
	n, known := t.number[s]
	if !known {
		n = uint64(len(t.list))
		t.number[s] = n
		t.list = append(t.list, s)
	}
	return n
}

// withStrings encodes or decodes a list of strings followed by the data that the function
// "body" encodes or decodes. The list contains the strings that body passes to coder.name.
func (c *coder) withStrings(body func()) {
	if c.Reads() {
		codec.Slice(c.Coder, &c.names.list, 1, c.Text)
		body()
		return
	}
	head := c.Out
	c.Out, c.names.number = nil, map[string]uint64{}
	body()
	rest := c.Out
	c.Out = head
	codec.Slice(c.Coder, &c.names.list, 1, c.Text)
	c.Out = append(c.Out, rest...)
}

// name encodes or decodes a string as its number in the table.
func (c *coder) name(s *string) {
	if !c.Reads() {
		n := c.names.index(*s)
		c.U64(&n)
		return
	}
	*s = ""
	if n := c.In.UintBelow(uint64(len(c.names.list))); !c.Failed() {
		*s = c.names.list[n]
	}
}

// ascending encodes or decodes a list of ascending numbers, all of which must be below the limit.
func (c *coder) ascending(list *[]uint32, limit uint64) {
	next := uint64(0)
	codec.Slice(c.Coder, list, 1, func(n *uint32) { codec.Next(c.Coder, n, &next, limit) })
}

func (in *Input) code(c *coder) {
	extent, whole := &in.Header.Extent, trace.Extent{}
	limited := *extent != whole
	c.Text(&in.Header.Format)
	c.Flags(&in.Header.Threads, &in.Header.PCs, &in.Header.Sizes, &in.Header.Sliced, &limited)
	codec.Below(c.Coder, &in.Kinds, uint64(trace.AllKinds)+1)
	c.U64s(&in.Skip, &in.Limit)
	codec.Optional(c.Coder, &in.Threads, 1, c.U32)
	if limited {
		c.U64s(&extent.After, &extent.For)
		c.Check(*extent != whole, "the recorded part of each thread is empty")
	}
}

func (t *Totals) code(c *coder) {
	kinds := trace.NumKinds
	if c.version == 1 {
		kinds = 4 // version 1 has no kinds for accesses to ranges
	}
	c.Array(t.References[:kinds])
	c.Array(t.Bytes[:kinds])
	c.U64s(&t.Unselected, &t.BadRecords)
	codec.Optional(c.Coder, &t.Threads, 1, c.U32)
}

func (s *State) code(c *coder) {
	c.Flag(&s.Partial)
	c.Text(&s.Reason)
}

func (l *Locality) code(c *coder) {
	c.U32(&l.LineBytes)
	c.Check(ValidLineBytes(l.LineBytes) && l.LineBytes > c.above, "line sizes are invalid or not in ascending order")
	c.most = MaxDistance
	next := trace.Kind(0)
	codec.Slice(c.Coder, &l.Kinds, 3, func(k *KindLocality) {
		codec.Below(c.Coder, &k.Kind, trace.NumKinds)
		c.Check(k.Kind >= next, "kinds are not in ascending order")
		next = k.Kind + 1
		c.U64(&k.Cold)
		k.Distances.code(c)
	})
}

// sameLines encodes or decodes the line size. While reading, it checks that the size is
// l.LineBytes.
func (l *Locality) sameLines(c *coder) {
	lineBytes := l.LineBytes
	c.U32(&lineBytes)
	c.Check(lineBytes == l.LineBytes, "windows or set tables and the preceding histogram have different line sizes")
}

func (h *Histogram) code(c *coder) {
	if c.Reads() {
		h.read(c)
		return
	}
	n := 0
	for range h.All() {
		n++
	}
	c.Length(n, 2)
	out, last := c.Out, ^uint64(0)
	for d, count := range h.All() {
		if out = binary.AppendUvarint(binary.AppendUvarint(out, d-last), count); c.full != nil && len(out) >= pieceBytes {
			c.full(out)
			out = out[:0]
		}
		last = d
	}
	c.Out = out
}

// read reads distances, which must not exceed c.most, into an empty histogram.
func (h *Histogram) read(c *coder) {
	last := ^uint64(0)
	for range c.In.Length(2) {
		step, count := c.In.UintBelow(MaxDistance), c.In.Uint()
		d := last + step
		c.Check(d <= c.most && step != 0 && count != 0, "a stack distance is out of order or out of range, or its count is zero")
		c.Check(h.bytes <= *c.room, "the distances are so far apart that their histogram needs gigabytes of memory; analyse fewer line sizes or threads at a time")
		if c.Failed() {
			return
		}
		h.AddN(d, count)
		last = d
	}
	*c.room -= min(*c.room, h.bytes)
	if c.pages += len(h.pages); c.crowded != "" && c.pages > mostPages {
		c.In.Fail(c.crowded)
	}
}

func (l *Locality) codeWindows(c *coder) {
	l.sameLines(c)
	w := &l.Windows
	c.U64s(&w.References, &w.First)
	codec.Bounded(c.Coder, &w.Rows, MaxWindows, func(r *WindowRow) { c.Masked(r[:]) })
	if c.More() { // working sets were counted
		w.Distinct = make([]uint64, len(w.Rows))
	}
	c.Array(w.Distinct)
}

func (l *Locality) codeSets(c *coder) {
	l.sameLines(c)
	l.Sets.code(c)
	if l.Sets.Omitted != 0 || c.More() {
		codec.Below(c.Coder, &l.Sets.Omitted, 1<<SetCounts)
		c.Check(l.Sets.Omitted != 0 && (c.version == 0 || c.version == Version), "a set table states that it omits rows, but it is complete, or the version of the profile does not support omitted rows")
	}
}

func (t *SetTable) code(c *coder) {
	for a := range t.Depths {
		c.Masked(t.Depths[a][:])
	}
}

func (s *Segment) code(c *coder) {
	c.U64(&s.Start)
	codec.Slice(c.Coder, &s.Lines, 2, func(l *SegmentLines) {
		l.FirstTouches.code(c, s.Start)
		c.Stack(&l.Stack)
	})
	counted := slices.ContainsFunc(s.Lines, func(l SegmentLines) bool { return l.WorkingSets != nil })
	if !counted && !c.More() {
		return
	}
	for i := range s.Lines {
		codec.Bounded(c.Coder, &s.Lines[i].WorkingSets, 63, func(sets *[]uint64) {
			codec.Bounded(c.Coder, sets, MaxWindows, c.U64)
		})
	}
}
