package blocksample

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Stack contains the sampled counts for one LRU stack, which belongs to one core or is shared by
// several cores.
type Stack struct {
	LineBytes uint32
	Blocks    []Conditional // blocks, indexed by their numbers
}

// Conditional contains the sampled windows of a block, from which its conditional reuse
// profile P(D|BB_i) is computed.
type Conditional struct {
	Executions uint64 // number of executions that make references, sampled or not
	Parallel   uint64 // number of executions in parallel regions
	References uint64 // number of references in all executions
	Accesses   uint64 // number of line accesses of these references
	Windows    uint64 // number of sampled windows

	groups [][]count // for each group of windows: counts by distance
}

// Profile returns the profile of the sampled windows, or nil if no window is sampled.
func (c *Conditional) Profile() *memory.Profile {
	if len(c.groups) == 0 {
		return nil
	}
	p := new(memory.Profile)
	for _, x := range c.sum() {
		if x.distance == stack.Cold {
			p.Cold = float64(x.n)
		} else {
			p.Spans = append(p.Spans, memory.Span{From: uint64(x.distance), To: uint64(x.distance) + 1, Accesses: float64(x.n)})
		}
	}
	return p
}

// Sampled returns the reuse profile of each block, computed from the sampled windows.
func (s *Stack) Sampled() []blocks.SampledReuse {
	list := make([]blocks.SampledReuse, len(s.Blocks))
	for b := range s.Blocks {
		c, of := &s.Blocks[b], &list[b]
		of.Executions, of.Windows = c.Executions, c.Windows
		if len(c.groups) == 0 {
			continue
		}
		for _, x := range c.sum() {
			bin := uint8(profile.SiteBin(x.distance))
			if n := len(of.Bins); x.distance == stack.Cold {
				of.Cold = x.n
			} else if n > 0 && of.Bins[n-1].Bin == bin {
				of.Bins[n-1].Count += x.n
			} else {
				of.Bins = append(of.Bins, profile.BinCount{Bin: bin, Count: x.n})
			}
		}
	}
	return list
}

// sum returns the counts of all groups together. The groups are merged in pairs.
func (c *Conditional) sum() []count {
	lists := append([][]count(nil), c.groups...)
	for len(lists) > 1 {
		half := (len(lists) + 1) / 2
		for i := range len(lists) / 2 {
			lists[i] = merge(lists[i], lists[half+i])
		}
		lists = lists[:half]
	}
	return lists[0]
}

// Counted returns the weight of each block: the block's share of the accesses on the stack. If
// all windows are sampled, the weighted profile equals the profile of the trace.
func (s *Stack) Counted() []float64 {
	list, all := make([]float64, len(s.Blocks)), 0.0
	for i := range s.Blocks {
		list[i] = float64(s.Blocks[i].Accesses)
		all += list[i]
	}
	return divide(list, all)
}

// Profile returns P(D) by eq. 4, for blocks with the given weights. The number of accesses in the
// profile is the sum of the weights. Blocks without windows are assumed to have the average profile
// of the other blocks.
func (s *Stack) Profile(weights []float64) *memory.Profile {
	var list []memory.Block
	for i, w := range weights {
		b := memory.Block{Executions: w, References: 1}
		if i < len(s.Blocks) {
			b.Reuse = s.Blocks[i].Profile()
		}
		list = append(list, b)
	}
	return memory.Mix(list)
}

// Rate is the estimated hit ratio of a cache.
type Rate struct {
	HitRate float64 // hit ratio over the blocks with windows
	// Off is the standard error of HitRate, with the finite-population correction. The error is 0
	// if all windows are sampled.
	Off     float64
	Weight  float64 // total weight of the blocks with windows; HitRate × Weight is eq. 7 as printed
	Unknown float64 // total weight of the blocks without windows
	Method  hierarchy.Method
}

// Rate estimates the hit ratio of a single cache. For a fully associative cache, the hits at each
// distance are exact. For a set-associative cache, the hits are computed with the stack distance
// cache model (eq. 5 and 6). The error is a *trace.OptionError.
func (s *Stack) Rate(weights []float64, c hierarchy.Cache) (Rate, error) {
	if err := c.Check(); err != nil {
		return Rate{}, err
	}
	if c.LineBytes != s.LineBytes {
		return Rate{}, &trace.OptionError{Option: "cache", Got: c.String(), Want: "lines of " + strconv.Itoa(int(s.LineBytes)) + " bytes, as in the sampled windows"}
	}
	r := Rate{Method: hierarchy.SDCM}
	if c.Full() {
		r.Method = hierarchy.Exact
	}
	chances := map[uint32]float64{stack.Cold: 0}
	variance := 0.0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		if i >= len(s.Blocks) || len(s.Blocks[i].groups) == 0 {
			r.Unknown += w
			continue
		}
		rate, off := s.Blocks[i].rate(&c, chances)
		r.HitRate += w * rate
		variance += w * w * off * off
		r.Weight += w
	}
	if r.Weight > 0 {
		r.HitRate /= r.Weight
		r.Off = math.Sqrt(variance) / r.Weight
	}
	return r, nil
}

// rate returns the hit ratio of one block (hits / accesses, both summed over windows), and the
// standard error of this ratio.
func (b *Conditional) rate(c *hierarchy.Cache, chances map[uint32]float64) (rate, off float64) {
	hits, accesses := make([]float64, len(b.groups)), make([]float64, len(b.groups))
	var allHits, all float64
	for g, counts := range b.groups {
		for _, x := range counts {
			p, known := chances[x.distance]
			if !known {
				p = chance(c, uint64(x.distance))
				chances[x.distance] = p
			}
			hits[g] += p * float64(x.n)
			accesses[g] += float64(x.n)
		}
		allHits += hits[g]
		all += accesses[g]
	}
	rate = allHits / all
	n := float64(len(b.groups))
	left := 1 - float64(b.Windows)/float64(b.Executions)
	if left <= 0 || n < 2 {
		return rate, 0
	}
	sum := 0.0
	for g := range hits {
		d := hits[g] - rate*accesses[g]
		sum += d * d
	}
	return rate, math.Sqrt(left*n/(n-1)*sum) / all
}

func chance(c *hierarchy.Cache, distance uint64) float64 {
	if !c.Full() {
		return hierarchy.HitProbability(distance, c.Lines(), uint64(c.Ways))
	}
	if distance < c.Lines() {
		return 1
	}
	return 0
}

// Mean returns the unweighted mean over the cores' caches, as the paper does. Idle cores are
// omitted.
func Mean(cores []Rate) Rate {
	var m Rate
	n, variance := 0.0, 0.0
	for _, r := range cores {
		if r.Weight == 0 {
			continue
		}
		n++
		m.HitRate += r.HitRate
		m.Weight += r.Weight
		m.Unknown += r.Unknown
		m.Method = r.Method
		variance += r.Off * r.Off
	}
	if n > 0 {
		m.HitRate, m.Weight, m.Unknown, m.Off = m.HitRate/n, m.Weight/n, m.Unknown/n, math.Sqrt(variance)/n
	}
	return m
}
