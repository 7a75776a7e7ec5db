package estimate

import "github.com/stackglass/stackglass/core/trace"

const frontLines = 16 // number of lines on top of the stack, which are tracked for every access

const noLine = ^trace.Line(0) // not a line: line numbers are below 2^61

// front is the top of an LRU stack, as an array. Accesses that hit in the front have exact
// distances.
type front [frontLines]trace.Line

func (f *front) clear() {
	for i := range f {
		f[i] = noLine
	}
}

// access moves a line to the top, and returns the line's previous depth or, if the line was not in
// the front, frontLines and the line that left the front.
func (f *front) access(line trace.Line) (at int, left trace.Line) {
	if f[0] == line {
		return 0, noLine
	}
	carry := f[0]
	f[0] = line
	for at = 1; at < frontLines; at++ {
		here := f[at]
		if f[at] = carry; here == line {
			return at, noLine
		}
		carry = here
	}
	return frontLines, carry
}

func (f *front) lines() (n int) {
	for n < frontLines && f[n] != noLine {
		n++
	}
	return n
}

// fetch describes an access that missed in the front: its line, and the line that left the front.
type fetch struct {
	line, left trace.Line
	kind       trace.Kind
}

// scan performs accesses in the front: it counts the distances of hits, queues all other accesses,
// and returns the number of queued accesses. Lines are compared in groups of four, for the reason
// that stack.Exact explains.
func (f *front) scan(lines []trace.Line, kinds []trace.Kind, near *nearCounts, queue *[chunk]fetch) (fetches int) {
	t0, t1, t2, t3 := f[0], f[1], f[2], f[3]
	kinds = kinds[:len(lines)]
next:
	for i, x := range lines {
		counts, kind := &near[i&1], uint32(kinds[i]&(kindSlots-1))<<4
		if x == t0 {
			counts[kind]++
			continue
		}
		d := uint32(4)
		if x == t3 {
			d = 3
		}
		if x == t2 {
			d = 2
		}
		if x == t1 {
			d = 1
		}
		carry := t3
		if d >= 3 {
			t3 = t2
		}
		if d >= 2 {
			t2 = t1
		}
		t0, t1 = x, t0
		if d < 4 {
			counts[kind|d]++
			continue
		}
		for j := 4; j < frontLines; j += 4 {
			four := (*[4]trace.Line)(f[j:])
			a, b, c, e := four[0], four[1], four[2], four[3]
			d, last := 4, e
			if x == e {
				d = 3
			}
			if x == c {
				d = 2
			}
			if x == b {
				d = 1
			}
			if x == a {
				d = 0
			}
			if d >= 3 {
				e = c
			}
			if d >= 2 {
				c = b
			}
			if d >= 1 {
				b = a
			}
			four[0], four[1], four[2], four[3] = carry, b, c, e
			if d < 4 {
				counts[kind|uint32(j+d)&(frontLines-1)]++
				continue next
			}
			carry = last
		}
		queue[fetches&(chunk-1)] = fetch{x, carry, kinds[i]}
		fetches++
	}
	f[0], f[1], f[2], f[3] = t0, t1, t2, t3
	return fetches
}
