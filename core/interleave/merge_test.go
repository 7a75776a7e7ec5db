package interleave

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/trace"
)

// row contains the columns of one row of a batch. The values in missing columns are 0.
type row struct {
	addr   trace.Addr
	bytes  uint32
	kind   trace.Kind
	thread uint32
	pc     trace.Addr
	site   uint32
	arg    uint64
}

// columns specifies which optional columns a stream has.
type columns struct{ site, arg, pc bool }

// chunkedStream is a stream that returns its rows in chunks of random lengths. Each chunk is a
// slice of a larger batch, which the next call overwrites.
type chunkedStream struct {
	rows []row
	has  columns
	rng  *rand.Rand
	most int
	last *trace.Batch
	err  error // the error that is returned after the rows; nil means io.EOF
}

func (p *chunkedStream) Next() (*trace.Batch, int, int, error) {
	if p.last != nil {
		p.last.Spoil()
	}
	if len(p.rows) == 0 {
		if p.err != nil {
			return nil, 0, 0, p.err
		}
		return nil, 0, 0, io.EOF
	}
	n := min(1+p.rng.IntN(p.most), len(p.rows))
	before, behind := p.rng.IntN(3), p.rng.IntN(3)
	b := trace.NewBatch(before + n + behind)
	if p.has.site {
		b.NeedSite()
	}
	if p.has.arg {
		b.NeedArg()
	}
	if p.has.pc {
		b.NeedPC()
	}
	b.Resize(b.Cap())
	b.Spoil()
	for i, r := range p.rows[:n] {
		i += before
		b.Addr[i], b.Bytes[i], b.Kind[i] = r.addr, r.bytes, r.kind
		if p.has.site {
			b.Site[i] = r.site
		}
		if p.has.arg {
			b.Arg[i] = r.arg
		}
		if p.has.pc {
			b.PC[i] = r.pc
		}
	}
	p.rows, p.last = p.rows[n:], b
	return b, before, before + n, nil
}

// turns returns the turns of a stream, as the documentation of [Merger] defines them.
func turns(rows []row, blocks bool) (list [][]row) {
	var turn []row
	inBlock := false
	for _, r := range rows {
		if blocks && r.kind == trace.BlockEntry {
			if len(turn) > 0 {
				list, turn = append(list, turn), nil
			}
			inBlock = true
		}
		turn = append(turn, r)
		if !inBlock && r.kind.IsReference() {
			list, turn = append(list, turn), nil
		}
	}
	if len(turn) > 0 {
		list = append(list, turn)
	}
	return list
}

// naive is a reference implementation that merges a whole phase turn by turn.
func naive(o Order, phases [][][]row) (merged []row) {
	random := splitmix(o.Seed)
	for _, streams := range phases {
		left := make([][][]row, len(streams))
		clocks := make([]float64, len(streams))
		for c, rows := range streams {
			left[c] = turns(rows, o.Policy >= ByBlock)
		}
		next := -1
		for {
			var live []int
			for c := range left {
				if len(left[c]) > 0 {
					live = append(live, c)
				}
			}
			if len(live) == 0 {
				break
			}
			switch o.Policy {
			case Uniform:
				next = live[int(random.next()>>32*uint64(len(live))>>32)]
			case ByTime:
				next = live[0]
				for _, c := range live {
					if clocks[c] < clocks[next] {
						next = c
					}
				}
			default:
				next++
				for len(left[next%len(left)]) == 0 {
					next++
				}
				next %= len(left)
			}
			turn := left[next][0]
			left[next] = left[next][1:]
			merged = append(merged, turn...)
			if turn[0].kind == trace.BlockEntry && int(turn[0].site) < len(o.Cycles) {
				clocks[next] += o.Cycles[turn[0].site]
				continue
			}
			for _, r := range turn {
				if r.kind.IsReference() {
					clocks[next]++
				}
			}
		}
	}
	return merged
}

