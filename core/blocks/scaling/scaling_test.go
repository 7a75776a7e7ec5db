package scaling

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// A machine executes a program block by block, and measures the reuse distance of each access.
type machine struct {
	run   Run
	reuse []profile.Histogram
	cold  []uint64
	now   int
	lines []uint64 // in the order of the last access; the most recent line is last
}

func newMachine(blocks int, parameters ...int64) *machine {
	return &machine{
		run:   Run{Parameters: parameters, Counts: make([]uint64, blocks), References: make([]uint64, blocks)},
		reuse: make([]profile.Histogram, blocks), cold: make([]uint64, blocks),
	}
}

func (m *machine) block(b int) {
	m.now = b
	m.run.Counts[b]++
}

func (m *machine) access(addr uint64) {
	m.run.References[m.now]++
	line := addr / 64
	for i := len(m.lines) - 1; i >= 0; i-- {
		if m.lines[i] == line {
			m.reuse[m.now].Add(uint64(len(m.lines) - 1 - i))
			copy(m.lines[i:], m.lines[i+1:])
			m.lines[len(m.lines)-1] = line
			return
		}
	}
	m.lines = append(m.lines, line)
	m.cold[m.now]++
}

func (m *machine) finish() Run {
	for b := range m.reuse {
		m.run.Reuse = append(m.run.Reuse, fromHistogram(&m.reuse[b], m.cold[b]))
	}
	return m.run
}

const arrayA, arrayB, arrayC = 1 << 24, 2 << 24, 3 << 24

// The program product computes C = A·B for matrices of size × size elements. As in compiled code,
// each loop test is a separate block.
func product(size int64) Run {
	m, n := newMachine(8, size), uint64(size)
	m.block(0)
	for i := uint64(0); ; i++ {
		m.block(1)
		if i == n {
			break
		}
		for j := uint64(0); ; j++ {
			m.block(2)
			if j == n {
				break
			}
			m.block(3)
			for k := uint64(0); ; k++ {
				m.block(4)
				if k == n {
					break
				}
				m.block(5)
				m.access(arrayA + 8*(i*n+k))
				m.access(arrayB + 8*(k*n+j))
			}
			m.block(6)
			m.access(arrayC + 8*(i*n+j))
		}
		m.block(7)
	}
	return m.finish()
}

// The program jacobi sweeps over the interior of a grid of size × size elements, and alternates
// between two arrays. The parameter steps is the number of sweeps.
func jacobi(size, steps int64) Run {
	m, n := newMachine(6, size, steps), uint64(size)
	m.block(0)
	for range steps {
		m.block(1)
		for _, to := range []uint64{arrayB, arrayA} {
			from := arrayA + arrayB - to
			for i := uint64(1); i < n-1; i++ {
				m.block(2)
				for j := uint64(1); j < n-1; j++ {
					m.block(3)
					for _, at := range []uint64{i*n + j, i*n + j - 1, i*n + j + 1, (i-1)*n + j, (i+1)*n + j} {
						m.access(from + 8*at)
					}
					m.access(to + 8*(i*n+j))
				}
				m.block(4)
			}
		}
		if steps > 1000 {
			m.block(5) // not executed in these runs
		}
	}
	return m.finish()
}

