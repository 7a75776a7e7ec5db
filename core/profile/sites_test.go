package profile_test

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// withSites returns the test profile with sites and data objects that add up to its counts.
func withSites() *profile.Profile {
	p := testProfile(false)
	used := func(fetched, bytes uint64) []profile.Utilisation { return []profile.Utilisation{{fetched, bytes}} }
	p.Sites = &profile.Sites{
		LineBytes: 64, Capacities: []uint64{512}, Ways: []uint32{0}, Previous: true,
		Code: []profile.Site{
			{Number: 0, PC: 0x401000, Module: "a.out", Offset: 0x1000, Function: "main", File: "a.c", Line: 7, Column: 3, Bytes: 8, Type: "double", Variable: "x",
				Strides: [profile.NumStrides]uint64{0, 0, 0, 1},
				Reuse:   profile.Reuse{Cold: 1, Used: used(1, 8)}},
			{Number: 5, PC: 0x400ff0, Module: "a.out", Offset: 0xff0, Function: "main", File: "a.c", Line: 5, Kind: trace.Store, Bytes: 4,
				Reuse: profile.Reuse{Cold: 1, Bins: []profile.BinCount{{Bin: 1, Count: 2}}, Used: used(1, 64)}},
			{Number: profile.NoSite, PC: 12, Strides: [profile.NumStrides]uint64{1, 0, 0, 0},
				Reuse: profile.Reuse{Bins: []profile.BinCount{{Bin: 1, Count: 1}}, Used: used(0, 0)}},
		},
		Data: []profile.DataObject{
			{Kind: profile.HeapObject, Number: 9, Function: "main", File: "a.c", Line: 2, Blocks: 2, Bytes: 100, References: 2,
				Reuse: profile.Reuse{Cold: 1, Bins: []profile.BinCount{{Bin: 1, Count: 3}}, Used: used(1, 3)}},
			{Kind: profile.OtherObject, Number: profile.NoSite, Reuse: profile.Reuse{Cold: 1, Used: used(1, 1)}},
		},
	}
	p.Sites.Covered = []profile.Reuse{{Cold: 1}, {Bins: []profile.BinCount{{Bin: 1, Count: 2}}}, {}}
	return p
}

// withLongDistance changes p so that one access, by the third site to the first object, has a long
// stack distance.
func withLongDistance(p *profile.Profile) *profile.Profile {
	p.Locality[0].Kinds[0].Distances = profile.Histogram{}
	p.Locality[0].Kinds[0].Distances.AddN(1, 2)
	p.Locality[0].Kinds[0].Cold = 40
	p.Locality[0].Kinds[0].Distances.AddN(30, 1)
	p.Locality[0].Windows.Rows[0] = profile.WindowRow{1: 2, 5: 1, profile.ColdBin: 40}
	c, d := p.Sites.Code, p.Sites.Data
	c[0].Reuse.Cold, d[0].Reuse.Cold = 39, 39
	c[0].Reuse.Used[0].Fetched, d[0].Reuse.Used[0].Fetched = 39, 39
	c[2].Reuse.Bins[0].Bin = uint8(profile.SiteBin(30))
	c[2].Reuse.Before = []profile.SiteCount{{Site: 1, Count: 1}}
	d[0].Reuse.Bins = []profile.BinCount{{Bin: 1, Count: 2}, {Bin: uint8(profile.SiteBin(30)), Count: 1}}
	d[0].Reuse.Before = c[2].Reuse.Before
	return p
}

