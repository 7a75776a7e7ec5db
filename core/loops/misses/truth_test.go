package misses

import (
	"bufio"
	"encoding/csv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// folded returns the loop-compressed form of one of the large traces.
func folded(t testing.TB, name string) *loops.Tree {
	f, err := os.Open(tracetest.RealPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := open.Open(name, f, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fold, b := loops.NewFolder(0), trace.NewBatch(0)
	for {
		if err := r.Next(b); err == io.EOF {
			return fold.Finish()
		} else if err != nil {
			t.Fatal(err)
		}
		if err := fold.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMissesEqualDineroIV compares the misses of loop-compressed traces with DineroIV, and with
// histograms of stack distances. A soak test compares all L1 caches that DineroIV simulated.
func TestMissesEqualDineroIV(t *testing.T) {
	for _, name := range tracetest.RealTraces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(tracetest.DataDir(t), "truth")
			tree := folded(t, name)
			compareRuns(t, tree, name, filepath.Join(dir, "dinero.csv"))
			compareHistogram(t, tree, filepath.Join(dir, name+".histogram.txt"))
		})
	}
}

func compareRuns(t *testing.T, tree *loops.Tree, name, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, title := range table[0] {
		column[title] = i
	}
	for _, row := range table[1:] {
		number := func(title string) uint64 {
			n, err := strconv.ParseUint(row[column[title]], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if row[column["trace"]] != name || row[column["cache"]] != "l1-dcache" {
			continue
		}
		if bytes := number("size_bytes"); os.Getenv("STACKGLASS_SOAK") == "" && bytes != 1024 && bytes != 32768 && bytes != 1<<20 {
			continue
		}
		c := Cache{64, 1, number("size_bytes") / 64}
		if row[column["assoc"]] != "full" {
			c.Ways = number("assoc")
			c.Sets = number("size_bytes") / 64 / c.Ways
		}
		e := newEngine(newLayout(tree, c.LineBytes), c.Sets, c.Ways)
		e.run()
		var reads, writes hits
		for ref, n := range e.byReference() {
			to := &reads
			if tree.References()[ref].Kind != trace.Load {
				to = &writes
			}
			to.accesses += n.accesses
			to.misses += n.misses
		}
		for title, got := range map[string]uint64{
			"read_fetches": reads.accesses, "read_misses": reads.misses, "write_fetches": writes.accesses, "write_misses": writes.misses,
		} {
			if want := number(title); got != want {
				t.Errorf("%v: %s = %d, want %d", c, title, got, want)
			}
		}
	}
}

// byReference adds up the counts of each reference.
func (e *engine) byReference() []hits {
	sum := append([]hits(nil), e.tally.counts[e.nodes:]...)
	var add func(b *block, at int)
	add = func(b *block, at int) {
		for i := range b.items {
			if it := &b.items[i]; it.loop {
				add(it.block, at+it.node)
			} else {
				sum[it.ref].accesses += e.tally.counts[at+it.node].accesses
				sum[it.ref].misses += e.tally.counts[at+it.node].misses
			}
		}
	}
	for i := range e.tops {
		add(e.layout.loops[i], int(e.tops[i].start))
	}
	return sum
}

func compareHistogram(t *testing.T, tree *loops.Tree, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const lines = 1 << 15
	got := capacities(tree, 64, lines)
	want := curve{hits: make([]uint64, lines)}
	for s := bufio.NewScanner(f); s.Scan(); {
		distance, count, _ := strings.Cut(s.Text(), " ")
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if distance == "inf" {
			want.beyond = n
		} else if d, err := strconv.Atoi(distance); err == nil && d < lines {
			want.hits[d] = n
		} else {
			t.Fatalf("cannot read the distance %q: %v", distance, err)
		}
	}
	if got.beyond != want.beyond {
		t.Errorf("%d accesses beyond the largest capacity, want %d", got.beyond, want.beyond)
	}
	for d, n := range want.hits {
		if got.hits[d] != n {
			t.Errorf("%d accesses at distance %d, want %d", got.hits[d], d, n)
		}
	}
	cold := uint64(0)
	for _, n := range firstTouches(newLayout(tree, 64), new(pauser)) {
		cold += n
	}
	if cold != want.beyond {
		t.Errorf("%d first touches, want %d", cold, want.beyond)
	}
}

// BenchmarkPrepare measures how long it takes to prepare loop-compressed traces for simulation.
func BenchmarkPrepare(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		tree := folded(b, name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				newLayout(tree, 64)
			}
		})
	}
}

// BenchmarkFirstLook compares this package with package simulate on loop-compressed traces with few
// loops. The benchmark measures three methods: counting the misses of a new tree, simulating the
// references while the tree is expanded, and simulating references that were expanded in advance.
// The three measurements alternate, and the reported ratios are computed from medians.
func BenchmarkFirstLook(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		compareFirstLook(b, name, folded(b, name))
	}
	for _, k := range irregular {
		compareFirstLook(b, k.name, foldedRows(b, k.run))
	}
}

