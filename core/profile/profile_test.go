package profile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

func TestHistogram(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var h profile.Histogram
		want := map[uint64]uint64{}
		for range 3000 {
			d := rng.Uint64N(1 << rng.UintN(33))
			switch rng.IntN(3) {
			case 0:
				n := rng.Uint64N(1 << rng.UintN(40))
				h.AddN(d, n)
				if n > 0 {
					want[d] += n
				}
			default:
				h.Add(d)
				want[d]++
			}
		}
		var total, last, n uint64
		for d, count := range h.All() {
			if count != want[d] || h.Count(d) != count {
				t.Fatalf("distance %d: All yields %d accesses, Count returns %d, want %d", d, count, h.Count(d), want[d])
			}
			if n > 0 && d <= last {
				t.Fatalf("All yields distance %d after distance %d", d, last)
			}
			last, total, n = d, total+count, n+1
		}
		if n != uint64(len(want)) || h.Total() != total {
			t.Fatalf("the histogram has %d distances and the total %d, want %d and %d", n, h.Total(), len(want), total)
		}
	}
}

// Rounding does not change the total count. If a capacity has few significant digits, rounding also
// does not change the number of accesses at distances below this capacity.
func TestRoundDistances(t *testing.T) {
	const digits = 10
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 3))
		exact, p := new(profile.Histogram), &profile.Profile{Locality: []profile.Locality{{LineBytes: 64, Kinds: make([]profile.KindLocality, 1)}}}
		shared := p.Locality
		for range 2000 {
			exact.AddN(rng.Uint64N(1<<rng.UintN(27)), 1+rng.Uint64N(1<<rng.UintN(36)))
		}
		p.Locality[0].Kinds[0].Distances = *exact
		if p.RoundDistances(exact.MemoryBytes(), digits) {
			t.Fatal("RoundDistances rounds a histogram that is small enough")
		}
		if !p.RoundDistances(exact.MemoryBytes()-1, digits) {
			t.Fatal("RoundDistances does not round a histogram that is too large")
		}
		rounded := &p.Locality[0].Kinds[0].Distances
		if rounded == &shared[0].Kinds[0].Distances {
			t.Fatal("RoundDistances changes a histogram that the profile may share with the run")
		}
		below := func(h *profile.Histogram, capacity uint64) (n uint64) {
			for d, count := range h.All() {
				if d < capacity {
					n += count
				}
			}
			return n
		}
		for range 20 {
			capacity := rng.Uint64N(1<<digits) << rng.UintN(18)
			if got, want := below(rounded, capacity), below(exact, capacity); got != want {
				t.Fatalf("%d accesses have distances below %d, want %d", got, capacity, want)
			}
		}
		if rounded.Total() != exact.Total() {
			t.Fatalf("the rounded histogram has %d accesses, want %d", rounded.Total(), exact.Total())
		}
		for d := range rounded.All() {
			if bits.Len64(d)-bits.TrailingZeros64(d) > digits {
				t.Fatalf("distance %b has more than %d significant digits", d, digits)
			}
		}
	}
}

// The counts are correct after a 32-bit counter wraps around.
func TestHistogramCountersWrapAround(t *testing.T) {
	var h profile.Histogram
	h.AddN(5, 1<<32-1)
	h.Add(5)
	h.Add(5)
	h.AddN(5, 1<<40+3)
	if got, want := h.Count(5), uint64(1<<32+1+1<<40+3); got != want {
		t.Errorf("the count is %d, want %d", got, want)
	}
	if h.Count(4) != 0 || h.Count(profile.MaxDistance) != 0 {
		t.Errorf("distances that never occurred have counts")
	}
}