func fit(t *testing.T, names []string, runs ...Run) *Model {
	t.Helper()
	m, err := Fit(names, runs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func predict(t *testing.T, m *Model, reuse Reuse, at ...int64) *Prediction {
	t.Helper()
	p, err := m.Predict(at, reuse)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMatrixProduct checks that three small products predict every count of a larger product.
func TestMatrixProduct(t *testing.T) {
	m := fit(t, []string{"n"}, product(32), product(16), product(8))
	var laws []string
	for b := range m.Counts {
		laws = append(laws, m.Counts[b].String(m.Names))
	}
	want := []string{"1", "n + 1", "n^2 + n", "n^2", "n^3 + n^2", "n^3", "n^2", "n"}
	if !slices.Equal(laws, want) {
		t.Errorf("laws %q, want %q", laws, want)
	}
	p := predict(t, m, Kept, 64)
	if e, err := p.Check(product(64).Counts); err != nil || e != (Error{Worst: -1}) {
		t.Errorf("%+v, error %v", e, err)
	}
	// A run of this size would take too long for a test.
	p = predict(t, m, Kept, 100_000)
	if c := p.Counts[5]; !c.IsWhole || c.Whole != 1e15 || len(p.Doubts) == 0 {
		t.Errorf("count %+v, caveats %q, want exactly 10^15 executions, and a caveat", c, p.Doubts)
	}
	if p.Blocks[5].References != 2 || p.Blocks[6].References != 1 || p.Blocks[4].References != 0 {
		t.Errorf("blocks %+v, want 2, 1 and 0 references in blocks 5, 6 and 4", p.Blocks)
	}
}

// TestPredictionFromTwoRuns checks that two runs are sufficient for a prediction.
func TestPredictionFromTwoRuns(t *testing.T) {
	m := fit(t, []string{"n"}, product(16), product(32))
	if e, err := predict(t, m, Kept, 48).Check(product(48).Counts); err != nil || e.Wrong != 0 {
		t.Errorf("%+v, error %v", e, err)
	}
}

// TestJacobi predicts counts from runs with different n, and from runs with different n and steps.
func TestJacobi(t *testing.T) {
	m := fit(t, []string{"n", "steps"}, jacobi(16, 3), jacobi(32, 3), jacobi(64, 3))
	for b, want := range []string{"1", "3", "6 n − 12", "6 n^2 − 24 n + 24", "6 n − 12", "0"} {
		if got := m.Counts[b].String(m.Names); got != want {
			t.Errorf("block %d: law %s, want %s", b, got, want)
		}
	}
	p := predict(t, m, Kept, 128, 3)
	if e, err := p.Check(jacobi(128, 3).Counts); err != nil || e.Wrong != 0 {
		t.Errorf("%+v, error %v", e, err)
	}
	if !slices.ContainsFunc(p.Doubts, func(s string) bool { return strings.Contains(s, "one more run would check") }) {
		t.Errorf("caveats %q, want a caveat about a polynomial of three terms from three runs", p.Doubts)
	}
	if _, err := m.Predict([]int64{128, 4}, Kept); err == nil {
		t.Errorf("Predict accepted a new value of a parameter that is the same in all runs")
	}
	m = fit(t, []string{"n", "steps"}, jacobi(16, 2), jacobi(32, 2), jacobi(24, 3), jacobi(40, 5), jacobi(20, 7))
	if e, err := predict(t, m, Kept, 72, 4).Check(jacobi(72, 4).Counts); err != nil || e.Wrong != 0 {
		t.Errorf("%+v, error %v; %s", e, err, m.Counts[3].String(m.Names))
	}
}

// TestScaledReuse predicts the miss ratios of larger runs from three smaller runs. The test uses
// caches that can contain a matrix, caches that can contain a row, and smaller caches.
func TestScaledReuse(t *testing.T) {
	for _, k := range []struct {
		name  string
		model *Model
		truth Run
		most  float64
	}{
		{"product", fit(t, []string{"n"}, product(16), product(24), product(32)), product(64), 0.005},
		{"jacobi", fit(t, []string{"n", "steps"}, jacobi(16, 4), jacobi(32, 4), jacobi(48, 4)), jacobi(96, 4), 0.01},
		{"product, in bins", fit(t, []string{"n"}, binned(product(16)), binned(product(24)), binned(product(32))), product(64), 0.08},
		{"jacobi, in bins", fit(t, []string{"n", "steps"}, binned(jacobi(16, 4)), binned(jacobi(32, 4)), binned(jacobi(48, 4))), jacobi(96, 4), 0.06},
	} {
		scaled := predict(t, k.model, Scaled, k.truth.Parameters...)
		kept := predict(t, k.model, Kept, k.truth.Parameters...)
		var blocks []memory.Block
		for b, n := range k.truth.Counts {
			if n > 0 {
				blocks = append(blocks, memory.Block{Executions: float64(n), References: float64(k.truth.References[b]) / float64(n), Reuse: k.truth.Reuse[b]})
			}
		}
		real := memory.Mix(blocks)
		predictedSite := memory.Mix(scaled.Blocks)
		as := memory.Mix(kept.Blocks)
		if all := real.Accesses(); math.Abs(predictedSite.Accesses()/all-1) > 1e-9 {
			t.Errorf("%s: %v accesses, want %v", k.name, predictedSite.Accesses(), all)
		}
		worst, worstKept := 0.0, 0.0
		for lines := uint64(1); lines <= 1<<14; lines *= 2 {
			c := hierarchy.Cache{SizeBytes: 64 * lines, LineBytes: 64}
			ratio := func(p *memory.Profile) float64 {
				hits, _ := p.Hits(c)
				return 1 - hits/p.Accesses()
			}
			worst = max(worst, math.Abs(ratio(predictedSite)-ratio(real)))
			worstKept = max(worstKept, math.Abs(ratio(as)-ratio(real)))
		}
		t.Logf("%s: the largest error of a miss ratio is %.3f with scaled distances, and %.3f with unchanged distances", k.name, worst, worstKept)
		if worst > k.most || worst > worstKept {
			t.Errorf("%s: the largest error of a miss ratio is %v with scaled distances, and %v with unchanged distances", k.name, worst, worstKept)
		}
	}
}

// binned returns a copy of the run in which the distances are grouped into the bins that sites use.
func binned(r Run) Run {
	r.Reuse = slices.Clone(r.Reuse)
	for b, p := range r.Reuse {
		counts := make([]uint64, profile.SiteBins)
		for _, s := range p.Spans {
			counts[profile.SiteBin(uint32(s.From))] += uint64(s.Accesses)
		}
		of := profile.Reuse{Cold: uint64(p.Cold)}
		for bin, n := range counts {
			if n > 0 {
				of.Bins = append(of.Bins, profile.BinCount{Bin: uint8(bin), Count: n})
			}
		}
		r.Reuse[b] = memory.FromReuse(&of)
	}
	return r
}

// TestDataDependentCount checks that the law of a data-dependent count is marked as data-dependent.
func TestDataDependentCount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sorts := func(n int64) Run {
		list := make([]int, n)
		for i := range list {
			list[i] = r.Int()
		}
		compared := uint64(0)
		slices.SortFunc(list, func(a, b int) int { compared++; return a - b })
		return Run{Parameters: []int64{n}, Counts: []uint64{compared, uint64(n)}}
	}
	m := fit(t, []string{"n"}, sorts(1000), sorts(2000), sorts(4000))
	truth := sorts(64_000)
	p := predict(t, m, Kept, 64_000)
	if got, want := p.Counts[0], float64(truth.Counts[0]); got.IsWhole || math.Abs(got.Executions/want-1) > 0.15 {
		t.Errorf("predicted %+v comparisons with the law %s, want about %v", got, m.Counts[0].String(m.Names), want)
	}
	if len(p.Doubts) < 2 || p.Blocks != nil {
		t.Errorf("caveats %q, blocks %v, want at least two caveats and no blocks", p.Doubts, p.Blocks)
	}
	e, err := p.Check(truth.Counts)
	if err != nil || e.Wrong != 1 || e.Worst != 0 || math.Abs(e.Total) > 0.15 {
		t.Errorf("%+v, error %v", e, err)
	}
}

// TestPolynomials checks that a polynomial with a few terms and small coefficients is always found
// if the number of runs exceeds the number of terms.
func TestPolynomials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parameters := rapid.IntRange(1, 2).Draw(t, "parameters")
		terms := rapid.IntRange(1, 3).Draw(t, "terms")
		truth := Law{}
		var seen [][]int
		for range terms {
			powers := make([]int, parameters)
			for j := range powers {
				powers[j] = rapid.IntRange(0, 4/parameters).Draw(t, "power")
			}
			if slices.ContainsFunc(seen, func(p []int) bool { return slices.Equal(p, powers) }) {
				continue
			}
			seen = append(seen, powers)
			truth.Terms = append(truth.Terms, Term{Factor: big.NewRat(int64(rapid.IntRange(1, 9).Draw(t, "factor")), 1), Powers: powers})
		}
		names := []string{"n", "m"}[:parameters]
		var runs []Run
		for i := range int64(len(truth.Terms) + 1) {
			at := []int64{24 + 16*i + 8*(i*i%3), 40 + 8*(7*i%5)}[:parameters]
			runs = append(runs, Run{Parameters: at, Counts: []uint64{truth.count(at).Whole}})
		}
		m, err := Fit(names, runs)
		if err != nil {
			t.Fatalf("%v", err)
		}
		at := []int64{1000, 360}[:parameters]
		p, err := m.Predict(at, Kept)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if want := truth.count(at); p.Counts[0] != want {
			t.Fatalf("law %s, want %s", m.Counts[0].String(names), truth.String(names))
		}
	})
}

