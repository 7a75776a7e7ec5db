package state

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// The function "ring" returns the view of a trace in which three threads pass values in a ring,
// with a case of false sharing.
func ring() *View {
	v := tabled([]uint64{1, 2, 3})
	p := v.Profile
	p.Totals.Threads = []uint32{1, 2, 7}
	p.Sites = &profile.Sites{LineBytes: 64, Code: []profile.Site{{File: "ring.c", Line: 9, Function: "make"}, {File: "ring.c", Line: 14, Function: "use"}},
		Data: []profile.DataObject{{Kind: profile.GlobalObject, Name: "buffer"}}}
	flows := []profile.Flow{{From: 1, To: 2, Events: 30, Transfers: 20, Bytes: 160}, {From: 2, To: 7, Events: 5, Transfers: 5, Bytes: 40}, {From: 7, To: 1, Events: 1, Transfers: 1, Bytes: 8}}
	part := func(first, most uint32, class profile.SharingClass) profile.OwnedPart {
		return profile.OwnedPart{FirstTouch: first, Most: most, Readers: 2, Writers: 1, Class: class, References: 10, Own: 6}
	}
	var transfers profile.Histogram
	transfers.AddN(3, 4)
	transfers.AddN(100, 6)
	p.Communication = &profile.Communication{
		Granules: []profile.Granule{{Bytes: 8, Flows: flows, Classes: [profile.NumSharingClasses]profile.ClassCount{{References: 90}}}, {Bytes: 64, Flows: flows[:1]}, {Bytes: 4096}},
		Pairs: []profile.SitePair{{Producer: 0, Consumer: 1, Object: 0, From: 1, To: 2, Events: 30, Transfers: 20},
			{Producer: 0, Consumer: 1, Object: 0, From: 2, To: 7, Events: 5, Transfers: 5}, {Producer: 1, Consumer: 0, Object: profile.NoSite, From: 7, To: 1, Events: 1, Transfers: 1}},
		Windows: []profile.FlowWindow{{Flows: flows[:1]}, {Flows: flows[1:]}}, Window: 1024,
		Owners: []profile.Ownership{{Object: 0, PartBytes: 64, First: 2, Parts: []profile.OwnedPart{part(1, 1, profile.PrivateData), part(1, 7, profile.ProducerConsumer), {}}}},
		False: []profile.FalseSharing{{Object: 0, Offset: 128, Sites: [2]uint32{0, 1}, Threads: [2]uint32{1, 7}, Lines: 1, Events: 40, Apart: 8},
			{Object: profile.NoSite, Sites: [2]uint32{profile.NoSite, profile.NoSite}, Lines: 3, Events: 9}},
		LineSharing: []profile.LineSharing{{Object: 0, Lines: 1, Owners: 2, Moves: 90, PingPongs: 40, Apart: 8, Sites: [2]uint32{0, 1}, Threads: [2]uint32{1, 7}}},
		Sources:     []profile.SourceDistances{{From: 1, To: 2, Transfers: transfers}},
		Messages:    208,
	}
	return v
}

func TestFlowMatrix(t *testing.T) {
	c := ring().Communication()
	m := c.FlowMatrix(0, 0, FlowBytes, [2]int{0, 1})
	if got := strings.Join(m.Rows, " "); got != "1 2 7" || len(m.Values) != 9 {
		t.Fatalf("rows %s, %d values", got, len(m.Values))
	}
	want := []float64{0, 160, 0, 0, 0, 40, 8, 0, 0}
	for i, v := range want {
		if m.Values[i] != v {
			t.Errorf("value %d is %v, want %v", i, m.Values[i], v)
		}
	}
	if m.Texts[1] != "160\u202fB" || m.Row != 0 || m.Column != 1 || !strings.Contains(m.Summary, "from thread 1 to thread 2") {
		t.Errorf("%+v", m)
	}
	if m := c.FlowMatrix(0, 2, Events, [2]int{-1, -1}); m.Values[1] != 0 || m.Values[5] != 5 || !strings.Contains(m.Summary, "references 1\u202f025") {
		t.Errorf("window 2: %v, %s", m.Values, m.Summary)
	}
	if m := c.FlowMatrix(2, 0, Events, [2]int{-1, -1}); !strings.HasPrefix(m.Summary, "No thread used a value") {
		t.Error(m.Summary)
	}
	if s := c.FlowSentence(0, 0, [2]int{0, 1}); s != "Thread 1 to thread 2: 20 transfers, 160\u202fB, in 30 events." {
		t.Error(s)
	}
	if s := c.FlowSentence(0, 0, [2]int{1, 1}); !strings.HasSuffix(s, "nothing.") {
		t.Error(s)
	}
	if got := string(c.FlowsTable(1, 0).CSV()); got != "from,to,events,transfers,bytes\n1,2,30,20,160\n" {
		t.Error(got)
	}
}

