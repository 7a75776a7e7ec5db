package communication

import "github.com/stackglass/stackglass/core/profile"

// owners counts the references of each thread to each part of each data object.
type owners struct{ objects []owned } // indexed by the number of the object

// owned is a data object that is divided into parts of equal size. If there are more than
// profile.MaxParts parts, their size is doubled.
type owned struct {
	shift uint   // binary logarithm of the number of bytes in a part
	first uint64 // number of the first part
	parts []part
	// counts contains the number of references by slot and part. If a thread has not accessed the
	// last parts, its list is shorter or nil.
	counts [][]uint64
}

// part describes a part of a data object. A reference counts once for each word that it touches.
type part struct {
	firstReference      uint64 // 1 + the number of the first reference; 0: no reference
	readers, writers    uint64 // bit sets of threads
	events, falseEvents uint64 // events on lines
	class               usage
}

const leastPart = 6 // log2 of the size of the smallest part, a line of 64 bytes

// touchedParts identifies the parts of a data object that a reference touches.
type touchedParts struct {
	*owned
	part int // the part that contains the first word
}

// findParts counts a reference to the words from first to last, and returns the parts that it
// touches.
func (o *owners) findParts(r *reference, first, last uint64) touchedParts {
	if uint64(r.object) >= uint64(len(o.objects)) {
		o.grow(r.object)
	}
	of := &o.objects[r.object]
	from, end := offset(r, first)>>of.shift, offset(r, last)>>of.shift
	if from-of.first >= uint64(len(of.parts)) || end-of.first >= uint64(len(of.parts)) {
		of.coverOffsets(offset(r, first), offset(r, last))
		from, end = offset(r, first)>>of.shift, offset(r, last)>>of.shift
	}
	at := touchedParts{of, int(from - of.first)}
	if from == end {
		of.recordReference(r, at.part, last-first+1)
		return at
	}
	for w := first; w <= last; w++ {
		of.recordReference(r, at.partOf(r, w), 1)
	}
	return at
}

func offset(r *reference, word uint64) uint64 {
	return max(word<<wordShift, r.begin) - r.begin
}

func (p touchedParts) partOf(r *reference, word uint64) int {
	return int(offset(r, word)>>p.shift - p.first)
}

func (o *owners) grow(object uint32) {
	for uint64(len(o.objects)) <= uint64(object) {
		o.objects = append(o.objects, owned{shift: leastPart})
	}
}

// recordReference counts a reference to the given number of words of part n.
func (o *owned) recordReference(r *reference, n int, words uint64) {
	p := &o.parts[n]
	p.class.recordReference(r.thread, p.firstReference == 0)
	if p.firstReference == 0 {
		p.firstReference = r.at + 1
	}
	if r.loads {
		p.readers |= r.bit
	}
	if r.stores {
		p.writers |= r.bit
	}
	if int(r.thread) >= len(o.counts) || n >= len(o.counts[r.thread]) {
		o.count(r.thread)
	}
	o.counts[r.thread][n] += words
}

func (o *owned) count(thread uint8) {
	for len(o.counts) <= int(thread) {
		o.counts = append(o.counts, nil)
	}
	of := &o.counts[thread]
	*of = append(*of, make([]uint64, len(o.parts)-len(*of))...)
}

// recordLineEvent counts an event of a line for the part that contains the first referenced word.
func (p touchedParts) recordLineEvent(isFalse bool) {
	at := &p.parts[p.part]
	at.events++
	if isFalse {
		at.falseEvents++
	}
}

// recordTransfer records that the reference uses a value that another thread wrote to the word.
func (p touchedParts) recordTransfer(r *reference, word uint64, from source) {
	p.parts[p.partOf(r, word)].class.produce(from.thread)
}

// coverOffsets adds the parts that contain the offsets from first to last, if they do not exist
// yet.
func (o *owned) coverOffsets(first, last uint64) {
	if len(o.parts) == 0 {
		o.first = first >> o.shift
	}
	for {
		low := min(o.first, first>>o.shift)
		high := max(o.first+uint64(len(o.parts)), last>>o.shift+1)
		if high-low <= profile.MaxParts {
			o.coverParts(low, high)
			return
		}
		o.coarsen()
	}
}

// coverParts extends the list of parts so that it includes the parts from low to high.
func (o *owned) coverParts(low, high uint64) {
	before := int(o.first - low)
	o.first = low
	o.parts = paddedList(o.parts, before, int(high-low))
	for t := range o.counts {
		if o.counts[t] != nil {
			o.counts[t] = paddedList(o.counts[t], before, before+len(o.counts[t]))
		}
	}
}

// paddedList returns a list of the given length that consists of the given number of leading zeros,
// the elements of list, and trailing zeros.
func paddedList[T any](list []T, leading, length int) []T {
	out := list
	if length > cap(list) {
		out = make([]T, length, min(2*length, profile.MaxParts))
	}
	out = out[:length]
	copy(out[leading:], list)
	clear(out[:leading])
	clear(out[leading+len(list):])
	return out
}

// coarsen joins neighbouring parts in pairs.
func (o *owned) coarsen() {
	first := o.first / 2
	at := func(i int) int { return int((o.first+uint64(i))/2 - first) }
	var parts []part
	for i := range o.parts {
		if at(i) == len(parts) {
			parts = append(parts, o.parts[i])
		} else {
			parts[at(i)].join(&o.parts[i])
		}
	}
	for t, counts := range o.counts {
		var sums []uint64
		for i, n := range counts {
			if at(i) == len(sums) {
				sums = append(sums, 0)
			}
			sums[at(i)] += n
		}
		o.counts[t] = sums
	}
	o.first, o.parts = first, parts
	o.shift++
}

// join adds the counts of the next part.
func (p *part) join(next *part) {
	if next.firstReference == 0 {
		return
	}
	if p.firstReference == 0 {
		*p = *next
		return
	}
	p.class.join(next.class)
	if next.firstReference < p.firstReference {
		p.firstReference, p.class.first = next.firstReference, next.class.first
	}
	p.readers |= next.readers
	p.writers |= next.writers
	p.events += next.events
	p.falseEvents += next.falseEvents
}