func TestInvalidRuns(t *testing.T) {
	one := Run{Parameters: []int64{1}, Counts: []uint64{1}}
	two := Run{Parameters: []int64{2}, Counts: []uint64{2}}
	for _, k := range []struct {
		names []string
		runs  []Run
	}{
		{nil, []Run{one, two}},
		{[]string{"n"}, nil},
		{[]string{"n"}, []Run{one}},
		{[]string{"n"}, []Run{one, one}},
		{[]string{"n", "m"}, []Run{one, two}},
		{[]string{"n"}, []Run{one, {Parameters: []int64{2}}}},
		{[]string{"n"}, []Run{one, {Parameters: []int64{1 << 50}, Counts: []uint64{2}}}},
		{[]string{"n"}, []Run{one, {Parameters: []int64{2}, Counts: []uint64{2}, References: []uint64{1, 2}}}},
	} {
		if _, err := Fit(k.names, k.runs); err == nil {
			t.Errorf("Fit accepted %v", k)
		}
	}
	m := fit(t, []string{"n"}, one, two)
	if _, err := m.Predict(nil, Kept); err == nil {
		t.Errorf("Predict accepted an input without parameters")
	}
	if _, err := predict(t, m, Kept, 9).Check(nil); err == nil {
		t.Errorf("Check accepted a run without counts")
	}
	// No input values cause a panic.
	rapid.Check(t, func(t *rapid.T) {
		var runs []Run
		for i := range rapid.IntRange(2, 3).Draw(t, "runs") {
			count := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 9))
			runs = append(runs, Run{
				Parameters: []int64{int64(i) - 1, rapid.Int64Range(-100, 1<<40).Draw(t, "m")},
				Counts:     []uint64{count.Draw(t, "count"), 0},
				References: []uint64{count.Draw(t, "references"), count.Draw(t, "references")},
				Reuse:      []*memory.Profile{{Cold: 1, Spans: []memory.Span{{From: 3, To: 1 << 40, Accesses: 5}}}, {Cold: 1}},
			})
		}
		m, err := Fit([]string{"n", "m"}, runs)
		if err != nil {
			t.Fatalf("%v", err)
		}
		at := []int64{runs[0].Parameters[0], runs[0].Parameters[1]}
		for _, j := range m.varied {
			at[j] = rapid.Int64Range(-1<<40, 1<<40).Draw(t, "at")
		}
		p, err := m.Predict(at, Scaled)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for b := range m.Counts {
			_ = m.Counts[b].String(m.Names)
			if n := p.Counts[b].Executions; !(n >= 0) || math.IsInf(n, 0) {
				t.Fatalf("predicted %v executions with the law %s, want a finite number of at least 0", n, m.Counts[b].String(m.Names))
			}
		}
		if mixed := memory.Mix(p.Blocks); !(mixed.Accesses() >= 0) {
			t.Fatalf("the mix of the blocks has %v accesses, want 0 or more", mixed.Accesses())
		}
	})
}

