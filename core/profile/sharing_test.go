package profile_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// separateLines sets the rows of a set table as if lines conflicted only in a cache with a single
// set.
func separateLines(c *profile.StackCounts) {
	for d, n := range c.Distances.All() {
		c.Sets.Depths[0][d] += n
		for a := 1; a < profile.SetCounts; a++ {
			c.Sets.Depths[a][0] += n
		}
	}
}

// withSharing returns the test profile with accesses by two threads. Thread 1 loads line 9, line 4,
// and line 9 again. Thread 7 stores to lines 4 and 9.
func withSharing() *profile.Profile {
	p := testProfile(true)
	p.Input.Header.Sliced = true
	s := profile.Sharing{LineBytes: 64, Cores: make([]profile.Core, 2), Domains: make([]profile.Domain, 1)}
	one, two, all := &s.Cores[0], &s.Cores[1], &s.Domains[0]
	one.Threads, two.Threads = []uint32{1}, []uint32{7, 1<<32 - 1}
	one.Private.Cold, two.Private.Cold, two.Foreign.Cold = 2, 2, 2
	one.Private.Distances.AddN(1, 1)
	separateLines(&one.Private)
	one.Coherent.StackCounts = one.Private
	one.Coherent.Invalidations = 2
	two.Coherent.StackCounts = two.Private
	all.Cores, all.Members = []uint32{0, 1}, make([]profile.Member, 2)
	all.Members[0] = profile.Member{Cold: 2, Change: profile.Change{Same: 1}}
	all.Members[0].Distances.AddN(1, 1)
	all.Members[1].Change.Brought = 2
	all.Members[1].Distances.AddN(1, 2)
	all.Foreign.Distances.AddN(1, 2)
	separateLines(&all.Foreign)
	whole := profile.StackCounts{}
	whole.Distances.AddN(1, 3)
	separateLines(&whole)
	all.Sets = whole.Sets
	p.Sharing = []profile.Sharing{s}
	return p
}

func TestSharingSurvivesEncoding(t *testing.T) {
	p := withSharing()
	p.Segment.Sharing = []byte("stacks")
	data := p.Encode()
	got, err := profile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Encode(), data) || string(got.Segment.Sharing) != "stacks" {
		t.Error("decoding and encoding changes the bytes")
	}
	if !got.Input.Header.Sliced {
		t.Error("encoding and decoding loses the flag that the order of threads is not exact")
	}
	if got.Digest() == testProfile(false).Digest() {
		t.Error("the digest does not cover the stacks of threads")
	}
	if sum, cold := got.Sharing[0].Domains[0].Concurrent(); sum.Count(1) != 3 || cold != 2 {
		t.Errorf("the shared stack has %d accesses at distance 1 and %d cold accesses, want 3 and 2", sum.Count(1), cold)
	}
}

func TestCheckSharing(t *testing.T) {
	for name, breakIt := range map[string]func(s *profile.Sharing){
		"line size":         func(s *profile.Sharing) { s.LineBytes = 32 },
		"no cores":          func(s *profile.Sharing) { s.Cores = nil },
		"no domains":        func(s *profile.Sharing) { s.Domains = nil },
		"thread twice":      func(s *profile.Sharing) { s.Cores[1].Threads = []uint32{7, 1} },
		"order of cores":    func(s *profile.Sharing) { s.Cores[0].Threads = []uint32{8} },
		"accesses":          func(s *profile.Sharing) { s.Cores[0].Private.Cold++ },
		"coherent accesses": func(s *profile.Sharing) { s.Cores[0].Coherent.Lost.Add(1) },
		"coherence misses without invalidations": func(s *profile.Sharing) {
			s.Cores[0].Coherent.Distances = profile.Histogram{}
			s.Cores[0].Coherent.Sets = profile.SetTable{}
			s.Cores[0].Coherent.Lost.Add(1)
			s.Cores[0].Coherent.Invalidations = 0
		},
		"lost too deep": func(s *profile.Sharing) {
			s.Cores[0].Coherent.StackCounts = profile.StackCounts{Cold: 2}
			s.Cores[0].Coherent.Lost.Add(2)
		},
		"set table":                    func(s *profile.Sharing) { s.Cores[0].Coherent.Sets.Depths[1][0]++ },
		"foreign":                      func(s *profile.Sharing) { s.Cores[0].Foreign.Cold = 3 },
		"foreign distance":             func(s *profile.Sharing) { s.Cores[0].Foreign.Distances.AddN(1, 2) },
		"foreign set table":            func(s *profile.Sharing) { s.Cores[0].Foreign.Sets.Depths[3][0] = 2 },
		"domain without cores":         func(s *profile.Sharing) { s.Domains[0].Cores, s.Domains[0].Members = nil, nil },
		"unknown core":                 func(s *profile.Sharing) { s.Domains[0].Cores[1] = 2 },
		"change":                       func(s *profile.Sharing) { s.Domains[0].Members[0].Change.Same = 2 },
		"brought":                      func(s *profile.Sharing) { s.Domains[0].Members[1].Change.Brought-- },
		"domain's set table":           func(s *profile.Sharing) { s.Domains[0].Sets.Depths[1][0]-- },
		"foreign accesses of a domain": func(s *profile.Sharing) { s.Domains[0].Foreign.Distances.AddN(1, 2) },
		"first domain without a core": func(s *profile.Sharing) {
			d := &s.Domains[0]
			d.Cores, d.Members, d.Foreign = d.Cores[:1], d.Members[:1], profile.StackCounts{}
			d.Sets = s.Cores[0].Private.Sets
		},
	} {
		p := withSharing()
		breakIt(&p.Sharing[0])
		checkInvalid(t, name, p)
	}
}

// A histogram with one long distance is encoded in a few bytes, but needs memory for the pages of
// all shorter distances. Decoding therefore rejects a profile with too many such histograms.
func TestDecodeSharingAllocatesLittle(t *testing.T) {
	far := append([]byte{1}, binary.AppendUvarint(nil, 0xfffffff0)...) // a histogram with one long distance
	stack := "\x00" + string(far) + "\x01" + strings.Repeat("\x00", profile.SetCounts)
	var cores strings.Builder
	for range profile.MaxCores {
		cores.WriteString("\x01\x00" + stack + stack + stack + string(far) + "\x01\x00")
	}
	data := sections("INPT", "\x03din\x00\x07\x00\x00\x00", "TOTL", strings.Repeat("\x00", 15), "STAT", "\x00\x00",
		"LOCA", "\x40\x01\x00\xff\xff\xff\xff\x0f\x00", "WIND", "\x40\x80\x08\x00\x00", "SHAR", "\x40\x40"+cores.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := profile.Decode(data); err == nil || !strings.Contains(err.Error(), "long stack distances on many cores") {
		t.Errorf("Decode of a profile with very many long stack distances = %v, want an error about long stack distances", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 128<<20 {
		t.Errorf("decoding %d bytes needed %d bytes of memory, want at most 128 MiB", len(data), n)
	}
}
