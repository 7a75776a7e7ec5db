package profile_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// withCommunication returns the test profile with sites and with communication between two threads.
func withCommunication() *profile.Profile {
	p := withSites()
	p.Totals.Threads = []uint32{1, 7}
	flow := func(from, to uint32, events, transfers, bytes uint64) profile.Flow {
		return profile.Flow{From: from, To: to, Events: events, Transfers: transfers, Bytes: transfers * bytes}
	}
	granule := func(bytes uint32, flows ...profile.Flow) profile.Granule {
		return profile.Granule{Bytes: bytes, Flows: flows}
	}
	c := &profile.Communication{
		Granules: []profile.Granule{granule(8, flow(1, 7, 2, 1, 8)), granule(64, flow(1, 7, 3, 2, 64), flow(7, 1, 1, 1, 64)), granule(4096, flow(1, 7, 2, 1, 4096))},
		Pairs:    []profile.SitePair{{Producer: 0, Consumer: 1, Object: 0, From: 1, To: 7, Events: 1, Transfers: 1}, {Producer: 0, Consumer: profile.NoSite, Object: profile.NoSite, From: 1, To: 7, Events: 1}},
		Window:   1024, Windows: []profile.FlowWindow{{Flows: []profile.Flow{flow(1, 7, 2, 1, 8)}}},
		Owners: []profile.Ownership{
			{Object: 0, PartBytes: 64, First: 3, Parts: []profile.OwnedPart{
				{FirstTouch: 1, Most: 7, Readers: 2, Writers: 1, Class: profile.Migratory, References: 4, Own: 3}, {},
				{FirstTouch: 7, Most: 7, Readers: 1, References: 1, Own: 1}}},
			{Object: profile.NoSite, PartBytes: 128, Parts: []profile.OwnedPart{{FirstTouch: 1, Most: 1, Writers: 1, References: 1, Own: 1}}},
		},
		False:    []profile.FalseSharing{{Object: 0, Offset: 64, Sites: [2]uint32{1, 0}, Threads: [2]uint32{1, 7}, Lines: 1, Events: 3, Misses: 2, Apart: 8}},
		Sources:  []profile.SourceDistances{{From: 1, To: 7}},
		Messages: 8,
	}
	c.Granules[0].Classes[profile.PrivateData] = profile.ClassCount{Granules: 1, References: 2}
	c.Granules[0].Classes[profile.ProducerConsumer] = profile.ClassCount{Granules: 1, References: 4, Events: 2}
	c.Granules[1].Classes[profile.FalselyShared] = profile.ClassCount{Granules: 1, References: 5, Events: 4}
	c.Granules[2].Classes[profile.Migratory] = profile.ClassCount{Granules: 1, References: 5, Events: 2}
	c.Sources[0].Distances.AddN(1, 2)
	c.Sources[0].Transfers.AddN(1, 1)
	p.Communication = c
	return p
}

func TestCommunicationSurvivesEncoding(t *testing.T) {
	p := withCommunication()
	data := p.Encode()
	got, err := profile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Encode(), data) || !reflect.DeepEqual(got.Communication, p.Communication) {
		t.Errorf("encoding and decoding changes the communication from\n%+[2]v\nto\n%+[1]v", got.Communication, p.Communication)
	}
	if p.Communication = nil; got.Digest() == p.Digest() {
		t.Error("the digest does not cover communication")
	}
}

