package sasmm

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/ppt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func TestDivisionOfExecutions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		n    uint64
		want [][]uint64 // for each core, the numbers of the executions that the core performs
	}{
		{Options{Cores: 3}, 7, [][]uint64{{0, 1, 2}, {3, 4}, {5, 6}}},
		{Options{Cores: 3}, 2, [][]uint64{{0}, {1}, nil}},
		{Options{Cores: 2}, 1, [][]uint64{{0}, {0}}},
		{Options{Cores: 2, Chunk: 2}, 7, [][]uint64{{0, 1, 4, 5}, {2, 3, 6}}},
		{Options{Cores: 3, Chunk: 1 << 63}, 3, [][]uint64{{0, 1, 2}, nil, nil}},
		// Core 0 performs 4 of 7 executions. Core 1 performs 2 of the remaining 3 executions, and
		// also the last execution, because core 1 is free first.
		{Options{Cores: 2, Guided: true}, 7, [][]uint64{{0, 1, 2, 3}, {4, 5, 6}}},
		{Options{Cores: 3, Guided: true, Chunk: 2}, 8, [][]uint64{{0, 1, 2}, {3, 4, 7}, {5, 6}}},
	} {
		s := c.o.share(c.n)
		most := uint64(0)
		for core, want := range c.want {
			var got []uint64
			for j := range s.count(core) {
				n := s.nthExecution(core, j)
				if got = append(got, n); c.n > 1 && s.coreOf(n) != core {
					t.Errorf("%+v: coreOf(%d) = %d, want %d", c.o, n, s.coreOf(n), core)
				}
			}
			if most = max(most, uint64(len(got))); !slices.Equal(got, want) {
				t.Errorf("%+v, %d executions: core %d executes %v, want %v", c.o, c.n, core, got, want)
			}
		}
		if s.most() != most {
			t.Errorf("%+v: most() = %d, want %d", c.o, s.most(), most)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{}, {Cores: 65}, {Cores: 2, Order: interleave.Order{Policy: interleave.ByTime}}, {Cores: 1, LimitBytes: -1},
		{Cores: 2, Ranges: []Range{{5, 5}}}, {Cores: 2, Ranges: []Range{{5, 9}, {8, 10}}},
	} {
		var wrong *trace.OptionError
		if _, err := Private(nil, o); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestErrors checks that, for a trace that cannot be divided, every call returns the same error.
func TestErrors(t *testing.T) {
	p := forking()
	steps := run(rand.New(rand.NewPCG(5, 6)), p, 2, 500, true)
	whole := func(change func(*trace.Batch)) trace.Reader {
		b := tracetest.Rows(p, steps...)
		change(b)
		return tracetest.NewProgramReader(p, b, 100)
	}
	for name, c := range map[string]struct {
		in trace.Reader
		o  Options
		is func(error) bool
	}{
		"too long": {whole(func(*trace.Batch) {}), Options{LimitBytes: 6000}, func(err error) bool {
			var e *LimitError
			return errors.As(err, &e) && e.Executions > 100 && !e.PerRegion
		}},
		"region too long": {whole(func(*trace.Batch) {}), Options{LimitBytes: 4000, PerRegion: true}, func(err error) bool {
			var e *LimitError
			return errors.As(err, &e) && e.PerRegion
		}},
		"no blocks": {tracetest.NewReader(tracetest.Lines(64, "a b c"), 0), Options{}, func(err error) bool {
			var e *BlocksError
			return errors.As(err, &e)
		}},
		"threads": {whole(func(b *trace.Batch) { b.Thread[b.Len()-1] = 9 }), Options{}, func(err error) bool {
			var e *ThreadsError
			return errors.As(err, &e) && e.One == 7 && e.Another == 9
		}},
		"address": {whole(func(b *trace.Batch) {
			at := slices.Index(b.Kind, trace.ParallelBegin)
			b.Addr[at+slices.IndexFunc(b.Kind[at:], trace.Kind.IsReference)] = 1 << 50
		}), Options{Ranges: Ranges(nil)}, func(err error) bool {
			var e *AddressError
			return errors.As(err, &e)
		}},
		"damage": {tracetest.Broken(tracetest.Lines(64, "a b c"), 2, io.ErrUnexpectedEOF), Options{PerRegion: true}, func(err error) bool {
			return err == io.ErrUnexpectedEOF
		}},
	} {
		c.o.Cores = 2
		r, err := Shared(c.in, c.o)
		if err != nil {
			t.Fatal(err)
		}
		b := trace.NewBatch(64)
		for err = r.Next(b); err == nil; {
			err = r.Next(b)
		}
		if again := r.Next(b); !c.is(err) || again != err || b.Len() > 0 {
			t.Errorf("%s: error %v, then error %v with %d rows; want the same error again without rows", name, err, again, b.Len())
		}
	}
}

func pptReader(text string) *ppt.Reader { return ppt.NewReader("t", strings.NewReader(text)) }

// TestSyntaxErrors checks that the reader returns syntax errors, and can continue after them.
func TestSyntaxErrors(t *testing.T) {
	r, err := Private(pptReader("BB START: aa\nLOAD: 0x1\nx\nLOAD: 0x2\nBB DONE: aa\n"), Options{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	var addrs []trace.Addr
	wrong := 0
	for b := trace.NewBatch(0); ; {
		err := r.Next(b)
		if addrs = append(addrs, b.Addr...); trace.IsSyntax(err) {
			wrong++
		} else if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if wrong != 1 || !slices.Equal(addrs, []trace.Addr{1, 2}) {
		t.Errorf("%d errors, addresses %v", wrong, addrs)
	}
}

// TestBlocksWithoutReferences checks that, if a caller selects bare blocks, the reader returns only
// the entries of blocks without references.
func TestBlocksWithoutReferences(t *testing.T) {
	p := forking()
	steps := run(rand.New(rand.NewPCG(7, 8)), p, 3, 60, true)
	open := func(o Options) *Reader {
		r, err := Shared(tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 100), o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var want []ref
	for _, x := range drain(t, open(Options{Cores: 3}), trace.DataKinds|1<<trace.BlockEntry, 0) {
		if x.Kind == trace.BlockEntry {
			if x.Kind = trace.BareBlock; x.Site != bareBody {
				continue
			}
		}
		want = append(want, x)
	}
	wantSame(t, "bare", drain(t, open(Options{Cores: 3}), trace.DataKinds|1<<trace.BareBlock, 0), want)
}

// TestOneCoreMatchesRecordedTrace checks that the trace synthesised for one core equals the
// recorded trace, whichever order is selected.
func TestOneCoreMatchesRecordedTrace(t *testing.T) {
	p := forking()
	steps := run(rand.New(rand.NewPCG(9, 10)), p, 3, 300, false)
	var want []ref
	for _, w := range windowsOf(p, steps) {
		want = append(want, w.rows...)
	}
	for _, o := range []Options{{}, {PerRegion: true}, {Order: interleave.Order{Policy: interleave.Uniform}}, {Guided: true, Ranges: Ranges(nil)}} {
		o.Cores = 1
		for _, make := range []func(trace.Reader, Options) (*Reader, error){Private, Shared} {
			r, err := make(tracetest.NewProgramReader(p, tracetest.Rows(p, steps...), 0), o)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "one core", drain(t, r, everything, 0), want)
		}
	}
}

// TestCoreStacks checks that the header contains the private stacks.
func TestCoreStacks(t *testing.T) {
	p := forking()
	p.Threads = []trace.Thread{{Number: 7, Name: "main", StackLow: frame - 64, StackHigh: frame + 64}}
	step := func(block uint32, values ...uint64) tracetest.Step {
		return tracetest.Step{Block: block, Thread: 7, Values: values}
	}
	whole := tracetest.Rows(p, step(forks, 1, frame), step(tail, frame-65), step(tail, frame-64), step(joins, 1))
	r, err := Private(tracetest.NewProgramReader(p, whole, 0), Options{Cores: 2, Chunk: 1, PerRegion: true})
	if err != nil {
		t.Fatal(err)
	}
	got := drain(t, r, trace.DataKinds, 0)
	h := r.Header()
	if len(h.Program.Threads) != 2 {
		t.Fatalf("%d threads", len(h.Program.Threads))
	}
	of := ofThread(got, 1)
	if x := h.Program.Threads[1]; len(of) != 1 || of[0].Addr != x.StackLow || x.Number != 1 || x.StackLow != 1<<48|(frame-64) {
		t.Errorf("thread %[2]v has the references %[1]x, want one reference to the lowest address of its stack", of, x)
	}
}