func TestCurve(t *testing.T) {
	var h profile.Histogram
	h.AddN(0, 5)
	h.AddN(2, 3)
	h.AddN(100, 1)
	c := profile.NewCurve(&h, 4)
	for capacity, misses := range map[uint64]uint64{0: 13, 1: 8, 2: 8, 3: 5, 100: 5, 101: 4, 1 << 40: 4} {
		if got := c.Misses(capacity); got != misses {
			t.Errorf("Misses(%d) = %d, want %d", capacity, got, misses)
		}
	}
	var points [][2]uint64
	for capacity, misses := range c.Points {
		points = append(points, [2]uint64{capacity, misses})
	}
	if want := [][2]uint64{{1, 8}, {3, 5}, {101, 4}}; !slices.Equal(points, want) {
		t.Errorf("the breakpoints are %v, want %v", points, want)
	}
	for misses, capacity := range map[uint64]uint64{13: 0, 14: 0, 12: 1, 8: 1, 7: 3, 5: 3, 4: 101} {
		if got, ok := c.CapacityFor(misses); got != capacity || !ok {
			t.Errorf("CapacityFor(%d) = %d, %v, want %d", misses, got, ok, capacity)
		}
	}
	if _, ok := c.CapacityFor(3); ok {
		t.Errorf("CapacityFor returns a capacity with fewer misses than cold accesses")
	}
	if d, ok := c.DistanceAtShare(0.5); d != 2 || !ok {
		t.Errorf("DistanceAtShare(0.5) = %d, %v, want 2", d, ok)
	}
	if _, ok := c.DistanceAtShare(0.9); ok {
		t.Errorf("DistanceAtShare(0.9) returns a distance, although more than 10 %% of the accesses are cold")
	}
	n := 0
	for range profile.NewCurve(new(profile.Histogram), 0).Points {
		n++
	}
	if n != 1 {
		t.Errorf("the empty curve has %d breakpoints, want one", n)
	}
}

// A curve returns the same results as a list of all distances.
func TestCurveMatchesDistances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, cold := new(profile.Histogram), rapid.Uint64Range(0, 9).Draw(t, "cold")
		counts := map[uint64]uint64{}
		for range rapid.IntRange(0, 40).Draw(t, "distances") {
			first := rapid.SampledFrom([]uint64{0, 200, 250, 1000, 65_500, 1 << 20}).Draw(t, "near")
			d, n := first+rapid.Uint64Range(0, 70).Draw(t, "beyond"), rapid.SampledFrom([]uint64{1, 3, 300, 1 << 33}).Draw(t, "times")
			h.AddN(d, n)
			counts[d] += n
		}
		ascending := slices.Sorted(maps.Keys(counts))
		c := profile.NewCurve(h, cold)
		if c.Len() != len(ascending) || c.Cold != cold {
			t.Fatalf("the curve has %d distances and %d cold accesses, want %d and %d", c.Len(), c.Cold, len(ascending), cold)
		}
		hits := uint64(0)
		for i, d := range ascending {
			if got := c.Hits(d); got != hits {
				t.Fatalf("there are %d hits in %d lines, want %d", got, d, hits)
			}
			misses := c.Accesses - hits
			hits += counts[d]
			if got, upto := c.At(i); got != d || upto != hits || c.Hits(d+1) != hits {
				t.Fatalf("At(%d) = %d, %d, and Hits returns %d, want distance %d with %d accesses", i, got, upto, c.Hits(d+1), d, hits)
			}
			n := i
			for d, upto := range c.From(i) {
				if before := c.Hits(d); d != ascending[n] || upto != before+counts[d] {
					t.Fatalf("From(%d) yields distance %d with %d accesses as item %d, want distance %d with %d accesses", i, d, upto, n, ascending[n], before+counts[d])
				}
				n++
			}
			if n != len(ascending) {
				t.Fatalf("From(%d) yields %d distances, want %d", i, n, len(ascending))
			}
			if most := misses - 1; most >= cold {
				if got, ok := c.CapacityFor(most); got != d+1 || !ok {
					t.Fatalf("CapacityFor(%d) = %d, want %d", most, got, d+1)
				}
			}
		}
		if c.Accesses != hits+cold {
			t.Fatalf("the curve has %d accesses, want %d", c.Accesses, hits+cold)
		}
		longest, ok := c.Longest()
		if ok != (len(ascending) > 0) || ok && longest != ascending[len(ascending)-1] {
			t.Fatalf("Longest() = %d, %v", longest, ok)
		}
		for _, share := range []float64{0, 0.25, 0.5, 1} {
			at := slices.IndexFunc(ascending, func(d uint64) bool { return float64(c.Hits(d+1)) >= share*float64(c.Accesses) })
			if d, ok := c.DistanceAtShare(share); ok != (at >= 0) || ok && d != ascending[at] {
				t.Fatalf("DistanceAtShare(%g) = %d, %v, want the distance at index %d", share, d, ok, at)
			}
		}
	})
}

