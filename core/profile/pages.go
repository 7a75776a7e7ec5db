package profile

import (
	"strconv"

	"github.com/stackglass/stackglass/core/codec"
)

// PageSizes lists the page sizes of [Profile.Pages], in bytes.
var PageSizes = [...]uint64{4 << 10, 2 << 20, 1 << 30}

// LeastEntries is the smallest number of entries of a TLB whose misses follow from [Pages]. Shorter
// distances are counted as distance 0.
const LeastEntries = 8

// Pages contains the stack distances of data pages for one page size (MODELS §2.2). Each thread has
// its own stack.
type Pages struct {
	PageBytes uint64
	Accesses  uint64    // number of page accesses
	Cold      uint64    // number of first accesses of a thread to a page
	Distances Histogram // number of accesses at each stack distance that is at least LeastEntries
}

// Locality returns the counts in the form of a line size whose lines are pages. All accesses are
// counted as loads, and distances below LeastEntries as 0.
func (s *Pages) Locality() Locality {
	counts := KindLocality{Cold: s.Cold}
	counts.Distances.Merge(&s.Distances)
	counts.Distances.AddN(0, s.Accesses-s.Cold-s.Distances.Total())
	return Locality{LineBytes: uint32(s.PageBytes), Kinds: []KindLocality{counts}}
}

// PagesAt returns the counts for a page size, or nil.
func (p *Profile) PagesAt(bytes uint64) *Pages {
	for i := range p.Pages {
		if p.Pages[i].PageBytes == bytes {
			return &p.Pages[i]
		}
	}
	return nil
}

func (p *Profile) codePages(c *coder) {
	codec.Bounded(c.Coder, &p.Pages, len(PageSizes), func(s *Pages) {
		c.U64s(&s.PageBytes, &s.Accesses, &s.Cold)
		c.most = MaxDistance
		s.Distances.code(c)
	})
}

// checkPages returns an error if no run can have these counts.
func (p *Profile) checkPages() error {
	if len(p.Pages) > 0 && len(p.Pages) != len(PageSizes) {
		return &CheckError{"the profile does not contain all page sizes"}
	}
	for i := range p.Pages {
		s := &p.Pages[i]
		at := "at pages of " + strconv.FormatUint(s.PageBytes, 10) + " bytes "
		ok := s.PageBytes == PageSizes[i] && s.Cold <= s.Accesses && s.Accesses < 1<<63
		left := s.Accesses - s.Cold
		for d, count := range s.Distances.All() {
			if ok = ok && d >= LeastEntries && d < s.Cold && count <= left; !ok {
				break
			}
			left -= count
		}
		if !ok || i > 0 && (s.Cold > p.Pages[i-1].Cold || s.Accesses > p.Pages[i-1].Accesses) {
			return &CheckError{at + "the counts are not consistent"}
		}
	}
	return nil
}
