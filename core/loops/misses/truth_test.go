package misses

import (
	"bufio"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// folded folds one of the large traces.
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

// TestTruth compares folded traces with runs of DineroIV, with all of its first levels
// in a soak, and with histograms of stack distances.
func TestTruth(t *testing.T) {
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
				t.Errorf("%v: %d %s, want %d", c, got, title, want)
			}
		}
	}
}

// byReference sums counts by reference.
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
	for i, id := range e.shapes {
		if at := int(e.starts[i]); at >= 0 {
			add(e.forms[id].block, at)
		}
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
	got, err := Capacities(tree, 64, lines)
	if err != nil {
		t.Fatal(err)
	}
	want := Curve{Hits: make([]uint64, lines)}
	for s := bufio.NewScanner(f); s.Scan(); {
		distance, count, _ := strings.Cut(s.Text(), " ")
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if distance == "inf" {
			want.Beyond = n
		} else if d, err := strconv.Atoi(distance); err == nil && d < lines {
			want.Hits[d] = n
		} else {
			t.Fatalf("distance %s, error %v", distance, err)
		}
	}
	if got.Beyond != want.Beyond {
		t.Errorf("%d first accesses, want %d", got.Beyond, want.Beyond)
	}
	for d, n := range want.Hits {
		if got.Hits[d] != n {
			t.Errorf("%d accesses at distance %d, want %d", got.Hits[d], d, n)
		}
	}
	cold := uint64(0)
	for _, n := range firstTouches(newLayout(tree, 64), new(pauses)) {
		cold += n
	}
	if cold != want.Beyond {
		t.Errorf("%d first touches, want %d", cold, want.Beyond)
	}
}

// BenchmarkPrepare looks at folded traces.
func BenchmarkPrepare(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		tree := folded(b, name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Prepare(tree, 64); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReal compares with package simulate on folded traces: the same references,
// unfolded once before.
func BenchmarkReal(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		tree := folded(b, name)
		for _, c := range []Cache{{64, 64, 8}, {64, 1, 512}} {
			b.Run(name+"/tree/"+c.String(), func(b *testing.B) {
				p, err := Prepare(tree, c.LineBytes)
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := p.Count(c.Sets, c.Ways); err != nil {
						b.Fatal(err)
					}
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
