package profile

import (
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// In section SITE, a site is encoded as the difference from a prediction, which is based on the
// previous site. The encoding begins with a mask that marks the numbers that were mispredicted and
// the texts that changed. These numbers and texts follow the mask. Most successive sites have the
// same function, file and line. The encoding of a site, without its counts, therefore needs only a
// few bytes.

const (
	siteNumbers = 7
	siteTexts   = 5
)

// noSiteYet is the site from which the first site is predicted.
var noSiteYet = Site{Number: NoSite}

// expectedNumber returns the predicted number of the next site.
func (s *Site) expectedNumber() uint32 {
	if s.Number == NoSite {
		return NoSite
	}
	return s.Number + 1
}

// numbers returns the numbers of a site as differences from the predicted numbers.
func (s *Site) numbers(last *Site) [siteNumbers]uint64 {
	return [siteNumbers]uint64{
		uint64(s.Number - last.expectedNumber()), zigzag(int64(s.PC - last.PC)), zigzag(int64(s.Offset - last.Offset)),
		zigzag(int64(s.Line) - int64(last.Line)), zigzag(int64(s.Column) - int64(last.Column)),
		uint64(s.Kind ^ last.Kind), uint64(s.Bytes ^ last.Bytes),
	}
}

// setNumbers is the inverse of the method "numbers". It reports whether all numbers are in range.
func (s *Site) setNumbers(n *[siteNumbers]uint64, last *Site) bool {
	line, column := int64(last.Line)+unzigzag(n[3]), int64(last.Column)+unzigzag(n[4])
	kind := uint64(last.Kind) ^ n[5]
	s.Number = last.expectedNumber() + uint32(n[0])
	s.PC, s.Offset = last.PC+uint64(unzigzag(n[1])), last.Offset+uint64(unzigzag(n[2]))
	s.Line, s.Column, s.Kind, s.Bytes = uint32(line), uint32(column), trace.Kind(kind), last.Bytes^uint32(n[6])
	return (n[0]|n[6])>>32 == 0 && uint64(line|column)>>32 == 0 && kind < trace.NumKinds
}

func zigzag(d int64) uint64 { return uint64(d<<1) ^ uint64(d>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (s *Site) texts() [siteTexts]*string {
	return [siteTexts]*string{&s.Module, &s.Function, &s.File, &s.Type, &s.Variable}
}

func (s *Sites) code(c *coder) {
	c.U32(&s.LineBytes)
	objects := s.Data != nil
	c.Flags(&objects, &s.Previous)
	c.capacities = len(s.Capacities)
	if codec.Below(c.Coder, &c.capacities, MaxCapacities+1); c.Reads() && c.capacities > 0 {
		s.Capacities, s.Ways = make([]uint64, c.capacities), make([]uint32, c.capacities)
	}
	for i := range s.Capacities {
		c.U64(&s.Capacities[i])
		c.U32(&s.Ways[i])
	}
	if c.Reads() && objects {
		s.Data = []DataObject{}
	}
	c.withStrings(func() {
		last := &noSiteYet
		n := c.Length(len(s.Code), 4+2*c.capacities)
		if c.Reads() {
			s.Code = slices.Grow(s.Code, min(n, believedSites))
		}
		codec.Members(c.Coder, &s.Code, n, func(s *Site) {
			s.code(c, last)
			c.Masked(s.Strides[:])
			s.Reuse.code(c)
			last = s
		})
		codec.Slice(c.Coder, &s.Data, 11+2*c.capacities, func(o *DataObject) {
			codec.Below(c.Coder, &o.Kind, uint64(numObjectKinds))
			c.Index(&o.Number)
			c.name(&o.Name)
			c.name(&o.Function)
			c.name(&o.File)
			c.U32(&o.Line)
			c.U64s(&o.Blocks, &o.Bytes, &o.References)
			o.Reuse.code(c)
		})
	})
	c.Check(objects || len(s.Data) == 0, "the profile has data structures, although the flag for data structures is not set")
}

// believedSites is the maximum number of sites for which memory is allocated before the sites are
// read. Without this allocation, decoding would spend half of its time on growing the list.
const believedSites = 1 << 14

func (s *Site) code(c *coder, last *Site) {
	var mask uint64
	var numbers [siteNumbers]uint64
	texts, before := s.texts(), last.texts()
	if !c.Reads() {
		numbers = s.numbers(last)
		for i, n := range numbers {
			if n != 0 {
				mask |= 1 << i
			}
		}
		for i := range texts {
			if *texts[i] != *before[i] {
				mask |= 1 << (siteNumbers + i)
			}
		}
	}
	codec.Below(c.Coder, &mask, 1<<(siteNumbers+siteTexts))
	for i := range numbers {
		if mask>>i&1 != 0 {
			c.U64(&numbers[i])
		}
	}
	for i := range texts {
		if mask>>(siteNumbers+i)&1 != 0 {
			c.name(texts[i])
		} else if c.Reads() {
			*texts[i] = *before[i]
		}
	}
	if c.Reads() {
		c.Check(s.setNumbers(&numbers, last), "a site's number, line, column, kind or size is out of range")
	}
}

func (r *Reuse) code(c *coder) {
	c.U64(&r.Cold)
	c.binCounts(&r.Bins)
	c.utilisation(&r.Used)
	next := uint64(0)
	members(c, &c.before, &r.Before, c.Length(len(r.Before), 2), func(s *SiteCount) {
		codec.Next(c.Coder, &s.Site, &next, 1<<32)
		c.U64(&s.Count)
	})
}

func (s *Sites) codeCovered(c *coder) {
	codec.Members(c.Coder, &s.Covered, len(s.Code), func(r *Reuse) {
		c.U64(&r.Cold)
		c.binCounts(&r.Bins)
	})
}

// checkCovered checks that the covered accesses are accesses of their site.
func (p *Profile) checkCovered() error {
	if p.Sites == nil || p.Sites.Covered == nil {
		return nil
	}
	s := p.Sites
	ok := len(s.Covered) == len(s.Code)
	for i := 0; ok && i < len(s.Code); i++ {
		all, next := &s.Code[i].Reuse, 0
		ok = s.Covered[i].Cold <= all.Cold
		for _, b := range s.Covered[i].Bins {
			for next < len(all.Bins) && all.Bins[next].Bin < b.Bin {
				next++
			}
			ok = ok && b.Count > 0 && next < len(all.Bins) && all.Bins[next].Bin == b.Bin && b.Count <= all.Bins[next].Count
			next++
		}
	}
	if !ok {
		return &CheckError{"the accesses that a prefetcher covers are not accesses of their site"}
	}
	return nil
}

func (c *coder) utilisation(list *[]Utilisation) {
	members(c, &c.used, list, c.capacities, func(u *Utilisation) { c.U64s(&u.Fetched, &u.BytesUsed) })
}

// binCounts encodes or decodes ascending bins as differences between successive bins.
func (c *coder) binCounts(list *[]BinCount) {
	next := uint64(0)
	members(c, &c.bins, list, c.Length(len(*list), 2), func(b *BinCount) {
		codec.Next(c.Coder, &b.Bin, &next, SiteBins)
		c.U64(&b.Count)
	})
}

// members encodes or decodes the elements of a list. While reading, it allocates the list in the
// slice "room".
func members[T any](c *coder, room, list *[]T, n int, member func(*T)) {
	if !c.Reads() {
		codec.Members(c.Coder, list, n, member)
		return
	}
	from := len(*room)
	codec.Members(c.Coder, room, n, member)
	*list, *room = cutList(*room, from)
}

// cutList returns the elements of a list from an index onwards, and the list to which further
// elements are appended. If the list is long, cutList begins a new list.
func cutList[T any](list []T, from int) (part, rest []T) {
	const longList = 1 << 14
	if part = list[from:len(list):len(list)]; len(part) == 0 {
		return nil, list
	}
	if len(list) > longList {
		return part, nil
	}
	return part, list
}

// check checks that the counts of all sites add up exactly to the histogram for the same line
// size, in each bin and in the number of first accesses. It checks the counts of the objects in the
// same way. In a sampled profile, only the total number of accesses must be exact.
func (s *Sites) check(p *Profile) error {
	l := p.LocalityAt(s.LineBytes)
	switch {
	case l == nil:
		return &CheckError{"the sites have a line size without a histogram"}
	case !s.inOrder():
		return &CheckError{"the sites or data objects are out of order"}
	}
	for i := range s.Code {
		if err := s.checkReuse(&s.Code[i].Reuse, s.Code[i].Strides[:]); err != nil {
			return err
		}
	}
	for i := range s.Data {
		if err := s.checkReuse(&s.Data[i].Reuse, []uint64{s.Data[i].References}); err != nil {
			return err
		}
	}
	if p.Sampled.Chosen() {
		return s.checkTotals(l)
	}
	return s.checkSums(l, p.Totals.AllReferences())
}

// checkTotals checks that the total number of accesses is exact. The total is exact even if
// distances are estimated.
func (s *Sites) checkTotals(l *Locality) error {
	var code, data counter
	for i := range s.Code {
		code.add(s.Code[i].Reuse.Accesses())
	}
	for i := range s.Data {
		data.add(s.Data[i].Reuse.Accesses())
	}
	if code.over || data.over || code.n != l.Accesses() || s.Data != nil && data.n != l.Accesses() {
		return &CheckError{"the accesses of the sites or data objects do not add up to the accesses of the whole trace"}
	}
	return nil
}

func (s *Sites) inOrder() bool {
	ordered := len(s.Capacities) <= MaxCapacities && len(s.Ways) == len(s.Capacities)
	for i := 0; i < len(s.Capacities) && ordered; i++ {
		lines := s.Capacities[i]
		ordered = ValidUtilisation(lines, s.Ways[i]) && (i == 0 ||
			s.Capacities[i-1] < lines || s.Capacities[i-1] == lines && s.Ways[i-1] < s.Ways[i])
	}
	return ordered && ascending(s.Code, CompareSites) && ascending(s.Data, CompareObjects)
}

// ValidUtilisation reports whether line utilisation can be measured in a cache. The cache must be
// fully associative (0 ways), or have at most 2^24 lines and at most 1,024 ways, and the number of
// ways must divide the number of lines.
func ValidUtilisation(lines uint64, ways uint32) bool {
	if ways == 0 {
		return lines > 0
	}
	return lines <= 1<<24 && ways <= 1<<10 && uint64(ways) < lines && lines%uint64(ways) == 0
}

// checkReuse checks the counts of a site or object that makes the given numbers of references.
func (s *Sites) checkReuse(r *Reuse, references []uint64) error {
	all, far := counter{n: r.Cold}, counter{}
	made := counter{}
	for _, n := range references {
		made.add(n)
	}
	for i, b := range r.Bins {
		if b.Count == 0 || b.Bin >= SiteBins || i > 0 && r.Bins[i-1].Bin >= b.Bin {
			return &CheckError{"a site's bins are out of order"}
		}
		all.add(b.Count)
		if int(b.Bin) >= SiteBin(PreviousFrom) {
			far.add(b.Count)
		}
	}
	if all.over || made.over || made.n > all.n {
		return &CheckError{"a site has more references than accesses, or the number of its references exceeds 64 bits"}
	}
	if len(r.Used) != len(s.Capacities) {
		return &CheckError{"a site and the profile have utilisation counts for different numbers of caches"}
	}
	for i, u := range r.Used {
		low, high := r.Cold, all.n
		if s.Ways[i] == 0 {
			low, high = r.missBounds(s.Capacities[i])
		}
		if !u.fits(low, high, s.LineBytes) {
			return &CheckError{"the line utilisation of a site is inconsistent with its distances"}
		}
	}
	return s.checkBefore(r, far.n)
}

// fits reports whether the number of fetched lines is in the range from low to high, and whether
// the number of used bytes is possible for these lines.
func (u Utilisation) fits(low, high uint64, lineBytes uint32) bool {
	whole := u.BytesUsed / uint64(lineBytes)
	return u.Fetched >= low && u.Fetched <= high && (whole < u.Fetched || whole == u.Fetched && u.BytesUsed%uint64(lineBytes) == 0)
}

// missBounds returns the smallest and the largest number of misses that the bins permit at a
// capacity.
func (r *Reuse) missBounds(capacityLines uint64) (low, high uint64) {
	low = r.Cold
	for _, b := range r.Bins {
		if SiteBinFrom(int(b.Bin)) >= capacityLines {
			low += b.Count
		}
	}
	return low, r.Misses(capacityLines)
}

func (s *Sites) checkBefore(r *Reuse, far uint64) error {
	var sum counter
	for i, c := range r.Before {
		if c.Count == 0 || int64(c.Site) >= int64(len(s.Code)) || i > 0 && r.Before[i-1].Site >= c.Site {
			return &CheckError{"the list of sites that previously accessed a line is out of order, or contains an unknown site"}
		}
		sum.add(c.Count)
	}
	if sum.over || s.Previous && sum.n != far || !s.Previous && sum.n != 0 {
		return &CheckError{"the counts of previous accesses do not add up to the accesses of a site"}
	}
	return nil
}

// counter is a 64-bit sum that detects an overflow.
type counter struct {
	n    uint64
	over bool
}

func (c *counter) add(n uint64) {
	c.n += n
	c.over = c.over || c.n < n
}

// siteSums contains sums over sites or objects.
type siteSums struct {
	bins       [SiteBins]counter
	cold       counter
	references counter
}

func (t *siteSums) add(r *Reuse, references uint64) {
	t.references.add(references)
	t.cold.add(r.Cold)
	for _, b := range r.Bins {
		t.bins[b.Bin].add(b.Count)
	}
}

func (s *Sites) checkSums(l *Locality, references uint64) error {
	var want, code, data siteSums
	want.references.n = references
	want.cold.n = l.Lines()
	for i := range l.Kinds {
		for d, n := range l.Kinds[i].Distances.All() {
			want.bins[SiteBin(uint32(d))].add(n)
		}
	}
	for i := range s.Code {
		code.add(&s.Code[i].Reuse, s.Code[i].References())
	}
	for i := range s.Data {
		data.add(&s.Data[i].Reuse, s.Data[i].References)
	}
	if code != want || s.Data != nil && data != want {
		return &CheckError{"the sites or data objects do not add up to the histogram"}
	}
	return nil
}
