package sgt

import "github.com/stackglass/stackglass/core/trace"

// layout describes a block for coders.
type layout struct {
	scales     []uint8 // of its values
	references uint64  // rows that are references, if none has 2^32 bytes or more
	sizes      []uint8 // its values that are bytes of references
}

// referencesOf is the number of references in a step with these values.
func (l *layout) referencesOf(values []uint64) uint64 {
	n := l.references
	for _, i := range l.sizes {
		n += rangeRows(values[i]) - 1
	}
	return n
}

// layoutOf returns the layout of a block with these sites.
func layoutOf(sites []trace.Site) layout {
	var l layout
	for i := range sites {
		s := &sites[i]
		for v := range s.Values() {
			if v == 1 && s.Kind.IsReference() {
				l.sizes = append(l.sizes, uint8(len(l.scales)))
			}
			l.scales = append(l.scales, scaleOf(s, v))
		}
		if s.Kind.IsReference() {
			l.references++
		}
	}
	return l
}

// appendLayouts adds the layouts of the program's blocks.
func appendLayouts(layouts []layout, p *trace.Program) []layout {
	for _, b := range p.Blocks {
		layouts = append(layouts, layoutOf(p.Sites[b.FirstSite:b.FirstSite+b.Sites]))
	}
	return layouts
}

// scaleOf is the number of low bits that are usually 0 in the differences of a value: the addresses of
// aligned words.
func scaleOf(s *trace.Site, value int) uint8 {
	switch {
	case value > 0 || s.Kind > trace.Fetch || s.Bytes < 2:
		return 0
	case s.Bytes < 4:
		return 1
	case s.Bytes < 8:
		return 2
	}
	return 3
}

// rangeRows is the number of rows of a range of that many bytes: the size of a row has 32 bits.
func rangeRows(bytes uint64) uint64 {
	if bytes == 0 {
		return 1
	}
	return (bytes-1)/mostBytes + 1
}

// mostBytes is the most bytes of one row.
const mostBytes = 1<<32 - 1