func TestSitesSurviveEncoding(t *testing.T) {
	for name, p := range map[string]*profile.Profile{"near": withSites(), "far": withLongDistance(withSites())} {
		data := p.Encode()
		got, err := profile.Decode(data)
		if err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Equal(got.Encode(), data) {
			t.Errorf("%s: decoding and encoding changes the bytes", name)
		}
		site := got.Sites.Code[1]
		if site.Number != 5 || site.PC != 0x400ff0 || site.Offset != 0xff0 || site.Module != "a.out" || site.File != "a.c" || site.Line != 5 || site.Variable != "" || site.Kind != trace.Store {
			t.Errorf("%s: the second site is %+v", name, site)
		}
		if !reflect.DeepEqual(got.Sites.Covered, p.Sites.Covered) {
			t.Errorf("%s: the covered accesses are %+v, want %+v", name, got.Sites.Covered, p.Sites.Covered)
		}
		if o := got.Sites.Data[1]; o.Number != profile.NoSite || o.Kind != profile.OtherObject {
			t.Errorf("%s: the second object is %+v", name, o)
		}
	}
}

func TestCheckSites(t *testing.T) {
	for name, breakIt := range map[string]func(s *profile.Sites){
		"line size":            func(s *profile.Sites) { s.LineBytes = 32 },
		"order of sites":       func(s *profile.Sites) { s.Code[0].Number = 6 },
		"same site":            func(s *profile.Sites) { s.Code[1] = s.Code[0] },
		"order of objects":     func(s *profile.Sites) { s.Data[1].Kind, s.Data[1].Number = profile.HeapObject, 8 },
		"capacities":           func(s *profile.Sites) { s.Capacities = []uint64{0} },
		"ways":                 func(s *profile.Sites) { s.Ways = []uint32{512} },
		"a bin":                func(s *profile.Sites) { s.Code[1].Reuse.Bins[0].Count++ },
		"an empty bin":         func(s *profile.Sites) { s.Code[0].Reuse.Bins = []profile.BinCount{{Bin: 3}} },
		"cold":                 func(s *profile.Sites) { s.Code[1].Reuse.Cold++ },
		"references":           func(s *profile.Sites) { s.Code[1].Strides[0]++ },
		"objects' bins":        func(s *profile.Sites) { s.Data[0].Reuse.Bins[0].Count++ },
		"objects' references":  func(s *profile.Sites) { s.Data[1].References++ },
		"too many bytes used":  func(s *profile.Sites) { s.Code[1].Reuse.Used[0].BytesUsed++ },
		"too few fetched":      func(s *profile.Sites) { s.Code[0].Reuse.Used[0].Fetched = 0 },
		"too many fetched":     func(s *profile.Sites) { s.Code[0].Reuse.Used[0].Fetched = 4 },
		"before":               func(s *profile.Sites) { s.Code[1].Reuse.Before = []profile.SiteCount{{Site: 0, Count: 1}} },
		"covered sites":        func(s *profile.Sites) { s.Covered = s.Covered[:2] },
		"covered cold":         func(s *profile.Sites) { s.Covered[0].Cold++ },
		"covered count":        func(s *profile.Sites) { s.Covered[1].Bins[0].Count++ },
		"empty covered bin":    func(s *profile.Sites) { s.Covered[1].Bins[0].Count = 0 },
		"covered bin":          func(s *profile.Sites) { s.Covered[1].Bins[0].Bin = 2 },
		"covered bins":         func(s *profile.Sites) { s.Covered[1].Bins = append(s.Covered[1].Bins, s.Covered[1].Bins[0]) },
		"a sum that overflows": func(s *profile.Sites) { s.Code[1].Reuse.Bins[0].Count = math.MaxUint64 },
	} {
		p := withSites()
		breakIt(p.Sites)
		checkInvalid(t, name, p)
	}
	for name, breakIt := range map[string]func(s *profile.Sites){
		"no previous sites": func(s *profile.Sites) { s.Code[2].Reuse.Before = nil },
		"wrong sum":         func(s *profile.Sites) { s.Code[2].Reuse.Before[0].Count++ },
		"unknown site":      func(s *profile.Sites) { s.Code[2].Reuse.Before[0].Site = 3 },
		"not requested":     func(s *profile.Sites) { s.Previous = false },
	} {
		p := withLongDistance(withSites())
		if breakIt(p.Sites); p.Check() == nil {
			t.Errorf("Reuse.Before, %s: Check() = nil, want an error", name)
		}
	}
}