// drawRows draws random rows of a core, including block entries and other events.
func drawRows(t *rapid.T, core uint32, has columns) (rows []row) {
	kinds := rapid.SampledFrom([][]trace.Kind{
		{trace.Load, trace.Store},
		{trace.Load, trace.Store, trace.Call, trace.Return, trace.BlockEntry},
		{trace.Load, trace.BlockEntry, trace.BlockEntry},
		{trace.Modify, trace.Modify, trace.Modify, trace.Modify, trace.RangeRead, trace.BlockEntry, trace.CriticalBegin},
	}).Draw(t, "kinds")
	n := rapid.SampledFrom([]int{0, 1, 7, 40, 3000}).Draw(t, "rows")
	rng := rand.New(rand.NewPCG(uint64(core), rapid.Uint64().Draw(t, "seed")))
	for i := range n {
		r := row{kind: kinds[rng.IntN(len(kinds))], thread: core, addr: uint64(core)<<32 + uint64(i), bytes: uint32(1 + rng.IntN(8))}
		if has.site {
			r.site = uint32(rng.IntN(5))
		}
		if has.arg {
			r.arg = rng.Uint64()
		}
		if has.pc {
			r.pc = rng.Uint64()
		}
		rows = append(rows, r)
	}
	return rows
}

// rowsOf returns the rows of a batch, beginning with the given row.
func rowsOf(b *trace.Batch, from int) (rows []row) {
	for i := from; i < b.Len(); i++ {
		r := row{addr: b.Addr[i], bytes: b.Bytes[i], kind: b.Kind[i], thread: b.Thread[i]}
		if b.Site != nil {
			r.site = b.Site[i]
		}
		if b.Arg != nil {
			r.arg = b.Arg[i]
		}
		if b.PC != nil {
			r.pc = b.PC[i]
		}
		rows = append(rows, r)
	}
	return rows
}

func TestMergeEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Order{Policy: Policy(rapid.IntRange(0, int(ByTime)).Draw(t, "policy")), Seed: rapid.Uint64().Draw(t, "seed")}
		o.Cycles = rapid.SampledFrom([][]float64{nil, {3}, {0, 2.5, 1}, {1, 2, 4, 8, 16}}).Draw(t, "cycles")
		m := New(o)
		b := trace.NewBatch(rapid.SampledFrom([]int{1, 3, 100, 1500, trace.DefaultRows}).Draw(t, "capacity"))
		var phases [][][]row
		var got []row
		for range rapid.IntRange(1, 3).Draw(t, "phases") {
			n := rapid.IntRange(0, 5).Draw(t, "cores")
			var cores []uint32
			var streams []Stream
			var phase [][]row
			for c := range uint32(n) {
				has := columns{rapid.Bool().Draw(t, "site"), rapid.Bool().Draw(t, "arg"), rapid.Bool().Draw(t, "pc")}
				has.site = has.site || o.Policy == ByTime // this policy uses the blocks of the trace
				rows := drawRows(t, 3*c+1, has)
				cores = append(cores, 3*c+1)
				most := rapid.SampledFrom([]int{1, 5, 4096}).Draw(t, "most")
				streams = append(streams, &chunkedStream{rows: rows, has: has, most: most, rng: rand.New(rand.NewPCG(1, uint64(c)))})
				phase = append(phase, rows)
			}
			phases = append(phases, phase)
			m.Begin(cores, streams)
			for {
				from := 0
				if b.Len() == b.Cap() || rapid.Bool().Draw(t, "reset") {
					b.Spoil()
					b.Reset()
				}
				from = b.Len()
				before := rowsOf(b, 0)
				err := m.Fill(b)
				if again := rowsOf(b, 0)[:from]; !reflect.DeepEqual(before, again) && from > 0 {
					t.Fatalf("Fill changed earlier rows")
				}
				got = append(got, rowsOf(b, from)...)
				if err == io.EOF {
					if b.Len() > from {
						t.Fatal("Fill returned io.EOF although it appended rows")
					}
					break
				}
				if err != nil || b.Len() < b.Cap() && b.Len() == from {
					t.Fatalf("Fill appended %d rows, error %v, want a full batch", b.Len()-from, err)
				}
			}
		}
		want := naive(o, phases)
		if len(got) != len(want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("row %d: %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// TestOrderOfEachPolicy compares the order of each policy with a string in which a letter is a
// reference, a digit is a block entry, and a dot is any other event.
func TestOrderOfEachPolicy(t *testing.T) {
	for _, c := range []struct {
		order   Order
		streams []string
		want    string
	}{
		{Order{}, []string{"abc", "x", "pq"}, "axpbqc"},
		{Order{}, []string{"a.b", ".x.", "p"}, "a.xp.b."},
		{Order{Policy: ByBlock}, []string{"0ab1c2", "0x1yz"}, "0ab0x1c1yz2"},
		{Order{Policy: ByBlock}, []string{"ab0cd", "x0y"}, "axb0y0cd"},
		{Order{Policy: ByTime, Cycles: []float64{1, 3}}, []string{"0a0b0c0d", "1x1y"}, "0a1x0b0c0d1y"},
		{Order{Policy: ByTime}, []string{"0abc0d", "0x0y0z0w"}, "0abc0x0y0z0d0w"},
	} {
		var cores []uint32
		var streams []Stream
		for i, word := range c.streams {
			b := trace.NewBatch(len(word))
			b.NeedSite()
			for _, letter := range []byte(word) {
				switch {
				case letter == '.':
					b.Append(trace.Call, 0, 0, 0, 0)
				case letter <= '9':
					b.Append(trace.BlockEntry, 0, 0, 0, 0)
					b.Site[b.Len()-1] = uint32(letter - '0')
				default:
					b.Append(trace.Load, uint64(letter), 1, 0, 0)
				}
			}
			cores, streams = append(cores, uint32(i)), append(streams, &repeatedStream{b: b, left: b.Len()})
		}
		m, b := New(c.order), trace.NewBatch(100)
		m.Begin(cores, streams)
		if err := m.Fill(b); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i, k := range b.Kind {
			switch k {
			case trace.Call:
				got = append(got, '.')
			case trace.BlockEntry:
				got = append(got, byte(b.Site[i])+'0')
			default:
				got = append(got, byte(b.Addr[i]))
			}
		}
		if string(got) != c.want {
			t.Errorf("%s order of %q is %s, want %s", c.order.Policy, c.streams, got, c.want)
		}
	}
}

// TestUniformIsUniform checks that, within five standard deviations, each of four cores has a
// quarter of the turns, and all pairs of successive cores are equally frequent.
func TestUniformIsUniform(t *testing.T) {
	const rows = 1 << 16
	m, b := New(Order{Policy: Uniform, Seed: 7}), trace.NewBatch(rows)
	b0 := references(1000)
	var streams []Stream
	for range 4 {
		streams = append(streams, &repeatedStream{b: b0, left: rows})
	}
	m.Begin([]uint32{0, 1, 2, 3}, streams)
	if err := m.Fill(b); err != nil || b.Len() != rows {
		t.Fatal(b.Len(), err)
	}
	var of [4]int
	var after [4][4]int
	for i, c := range b.Thread {
		of[c]++
		if i > 0 {
			after[b.Thread[i-1]][c]++
		}
	}
	for c, n := range of {
		if n < rows/4-5*111 || n > rows/4+5*111 { // the standard deviation √(rows · 1/4 · 3/4) = 111
			t.Errorf("core %d has %d of %d turns, want about a quarter", c, n, rows)
		}
		for d, n := range after[c] {
			if n < rows/16-5*62 || n > rows/16+5*62 { // the standard deviation √(rows · 1/16 · 15/16) = 62
				t.Errorf("core %d follows core %d in %d of %d turns, want about 1/16", d, c, n, rows)
			}
		}
	}
}

// TestSplitMix checks that the random numbers equal the output of the reference implementation
// (https://prng.di.unimi.it/splitmix64.c, seed 1234567).
func TestSplitMix(t *testing.T) {
	s := splitmix(1234567)
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.next(); got != want {
			t.Errorf("next() = %d, want %d", got, want)
		}
	}
}

func TestStreamError(t *testing.T) {
	broken := errors.New("the disk is gone")
	for policy := RoundRobin; policy <= ByTime; policy++ {
		good := &chunkedStream{rows: []row{{addr: 1}, {addr: 2}, {addr: 3}}, rng: rand.New(rand.NewPCG(1, 1)), most: 9}
		bad := &chunkedStream{rows: []row{{addr: 9}}, rng: rand.New(rand.NewPCG(1, 1)), most: 9, err: broken}
		m, b := New(Order{Policy: policy}), trace.NewBatch(10)
		m.Begin([]uint32{0, 1}, []Stream{good, bad})
		err := m.Fill(b)
		if err != broken || b.Len() == 0 || b.Len() > 4 {
			t.Errorf("%s: %d rows, error %v, want 1 to 4 rows and the error of the stream", policy, b.Len(), err)
		}
		for i, a := range b.Addr {
			if a != 9 && b.Thread[i] == 1 || a == 9 && b.Thread[i] == 0 || a > 9 {
				t.Errorf("%s: row %d has an unexpected address or thread, address %#x", policy, i, a)
			}
		}
	}
}

// repeatedStream is a stream that returns the same rows in each phase.
type repeatedStream struct {
	b    *trace.Batch
	left int
}

func (r *repeatedStream) Next() (*trace.Batch, int, int, error) {
	if r.left == 0 {
		return nil, 0, 0, io.EOF
	}
	n := min(r.left, r.b.Len())
	r.left -= n
	return r.b, 0, n, nil
}

// references returns n loads, with columns for sites and second values.
func references(n int) *trace.Batch {
	b := trace.NewBatch(n)
	b.NeedSite()
	b.NeedArg()
	for i := range n {
		b.Append(trace.Load, uint64(8*i), 8, 0, 0)
	}
	return b
}

// blocks returns n rows that form blocks of three references each.
func blocks(n int) *trace.Batch {
	b := references(n)
	for i := 0; i < n; i += 4 {
		b.Kind[i], b.Site[i] = trace.BlockEntry, uint32(i/4%8)
	}
	return b
}

func TestMergerAllocatesNothing(t *testing.T) {
	for policy := RoundRobin; policy <= ByTime; policy++ {
		m, b := New(Order{Policy: policy, Cycles: []float64{1, 2}}), trace.NewBatch(0)
		var cores []uint32
		var streams []Stream
		for c := range uint32(16) {
			cores, streams = append(cores, c), append(streams, &repeatedStream{b: blocks(500)})
		}
		phase := func() {
			for _, s := range streams {
				s.(*repeatedStream).left = 1200
			}
			m.Begin(cores, streams)
			for {
				b.Reset()
				if m.Fill(b) == io.EOF {
					return
				}
			}
		}
		phase()
		if n := testing.AllocsPerRun(10, phase); n != 0 {
			t.Errorf("%s: %v allocations per phase, want 0", policy, n)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	for policy := RoundRobin; policy <= ByTime; policy++ {
		for _, cores := range []int{2, 16, 64} {
			for name, rows := range map[string]*trace.Batch{"references": references(4096), "blocks": blocks(4096)} {
				b.Run(fmt.Sprintf("%s/cores=%d/%s", policy, cores, name), func(b *testing.B) {
					m, out := New(Order{Policy: policy}), trace.NewBatch(0)
					numbers, streams := make([]uint32, cores), make([]Stream, cores)
					for c := range streams {
						numbers[c], streams[c] = uint32(c), &repeatedStream{b: rows, left: 1 << 62}
					}
					m.Begin(numbers, streams)
					merged := 0
					for merged < b.N {
						out.Reset()
						if err := m.Fill(out); err != nil {
							b.Fatal(err)
						}
						merged += out.Len()
					}
					b.ReportMetric(float64(merged)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				})
			}
		}
	}
}