// TestRunOfTrace checks that the run of a trace contains the visits of each block and the
// references of each site.
func TestRunOfTrace(t *testing.T) {
	p := &trace.Program{
		Functions: []trace.Function{{Name: "main", Blocks: 2}},
		Blocks:    []trace.Block{{Flags: trace.EntryBlock, Successors: []uint32{1}}, {Successors: []uint32{1}}},
		Sites:     []trace.Site{{Block: 1}, {Block: 1}},
	}
	e := blocks.NewEdges(p)
	e.Visits[1] = 7
	sites := &profile.Sites{Code: []profile.Site{{Number: 0}, {Number: 1}}}
	for i := range sites.Code {
		sites.Code[i].Reuse = profile.Reuse{Cold: 1, Bins: []profile.BinCount{{Bin: 2, Count: 6}}}
	}
	r := RunOf([]int64{7}, &blocks.Run{Program: p, Edges: e}, sites)
	if r.Counts[1] != 7 || r.References[1] != 14 || r.Reuse[1].Cold != 2 || r.Reuse[1].Accesses() != 14 || r.Reuse[0] != nil {
		t.Errorf("%+v", r)
	}
	if r := RunOf([]int64{7}, &blocks.Run{Program: p, Edges: e}, nil); r.References != nil || r.Reuse != nil {
		t.Errorf("RunOf without sites = %+v, want unknown references", r)
	}
}

// Error describes how a prediction differs from the actual run.
type Error struct {
	Wrong int     // number of blocks whose predicted count is wrong
	Total float64 // relative error of the total number of executions; positive if the prediction is too high
	Worst int     // the block whose predicted number of executions has the largest error; -1 if all predictions are correct
	Off   float64 // absolute error of the predicted number of executions of block Worst
}

// Check compares a prediction with the block counts of an actual run.
func (p *Prediction) Check(counts []uint64) (e Error, err error) {
	if len(counts) != len(p.Counts) {
		return e, &trace.OptionError{Option: "counts", Got: strconv.Itoa(len(counts)), Want: "one for each of the " + strconv.Itoa(len(p.Counts)) + " blocks of the prediction"}
	}
	e.Worst = -1
	var want, got float64
	for b, n := range counts {
		c := &p.Counts[b]
		want += float64(n)
		got += c.Executions
		if c.IsWhole && c.Whole == n {
			continue
		}
		e.Wrong++
		if off := math.Abs(c.Executions - float64(n)); off >= e.Off {
			e.Worst, e.Off = b, off
		}
	}
	if want > 0 {
		e.Total = got/want - 1
	}
	return e, nil
}

// fromHistogram returns the profile of a histogram, with a span for each distance.
func fromHistogram(h *profile.Histogram, cold uint64) *memory.Profile {
	p := &memory.Profile{Cold: float64(cold)}
	for d, n := range h.All() {
		p.Spans = append(p.Spans, memory.Span{From: d, To: d + 1, Accesses: float64(n)})
	}
	return p
}
