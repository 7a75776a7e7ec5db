package loopcount_test

import (
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// columns is a run that walks an array of 64 rows of 512 bytes by columns, 8 times.
func columns(t *testing.T) []byte {
	t.Helper()
	f := loops.NewFolder(0)
	b := trace.NewBatch(64)
	for i := range 8 * 64 {
		b.Reset()
		b.NeedSite()
		b.Resize(64)
		for j := range 64 {
			b.Addr[j], b.Bytes[j], b.Kind[j], b.Site[j] = uint64(0x1000+j*512+i%64*8), 8, trace.Load, 0
		}
		if err := f.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
	p := &profile.Profile{Loops: f.Finish().Append(nil)}
	return p.Encode()
}

func all(c *loopcount.Counter, q answers.LoopQuestion) (replies []*answers.Reply) {
	c.Answer(q, func() bool { return true }, func(r *answers.Reply) { replies = append(replies, r) })
	return replies
}

func TestCounter(t *testing.T) {
	c, err := loopcount.Open(columns(t))
	if err != nil {
		t.Fatal(err)
	}
	q := answers.LoopQuestion{Machine: []string{"L1=4KiB,8", "L2=64KiB,8"}}
	r := all(c, q)
	if len(r) != 2 || r[0].Part != "" || r[1].Part != answers.PartChanges || !r[0].More || r[1].More || r[1].Problem != "" || len(r[1].Tables) != 0 {
		t.Fatalf("%+v", r)
	}
	// Columns of 64 lines a row apart fall into one set of 8 ways: each access misses in
	// the small cache, and each line once in the large one.
	if l := r[0].Table("by_loop"); len(l.Columns) != 2 || !report.Equal(l.Rows[0][0], report.Count(8*64*64)) || !report.Equal(l.Rows[0][1], report.Count(64*8)) {
		t.Errorf("%+v", l)
	}
	q.Changes = []answers.NestChange{{Kind: "interchange", Text: "j,k"}, {Kind: "pad", Text: "nobody=+8"}, {Kind: "twist", Text: "i"}}
	if r = all(c, q); len(r) != 2 || len(r[1].Table("wrong").Rows) != 3 || r[1].Table("wrong").Rows[1][0].Plain() == "" || !strings.Contains(r[1].Table("wrong").Rows[2][0].Plain(), "pad, interchange") {
		t.Fatalf("%+v", r[1])
	}
	again := all(c, q)
	if again[1] != r[1] {
		t.Error("tried again")
	}
	q = answers.LoopQuestion{Machine: []string{"L1=4KiB,8"}, Propose: true}
	if r = all(c, q); len(r) != 2 || r[1].Table("proposed") == nil {
		t.Fatalf("%+v", r[1])
	}
	for _, bad := range []answers.LoopQuestion{{}, {Machine: []string{"L1=nothing"}}, {Machine: q.Machine, Loop: 1 << 31}, {Machine: q.Machine, Nest: 7}} {
		if r = all(c, bad); len(r) != 1 || r[0].Problem == "" {
			t.Errorf("%+v: %+v", bad, r)
		}
	}
}

// What is stopped gives nothing, and can be asked again.
func TestCounterStops(t *testing.T) {
	c, err := loopcount.Open(columns(t))
	if err != nil {
		t.Fatal(err)
	}
	q := answers.LoopQuestion{Machine: []string{"L1=4KiB,8"}, Propose: true}
	all(c, answers.LoopQuestion{Machine: q.Machine})
	var replies []*answers.Reply
	c.Answer(q, func() bool { return false }, func(r *answers.Reply) { replies = append(replies, r) })
	if len(replies) != 1 || replies[0].Part != "" {
		t.Errorf("%+v", replies)
	}
	if r := all(c, q); len(r) != 2 || r[1].Table("proposed") == nil {
		t.Errorf("%+v", r)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, encoded := range [][]byte{nil, {1, 2, 3}, new(profile.Profile).Encode(), (&profile.Profile{Loops: []byte{7, 7, 7}}).Encode()} {
		if _, err := loopcount.Open(encoded); err == nil {
			t.Errorf("% x was taken", encoded)
		}
	}
}