// The curve of a histogram with many distances is far smaller than the histogram.
func TestCurveIsSmall(t *testing.T) {
	const distances = 1 << 20
	h := new(profile.Histogram)
	for d := range uint64(distances) {
		h.Add(d)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := profile.NewCurve(h, 0)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > distances {
		t.Errorf("the curve of %d distances needs %d bytes, want fewer", distances, got)
	}
	if c.Hits(distances/2) != distances/2 {
		t.Errorf("the curve has %d hits", c.Hits(distances/2))
	}
}

// testProfile returns a profile that satisfies every invariant.
func testProfile(segment bool) *profile.Profile {
	p := &profile.Profile{
		Input: profile.Input{Header: trace.Header{Format: "din", PCs: true}, Kinds: trace.DataKinds, Skip: 3, Limit: 9, Threads: []uint32{1, 7}},
		State: profile.State{Partial: true, Reason: "cancelled"},
	}
	p.Totals.References[trace.Load] = 2
	p.Totals.Bytes[trace.Load] = 9
	p.Totals.Threads = []uint32{7}
	l := profile.Locality{LineBytes: 64, Kinds: make([]profile.KindLocality, 1)}
	l.Kinds[0].Cold = 2
	l.Kinds[0].Distances.AddN(1, 3)
	l.Windows = profile.Windows{References: profile.MinWindow, Rows: make([]profile.WindowRow, 1)}
	l.Windows.Rows[0][1] = 3
	l.Windows.Rows[0][profile.ColdBin] = 2
	p.Locality = []profile.Locality{l}
	if segment {
		p.Segment = &profile.Segment{Lines: []profile.SegmentLines{{
			FirstTouches: firstTouches(profile.FirstTouch{Line: 9}, profile.FirstTouch{Line: 4, Reference: 1, Kind: trace.Load}),
			Stack:        []trace.Line{4, 1<<61 - 1},
		}}}
	}
	return p
}

// firstTouches returns the first touches of a segment at the beginning of a trace.
func firstTouches(touches ...profile.FirstTouch) (list profile.FirstTouches) {
	for _, t := range touches {
		list.Append(t)
	}
	return list
}

// setSecondTouch replaces the second first touch of testProfile.
func setSecondTouch(p *profile.Profile, t profile.FirstTouch) {
	p.Segment.Lines[0].FirstTouches = firstTouches(profile.FirstTouch{Line: 9}, t)
}

func TestEncodeDecode(t *testing.T) {
	for _, segment := range []bool{false, true} {
		p := testProfile(segment)
		data := p.Encode()
		got, err := profile.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Encode(), data) {
			t.Errorf("segment %v: decoding and encoding changes the bytes", segment)
		}
		if got.Digest() != p.Digest() || got.Digest() != testProfile(false).Digest() {
			t.Errorf("segment %v: decoding and encoding changes the digest", segment)
		}
	}
}

func TestEncodedDigest(t *testing.T) {
	p := testProfile(true)
	if got, ok := profile.EncodedDigest(p.Encode()); !ok || got != p.Digest() {
		t.Errorf("the encoded digest is %x (%v), want %x", got, ok, p.Digest())
	}
	for _, data := range [][]byte{nil, []byte("x"), p.Encode()[:60]} {
		if _, ok := profile.EncodedDigest(data); ok {
			t.Errorf("EncodedDigest returns a digest for %d bytes that are not a profile", len(data))
		}
	}
}

// TestRecordedExtent checks that a profile stores which part of each thread was recorded, and that this
// part changes the digest, but not the bytes of a profile of whole threads.
func TestRecordedExtent(t *testing.T) {
	whole := testProfile(true)
	for _, e := range []trace.Extent{{After: 20000}, {For: 1 << 63}, {After: 1, For: 2}} {
		p := testProfile(true)
		p.Input.Header.Extent = e
		got, err := profile.Decode(p.Encode())
		if err != nil || got.Input.Header.Extent != e {
			t.Errorf("%+v: the decoded profile has the extent %+v, error %v", e, got.Input.Header.Extent, err)
		}
		if p.Digest() == whole.Digest() {
			t.Errorf("%+v: the profile has the digest of a profile of whole threads", e)
		}
	}
}

// TestDocumentedExample checks the example in sections.go.
func TestDocumentedExample(t *testing.T) {
	p := &profile.Profile{Input: profile.Input{Header: trace.Header{Format: "din"}, Kinds: trace.DataKinds}}
	want := "\x89SGP\r\n\x1a\n\x05INPT\x09\x03din\x00\x37\x00\x00\x00"
	if got := string(p.Encode()[:len(want)]); got != want {
		t.Errorf("a profile begins with %x, want %x", got, want)
	}
}

