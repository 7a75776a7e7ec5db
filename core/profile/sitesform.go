package profile

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// In section SITE a site is written as what tells it from the one before: a mask,
// whose first bits are of numbers that are not as expected and whose others of
// texts that are not the same, and then these. Most neighbours are of the same
// function, file and line, so that a site takes a few bytes besides its counts.

const (
	siteNumbers  = 7
	siteTexts    = 5
	objectsFlag  = 1 // of section SITE
	previousFlag = 2
)

// noSiteYet is what the first site is told from.
var noSiteYet = Site{Number: NoSite}

// expectedNumber is the number of the site behind s, most often.
func (s *Site) expectedNumber() uint32 {
	if s.Number == NoSite {
		return NoSite
	}
	return s.Number + 1
}

// numbers gives the numbers of a site as differences, 0 where they are as
// expected.
func (s *Site) numbers(last *Site) [siteNumbers]uint64 {
	return [siteNumbers]uint64{
		uint64(s.Number - last.expectedNumber()), zigzag(int64(s.PC - last.PC)), zigzag(int64(s.Offset - last.Offset)),
		zigzag(int64(s.Line) - int64(last.Line)), zigzag(int64(s.Column) - int64(last.Column)),
		uint64(s.Kind ^ last.Kind), uint64(s.Bytes ^ last.Bytes),
	}
}