func TestTablesAndSentencesAboutCommunication(t *testing.T) {
	c := ring().Communication()
	if got := strings.Join(c.PairsTable([2]int{-1, -1}).Row(0), "|"); got != "ring.c:9  make|ring.c:14  use|buffer|1|2|20|30" {
		t.Error(got)
	}
	if picked := c.PairsTable([2]int{1, 2}); picked.Rows != 1 || strings.Join(picked.Row(0)[3:], "|") != "2|7|5|5" || !strings.HasSuffix(picked.Caption, "thread 2 to thread 7") {
		t.Errorf("table of a selected flow = %s, %s; want one row from thread 2 to thread 7", picked.Caption, picked.CSV())
	}
	if s := c.SourceSentence(4 * 64); !strings.HasPrefix(s, "4 of 10 line transfers (40\u202f%) come from") || !strings.Contains(s, "; the others come from memory. The caches exchange ") {
		t.Error(s)
	}
	if s := c.SourceSentence(1 << 30); !strings.Contains(s, "; none comes from memory.") {
		t.Error(s)
	}
	for want, flows := range map[string][]profile.Flow{
		"20 transfers in all, from thread 1 to thread 2.":                                                  {{From: 1, To: 2, Transfers: 20}},
		"26 transfers in all; the largest flow, 20, goes from thread 1 to thread 2.":                       {{From: 1, To: 2, Transfers: 20}, {From: 2, To: 1, Transfers: 6}},
		"3 transfers in all; at most 1 from one thread to another, for example from thread 2 to thread 1.": {{From: 2, To: 1, Transfers: 1}, {From: 3, To: 1, Transfers: 1}, {From: 4, To: 1, Transfers: 1}},
		"No thread used a value that another thread wrote.":                                                {{From: 1, To: 2, Events: 3}},
	} {
		if got := c.flowSentence(flows, Transfers); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := c.ownerSentence(&profile.Ownership{Parts: []profile.OwnedPart{{References: 1}}}); s != "1 part was touched, none by several threads. Every part is used most by the thread that touched it first. First-touch placement puts memory near the thread that touches it first." {
		t.Error(s)
	}
	f := c.FalseFindings()
	if len(f) != 1 || f[0].Name != "buffer" || !f[0].Seen || !strings.Contains(f[0].Text, "2 threads write different words of the same line, mostly at ring.c:9 in make and ring.c:14 in use. In this run, the threads invalidated each other's copies 40 times") || !strings.Contains(f[0].Fix, "alignas(64)") {
		t.Errorf("%+v", f)
	}
	if s := c.FalseSentence(); s != "False sharing: buffer (invalidated 40 times in this run)." {
		t.Error(s)
	}
	if row := strings.Join(c.FalseTable().Row(0), "|"); !strings.HasPrefix(row, "buffer|in this run|2|1|40|90|") {
		t.Error(row)
	}
	if traffic := c.TrafficTable(); traffic.Rows != len(c.Granules) || !strings.HasPrefix(string(traffic.CSV()), "granule_bytes,") {
		t.Errorf("%d rows: %s", traffic.Rows, traffic.CSV())
	}
	if s := c.Sentence(); s != "40\u202f% of the references access words that were last written by another thread; at least 208\u202fB must be transferred between threads." {
		t.Error(s)
	}
	c = ring().Communication()
	c.LineSharing = []profile.LineSharing{}
	if s := c.FalseSentence(); !strings.HasPrefix(s, "No false sharing: ") || c.FalseTable() != nil {
		t.Error(s)
	}
}

// TestThreadFindings checks that the overview mentions false sharing and the largest flow.
func TestThreadFindings(t *testing.T) {
	text := ""
	for _, f := range ring().Findings(hierarchy.Hierarchy{}) {
		if f.Tab == TabCommunication {
			text += f.ID + ": " + f.Text + "\n"
		}
	}
	for _, want := range []string{"false-sharing: buffer: 2 threads write different words", "alignas(64)", "flow: 40\u202f% of the references", "160\u202fB, goes from thread 1 to thread 2."} {
		if !strings.Contains(text, want) {
			t.Errorf("text = %s, want %q in it", text, want)
		}
	}
}

func TestOwnerMap(t *testing.T) {
	c := ring().Communication()
	m := c.OwnerMap(c.Objects()[0])
	if len(m.Rows) != 2 || len(m.Columns) != 3 || strings.Join(m.Letters, " ") != "1 2 7" {
		t.Fatalf("%+v", m)
	}
	want := []float64{1, 1, 0, 1, 3, 0}
	for i, v := range want {
		if m.Values[i] != v {
			t.Errorf("value %d is %v, want %v", i, m.Values[i], v)
		}
	}
	if m.Texts[4] != "bytes 192 to 255: first touched by thread 1, used most by thread 7 (60\u202f% of 10 references), producer-consumer" {
		t.Error(m.Texts[4])
	}
	if !strings.Contains(m.Summary, "1 part is used more by another thread than by the thread that touched it first") {
		t.Error(m.Summary)
	}
	if row := c.OwnersTable(0).Row(1); row[0] != "192" || row[2] != "7" {
		t.Error(row)
	}
}

// TestFlowsOfManyThreads checks that the flows of threads with high numbers are drawn even if there
// are too many threads to draw all of them. A note must state which threads are missing.
func TestFlowsOfManyThreads(t *testing.T) {
	v := ring()
	p := v.Profile
	p.Totals.Threads = nil
	for n := range uint32(100) {
		p.Totals.Threads = append(p.Totals.Threads, n)
	}
	p.Communication.Granules[0].Flows = []profile.Flow{{From: 98, To: 99, Events: 3, Transfers: 2, Bytes: 16}}
	p.Communication.Beyond = 36
	p.Sharing = []profile.Sharing{{LineBytes: 64, Cores: make([]profile.Core, 64)}}
	c := v.Communication()
	m := c.FlowMatrix(0, 0, Transfers, [2]int{-1, -1})
	if n := len(m.Rows); n != profile.MaxThreads || m.Rows[n-1] != "99" || m.Values[(n-2)*n+n-1] != 2 {
		t.Errorf("%d rows, %v", len(m.Rows), m.Rows)
	}
	if got := strings.Join(c.Doubts(), "\n"); !strings.Contains(got, "There are more than 64 threads; the 37 threads that appear last count as one thread") || !strings.Contains(got, "100 threads run on 64 cores") {
		t.Error(got)
	}
	if got := ring().Communication().Doubts(); len(got) != 0 {
		t.Errorf("sentence for three threads = %q", got)
	}
}

// TestAbsentThreads checks that the page reports groups that contain threads that are not in the
// trace.
func TestAbsentThreads(t *testing.T) {
	p := ring().Profile
	if got := AbsentThreads(p, [][]uint32{{1, 2}, {8, 9}, {7, 10}}); got != "Threads that share a private cache, 8,9: the trace contains none of these threads, only 1,2,7. "+
		"Threads that share a private cache, 7,10: the trace contains only some of these threads: 7." {
		t.Error(got)
	}
	if got := AbsentThreads(p, [][]uint32{{1, 2}}); got != "" {
		t.Error(got)
	}
}