func TestDecodeDamaged(t *testing.T) {
	data := testProfile(true).Encode()
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x20
		if _, err := profile.Decode(damaged); err == nil {
			t.Fatalf("Decode returns no error if byte %d is changed", i)
		}
		if _, err := profile.Decode(data[:i]); err == nil {
			t.Fatalf("Decode returns no error if the data is truncated at byte %d", i)
		}
	}
	if _, err := profile.Decode(append(bytes.Clone(data), 0)); err == nil {
		t.Errorf("Decode returns no error if a byte follows the end")
	}
}

// sections returns an encoded profile with arbitrary sections, which a malicious or newer program
// could have written. The arguments are alternately tags and payloads. The checksums and the digest
// are correct.
func sections(parts ...string) []byte { return sectionsOf("\x05", parts...) }

// sectionsOf is like sections, but for a profile of the given version.
func sectionsOf(version string, parts ...string) []byte {
	data := []byte("\x89SGP\r\n\x1a\n" + version)
	sum := sha256.New()
	add := func(tag, payload string) []byte {
		section := append(binary.AppendUvarint([]byte(tag), uint64(len(payload))), payload...)
		data = append(data, section...)
		data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(section, crc32.MakeTable(crc32.Castagnoli)))
		return section
	}
	for i := 0; i < len(parts); i += 2 {
		section := add(parts[i], parts[i+1])
		if parts[i][0] < 'a' {
			sum.Write(section)
		}
	}
	add("END.", string(sum.Sum(nil)))
	return data
}

func TestDecodeSections(t *testing.T) {
	const input, totals, state = "\x03din\x00\x07\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00"
	const local, windows = "\x40\x00", "\x40\x80\x08\x00\x00"
	whole := []string{"INPT", input, "TOTL", totals, "STAT", state, "LOCA", local, "WIND", windows}
	if _, err := profile.Decode(sections(append(whole, "newr", "something", "next", "")...)); err != nil {
		t.Errorf("Decode of a profile with unknown optional sections = %v, want no error", err)
	}
	for name, parts := range map[string][]string{
		"unknown":             append(whole[:10:10], "NEWR", ""),
		"optional in between": append([]string{"newr", ""}, whole...),
		"sharing first":       append(whole[:6:6], "SHAR", "\x40\x00\x00", "LOCA", local, "WIND", windows),
		"two inputs":          append(whole[:2:2], whole...),
		"totals before input": append([]string{"TOTL", totals, "INPT", input}, whole[4:]...),
		"state missing":       append(whole[:4:4], whole[6:]...),
		"windows twice":       append(whole[:10:10], "WIND", windows),
		"windows first":       append(whole[:6:6], "WIND", windows),
		"line size twice":     append(whole[:10:10], "LOCA", local, "WIND", windows),
		"kind twice":          append(whole[:6:6], "LOCA", "\x40\x02\x00\x00\x00\x00\x00\x00", "WIND", windows),
		"invalid state":       append(append(whole[:4:4], "STAT", "\x02\x00"), whole[6:]...),
	} {
		if _, err := profile.Decode(sections(parts...)); err == nil {
			t.Errorf("%s: Decode returns no error", name)
		}
	}
}

// Decoding must not allocate much memory for a large number of lists that have only a few bytes
// each.
func TestDecodeAllocatesLittle(t *testing.T) {
	const kind = "\x00\x00\x01\xf0\xff\xff\xff\x0f\x01" // one access at a long distance
	kinds := "\x40\xe8\x07" + strings.Repeat(kind, 1000)
	data := sections("INPT", "\x03din\x00\x07\x00\x00\x00", "TOTL", strings.Repeat("\x00", 11), "STAT", "\x00\x00", "LOCA", kinds)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := profile.Decode(data); err == nil {
		t.Error("Decode returns no error if a kind occurs a thousand times")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("decoding %d bytes needed %d bytes of memory, want at most 16 MiB", len(data), n)
	}
}

