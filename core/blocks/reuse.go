package blocks

import "github.com/stackglass/stackglass/core/profile"

// Reuse is the conditional reuse profile P(Δ|block) of a block (MODELS §13.2): the
// distances at which its references found their lines.
type Reuse struct {
	References uint64
	// Reuse has distances in bins, see [profile.SiteBin]: misses of caches at the edge of a
	// bin are exact.
	profile.Reuse
}

// Misses are those in a fully associative LRU cache of so many lines, where that is the
// edge of a bin, as powers of two are; else a little more.
func (r *Reuse) Misses(lines uint64) uint64 {
	n := r.Cold
	for _, b := range r.Bins {
		if b.Count > 0 && profile.SiteBinFrom(int(b.Bin)+1) > lines {
			n += b.Count
		}
	}
	return n
}

// Reuse gives it for every block of the run: what the block's sites tell together, for
// each reference is of one site, and each site in one block.
func (r *Run) Reuse(s *profile.Sites) []Reuse {
	blocks := make([]Reuse, len(r.Program.Blocks))
	for i := range s.Code {
		site := &s.Code[i]
		if uint64(site.Number) >= uint64(len(r.Program.Sites)) {
			continue
		}
		b := r.Program.Sites[site.Number].Block
		if uint64(b) >= uint64(len(blocks)) {
			continue
		}
		of := &blocks[b]
		of.References += site.References()
		of.Cold += site.Reuse.Cold
		of.Bins = addBins(of.Bins, site.Reuse.Bins)
	}
	return blocks
}

// addBins merges two lists of bins.
func addBins(a, b []profile.BinCount) []profile.BinCount {
	if len(a) == 0 {
		return append(a, b...)
	}
	sum := make([]profile.BinCount, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x.Bin < y.Bin:
			sum, a = append(sum, x), a[1:]
		case y.Bin < x.Bin:
			sum, b = append(sum, y), b[1:]
		default:
			x.Count += y.Count
			sum, a, b = append(sum, x), a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}
