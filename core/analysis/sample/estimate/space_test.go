package estimate

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// drawLines returns a random sequence of lines that are accessed again soon, late or never.
func drawLines(t *rapid.T) []trace.Line {
	n := rapid.IntRange(1, 3000).Draw(t, "accesses")
	few := rapid.Uint64Range(1, 40).Draw(t, "few lines")
	many := rapid.Uint64Range(1, 1000).Draw(t, "many lines")
	choose := rapid.Uint64().Draw(t, "seed")
	lines := make([]trace.Line, n)
	for i := range lines {
		r := hashLine(uint64(i), choose)
		lines[i] = r >> 8 % few
		if r%4 == 0 {
			lines[i] = r >> 8 % many
		}
	}
	return lines
}

// naive implements a sample of lines according to the definition, with the whole stack as a list.
// To compute the expected distances from reuse times, naive uses reuseTimes, like the sampler.
type naive struct {
	seed, threshold uint64
	stack           []trace.Line
	left            map[trace.Line]int // the value of the field "fetches" when the line last left the front of the stack
	fetches         int
	times           reuseTimes
}

func (n *naive) access(line trace.Line) uint32 {
	at := slices.Index(n.stack, line)
	whole := slices.Clone(n.stack)
	if at >= 0 {
		n.stack = slices.Delete(n.stack, at, at+1)
	}
	n.stack = slices.Insert(n.stack, 0, line)
	if at >= 0 && at < frontLines {
		return uint32(at)
	}
	d := n.distance(line, at, whole)
	n.fetches++
	if len(whole) >= frontLines {
		if out := whole[frontLines-1]; hashLine(out, n.seed) <= n.threshold {
			n.left[out] = n.fetches
			n.times.left++
		}
	}
	return d
}

func (n *naive) distance(line trace.Line, at int, whole []trace.Line) uint32 {
	if hashLine(line, n.seed) > n.threshold {
		return passed
	}
	if at < 0 {
		return stack.Cold
	}
	above := 0
	for _, other := range whole[frontLines:at] {
		if hashLine(other, n.seed) <= n.threshold {
			above++
		}
	}
	time := uint64(n.fetches - n.left[line])
	d := weightedMean(n.times.distance(time), above, profile.RateOf(n.threshold))
	n.times.times[reuseBin(time)]++
	return frontLines + uint32(math.Round(min(d, float64(time))))
}

func TestSpaceSampleMatchesDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawLines(t)
		o, err := sample.Parse("space=" + rapid.SampledFrom([]string{"1", "0.5", "0.25", "0.01"}).Draw(t, "rate"))
		if err != nil {
			t.Fatal(err)
		}
		limit := o.Threshold
		seed := rapid.Uint64().Draw(t, "of the sample")
		fast, slow := newSpace(limit, seed, 0), naive{seed: seed, threshold: limit, left: map[trace.Line]int{}}
		out := distances(fast, lines)
		for i, line := range lines {
			if want := slow.access(line); out[i] != want {
				t.Fatalf("access %d has distance %d, want %d", i, out[i], want)
			}
		}
	})
}

// TestAllLinesAreExact checks that a sample of all lines yields exact results.
func TestAllLinesAreExact(t *testing.T) {
	for _, o := range []sample.Options{
		{Mode: profile.SpaceSample, Threshold: math.MaxUint64},
		{Mode: profile.LinesSample, Lines: 1000},
	} {
		rapid.Check(t, func(t *rapid.T) {
			lines := drawLines(t)
			l, size := sampled(o, lines)
			want := exact(lines)
			for _, c := range []uint64{1, 2, 15, 16, 17, 30, 100, 1000} {
				if got, want := curve(l).Misses(c), curve(want).Misses(c); got != want {
					t.Fatalf("%v: a cache of %d lines has %d misses, want %d", o, c, got, want)
				}
				b, ok := (&profile.Profile{Sampled: &profile.Sampled{Sizes: []profile.SampledSize{*size}}}).MissBounds(64, c)
				if want := curve(want).Misses(c); ok && (b.Low != want || b.High != want) && profile.SiteBinFrom(profile.SiteBin(uint32(c))) == c {
					t.Fatalf("%v, %d lines: the interval of misses is %d to %d, want exactly %d", o, c, b.Low, b.High, want)
				}
			}
		})
	}
}

