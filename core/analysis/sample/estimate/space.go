package estimate

import (
	"math"
	"math/bits"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

const (
	chunk    = 512            // number of accesses that are scanned before the queued accesses are processed; a power of two
	passed   = stack.Cold - 1 // stands for the distance of an access that is not in the sample
	farthest = passed - 1     // largest distance
	groups   = 16             // number of groups of the sample; the confidence intervals are computed from the variance between the groups; a power of two
)

// hashLine hashes a line with the finaliser of SplitMix64 (Steele, Lea and Flood, 2014). A line is
// sampled if its hash does not exceed a threshold. The low bits of the hash select the group.
func hashLine(line trace.Line, seed uint64) uint64 {
	h := line + seed*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// spaceSampler samples lines: see the package comment.
type spaceSampler struct {
	seed      uint64
	threshold uint64 // the largest hash of a sampled line
	rate      float64
	most      int // if there are more sampled lines, the rate is halved; 0: no limit
	halvings  uint

	front   front
	below   *sampledOrder
	times   reuseTimes
	fetches uint64 // the clock: number of lines that have left the front
	looked  uint64 // number of accesses to sampled lines beyond the front
	queue   [chunk]fetch
}

func newSpace(threshold, seed uint64, most int) *spaceSampler {
	s := &spaceSampler{seed: seed, threshold: threshold, most: most, below: newOrder()}
	s.rate = profile.RateOf(threshold)
	s.front.clear()
	return s
}

func (s *spaceSampler) sample(lines []trace.Line, kinds []trace.Kind, c *counts) (beyond uint64) {
	for len(lines) > 0 {
		n := min(len(lines), chunk)
		fetches := s.front.scan(lines[:n], kinds[:n], &c.near, &s.queue)
		for i := range s.queue[:fetches] {
			q := &s.queue[i]
			c.beyond[q.kind&(kindSlots-1)]++
			if min(hashLine(q.line, s.seed), hashLine(q.left, s.seed)) > s.threshold { // neither of the two lines is in the sample
				s.fetches++
				continue
			}
			if d := s.fetchIntoFront(q.line, hashLine(q.line, s.seed), q.left); d != passed {
				c.taken = append(c.taken, sampledAccess{q.line, s.weight(), d, q.kind})
				s.limitLines()
			}
		}
		beyond += uint64(fetches)
		lines, kinds = lines[n:], kinds[n:]
	}
	return beyond
}

// fetchIntoFront handles an access to a line, with hash h, that missed in the front. The parameter
// evicted is the line that left the front. fetchIntoFront returns the distance of the access, or
// the constant named passed if the access is not in the sample.
func (s *spaceSampler) fetchIntoFront(line trace.Line, h uint64, evicted trace.Line) uint32 {
	d := uint32(passed)
	if h <= s.threshold {
		d = s.sampledDistance(line)
	}
	s.fetches++
	if evicted != noLine && hashLine(evicted, s.seed) <= s.threshold {
		s.below.push(evicted, s.fetches)
		s.times.left++
	}
	return d
}

// access performs one access. It returns the distance of the access, or the constant named passed
// if the access is not in the sample. Distances below frontLines are exact.
func (s *spaceSampler) access(line trace.Line) uint32 {
	d, left := s.front.access(line)
	if d < frontLines {
		return uint32(d)
	}
	return s.fetchIntoFront(line, hashLine(line, s.seed), left)
}

// sampledDistance returns the stack distance of a sampled line that is not in the front.
func (s *spaceSampler) sampledDistance(line trace.Line) uint32 {
	s.looked++
	above, at, down := s.below.removeLine(line)
	if !down {
		s.below.register(line)
		return stack.Cold
	}
	time := s.fetches - at
	distance := weightedMean(s.times.distance(time), above, s.rate)
	s.times.times[reuseBin(time)]++
	distance = min(distance, float64(time))
	return frontLines + uint32(min(math.Round(distance), farthest-frontLines))
}

// limitLines halves the rate until the number of sampled lines does not exceed the limit.
func (s *spaceSampler) limitLines() {
	for s.most > 0 && s.below.registeredLines() > s.most {
		s.halve()
	}
}

// halve halves the rate, and drops the lines that are no longer sampled.
func (s *spaceSampler) halve() {
	s.threshold /= 2
	s.rate = profile.RateOf(s.threshold)
	s.halvings++
	s.below.dropLines(func(line trace.Line) bool { return hashLine(line, s.seed) <= s.threshold })
}

func (s *spaceSampler) weight() uint64 { return 1 << s.halvings }

func (s *spaceSampler) group(line trace.Line) int { return int(hashLine(line, s.seed) % groups) }

func (s *spaceSampler) describe(size *profile.SampledSize) (factor float64, open [trace.NumKinds]uint64) {
	size.Threshold, size.Lines, size.Analysed = s.threshold, uint64(s.below.registeredLines()), s.looked
	return math.Exp2(-float64(s.halvings)) / s.rate, open
}

// deviation implements sampler: see weightedMean.
func (s *spaceSampler) deviation(distance float64) float64 {
	if s.rate >= 1 {
		return 0
	}
	return 1 / math.Sqrt(trust+s.rate/(1-s.rate)*distance)
}

func (s *spaceSampler) code(c *codec.Coder) {
	c.U64(&s.threshold)
	codec.Below(c, &s.halvings, 64)
	c.U64s(&s.fetches, &s.looked, &s.times.left, &s.times.built)
	for i := range s.front {
		codeLine(c, &s.front[i], 1) // 0 represents no line
	}
	c.Array(s.times.times[:])
	for i := range s.times.upto {
		bits := math.Float64bits(s.times.upto[i])
		if c.U64(&bits); c.Reads() {
			s.times.upto[i] = math.Float64frombits(bits)
		}
	}
	if c.Reads() {
		s.rate = profile.RateOf(s.threshold)
	}
	s.below.code(c)
}

// reuseTimes converts reuse times to expected stack distances (Eklov and Hagersten, StatStack, ISPASS
// 2010). The clock advances by one whenever a line leaves the front. A line that leaves the front
// returns after some time; the probability that it has not returned after j steps is P(time > j). The
// lines that have left the front within the last t steps and have not returned are distinct, so their
// expected number is
//
//	D(t) = Σ_{j<t} P(time > j)
//
// Only a histogram of the reuse times of sampled lines is needed to compute D.
type reuseTimes struct {
	left  uint64            // number of lines that have left the front
	times [reuseBins]uint64 // histogram of the times after which lines have returned
	upto  [reuseBins]float64
	built uint64 // number of lines that had left the front when upto was computed
}

const (
	reuseSub  = 8 // number of bins per power of two
	reuseBins = reuseSub * 50
)

// reuseBin returns the bin of a reuse time; reuseFrom returns the smallest reuse time in a bin.
func reuseBin(t uint64) int {
	e := bits.Len64(t|reuseSub) - 4
	return min(e*reuseSub+int(t>>e), reuseBins-1)
}

func reuseFrom(bin int) uint64 {
	if bin < 2*reuseSub {
		return uint64(bin)
	}
	e := bin/reuseSub - 1
	return uint64(bin%reuseSub+reuseSub) << e
}

// distance returns D(t).
func (r *reuseTimes) distance(t uint64) float64 {
	if r.left >= r.built+r.built/8+16 {
		r.computeDistances()
	}
	bin := reuseBin(t)
	from := reuseFrom(bin)
	if bin == reuseBins-1 {
		return r.upto[bin]
	}
	share := float64(t-from) / float64(reuseFrom(bin+1)-from)
	return r.upto[bin] + share*(r.upto[bin+1]-r.upto[bin])
}

// computeDistances computes D at the lower bounds of the bins.
func (r *reuseTimes) computeDistances() {
	r.built = r.left
	away, sum := float64(r.left), 0.
	for bin := range reuseBins {
		r.upto[bin] = sum
		now := away - float64(r.times[bin])
		sum += (away + now) / 2 / float64(r.left) * float64(reuseFrom(bin+1)-reuseFrom(bin))
		away = now
	}
}

// trust determines the accuracy of D(t) as a prediction for a single access: the relative standard
// deviation is 1/√trust.
const trust = 24

// weightedMean returns the mean of two estimates of a distance, each weighted by the inverse of its
// variance. The first estimate is the expected distance. The second estimate is the number of
// sampled lines between the two accesses to a line (counted), divided by the rate. Its variance is
// binomial, and is 0 at a rate of 1.
func weightedMean(expected float64, counted int, rate float64) float64 {
	exact := float64(counted) / rate
	if rate >= 1 {
		return exact
	}
	about := max(expected, 1)
	byCount := rate / ((1 - rate) * about)
	byTime := trust / (about * about)
	return math.Max(0, (byCount*exact+byTime*expected)/(byCount+byTime))
}