// TestCoverage checks the share of misses that a prefetcher covers, for caches of several sizes.
func TestCoverage(t *testing.T) {
	s := withSites().Sites
	for _, c := range []struct {
		sites []int
		lines uint64
		share float64
		ok    bool
	}{
		{[]int{0}, 512, 1, true}, {[]int{1}, 512, 0, true}, {[]int{1}, 1, 2. / 3, true}, {[]int{0, 1, 2}, 1, 3. / 5, true},
		{[]int{2}, 512, 0, false}, {nil, 1, 0, false},
	} {
		if share, ok := s.Coverage(c.sites, c.lines); ok != c.ok || share != c.share {
			t.Errorf("sites %v, %d lines: %v, %v, want %v, %v", c.sites, c.lines, share, ok, c.share, c.ok)
		}
	}
	s.Covered = nil
	if share, ok := s.Coverage([]int{0}, 1); ok || share != 0 {
		t.Errorf("earlier version: %v, %v, want an unknown share", share, ok)
	}
}

// withCoherentSites returns the profile of withSharing with sites. All accesses by thread 1 belong
// to the first site, and all accesses by thread 7 to the second site.
func withCoherentSites() *profile.Profile {
	p := withSharing()
	used := func(fetched, bytes uint64) []profile.Utilisation { return []profile.Utilisation{{fetched, bytes}} }
	bins := func(n uint64) []profile.BinCount { return []profile.BinCount{{Bin: 1, Count: n}} }
	p.Sites = &profile.Sites{LineBytes: 64, Capacities: []uint64{2}, Ways: []uint32{0},
		Code: []profile.Site{
			{Number: 0, Strides: [profile.NumStrides]uint64{0, 0, 0, 1}, Reuse: profile.Reuse{Cold: 2, Bins: bins(1), Used: used(2, 8)}},
			{Number: 1, Kind: trace.Store, Strides: [profile.NumStrides]uint64{0, 0, 0, 1}, Reuse: profile.Reuse{Bins: bins(2), Used: used(0, 0)}},
		},
		Coherent: &profile.CoherentSites{Measured: true, Code: []profile.CoherentReuse{
			{Cold: 2, Bins: bins(1), Used: used(2, 8)}, {Cold: 2, Used: used(2, 64)},
		}},
	}
	return p
}

func TestCoherentSitesSurviveEncoding(t *testing.T) {
	p := withCoherentSites()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	// Replace an access at some distance with a coherence miss, which does not change the number of
	// accesses.
	c := &p.Sharing[0].Cores[0].Coherent
	c.Distances, c.Sets, c.Invalidations = profile.Histogram{}, profile.SetTable{}, 2
	c.Lost.Add(1)
	p.Sites.Coherent.Code[0].Bins, p.Sites.Coherent.Code[0].Lost = nil, []profile.BinCount{{Bin: 1, Count: 1}}
	p.Sites.Coherent.Code[0].Used[0].Fetched = 3
	data := p.Encode()
	got, err := profile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Encode(), data) || !reflect.DeepEqual(got.Sites.Coherent, p.Sites.Coherent) {
		t.Errorf("the decoded coherent sites are %+v, want %+v", got.Sites.Coherent, p.Sites.Coherent)
	}
	if p.Sites.Coherent = nil; bytes.Equal(p.Encode(), data) || p.Check() != nil {
		t.Error("a profile without coherent sites is invalid, or equals the profile with coherent sites")
	}
}