func compareFirstLook(b *testing.B, name string, tree *loops.Tree) {
	all := unfolded(b, tree)
	simulated := func(b *testing.B, ways uint64, each func(take func(*trace.Batch) error) error) uint64 {
		h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 32768, LineBytes: 64, Ways: uint32(ways % 512)}}}
		s, err := simulate.New(h, simulate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := each(s.Consume); err != nil {
			b.Fatal(err)
		}
		r := s.Result()
		return r.Levels[0].Run.Misses()
	}
	for _, c := range []Cache{{64, 64, 8}, {64, 1, 512}} {
		b.Run(name+"/"+c.String(), func(b *testing.B) {
			var took [3][]float64
			var misses [3]uint64
			for b.Loop() {
				for i, run := range []func(){
					func() {
						r, err := CountAsking(tree, c, nil)
						if err != nil {
							b.Fatal(err)
						}
						misses[0] = r.Total.Misses
					},
					func() {
						misses[1] = simulated(b, c.Ways, func(take func(*trace.Batch) error) error {
							r, batch := tree.Expand(), trace.NewBatch(0)
							for r.Next(batch) == nil {
								if err := take(batch); err != nil {
									return err
								}
							}
							return nil
						})
					},
					func() {
						misses[2] = simulated(b, c.Ways, func(take func(*trace.Batch) error) error {
							for _, batch := range all {
								if err := take(batch); err != nil {
									return err
								}
							}
							return nil
						})
					},
				} {
					runtime.GC()
					before := b.Elapsed()
					run()
					took[i] = append(took[i], (b.Elapsed() - before).Seconds())
				}
			}
			if misses[0] != misses[1] || misses[0] != misses[2] {
				b.Fatal(misses)
			}
			median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
			first := median(took[0])
			b.ReportMetric(float64(tree.Rows())/first/1e6, "Mrefs/s")
			b.ReportMetric(first/median(took[1]), "of-unfolding")
			b.ReportMetric(first/median(took[2]), "of-memory")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkReal compares this package with package simulate on loop-compressed traces. The
// references for package simulate are expanded in advance.
func BenchmarkReal(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		tree := folded(b, name)
		for _, c := range []Cache{{64, 64, 8}, {64, 1, 512}} {
			b.Run(name+"/tree/"+c.String(), func(b *testing.B) {
				l := newLayout(tree, c.LineBytes)
				for b.Loop() {
					e := newEngine(l, c.Sets, c.Ways)
					e.countEvictions()
					e.run()
					e.result(c, nil, nil)
				}
				b.ReportMetric(float64(tree.Rows())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
			})
			b.Run(name+"/batches/"+c.String(), func(b *testing.B) {
				all := unfolded(b, tree)
				h := hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 32768, LineBytes: 64, Ways: uint32(c.Ways % 512)}}}
				for b.Loop() {
					s, err := simulate.New(h, simulate.Options{})
					if err != nil {
						b.Fatal(err)
					}
					for _, batch := range all {
						if err := s.Consume(batch); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(tree.Rows())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrefs/s")
			})
		}
	}
}

func unfolded(b *testing.B, tree *loops.Tree) (all []*trace.Batch) {
	r := tree.Expand()
	for {
		batch := trace.NewBatch(0)
		if err := r.Next(batch); err == io.EOF {
			return all
		} else if err != nil {
			b.Fatal(err)
		}
		all = append(all, batch)
	}
}

// irregular lists programs with data-dependent addresses or trip counts. Each program calls the
// function "take" for each of its references.
var irregular = []struct {
	name string
	run  func(take func(site uint32, kind trace.Kind, addr trace.Addr))
}{
	{"updates", func(take func(uint32, trace.Kind, trace.Addr)) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 1 << 20 {
			addr := arrayA + 8*r.Uint64N(1<<18)
			take(1, trace.Load, addr)
			take(2, trace.Store, addr)
		}
	}},
	{"search", func(take func(uint32, trace.Kind, trace.Addr)) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 1 << 17 {
			at := uint64(1)
			for at < 1<<16 {
				node := arrayA + 32*(at*0x9e3779b1%(1<<16))
				take(1, trace.Load, node)
				if r.Uint64N(40) == 0 {
					break
				}
				side := r.Uint64N(2)
				take(2+uint32(side), trace.Load, node+8+8*side)
				at = 2*at + side
			}
		}
	}},
	{"sparse product", func(take func(uint32, trace.Kind, trace.Addr)) {
		r := rand.New(rand.NewPCG(1, 2))
		at := uint64(0)
		for row := range uint64(1 << 16) {
			for range r.Uint64N(20) {
				take(1, trace.Load, arrayA+4*at)
				take(2, trace.Load, 2*arrayA+8*at)
				take(3, trace.Load, 3*arrayA+8*r.Uint64N(1<<16))
				at++
			}
			take(4, trace.Store, 4*arrayA+8*row)
		}
	}},
}

func foldedRows(b *testing.B, run func(take func(uint32, trace.Kind, trace.Addr))) *loops.Tree {
	fold, batch := loops.NewFolder(0), trace.NewBatch(0)
	flush := func() {
		if err := fold.Consume(batch); err != nil {
			b.Fatal(err)
		}
		batch.Reset()
		batch.NeedSite()
	}
	batch.NeedSite()
	run(func(site uint32, kind trace.Kind, addr trace.Addr) {
		batch.Append(kind, addr, 8, 0, 0)
		batch.Site[batch.Len()-1] = site
		if batch.Len() == batch.Cap() {
			flush()
		}
	})
	flush()
	return fold.Finish()
}