func TestCheckCommunication(t *testing.T) {
	type communication = profile.Communication
	for name, breakIt := range map[string]func(c *communication){
		"no words":                        func(c *communication) { c.Granules = c.Granules[1:] },
		"no pages":                        func(c *communication) { c.Granules = c.Granules[:2] },
		"lines of 48 bytes":               func(c *communication) { c.Granules[1].Bytes = 48 },
		"a flow to its source":            func(c *communication) { c.Granules[1].Flows[0].To = 1 },
		"unknown thread":                  func(c *communication) { c.Granules[2].Flows[0].To = 2 },
		"order of flows":                  func(c *communication) { f := c.Granules[1].Flows; f[0], f[1] = f[1], f[0] },
		"transfers":                       func(c *communication) { c.Granules[2].Flows[0].Transfers = 3 },
		"a flow without events":           func(c *communication) { c.Granules[1].Flows[1] = profile.Flow{From: 7, To: 1} },
		"events of private data":          func(c *communication) { c.Granules[0].Classes[0].Events = 1 },
		"classes":                         func(c *communication) { c.Granules[2].Classes[profile.Migratory].Events = 1 },
		"too many granules":               func(c *communication) { c.Granules[2].Classes[profile.Migratory].Granules = 6 },
		"falsely shared words":            func(c *communication) { c.Granules[0].Classes[profile.FalselyShared] = profile.ClassCount{1, 1, 0} },
		"order of pairs":                  func(c *communication) { c.Pairs[0], c.Pairs[1] = c.Pairs[1], c.Pairs[0] },
		"unknown site":                    func(c *communication) { c.Pairs[0].Consumer = 3 },
		"unknown object":                  func(c *communication) { c.Pairs[0].Object = 2 },
		"threads of pairs":                func(c *communication) { c.Pairs[0].From = 2 },
		"sum of pairs":                    func(c *communication) { c.Pairs = c.Pairs[:1] },
		"windows":                         func(c *communication) { c.Windows = append(c.Windows, profile.FlowWindow{}) },
		"size of windows":                 func(c *communication) { c.Window = 1000 },
		"sum of windows":                  func(c *communication) { c.Windows[0].Flows = nil },
		"order of owners":                 func(c *communication) { c.Owners[0].Object = profile.NoSite },
		"size of parts":                   func(c *communication) { c.Owners[0].PartBytes = 1<<63 + 1 },
		"first part is empty":             func(c *communication) { c.Owners[0].Parts = c.Owners[0].Parts[1:] },
		"unknown owner":                   func(c *communication) { c.Owners[0].Parts[0].Most = 3 },
		"owner has too many references":   func(c *communication) { c.Owners[0].Parts[0].Own = 5 },
		"sum of owners":                   func(c *communication) { c.Owners = c.Owners[:1] },
		"too many falsely shared lines":   func(c *communication) { c.False[0].Lines, c.False[0].Misses = 2, 2 },
		"misses":                          func(c *communication) { c.False[0].Misses = 4 },
		"words too far apart":             func(c *communication) { c.False[0].Apart = 4096 },
		"unknown thread of false sharing": func(c *communication) { c.False[0].Threads[0] = 8 },
		"order of false sharing": func(c *communication) {
			more := c.False[0]
			more.Misses, more.Events = 9, 9
			c.Granules[1].Classes[profile.FalselyShared].Granules = 2
			c.False = append(c.False, more)
		},
		"order of sources":           func(c *communication) { c.Sources = append(c.Sources, c.Sources[0]) },
		"more transfers than events": func(c *communication) { c.Sources[0].Transfers.AddN(1, 5) },
	} {
		p := withCommunication()
		if breakIt(p.Communication); p.Check() == nil {
			t.Errorf("%s: Check() = nil, want an error", name)
		}
	}
}

// Decoding must not allocate much memory if a list or a histogram states a very large length that
// is wrong.
func TestDecodeCommunicationAllocatesLittle(t *testing.T) {
	far := string(append([]byte{1}, binary.AppendUvarint(nil, 0xfffffff0)...)) + "\x01"
	head := "\x00\x02\x08\x00" + strings.Repeat("\x00", 15) + "\x80\x20\x00" + strings.Repeat("\x00", 15) + "\x00\x01\x00\x00\x00\x01"
	var sources strings.Builder
	sources.WriteString(string(binary.AppendUvarint(nil, 500)))
	for range 500 {
		sources.WriteString("\x01\x02" + far + far)
	}
	cold := string(binary.AppendUvarint(nil, 1<<40))
	data := sections("INPT", "\x03din\x00\x07\x00\x00\x00", "TOTL", strings.Repeat("\x00", 15), "STAT", "\x00\x00",
		"LOCA", "\x40\x01\x00"+cold+"\x00", "WIND", "\x40\x80\x08\x00\x00", "COMM", head+sources.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := profile.Decode(data); err == nil || !strings.Contains(err.Error(), "long stack distances between many threads") {
		t.Errorf("Decode of a profile with very many long stack distances = %v, want an error about long stack distances", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 128<<20 {
		t.Errorf("decoding %d bytes needed %d bytes of memory, want at most 128 MiB", len(data), n)
	}
}

// FuzzDecodeCommunication decodes complete sections with arbitrary content.
func FuzzDecodeCommunication(f *testing.F) {
	data := withCommunication().Encode()
	tag := []byte("COMM")
	at := bytes.Index(data, tag)
	length, n := binary.Uvarint(data[at+4:])
	f.Add(string(data[at+4+n:][:length]))
	f.Fuzz(func(t *testing.T, content string) {
		p, err := profile.Decode(sections("INPT", "\x03din\x00\x07\x00\x00\x00", "TOTL", "\x02"+strings.Repeat("\x00", 13)+"\x01\x02\x01\x07", "STAT", "\x00\x00", "COMM", content))
		if err != nil {
			return
		}
		if again, err := profile.Decode(p.Encode()); err != nil || again.Digest() != p.Digest() {
			t.Fatalf("a decoded profile cannot be encoded and decoded again: %v", err)
		}
	})
}