func TestCheckCoherentSites(t *testing.T) {
	for name, breakIt := range map[string]func(p *profile.Profile, c *profile.CoherentSites){
		"no cores":        func(p *profile.Profile, _ *profile.CoherentSites) { p.Sharing = nil },
		"other sites":     func(_ *profile.Profile, c *profile.CoherentSites) { c.Code = c.Code[:1] },
		"missing objects": func(_ *profile.Profile, c *profile.CoherentSites) { c.Data = c.Code[:1] },
		"other accesses":  func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[1].Cold = 3 },
		"other sums":      func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[0].Bins[0].Bin = 0 },
		"an empty bin":    func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[1].Bins = []profile.BinCount{{}} },
		"lost instead": func(_ *profile.Profile, c *profile.CoherentSites) {
			c.Code[0].Lost, c.Code[0].Bins = c.Code[0].Bins, nil
		},
		"utilisation without the flag": func(_ *profile.Profile, c *profile.CoherentSites) { c.Measured = false },
		"utilisation of only one site": func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[1].Used = nil },
		"too few fetched":              func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[1].Used[0].Fetched = 1 },
		"too many fetched":             func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[0].Used[0].Fetched = 3 },
		"too many bytes used":          func(_ *profile.Profile, c *profile.CoherentSites) { c.Code[0].Used[0].BytesUsed = 129 },
	} {
		p := withCoherentSites()
		if breakIt(p, p.Sites.Coherent); p.Check() == nil {
			t.Errorf("%s: Check() = nil, want an error", name)
		}
	}
}

// Bins cover all distances without gaps, with four bins per power of two.
func TestSiteBins(t *testing.T) {
	for bin := range profile.SiteBins {
		from, next := profile.SiteBinFrom(bin), profile.SiteBinFrom(bin+1)
		if from >= next || profile.SiteBin(uint32(from)) != bin || profile.SiteBin(uint32(next-1)) != bin {
			t.Errorf("bin %d contains the distances from %d to %d, but SiteBin returns %d and %d for these two distances", bin, from, next-1, profile.SiteBin(uint32(from)), profile.SiteBin(uint32(next-1)))
		}
	}
	if end := profile.SiteBinFrom(profile.SiteBins); end != 1<<32 {
		t.Errorf("the bins end at %d, want 2^32", end)
	}
	if profile.SiteBinFrom(profile.SiteBin(profile.PreviousFrom)) != profile.PreviousFrom {
		t.Error("PreviousFrom is not a bin boundary")
	}
}

// A profile has a million sites, each of which is encoded in tens of bytes. Decoding needs little
// more memory than the decoded sites themselves.
func TestMillionSites(t *testing.T) {
	const n = 1_000_000
	p := testProfile(false)
	p.Totals.References[trace.Load] = n
	p.Locality[0].Kinds[0] = profile.KindLocality{Cold: 2}
	p.Locality[0].Kinds[0].Distances.AddN(1, n-2)
	windows := &p.Locality[0].Windows
	windows.References = profile.WindowSize(n)
	windows.Rows = slices.Repeat([]profile.WindowRow{{}}, int((n+windows.References-1)/windows.References))
	windows.Rows[0][1], windows.Rows[0][profile.ColdBin] = n-2, 2
	p.Sites = &profile.Sites{LineBytes: 64}
	for i := range n {
		s := profile.Site{Number: uint32(i) + uint32(i/1000), Module: "a.out", PC: 0x400000 + 5*uint64(i), Offset: 5 * uint64(i), Function: "f" + strconv.Itoa(i/50),
			File: "f" + strconv.Itoa(i/5000) + ".c", Line: uint32(i % 5000 / 3), Column: uint32(i * 7 % 40), Bytes: 8, Type: "double"}
		s.Strides[profile.IrregularStride] = 1
		if s.Reuse.Bins = []profile.BinCount{{Bin: 1, Count: 1}}; i < 2 {
			s.Reuse = profile.Reuse{Cold: 1}
		}
		p.Sites.Code = append(p.Sites.Code, s)
	}
	data := p.Encode()
	if len(data) > 24*n {
		t.Errorf("a million encoded sites have %d bytes, want at most 24 bytes per site", len(data))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := profile.Decode(data)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 2000*n {
		t.Errorf("decoding a million sites needed %d bytes of memory, want at most 2,000 bytes per site", total)
	}
	if !bytes.Equal(got.Encode(), data) {
		t.Error("decoding and encoding changes the bytes")
	}
	t.Logf("%d bytes per encoded site, %d bytes allocated per site while decoding", len(data)/n, (after.TotalAlloc-before.TotalAlloc)/n)
}
