package profile_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/profile"
)

// withSets returns the test profile with a set table. The profile has three accesses at distance 1.
// With 2 sets, one of these accesses has distance 0 within its set. With 4 sets, all three accesses
// have distance 0.
func withSets() *profile.Profile {
	p := testProfile(true)
	t := new(profile.SetTable)
	t.Depths[0][1] = 3
	t.Depths[1][0], t.Depths[1][1] = 1, 2
	for a := 2; a < profile.SetCounts; a++ {
		t.Depths[a][0] = 3
	}
	p.Locality[0].Sets = t
	return p
}

func TestHitsFromSetTable(t *testing.T) {
	table := withSets().Locality[0].Sets
	for _, c := range []struct {
		sets, ways, hits uint64
		ok               bool
	}{
		{1, 1, 0, true}, {1, 2, 3, true}, {2, 1, 1, true}, {2, 32, 3, true}, {1 << 16, 1, 3, true},
		{0, 1, 0, false}, {3, 1, 0, false}, {1 << 17, 1, 0, false}, {1, 0, 0, false}, {1, 33, 0, false},
	} {
		if hits, ok := table.Hits(c.sets, c.ways); hits != c.hits || ok != c.ok {
			t.Errorf("Hits(%d, %d) = %d, %v, want %d, %v", c.sets, c.ways, hits, ok, c.hits, c.ok)
		}
	}
	if _, ok := (*profile.SetTable)(nil).Hits(1, 1); ok {
		t.Error("Hits of a missing table returns true, want false")
	}
}

func TestEncodeSets(t *testing.T) {
	p := withSets()
	got, err := profile.Decode(p.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if *got.Locality[0].Sets != *p.Locality[0].Sets {
		t.Error("encoding and decoding changes the set table")
	}
	if got.Digest() == testProfile(true).Digest() {
		t.Error("the digest does not cover the set table")
	}
}

// Decode either decodes an arbitrary table without a change or rejects it.
func TestDecodeArbitrarySetTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := withSets()
		table := p.Locality[0].Sets
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			a, d := rapid.IntRange(0, profile.SetCounts-1).Draw(t, "a"), rapid.IntRange(0, profile.MaxWays-1).Draw(t, "d")
			table.Depths[a][d] = rapid.Uint64().Draw(t, "accesses")
		}
		got, err := profile.Decode(p.Encode())
		if (err == nil) != (p.Check() == nil) {
			t.Fatalf("Decode returns %v, but Check returns %v", err, p.Check())
		}
		if err == nil && *got.Locality[0].Sets != *table {
			t.Fatal("encoding and decoding changes the set table")
		}
	})
}

func TestCheckSets(t *testing.T) {
	if err := withSets().Check(); err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(*profile.SetTable){
		"a different histogram":           func(t *profile.SetTable) { t.Depths[0][2]++ },
		"too many accesses":               func(t *profile.SetTable) { t.Depths[7][0]++ },
		"beyond 64 bits":                  func(t *profile.SetTable) { t.Depths[7][0], t.Depths[7][1] = 1<<63, 1<<63 },
		"longer distances with more sets": func(t *profile.SetTable) { t.Depths[3][0], t.Depths[3][1] = 0, 3 },
		"missing accesses with more sets": func(t *profile.SetTable) { t.Depths[9][0] = 2 },
		"no accesses":                     func(t *profile.SetTable) { *t = profile.SetTable{} },
	} {
		p := withSets()
		breakIt(p.Locality[0].Sets)
		checkInvalid(t, name, p)
	}
}

// TestDecodeSets checks set tables at invalid positions in the file.
func TestDecodeSets(t *testing.T) {
	const input, totals, state = "\x03din\x00\x07\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00"
	const local, windows = "\x40\x00", "\x40\x80\x08\x00\x00"
	const none = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	head := []string{"INPT", input, "TOTL", totals, "STAT", state}
	whole := append(head[:6:6], "LOCA", local, "WIND", windows, "SETS", "\x40"+none)
	if _, err := profile.Decode(sections(whole...)); err != nil {
		t.Errorf("Decode of a set table without accesses = %v, want no error", err)
	}
	for name, parts := range map[string][]string{
		"before any histogram": append(head[:6:6], "SETS", "\x40"+none),
		"before the windows":   append(head[:6:6], "LOCA", local, "SETS", "\x40"+none, "WIND", windows),
		"different line size":  append(head[:6:6], "LOCA", local, "WIND", windows, "SETS", "\x20"+none),
		"twice":                append(whole[:12:12], "SETS", "\x40"+none),
		"cut":                  append(whole[:10:10], "SETS", "\x40"+none[1:]),
		"too long":             append(whole[:10:10], "SETS", "\x40"+none+"\x00"),
		"too many ways":        append(whole[:10:10], "SETS", "\x40\x80\x80\x80\x80\x10\x01"+none[1:]),
	} {
		if _, err := profile.Decode(sections(parts...)); err == nil {
			t.Errorf("%s: Decode returns no error", name)
		}
	}
}
