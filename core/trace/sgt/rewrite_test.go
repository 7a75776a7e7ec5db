package sgt

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// rewritten copies a part of a container to a new container.
func rewritten(t failer, file []byte, part Part) []byte {
	t.Helper()
	var out bytes.Buffer
	x := NewRewriter(&out, NewReader("t", bytes.NewReader(file), Options{}), part)
	x.w.full.steps = 100
	var err error
	for err == nil {
		err = x.Copy(7)
	}
	if err != io.EOF {
		t.Fatalf("%v", err)
	}
	if err := x.Close("converted"); err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes()
}

// TestRewriteKeepsSteps checks that the steps, their tickets, and the tables are unchanged if a
// whole container is rewritten.
func TestRewriteKeepsSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		want := someSteps(t, p, 8)
		program, got := naiveFile(t, rewritten(t, write(t, p, want, someChunks(t)), Part{Kinds: trace.AllKinds}))
		same := func(a, b step) bool {
			return a.thread == b.thread && a.ticket == b.ticket && a.block == b.block && slices.Equal(a.values, b.values)
		}
		if !slices.EqualFunc(got, want, same) || len(program.Blocks) != len(p.Blocks) {
			t.Fatalf("got\n%v\nwant\n%v", got, want)
		}
	})
}

// TestRewritePart checks that a rewritten part contains exactly the references that have the
// selected kinds and threads and are within the limits set by Skip and Limit.
func TestRewritePart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		for i := range p.Sites {
			if p.Sites[i].Kind.IsReference() && p.Sites[i].Bytes == 0 {
				p.Sites[i].Flags = trace.NoSize // with NoSize, each reference is exactly one row
			}
		}
		steps := someSteps(t, p, 5)
		part := Part{
			Kinds:   rapid.SampledFrom([]trace.Kinds{trace.AllKinds, trace.DataKinds, 1 << trace.Load}).Draw(t, "kinds"),
			Threads: rapid.SampledFrom([][]uint32{nil, nil, {1}, {2, 3}}).Draw(t, "threads"),
			Skip:    rapid.Uint64Range(0, 300).Draw(t, "skip"), Limit: rapid.Uint64Range(0, 300).Draw(t, "limit"),
		}
		want := naiveRows(p, steps, part.Kinds)
		want = slices.DeleteFunc(want, func(r row) bool { return part.Threads != nil && !slices.Contains(part.Threads, r.thread) })
		want = want[min(int(part.Skip), len(want)):]
		if part.Limit > 0 {
			want = want[:min(int(part.Limit), len(want))]
		}
		r := NewReader("t", bytes.NewReader(rewritten(t, write(t, p, steps, someChunks(t)), part)), Options{})
		got, end := rowsOf(t, r, 64)
		if end != io.EOF {
			t.Fatalf("%v", end)
		}
		sites := r.Header().Program.Sites
		for i := range got { // compare the contents of the sites, because their numbers differ
			site, was := sites[got[i].site], p.Sites[want[min(i, len(want)-1)].site]
			if site.Block, was.Block = 0, 0; site != was {
				t.Fatalf("row %d has site\n%+v, want\n%+v", i, site, was)
			}
			got[i].site = want[i].site
		}
		compareRows(t, "part", got, want)
		if e := r.Ending(); e.References != uint64(len(want)) || part.Limit == 0 && e.Status != 3 {
			t.Fatalf("Ending() = %+v, want %d references, and the old values in all other fields", e, len(want))
		}
	})
}

// TestRewriteDamagedContainer checks that the function Copy copies the readable part of a damaged
// container and reports the damage.
func TestRewriteDamagedContainer(t *testing.T) {
	file := written(t, generatedPrograms[3])
	x := NewRewriter(io.Discard, NewReader("t", bytes.NewReader(file[:len(file)*2/3]), Options{}), Part{Kinds: trace.AllKinds})
	var err error
	for err == nil {
		err = x.Copy(1000)
	}
	var damage *trace.DamageError
	if !errors.As(err, &damage) || !damage.Cut || x.References() == 0 {
		t.Errorf("error %v after %d references, want an error that reports truncation, after at least one reference", err, x.References())
	}
	if err := x.Close("cut"); err != nil {
		t.Error(err)
	}
}