// setNumbers is the way back; it reports whether all are in range.
func (s *Site) setNumbers(n *[siteNumbers]uint64, last *Site) bool {
	line, column := int64(last.Line)+unzigzag(n[3]), int64(last.Column)+unzigzag(n[4])
	kind := uint64(last.Kind) ^ n[5]
	s.Number = last.expectedNumber() + uint32(n[0])
	s.PC, s.Offset = last.PC+uint64(unzigzag(n[1])), last.Offset+uint64(unzigzag(n[2]))
	s.Line, s.Column, s.Kind, s.Bytes = uint32(line), uint32(column), trace.Kind(kind), last.Bytes^uint32(n[6])
	return (n[0]|n[6])>>32 == 0 && uint64(line|column)>>32 == 0 && kind < trace.NumKinds
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (s *Site) texts() [siteTexts]*string {
	return [siteTexts]*string{&s.Module, &s.Function, &s.File, &s.Type, &s.Variable}
}

func (s *Sites) encode(b []byte) []byte {
	body := packer{names: stringTable{number: map[string]uint64{}}}
	body.sites(s.Code)
	body.objects(s.Data)
	w := packer{out: b}
	var flags uint64
	if s.Data != nil {
		flags |= objectsFlag
	}
	if s.Previous {
		flags |= previousFlag
	}
	w.uint(uint64(s.LineBytes))
	w.uint(flags)
	w.uint(uint64(len(s.Capacities)))
	for i, c := range s.Capacities {
		w.uint(c)
		w.uint(uint64(s.Ways[i]))
	}
	w.uint(uint64(len(body.names.list)))
	for _, name := range body.names.list {
		w.out = appendString(w.out, name)
	}
	return append(w.out, body.out...)
}

func (w *packer) sites(list []Site) {
	w.uint(uint64(len(list)))
	last := &noSiteYet
	for i := range list {
		s := &list[i]
		w.site(s, last)
		w.masked(s.Strides[:])
		w.reuse(&s.Reuse)
		last = s
	}
}

// site writes what tells s from the site before.
func (w *packer) site(s, last *Site) {
	numbers, texts, before := s.numbers(last), s.texts(), last.texts()
	var mask uint64
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
	w.uint(mask)
	for _, n := range numbers {
		if n != 0 {
			w.uint(n)
		}
	}
	for i := range texts {
		if *texts[i] != *before[i] {
			w.name(*texts[i])
		}
	}
}

// masked writes a mask of the counts that are not zero, then those.
func (w *packer) masked(counts []uint64) {
	var mask uint64
	for i, n := range counts {
		if n != 0 {
			mask |= 1 << i
		}
	}
	w.uint(mask)
	for _, n := range counts {
		if n != 0 {
			w.uint(n)
		}
	}
}

func (w *packer) reuse(r *Reuse) {
	w.uint(r.Cold)
	w.binCounts(r.Bins)
	w.used(r.Used)
	w.uint(uint64(len(r.Before)))
	site := uint32(0)
	for _, c := range r.Before {
		w.uint(uint64(c.Site - site))
		w.uint(c.Count)
		site = c.Site + 1
	}
}

func (w *packer) used(list []Utilisation) {
	for _, u := range list {
		w.uint(u.Fetched)
		w.uint(u.BytesUsed)
	}
}

// binCounts writes ascending bins as differences.
func (w *packer) binCounts(list []BinCount) {
	w.uint(uint64(len(list)))
	next := uint8(0)
	for _, b := range list {
		w.uint(uint64(b.Bin - next))
		w.uint(b.Count)
		next = b.Bin + 1
	}
}

func (w *packer) objects(list []DataObject) {
	w.uint(uint64(len(list)))
	for i := range list {
		o := &list[i]
		w.uint(uint64(o.Kind))
		w.uint(uint64(o.Number + 1)) // NoSite is 0
		w.name(o.Name)
		w.name(o.Function)
		w.name(o.File)
		w.uint(uint64(o.Line))
		w.uint(o.Blocks)
		w.uint(o.Bytes)
		w.uint(o.References)
		w.reuse(&o.Reuse)
	}
}

// sitesReader reads the section.
type sitesReader struct {
	*Decoder
	names      []string
	capacities int
	bins       []BinCount // room for those of the next sites, so that they are no million small slices
	used       []Utilisation
	before     []SiteCount
}

func decodeSites(d *Decoder) *Sites {
	r := sitesReader{Decoder: d}
	s := &Sites{LineBytes: r.number32()}
	flags := r.UintBelow(2 * previousFlag)
	s.Previous = flags&previousFlag != 0
	for range r.Length(2) {
		s.Capacities, s.Ways = append(s.Capacities, r.Uint()), append(s.Ways, r.number32())
	}
	if r.capacities = len(s.Capacities); r.capacities > MaxCapacities {
		r.fail("utilisation for more capacities than there can be")
		return nil
	}
	r.names = make([]string, r.Length(1))
	for i := range r.names {
		r.names[i] = r.String()
	}
	s.Code = r.sites()
	s.Data = r.objects()
	if flags&objectsFlag == 0 {
		if len(s.Data) > 0 {
			r.fail("data objects where there are none")
		}
		s.Data = nil
	}
	return s
}

func (r *sitesReader) name() string {
	if i := r.UintBelow(uint64(len(r.names))); r.err == nil {
		return r.names[i]
	}
	return ""
}

// believedSites is how many sites are given memory before they were read: they take
// much, and to move them as they become more took half of the time.
const believedSites = 1 << 14

func (r *sitesReader) sites() (list []Site) {
	last := &noSiteYet
	n := r.Length(4 + 2*r.capacities)
	list = slices.Grow(list, min(n, believedSites))
	for range n {
		s := *last
		r.site(&s, last)
		mask := r.UintBelow(1 << NumStrides)
		for c := range s.Strides {
			s.Strides[c] = 0
			if mask>>c&1 != 0 {
				s.Strides[c] = r.Uint()
			}
		}
		s.Reuse = r.reuse()
		if r.err != nil {
			return nil
		}
		list = append(list, s)
		last = &list[len(list)-1]
	}
	return list
}

func (r *sitesReader) site(s, last *Site) {
	mask := r.UintBelow(1 << (siteNumbers + siteTexts))
	var numbers [siteNumbers]uint64
	for i := range numbers {
		if mask>>i&1 != 0 {
			numbers[i] = r.Uint()
		}
	}
	if !s.setNumbers(&numbers, last) {
		r.fail("a site's number, line, column, kind or size out of range")
	}
	for i, text := range s.texts() {
		if mask>>(siteNumbers+i)&1 != 0 {
			*text = r.name()
		}
	}
}

func (r *sitesReader) reuse() (u Reuse) {
	u.Cold, u.Bins, u.Used = r.Uint(), r.binCounts(), r.utilisation()
	from := len(r.before)
	site := uint64(0)
	for range r.Length(2) {
		site += r.UintBelow(1<<32 - site)
		r.before = append(r.before, SiteCount{uint32(site), r.Uint()})
		if site++; r.err != nil {
			break
		}
	}
	u.Before, r.before = taken(r.before, from)
	return u
}

// utilisation reads that of each capacity.
func (r *sitesReader) utilisation() (list []Utilisation) {
	from := len(r.used)
	for range r.capacities {
		r.used = append(r.used, Utilisation{r.Uint(), r.Uint()})
	}
	list, r.used = taken(r.used, from)
	return list
}

// binCounts reads what packer.binCounts wrote.
func (r *sitesReader) binCounts() (list []BinCount) {
	from, bin := len(r.bins), uint64(0)
	for range r.Length(2) {
		bin += r.UintBelow(SiteBins - bin)
		r.bins = append(r.bins, BinCount{uint8(bin), r.Uint()})
		if bin++; r.err != nil {
			break
		}
	}
	list, r.bins = taken(r.bins, from)
	return list
}

// taken gives what was appended to list from index from on, and the list to go
// on with: a new one when this one is long.
func taken[T any](list []T, from int) (part, rest []T) {
	const longList = 1 << 14
	if part = list[from:len(list):len(list)]; len(part) == 0 {
		return nil, list
	}
	if len(list) > longList {
		return part, nil
	}
	return part, list
}

func (r *sitesReader) objects() []DataObject {
	list := []DataObject{}
	for range r.Length(11 + 2*r.capacities) {
		o := DataObject{
			Kind: ObjectKind(r.UintBelow(uint64(numObjectKinds))), Number: r.number32() - 1,
			Name: r.name(), Function: r.name(), File: r.name(), Line: r.number32(),
			Blocks: r.Uint(), Bytes: r.Uint(), References: r.Uint(), Reuse: r.reuse(),
		}
		if r.err != nil {
			return nil
		}
		list = append(list, o)
	}
	return list
}

// checkSites tests what ties the sites to the histogram of their line size: each
// bin, and the first accesses, add up to it exactly, by sites as by objects.
func (p *Profile) checkSites() error {
	s := p.Sites
	if s == nil {
		return nil
	}
	l := p.LocalityAt(s.LineBytes)
	switch {
	case l == nil:
		return &CheckError{"its sites are of a line size without a histogram"}
	case !s.inOrder():
		return &CheckError{"its sites or data objects are out of order"}
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

// checkTotals tests what holds where the distances of sites are estimates: all their
// accesses are known.
func (s *Sites) checkTotals(l *Locality) error {
	var code, data counter
	for i := range s.Code {
		code.add(s.Code[i].Reuse.Accesses())
	}
	for i := range s.Data {
		data.add(s.Data[i].Reuse.Accesses())
	}
	if code.over || data.over || code.n != l.Accesses() || s.Data != nil && data.n != l.Accesses() {
		return &CheckError{"its sites or data objects have other accesses than the whole trace"}
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
	for i := 1; i < len(s.Code); i++ {
		ordered = ordered && CompareSites(&s.Code[i-1], &s.Code[i]) < 0
	}
	for i := 1; i < len(s.Data); i++ {
		ordered = ordered && CompareObjects(&s.Data[i-1], &s.Data[i]) < 0
	}
	return ordered
}

// ValidUtilisation reports whether utilisation can be measured for a cache: its
// ways, 0 where it is fully associative, have to divide its lines, and those in
// sets are at most 2^24, in sets of at most 1,024.
func ValidUtilisation(lines uint64, ways uint32) bool {
	if ways == 0 {
		return lines > 0
	}
	return lines <= 1<<24 && ways <= 1<<10 && uint64(ways) < lines && lines%uint64(ways) == 0
}

// checkReuse tests the numbers of one site or object, which made references.
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
		return &CheckError{"a site has more references than accesses, or more than can be counted"}
	}
	if len(r.Used) != len(s.Capacities) {
		return &CheckError{"a site's utilisation is of other capacities"}
	}
	for i, u := range r.Used {
		low, high := r.Cold, all.n
		if s.Ways[i] == 0 {
			low, high = r.missBounds(s.Capacities[i])
		}
		if !u.fits(low, high, s.LineBytes) {
			return &CheckError{"a site's utilisation does not fit its distances"}
		}
	}
	return s.checkBefore(r, far.n)
}

// fits reports whether Fetched is from low to high, and BytesUsed is possible for that many
// lines of lineBytes.
func (u Utilisation) fits(low, high uint64, lineBytes uint32) bool {
	whole := u.BytesUsed / uint64(lineBytes)
	return u.Fetched >= low && u.Fetched <= high && (whole < u.Fetched || whole == u.Fetched && u.BytesUsed%uint64(lineBytes) == 0)
}

// missBounds gives the least and the most misses at a capacity that the bins
// allow.
func (r *Reuse) missBounds(capacityLines uint64) (low, high uint64) {
	low, high = r.Cold, r.Cold
	for _, b := range r.Bins {
		if SiteBinFrom(int(b.Bin)) >= capacityLines {
			low += b.Count
		}
		if SiteBinFrom(int(b.Bin)+1) > capacityLines {
			high += b.Count
		}
	}
	return low, high
}

func (s *Sites) checkBefore(r *Reuse, far uint64) error {
	var sum counter
	for i, c := range r.Before {
		if c.Count == 0 || int64(c.Site) >= int64(len(s.Code)) || i > 0 && r.Before[i-1].Site >= c.Site {
			return &CheckError{"the sites that were before a site are out of order or unknown"}
		}
		sum.add(c.Count)
	}
	if sum.over || s.Previous && sum.n != far || !s.Previous && sum.n != 0 {
		return &CheckError{"the sites that were before a site do not add up"}
	}
	return nil
}

// counter is a sum that notes when it is beyond 64 bits.
type counter struct {
	n    uint64
	over bool
}

func (c *counter) add(n uint64) {
	c.n += n
	c.over = c.over || c.n < n
}

// siteSums are what sites or objects add up to.
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
		return &CheckError{"its sites or data objects do not add up to the histogram"}
	}
	return nil
}
