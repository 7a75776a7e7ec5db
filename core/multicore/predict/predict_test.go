package predict_test

import (
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// synthetic generates the trace of a program with several threads. First, core 0 alone executes
// block 0 repeatedly. Each execution loads one element of an array. Then all cores execute
// contiguous parts of the iterations of a loop, which consists of block 1. At the end, all cores
// store to the same line, in block 2.
type synthetic struct {
	alone, iterations int
	rows              *trace.Batch
	at                int
	kinds             trace.Kinds
	closed            *int
}

const elementBytes = 8

func program() *trace.Program {
	sum := []trace.Instr{{Opcode: "add", Type: "i64", Uses: []int32{-1, -1}}, {Opcode: "add", Type: "i64", Uses: []int32{-1, -1}}}
	one := func(first uint32) trace.Block {
		return trace.Block{FirstSite: first, Sites: 1, Instrs: append(slices.Clone(sum), trace.Instr{Opcode: "load", Type: "i64", Site: first + 1, Uses: []int32{-1}})}
	}
	p := &trace.Program{Functions: []trace.Function{{Name: "main", Blocks: 3}}, Sites: make([]trace.Site, 4)}
	p.Blocks = []trace.Block{one(0), one(1), {FirstSite: 2, Sites: 1, Instrs: []trace.Instr{{Opcode: "store", Type: "i64", Site: 3, Uses: []int32{-1, -1}}}}}
	return p
}

func newTeam(alone, iterations, cores int) *synthetic {
	t := &synthetic{alone: alone, iterations: iterations, rows: trace.NewBatch(16 + 4*(alone+iterations) + 8*cores)}
	t.rows.NeedThread()
	t.rows.NeedSite()
	add := func(kind trace.Kind, addr trace.Addr, core, site int) {
		t.rows.Append(kind, addr, elementBytes, uint32(core), 0)
		t.rows.Site[t.rows.Len()-1] = uint32(site)
	}
	for i := range alone {
		add(trace.BlockEntry, 0, 0, 0)
		add(trace.Load, trace.Addr(0x1000+elementBytes*i), 0, 0)
	}
	add(trace.ParallelBegin, 0, 0, 3)
	share := (iterations + cores - 1) / cores
	for step := range share {
		for core := range cores {
			if i := core*share + step; i < iterations {
				add(trace.BlockEntry, 0, core, 1)
				add(trace.Load, trace.Addr(0x10000+elementBytes*i), core, 1)
			}
		}
	}
	for core := range cores {
		add(trace.Barrier, 0, core, 3)
	}
	for core := range cores {
		add(trace.BlockEntry, 0, core, 2)
		add(trace.Store, 0x2000, core, 2)
	}
	add(trace.ParallelEnd, 0, 0, 3)
	return t
}

func (t *synthetic) Select(kinds trace.Kinds) { t.kinds = kinds }
func (t *synthetic) Header() trace.Header {
	return trace.Header{Format: "test", Threads: true, Sites: true, Sizes: true, Program: program()}
}
func (t *synthetic) Close() error { *t.closed++; return nil }

func (t *synthetic) Next(b *trace.Batch) error {
	b.Reset()
	if t.at == t.rows.Len() {
		return io.EOF
	}
	b.NeedThread()
	b.NeedSite()
	for ; t.at < t.rows.Len() && b.Len() < b.Cap(); t.at++ {
		if k := t.rows.Kind[t.at]; t.kinds.Has(k) {
			b.Append(k, t.rows.Addr[t.at], t.rows.Bytes[t.at], t.rows.Thread[t.at], 0)
			b.Site[b.Len()-1] = t.rows.Site[t.at]
		}
	}
	return nil
}

// countingSource counts how often a trace is opened and closed.
type countingSource struct{ opened, closed int }

func (s *countingSource) open(alone, iterations int) predict.Source {
	return func(o multicore.Options) (predict.Threads, error) {
		t := newTeam(alone, iterations, o.Cores)
		t.closed = &s.closed
		s.opened++
		return t, nil
	}
}

func caches(lines ...string) (h hierarchy.Hierarchy) {
	for _, line := range lines {
		if err := h.Add(line); err != nil {
			panic(err)
		}
	}
	return h
}

func run(t *testing.T, q predict.Question, open predict.Source) []predict.Result {
	t.Helper()
	r, err := predict.New(q, open)
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return r.Results()
}

// TestPredictionEqualsSimulation checks that the counts equal the counts of package simulate
// for the same threads, and that the mean hit ratio is the mean over the caches.
func TestPredictionEqualsSimulation(t *testing.T) {
	h := caches("L1=256,2", "L2=1KiB,4,shared=2", "L3=4KiB,4,shared=all")
	var s countingSource
	results := run(t, predict.Question{Cores: []int{1, 3, 4}, Hierarchy: h}, s.open(100, 1000))
	if s.opened != 3 || s.closed != 3 {
		t.Errorf("the trace was opened %d times and closed %d times", s.opened, s.closed)
	}
	for i, cores := range []int{1, 3, 4} {
		r := &results[i]
		simulator, err := simulate.New(h, simulate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		team := newTeam(100, 1000, cores)
		if err := simulator.Consume(team.rows); err != nil {
			t.Fatal(err)
		}
		want := simulator.Result()
		if r.Cores != cores || r.References != want.References || r.Modelled != nil || r.Time != nil || r.Profile != nil {
			t.Errorf("%d cores: %+v", cores, r)
		}
		all := float64(want.Levels[0].Run.Accesses())
		for k, l := range r.Levels {
			run := &want.Levels[k].Run
			if l.Misses != float64(run.Misses()) || l.Accesses != float64(run.Accesses()) || l.Coherence != float64(run.CoherenceMisses) || l.Caches != want.Levels[k].Caches {
				t.Errorf("%d cores, %s: prediction %+v, want the simulated %+v", cores, l.Cache.Name, l, run)
			}
			if l.Method != hierarchy.Simulated || l.Global != 1-l.Misses/all || l.Local != 1-l.Misses/l.Accesses {
				t.Errorf("%d cores, %s: %+v", cores, l.Cache.Name, l)
			}
			var sum float64
			for first := 0; first < cores; first += int(min(uint64(max(l.Cache.SharedBy, 1)), uint64(cores))) {
				var accesses, misses uint64
				for core := first; core < min(cores, first+int(min(uint64(max(l.Cache.SharedBy, 1)), 4))); core++ {
					accesses += want.Levels[k].Cores[core].Accesses()
					misses += want.Levels[k].Cores[core].Misses()
				}
				sum += 1 - float64(misses)/float64(accesses)
			}
			if got := sum / float64(l.Caches); math.Abs(got-l.Mean) > 1e-12 {
				t.Errorf("%d cores, %s: the mean hit ratio is %v, want %v", cores, l.Cache.Name, l.Mean, got)
			}
		}
	}
	if m := results[2].Levels[0]; m.Coherence == 0 && m.Mean == m.Local {
		t.Error("the threads share no data and have equal work, so the test does not cover coherence and imbalance")
	}
}

// TestAccuracyOfSDCM checks that SDCM is exact for a fully associative cache, and approximate
// for a set-associative cache.
func TestAccuracyOfSDCM(t *testing.T) {
	q := predict.Question{Cores: []int{1, 2, 4}, Stacks: true, Keep: 4, Hierarchy: caches("L1=512,full", "L2=1KiB,2", "L3=4KiB,full,shared=2", "L4=64KiB,16,shared=all")}
	for _, r := range run(t, q, new(countingSource).open(100, 1000)) {
		for k, l := range r.Modelled {
			exact := &r.Levels[k]
			if l.Method != hierarchy.SDCM || l.Cores != nil || l.Caches != exact.Caches {
				t.Errorf("%+v", l)
			}
			if k == 0 && (l.Misses != exact.Misses || l.Accesses != exact.Accesses || l.Global != exact.Global) {
				t.Errorf("%d cores: SDCM predicts %+v, want %+v, as in the simulation", r.Cores, l, exact)
			}
			if math.Abs(l.Global-exact.Global) > 0.2 {
				t.Errorf("%d cores: %+v, simulated %+v", r.Cores, l, exact)
			}
		}
		if (r.Profile != nil) != (r.Cores == 4) {
			t.Errorf("%d cores: the result has a profile = %t, want a profile only for Question.Keep", r.Cores, r.Profile != nil)
		}
		if p := r.Profile; p != nil && (p.Predicted == nil || *p.Predicted != (profile.Predicted{Cores: 4, How: "iterations, round-robin"}) || len(p.Totals.Threads) != 4 || p.Totals.AllReferences() != r.References || len(p.Sharing) == 0 || p.Sites == nil) {
			t.Errorf("%d threads, %d references", len(p.Totals.Threads), p.Totals.AllReferences())
		}
	}
}

// toy describes a processor on which the two additions of a block take one cycle, and the block's
// load takes one cycle.
const toy = `name: toy
dispatch: 4
window: 32
ports: P0 P1 P2
classes:
  iadd i64: latency 1, uops 1, ports P0
  load: latency 4, uops 1, ports P1
  store: latency 1, uops 1, ports P2
`

func processor(t *testing.T, text string) *pipeline.Processor {
	t.Helper()
	p, err := pipeline.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The expected times were computed by hand: 2 cycles for each of the 100 executions by core 0
// alone, 2 cycles for each of the ten iterations, and 1 cycle for the store at the end.
func TestTime(t *testing.T) {
	const alone, iterations = 100, 10
	q := predict.Question{Cores: []int{4, 16}, Hierarchy: caches("L1=64KiB,8"), Processor: processor(t, toy)}
	results := run(t, q, new(countingSource).open(alone, iterations))
	const one = 2*alone + 2*iterations + 1
	for i, want := range []struct {
		cores, most int // most is the largest number of iterations that a core executes
	}{{4, 3}, {16, 1}} {
		x := results[i].Time
		if x == nil {
			t.Fatal(results[i].Untimed)
		}
		n := float64(want.cores)
		cycles := float64(2*alone + 2*want.most + 1)
		all := n * cycles
		by := predict.Time{
			Cycles: cycles, SpeedUp: one / cycles, Efficiency: one / cycles / n, Limit: predict.SerialLimit, Cores: x.Cores,
			Serial: (n - 1) * 2 * alone / all, Imbalance: 2 * (n*float64(want.most) - iterations) / all, Copied: (n - 1) / all,
		}
		for _, pair := range [][2]float64{
			{x.Cycles, by.Cycles}, {x.SpeedUp, by.SpeedUp}, {x.Efficiency, by.Efficiency}, {x.Serial, by.Serial}, {x.Imbalance, by.Imbalance},
			{x.Copied, by.Copied}, {x.Caches, 0}, {x.Bandwidth, 0},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%d cores: run time %+v, want %+v", want.cores, x, by)
				break
			}
		}
		if x.Limit != by.Limit || len(x.Cores) != want.cores || x.Cores[0] != float64(2*alone+2*want.most+1) {
			t.Errorf("%d cores: %+v", want.cores, x)
		}
	}
}

// TestLossesAddUp checks that the lost time and the used time add up to the total time of
// all cores, whatever limits the speed-up.
func TestLossesAddUp(t *testing.T) {
	for _, c := range []struct {
		caches            []string
		alone, iterations int
		limit             predict.Limit
	}{
		{[]string{"L1=1KiB,8", "memory=latency=100,bandwidth=1"}, 10, 4000, predict.BandwidthLimit},
		{[]string{"L1=1KiB,8,latency=4", "L2=64KiB,16,latency=10,shared=all", "memory=latency=100"}, 2000, 100, predict.SerialLimit},
		{[]string{"L1=1KiB,8"}, 0, 9, predict.ImbalanceLimit},
		{[]string{"L1=1KiB,8"}, 0, 8000, predict.NoLimit},
	} {
		h := hierarchy.Hierarchy{}
		for _, line := range c.caches {
			if err := h.Add(line); err != nil {
				t.Fatal(err)
			}
		}
		q := predict.Question{Cores: []int{1, 8}, Hierarchy: h, Processor: processor(t, toy)}
		for _, r := range run(t, q, new(countingSource).open(c.alone, c.iterations)) {
			x := r.Time
			if sum := x.Efficiency + x.Serial + x.Imbalance + x.Copied + x.Caches + x.Bandwidth; math.Abs(sum-1) > 1e-9 {
				t.Errorf("%q, %d cores: %+v add up to %v", c.caches, r.Cores, x, sum)
			}
			want := c.limit
			if r.Cores == 1 {
				want = predict.NoLimit
			}
			if x.Limit != want || r.Cores == 1 && x.SpeedUp != 1 {
				t.Errorf("%q, %d cores: run time %+v, want the limit %s", c.caches, r.Cores, x, want)
			}
		}
	}
}

func TestReadQuestion(t *testing.T) {
	words := answers.MulticoreQuestion{
		Cores: []uint32{1, 4}, Division: "printed", Schedule: "dynamic,4", Interleave: "uniform", Seed: 7, Private: []string{"0x10-0x1f", "0x20-0x20"},
		Machine: []string{"L1=32KiB,8"}, Keep: 4,
	}
	q, err := predict.Ask(words)
	if err != nil || q.Processor != nil || !q.Stacks || q.Sample == nil || q.Windows != nil || q.Options.Schedule.String() != "dynamic,4" || q.Options.Division != multicore.AsPrinted ||
		q.Options.Order.Seed != 7 || !reflect.DeepEqual(q.Options.Private.Ranges, []multicore.Range{{Low: 0x10, High: 0x20}, {Low: 0x20, High: 0x21}}) {
		t.Errorf("%+v, %v", q, err)
	}
	for want, change := range map[string]func(*answers.MulticoreQuestion){
		`cores "65", want 1 to 64`:                                               func(q *answers.MulticoreQuestion) { q.Cores = []uint32{65} },
		`cores "0", want 1 to 64`:                                                func(q *answers.MulticoreQuestion) { q.Cores = []uint32{0} },
		`cores "none", want at least one number of cores, from 1 to 64`:          func(q *answers.MulticoreQuestion) { q.Cores = nil },
		`cores "4 twice", want each number of cores once`:                        func(q *answers.MulticoreQuestion) { q.Cores = []uint32{4, 4} },
		`private "0x10", want a range of addresses, for example 0x7f00-0x7fff`:   func(q *answers.MulticoreQuestion) { q.Private = []string{"0x10"} },
		`private "5-4", want a range whose end is not below its start`:           func(q *answers.MulticoreQuestion) { q.Private = []string{"5-4"} },
		`private "4-6", want ranges in ascending order that do not overlap`:      func(q *answers.MulticoreQuestion) { q.Private = []string{"5-6", "4-6"} },
		`profile "of 2 cores", want a number of cores that is listed in --cores`: func(q *answers.MulticoreQuestion) { q.Keep = 2 },
		`division "printed", want iterations, because run times depend on waits at barriers, and cores wait at barriers only with this division`: func(q *answers.MulticoreQuestion) {
			q.Processor = "znver4"
		},
		`sdcm "few", want sample, all, windows or none`: func(q *answers.MulticoreQuestion) { q.SDCM = "few" },
		`sdcm "windows,some=3", want windows, optionally followed by rate=, least= and weights=, for example windows,rate=0.05,least=100`: func(q *answers.MulticoreQuestion) {
			q.SDCM = "windows,some=3"
		},
		`rate "1.5", want a fraction of windows above 0 and at most 1, for example 0.05`: func(q *answers.MulticoreQuestion) { q.SDCM = "windows,rate=1.5" },
		`rate "0", want a fraction of windows above 0 and at most 1, for example 0.05`:   func(q *answers.MulticoreQuestion) { q.SDCM = "windows,rate=0" },
		`least "1", want 2 to 4096 windows per block`:                                    func(q *answers.MulticoreQuestion) { q.SDCM = "windows,least=1" },
		`least "x", want 2 to 4096 windows per block`:                                    func(q *answers.MulticoreQuestion) { q.SDCM = "windows,rate=1,least=x" },
		`weights "equal", want counted, corrected or printed`:                            func(q *answers.MulticoreQuestion) { q.SDCM = "windows,weights=equal" },
		`hierarchy "", want at least one level`:                                          func(q *answers.MulticoreQuestion) { q.Machine = nil },
	} {
		changed := words
		change(&changed)
		if _, err := predict.Ask(changed); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestReply checks that each number of cores adds rows to the reply, and that the rows match the
// results.
func TestReply(t *testing.T) {
	q := predict.Question{Cores: []int{2, 32}, Hierarchy: caches("L1=1KiB,8", "L2=64KiB,8,shared=all"), Processor: processor(t, toy), Stacks: true}
	r, err := predict.New(q, new(countingSource).open(10, 20))
	if err != nil {
		t.Fatal(err)
	}
	var done []int
	for err == nil {
		if n := len(r.Results()); len(done) == 0 || done[len(done)-1] != n {
			done = append(done, n)
			if a, p := r.Reply(), r.Progress(); a.More != (n < 2) || a.Problem != "" || p.Passes != 3 || p.Pass > 3 {
				t.Errorf("%d done, more: %t, problem %q, %+v", n, a.More, a.Problem, p)
			}
		}
		err = r.Step()
	}
	a := r.Reply()
	if err != io.EOF || a.More || !slices.Equal(done, []int{0, 1, 2}) || len(a.Unmodelled) == 0 {
		t.Errorf("%v, done %d", err, done)
	}
	series := a.Rates("global_rate")
	if len(series) != 4 || series[0].Method != "simulated" || series[1].Method != "sdcm" || len(series[3].Points) != 2 || series[3].Points[1].Cores != 32 {
		t.Errorf("%+v", series)
	}
	if got := a.SpeedUps("speedup").Points; len(got) != 2 || got[1].Value != r.Results()[1].Time.SpeedUp {
		t.Errorf("%+v", got)
	}
}

func TestNotesOnResults(t *testing.T) {
	notes := predict.Notes([]predict.Result{
		{Cores: 1, Warnings: []hierarchy.Warning{"L2 is small"}},
		{Cores: 2, Warnings: []hierarchy.Warning{"L2 is small"}, Untimed: "No run times are predicted."},
		{Cores: 32, Warnings: []hierarchy.Warning{"L2 is small"}, Untimed: "No run times are predicted.", Idle: 12},
	})
	want := []string{"L2 is small.", "2, 32 cores: No run times are predicted.", "32 cores: 12 cores have no work and are excluded from the means over caches."}
	slices.Sort(notes)
	slices.Sort(want)
	if !slices.Equal(notes, want) {
		t.Errorf("%q, want %q", notes, want)
	}
}

func TestErrors(t *testing.T) {
	q := predict.Question{Cores: []int{2}, Hierarchy: caches("L1=1KiB,8")}
	broken := errors.New("no regions")
	r, err := predict.New(q, func(multicore.Options) (predict.Threads, error) { return nil, broken })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Step(); err != broken {
			t.Error(err)
		}
	}
	if a := r.Reply(); a.More || a.Problem != "no regions" || len(r.Results()) != 0 {
		t.Errorf("%+v", a)
	}
	var s countingSource
	if r, err = predict.New(q, s.open(10, 10)); err != nil {
		t.Fatal(err)
	}
	_ = r.Step()
	r.Close()
	if err := r.Step(); err == nil || err == io.EOF || s.opened != 1 || s.closed != 1 {
		t.Errorf("%v after Close; opened %d, closed %d", err, s.opened, s.closed)
	}
}
