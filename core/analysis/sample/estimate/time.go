package estimate

import (
	"maps"
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

const (
	// A sample is young for 1/youngShare of the mean gap, but at least for leastYoung accesses. The
	// distance of a young sample is counted exactly, so approximately 1/youngShare of the run is
	// analysed in full.
	youngShare = 16
	leastYoung = 1 << 14
	// The distance of an older sample counts only one in 1 << oldBits lines.
	oldBits = 6
)

// timeSampler samples accesses: see the package comment.
type timeSampler struct {
	seed, gap uint64
	draws     uint64 // number of gaps that have been drawn
	next      uint64 // number of accesses until the next sample
	now       uint64 // number of accesses so far

	watched map[trace.Line]openSample
	filter  [1 << 8]uint64 // bit set of the hashes of all watched lines; it may also contain hashes of lines that are no longer watched
	// all young samples and some older samples, in the order of their beginnings
	young  []watching
	recent *stack.Exact  // stack of all lines accessed since the first sample in young began; nil: no sample is young
	old    *sampledOrder // stack of the lines accessed since the first open sample began; it contains only one in 1 << oldBits of these lines

	analysed, samples uint64
	// for each bin of profile.DistanceBin: the number of samples that have ended, and the number of
	// samples that ended when they were no longer young
	ends, oldEnds [profile.WindowBins]uint64
	distances     [chunk]uint32
	one           counts // counts of a single access
}

// openSample is a sample that waits for the next access to its line.
type openSample struct {
	kind trace.Kind // kind of the sampled access
	at   uint64     // time of the sampled access
	old  bool
}

type watching struct {
	line trace.Line
	at   uint64
}

func newTime(gap, seed uint64) *timeSampler {
	t := &timeSampler{seed: seed, gap: gap, watched: map[trace.Line]openSample{}}
	t.next = t.draw()
	return t
}

// draw returns the number of accesses to skip before the next sample. These numbers are
// geometrically distributed, so each access is sampled with the same probability, 1/gap.
func (t *timeSampler) draw() uint64 {
	if t.gap <= 1 {
		return 0
	}
	t.draws++
	u := (float64(hashLine(t.draws, ^t.seed)>>11) + 0.5) / (1 << 53)
	return uint64(math.Log(u) / math.Log1p(-1/float64(t.gap)))
}

// sample implements sampler. Accesses are skipped while no line is watched.
func (t *timeSampler) sample(lines []trace.Line, kinds []trace.Kind, c *counts) (beyond uint64) {
	for _, kind := range kinds {
		c.beyond[kind&(kindSlots-1)]++
	}
	beyond = uint64(len(lines))
	for len(lines) > 0 {
		n := int(min(uint64(len(lines)), t.next))
		if len(t.watched) > 0 {
			n = min(n, chunk)
			t.processWatched(lines[:n], kinds, c)
		}
		t.now += uint64(n)
		t.next -= uint64(n)
		if t.next == 0 && n < len(lines) {
			t.beginSample(lines[n], kinds[n], c)
			t.next = t.draw()
			n++
		}
		lines, kinds = lines[n:], kinds[n:]
	}
	return beyond
}

// access processes one access. The first result is the distance if the access ends a sample, and
// otherwise the constant named passed. The result began reports whether the access begins a sample.
func (t *timeSampler) access(line trace.Line) (distance uint32, began bool) {
	if len(t.watched) == 0 && t.next > 0 {
		t.now, t.next = t.now+1, t.next-1
		return passed, false
	}
	before := t.samples
	t.one.taken = t.one.taken[:0]
	t.sample([]trace.Line{line}, []trace.Kind{trace.Load}, &t.one)
	distance = passed
	if len(t.one.taken) > 0 {
		distance = t.one.taken[0].distance
	}
	return distance, t.samples != before
}

// currentDistance returns the stack distance that an access to the line of a sample would have now.
func (t *timeSampler) currentDistance(line trace.Line) uint32 {
	w, found := t.watched[line]
	if !found || !w.old && t.recent == nil {
		return 0
	}
	if w.old {
		return uint32(min(t.old.pushedSince(w.at)<<oldBits, farthest))
	}
	return uint32(max(0, slices.Index(t.recent.Stack(), line))) // slow, but called at most once per sample
}

// beginSample begins a sample at an access. The same access may end an earlier sample.
func (t *timeSampler) beginSample(line trace.Line, kind trace.Kind, c *counts) {
	one := [1]trace.Line{line}
	if len(t.watched) > 0 {
		t.processWatched(one[:], []trace.Kind{kind}, c)
	}
	t.now++
	if t.recent == nil {
		t.recent = stack.NewExact()
		t.recent.Distances(one[:], t.distances[:])
		t.analysed++
	}
	if t.old == nil {
		t.old = newOrder()
	}
	t.samples++
	t.watch(line, openSample{kind: kind, at: t.now})
	t.young = append(t.young, watching{line, t.now})
}

func (t *timeSampler) watch(line trace.Line, w openSample) {
	t.watched[line] = w
	h := hashLine(line, t.seed)
	t.filter[h&255] |= 1 << (h >> 8 & 63)
}

// processWatched processes accesses while lines are watched.
func (t *timeSampler) processWatched(lines []trace.Line, kinds []trace.Kind, c *counts) {
	exact, counted := t.recent != nil, 0
	if exact {
		t.recent.Distances(lines, t.distances[:])
	}
	for i, line := range lines {
		h := hashLine(line, t.seed)
		if t.filter[h&255]>>(h>>8&63)&1 != 0 {
			if w, found := t.watched[line]; found {
				c.taken = append(c.taken, sampledAccess{line, 1, t.endSample(line, w, t.distances[i]), kinds[i]})
				if len(t.watched) == 0 {
					lines = lines[:i+1]
					break
				}
			}
		}
		if h>>(64-oldBits) == 0 {
			t.old.removeLine(line)
			t.old.push(line, t.now+uint64(i)+1)
			counted++
		}
	}
	if exact {
		counted = len(lines)
	}
	t.analysed += uint64(counted)
	t.dropOldData()
}

// endSample ends a sample, and returns the distance of the access that ends the sample.
func (t *timeSampler) endSample(line trace.Line, w openSample, exact uint32) uint32 {
	delete(t.watched, line)
	if !w.old {
		t.ends[profile.DistanceBin(uint64(exact))]++
		return exact
	}
	d := min(t.old.pushedSince(w.at)<<oldBits, farthest)
	t.ends[profile.DistanceBin(uint64(d))]++
	t.oldEnds[profile.DistanceBin(uint64(d))]++
	return uint32(d)
}

// dropOldData drops data that no open sample needs.
func (t *timeSampler) dropOldData() {
	if len(t.watched) == 0 {
		t.young, t.recent, t.old, t.filter = t.young[:0], nil, nil, [1 << 8]uint64{}
		return
	}
	most := max(t.gap/youngShare, leastYoung)
	first := 0
	for _, y := range t.young {
		w, found := t.watched[y.line]
		if found = found && w.at == y.at; found {
			if t.now-y.at <= most {
				break
			}
			w.old = true
			t.watched[y.line] = w
		}
		first++
	}
	if t.young = slices.Delete(t.young, 0, first); len(t.young) == 0 {
		t.recent = nil
	}
}

// weight returns 1, because all samples have the same weight.
func (t *timeSampler) weight() uint64            { return 1 }
func (t *timeSampler) group(line trace.Line) int { return 0 }

func (t *timeSampler) describe(s *profile.SampledSize) (factor float64, open [trace.NumKinds]uint64) {
	s.Analysed = t.analysed
	for _, w := range t.watched {
		open[w.kind]++
	}
	return 0, open
}

// deviation implements sampler. Young samples are exact, but older samples count only a fixed
// selection of lines. The deviation therefore depends on the share of older samples among all
// samples that have approximately the given distance.
func (t *timeSampler) deviation(distance float64) float64 {
	bin := profile.DistanceBin(uint64(distance))
	ends, old := t.ends[bin], t.oldEnds[bin]
	if bin > 0 {
		ends, old = ends+t.ends[bin-1], old+t.oldEnds[bin-1]
	}
	return float64(old) / float64(max(ends, 1)) * math.Sqrt((1<<oldBits-1)/distance)
}

func (t *timeSampler) code(c *codec.Coder) {
	c.U64s(&t.draws, &t.next, &t.now, &t.analysed, &t.samples)
	c.Array(t.ends[:])
	c.Array(t.oldEnds[:])
	lines := slices.Sorted(maps.Keys(t.watched))
	codec.Slice(c, &lines, 4, func(line *trace.Line) {
		codec.Below(c, line, beyond)
		w := t.watched[*line]
		codec.Below(c, &w.kind, trace.NumKinds)
		c.U64(&w.at)
		if c.Flag(&w.old); c.Reads() {
			t.watch(*line, w)
		}
	})
	if len(t.watched) == 0 {
		return
	}
	if c.Reads() {
		t.old = newOrder()
	}
	t.old.code(c)
	codec.Slice(c, &t.young, 2, func(y *watching) {
		codec.Below(c, &y.line, beyond)
		c.U64(&y.at)
	})
	if len(t.young) == 0 {
		return
	}
	var recent []trace.Line
	if !c.Reads() {
		recent = t.recent.Stack()
	}
	if codeLines(c, &recent); c.Reads() {
		t.recent = stack.NewExact()
		slices.Reverse(recent)
		t.recent.Distances(recent, make([]uint32, len(recent)))
	}
}