// Without a limit, decoding a profile of a few megabytes with widely spaced distances would need
// sixteen gigabytes. The profile in this test contains all reference kinds, all line sizes, and one
// distance in each page of each histogram.
func TestDecodeBomb(t *testing.T) {
	var kind strings.Builder
	kind.Write(binary.AppendUvarint(nil, 1<<60))   // the number of cold accesses
	kind.Write(binary.AppendUvarint(nil, 1<<16-1)) // the number of distances
	for range 1<<16 - 1 {
		kind.WriteString("\x80\x80\x04\x01")
	}
	parts := []string{"INPT", "\x03din\x00\x3f\x00\x00\x00", "TOTL", strings.Repeat("\x00", 15), "STAT", "\x00\x00"}
	for lineBytes := uint64(profile.MinLineBytes); lineBytes <= profile.MaxLineBytes; lineBytes *= 2 {
		local := string(binary.AppendUvarint(nil, lineBytes)) + "\x06"
		for k := range 6 {
			local += string(rune(k)) + kind.String()
		}
		parts = append(parts, "LOCA", local)
	}
	data := sections(parts...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := profile.Decode(data); err == nil || !strings.Contains(err.Error(), "so far apart that their histogram needs gigabytes") {
		t.Errorf("got %v, want an error about the distances", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<30 {
		t.Errorf("decoding %d bytes needed %d bytes of memory, want at most 2 GiB", len(data), n)
	}
}

// Decoding must not allocate much memory if a list wrongly states a length of 2^60.
func TestDecodeWrongLengths(t *testing.T) {
	whole := []string{"INPT", "\x03din\x00\x3f\x00\x00\x00", "TOTL", strings.Repeat("\x00", 15), "STAT", "\x00\x00", "LOCA", "\x40\x00", "WIND", "\x40\x80\x08\x00\x00"}
	huge := string(binary.AppendUvarint(nil, 1<<60))
	for tag, heads := range map[string][]string{
		"LOCA": {"\x80\x01", "\x80\x01\x01\x00\x00"},
		"WIND": {"\x40\x80\x08\x00"},
		"SETS": {"\x40", "\x40\x00"},
		"SITE": {"", "\x00", "\x40", "\x40\x00", "\x40\x00\x00"},
		"CNTR": {"", "\x00", "\x00\x00", "\x01\x00"},
		"SHAR": {"\x40", "\x40\x01", "\x40\x01\x00\x00"},
		"COMM": {"", "\x00", "\x00\x02\x08\x00"},
		"segm": {"\x00", "\x00\x01"},
	} {
		for _, head := range heads {
			data := sections(append(whole[:len(whole):len(whole)], tag, head+huge+strings.Repeat("\x01", 100))...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := profile.Decode(data); err == nil {
				t.Errorf("section %s, %q: Decode returns no error", tag, head)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("section %s, %q: decoding needed %d bytes of memory, want at most 1 MiB", tag, head, n)
			}
		}
	}
}

func TestDecodeNewerVersion(t *testing.T) {
	data := testProfile(false).Encode()
	data[8] = profile.Version + 1
	var newer *profile.VersionError
	if _, err := profile.Decode(data); !errors.As(err, &newer) || newer.Version != profile.Version+1 {
		t.Errorf("Decode of a profile of the next version = %v, want a VersionError with this version", err)
	}
}

func TestCheck(t *testing.T) {
	for name, breakIt := range map[string]func(p *profile.Profile){
		"line size":         func(p *profile.Profile) { p.Locality[0].LineBytes = 48 },
		"kind not analysed": func(p *profile.Profile) { p.Input.Kinds = 1 << trace.Store },
		"distance":          func(p *profile.Profile) { p.Locality[0].Kinds[0].Distances.Add(2) },
		"references":        func(p *profile.Profile) { p.Totals.References[trace.Load] = 100 },
		"windows":           func(p *profile.Profile) { p.Locality[0].Windows.Rows[0][3]++ },
		"window size":       func(p *profile.Profile) { p.Locality[0].Windows.References = 1000 },
		"stack":             func(p *profile.Profile) { p.Segment.Lines[0].Stack = nil },
		"line beyond":       func(p *profile.Profile) { p.Segment.Lines[0].Stack[0] = 1 << 61 },
		"first touches": func(p *profile.Profile) {
			setSecondTouch(p, profile.FirstTouch{Reference: 2, Line: 4, Kind: trace.Load})
		},
		"first touch kind": func(p *profile.Profile) {
			setSecondTouch(p, profile.FirstTouch{Reference: 1, Line: 4, Kind: trace.Store})
		},
		"segment lines": func(p *profile.Profile) { p.Segment.Lines = nil },
		"first touch beyond": func(p *profile.Profile) {
			setSecondTouch(p, profile.FirstTouch{Reference: 1, Line: 1 << 61, Kind: trace.Load})
		},
		"overflow": func(p *profile.Profile) {
			p.Locality[0].Kinds[0].Distances.AddN(0, 1<<63)
			p.Locality[0].Kinds[0].Distances.AddN(1, 1<<63)
		},
		"kind missing": func(p *profile.Profile) { p.Totals.References[trace.Store] = 1 },
		"line sizes":   func(p *profile.Profile) { p.Locality = append(p.Locality, p.Locality[0]) },
	} {
		p := testProfile(true)
		breakIt(p)
		checkInvalid(t, name, p)
	}
}

// checkInvalid checks that neither Check nor Decode accepts the profile p.
func checkInvalid(t *testing.T, name string, p *profile.Profile) {
	t.Helper()
	if p.Check() == nil {
		t.Errorf("%s: Check() = nil, want an error", name)
	}
	if _, err := profile.Decode(p.Encode()); err == nil {
		t.Errorf("%s: Decode returns no error", name)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(testProfile(false).Encode())
	f.Add(testProfile(true).Encode())
	f.Add(withCounters().Encode())
	f.Add(withSites().Encode())
	f.Add(withSets().Encode())
	f.Add(withSharing().Encode())
	f.Add(withCoherentSites().Encode())
	f.Add(sampledProfile().Encode())
	f.Add(withWorkingSets().Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := profile.Decode(data)
		if err != nil {
			return
		}
		again, err := profile.Decode(p.Encode())
		if err != nil || again.Digest() != p.Digest() {
			t.Fatalf("a decoded profile cannot be encoded and decoded again: %v", err)
		}
	})
}

// A profile of version 1 contains the counts of four kinds of references.
func TestDecodeVersion1(t *testing.T) {
	old := sectionsOf("\x01", "INPT", "\x03din\x00\x07\x00\x00\x00",
		"TOTL", "\x01\x02\x00\x00\x08\x10\x00\x00\x00\x00\x00", "STAT", "\x00\x00")
	p, err := profile.Decode(old)
	if err != nil {
		t.Fatal(err)
	}
	if p.Totals.References != [trace.NumKinds]uint64{1, 2} || p.Totals.Bytes != [trace.NumKinds]uint64{8, 16} {
		t.Errorf("the totals are %+v", p.Totals)
	}
}

// TestEncodeInPieces checks that a histogram with many distances and a section with many bytes are
// written in pieces, and that this does not change the encoded bytes.
func TestEncodeInPieces(t *testing.T) {
	p := &profile.Profile{Input: profile.Input{Kinds: trace.DataKinds}, Locality: []profile.Locality{{LineBytes: 64, Kinds: []profile.KindLocality{{Kind: trace.Load, Cold: 1 << 25}}}}}
	h, want := &p.Locality[0].Kinds[0].Distances, map[uint64]uint64{}
	for d := range uint64(100_000) {
		h.AddN(200*d, d+1)
		want[200*d] = d + 1
	}
	accesses := p.Locality[0].Kinds[0].Accesses()
	p.Totals.References[trace.Load] = accesses
	w := &p.Locality[0].Windows
	w.References = profile.WindowSize(accesses)
	_, rows := w.Span(0, accesses)
	w.Rows = make([]profile.WindowRow, rows)
	w.Rows[0][0] = accesses
	p.Loops = bytes.Repeat([]byte("loops"), 1<<16)
	var out pieces
	if err := p.EncodeTo(&out); err != nil {
		t.Fatal(err)
	}
	if out.most > 1<<16 || len(out.all) < 5<<16 {
		t.Fatalf("EncodeTo wrote %d bytes, at most %d at a time", len(out.all), out.most)
	}
	if digest, ok := profile.EncodedDigest(out.all); !ok || digest != p.Digest() || !bytes.Equal(out.all, p.Encode()) {
		t.Fatal("the digest at the end of the encoded profile is wrong")
	}
	back, err := profile.Decode(out.all)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Loops, p.Loops) {
		t.Fatal("the decoded loops differ from the encoded loops")
	}
	for d, n := range back.Locality[0].Kinds[0].Distances.All() {
		if want[d] != n {
			t.Fatalf("%d accesses at distance %d, want %d", n, d, want[d])
		}
		delete(want, d)
	}
	if len(want) > 0 {
		t.Fatalf("%d distances are missing", len(want))
	}
}

// pieces is a writer that records the length of the longest piece.
type pieces struct {
	all  []byte
	most int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.all, p.most = append(p.all, b...), max(p.most, len(b))
	return len(b), nil
}