// TestLineLimitIsRespected checks that the sample never exceeds its line limit, that it contains
// the lines with the smallest hashes, and that its counts add up to approximately the number of all
// accesses.
func TestLineLimitIsRespected(t *testing.T) {
	lines := generated(200_000, tracetest.Mixed(3, tracetest.Strided(64, 1<<17), tracetest.Uniform(1<<13, 5)))
	var loads [256]trace.Kind
	for seed := range uint64(5) {
		s := newSpace(math.MaxUint64, seed, 300)
		var weights, fetches float64
		for rest := lines; len(rest) > 0; {
			n := min(len(rest), 256)
			var c counts
			fetches += float64(s.sample(rest[:n], loads[:n], &c))
			for i := range c.taken {
				weights += float64(c.taken[i].weight)
			}
			if s.below.registeredLines() > 300 {
				t.Fatalf("seed %d: the sample has %d lines, which exceeds the limit", seed, s.below.registeredLines())
			}
			rest = rest[n:]
		}
		for line := range s.below.place {
			if hashLine(line, seed) > s.threshold {
				t.Fatalf("seed %d: line %d is in the sample, but its hash exceeds the threshold", seed, line)
			}
		}
		if off := weights/fetches - 1; math.Abs(off) > 0.2 {
			t.Errorf("seed %d: the weights add up to %.3f of the accesses, want about 1", seed, weights/fetches)
		}
	}
}

// TestReuseTimes compares the result with the expected value for n lines that are accessed at
// random. Within a time t, n(1-(1-1/n)^t) distinct lines leave the front.
func TestReuseTimes(t *testing.T) {
	const lines = 1000
	var r reuseTimes
	last := map[uint64]uint64{}
	for now := range uint64(400_000) {
		line := hashLine(now, 3) % lines
		if then, known := last[line]; known {
			r.times[reuseBin(now-then)]++
		}
		last[line] = now
		r.left++
	}
	for _, time := range []uint64{1, 10, 100, 1000, 5000} {
		want := lines * (1 - math.Pow(1-1./lines, float64(time)))
		if got := r.distance(time); math.Abs(got/want-1) > 0.05 {
			t.Errorf("the expected distance for time %d is %.1f lines, want %.1f", time, got, want)
		}
	}
}

// naiveOrder implements sampledOrder as a list.
type naiveOrder []placed

func TestOrderEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, list := newOrder(), naiveOrder{}
		choose := rapid.Uint64().Draw(t, "seed")
		for i := range rapid.Uint64Range(0, 5000).Draw(t, "steps") {
			r := hashLine(i, choose)
			line := r >> 32 % 300
			at := slices.IndexFunc(list, func(p placed) bool { return p.line == line })
			above, when, down := o.removeLine(line)
			if down != (at >= 0) || down && (above != len(list)-1-at || when != list[at].at) {
				t.Fatalf("step %d: removeLine returned %d, %d, %v, but the line was at index %d of %d", i, above, when, down, at, len(list))
			}
			if at >= 0 {
				list = slices.Delete(list, at, at+1)
			}
			if r%8 > 0 {
				o.push(line, i)
				list = append(list, placed{line, i})
			}
			since := i - min(i, r>>16%1000)
			newer := 0
			for _, p := range list {
				if p.at > since {
					newer++
				}
			}
			if got := o.pushedSince(since); got != newer {
				t.Fatalf("step %d: %d lines were pushed since time %d, want %d", i, got, since, newer)
			}
			if r>>8%1000 == 0 {
				keep := func(line trace.Line) bool { return line%3 != 0 }
				o.dropLines(keep)
				list = slices.DeleteFunc(list, func(p placed) bool { return !keep(p.line) })
			}
		}
	})
}
