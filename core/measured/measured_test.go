package measured

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func read(t testing.TB, names ...string) *Measurements {
	t.Helper()
	m := new(Measurements)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if !Recognise(text) {
			t.Errorf("%s is not recognised", name)
		}
		if err := m.Add(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestSourcesAgreeWithPerf compares the classification of data sources with the statistics that
// perf c2c report prints for the same recording.
func TestSourcesAgreeWithPerf(t *testing.T) {
	for _, name := range []string{"mem", "ibs", "spe"} {
		m := read(t, name+".script")
		text, err := os.ReadFile("testdata/" + name + ".c2c.txt")
		if err != nil {
			t.Fatal(err)
		}
		count := func(op string, is func(DataSource) bool) (n int) {
			for _, s := range m.Samples {
				if s.Data.Op() == op && is(s.Data) {
					n++
				}
			}
			return n
		}
		from := func(list ...Source) func(DataSource) bool {
			return func(d DataSource) bool { return slices.Contains(list, d.Source()) }
		}
		modified := func(s Source) func(DataSource) bool {
			return func(d DataSource) bool { return d.Source() == s && d.field(19, 5)&snoopModified != 0 }
		}
		any := func(DataSource) bool { return true }
		for label, got := range map[string]int{
			"Load Operations":      count("load", any),
			"Store Operations":     count("store", any),
			"Load L1D hit":         count("load", from(L1)),
			"Load Fill Buffer Hit": count("load", from(FillBuffer)),
			"Load L2D hit":         count("load", from(L2)),
			"Load LLC hit":         count("load", from(L3)),
			"Load Local DRAM":      count("load", from(LocalMemory)),
			"Loads - Miss":         count("load", from(BeyondL1, BeyondL2, BeyondL3)),
			"Load Local HITM":      count("load", modified(L3)),
			"Load Remote HITM":     count("load", modified(OtherCache)),
			"Load HIT Local Peer":  count("load", func(d DataSource) bool { return d.Contended() }) - count("load", modified(L3)) - count("load", modified(OtherCache)),
			"Store L1D Hit":        count("store", from(L1)),
			"Store L1D Miss":       count("store", from(BeyondL1)),
		} {
			found := regexp.MustCompile(`(?m)^ +` + label + ` +: +(\d+)`).FindSubmatch(text)
			if found == nil {
				if label != "Store L1D Hit" && label != "Store L1D Miss" {
					t.Errorf("%s: perf printed no %q", name, label)
				}
				continue
			}
			if want, _ := strconv.Atoi(string(found[1])); got != want {
				t.Errorf("%s: %s: got %d, perf says %d", name, label, got, want)
			}
		}
	}
}

// TestSourceLines checks that the output with source lines contains the same samples as the output
// without.
func TestSourceLines(t *testing.T) {
	plain, source := read(t, "mem.script"), read(t, "source.script")
	if len(plain.Samples) != 51 || len(source.Samples) != 51 {
		t.Fatalf("got %d and %d samples, want 51", len(plain.Samples), len(source.Samples))
	}
	for i, s := range source.Samples {
		want := map[string][]string{"walk": {"fs.c:9"}, "count": {"fs.c:15"}}[s.Function]
		if !slices.Contains(want, s.Source) {
			t.Errorf("sample %d: function %q is at %q, want %q", i, s.Function, s.Source, want)
		}
		if s.Source = ""; s != plain.Samples[i] {
			t.Errorf("sample %d: got %+v, want %+v", i, s, plain.Samples[i])
		}
	}
}

// write prints samples as perf script does. The text contains a source line for each sample that
// has one.
func write(list []Sample, r *rand.Rand, extra int) []byte {
	var b bytes.Buffer
	for _, s := range list {
		name := []string{"app", "two words", ":77", "a/b", "12"}[r.IntN(5)]
		fmt.Fprintf(&b, "%16s %5d/%-5d %s%12d.%06d: %10d %s: %16x ", name, 7, s.Thread, []string{"", "[003] "}[r.IntN(2)], r.IntN(1000), r.IntN(1e6), s.Period, s.Event, s.Addr)
		fmt.Fprintf(&b, "%16x |OP X|LVL Y|SNP Z|TLB L2 miss|LCK No%s", uint64(s.Data), []string{"", "|BLK  N/A   ", "|BLK  Add", "|B"}[r.IntN(4)])
		fmt.Fprintf(&b, "%16d", s.Cycles)
		for range extra {
			fmt.Fprintf(&b, "%16d", r.IntN(100))
		}
		symbol := s.Function
		if symbol == "" {
			symbol = "[unknown]"
		}
		switch r.IntN(3) {
		case 0:
			fmt.Fprintf(&b, " %16x %s+0x1f (/lib/x)\n", s.Code, symbol)
		case 1:
			fmt.Fprintf(&b, " %16x %s\n", s.Code, symbol)
		default:
			fmt.Fprintf(&b, "\n\t%16x %s+0x1 (/a b)\n", s.Code, symbol)
		}
		if s.Source != "" {
			fmt.Fprintf(&b, "  %s\n", s.Source)
		}
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, "\t%16x caller+0x1 (/lib/x)\n  caller.c:1\n\n", 77)
		}
	}
	return b.Bytes()
}

func randomSamples(r *rand.Rand) []Sample {
	list := make([]Sample, 1+r.IntN(40))
	for i := range list {
		list[i] = Sample{
			Event:    []string{"cpu/mem-loads,ldlat=30/P", "ibs_op//", "mem-stores:pp"}[r.IntN(3)],
			Function: []string{"", "add", "main", "operator new(unsigned long)", "f<a, b>", "std::operator|"}[r.IntN(6)],
			Source:   []string{"", "a.c:7", "b.c:12"}[r.IntN(3)],
			Thread:   1 + r.Uint32N(3), Addr: 0x1000 + r.Uint64N(512), Code: 0x400000 + r.Uint64N(3), Period: 1 + r.Uint64N(5), Cycles: r.Uint64N(4) * 30,
			Data: DataSource(2<<r.IntN(2) | r.Uint64N(1<<46)&^31),
		}
	}
	return list
}

func TestReadsWhatPerfWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		want := randomSamples(r)
		text := write(want, r, r.IntN(3))
		m := new(Measurements)
		if err := m.Add("t", text); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.Samples, want) {
			for i := range want {
				if i >= len(m.Samples) || m.Samples[i] != want[i] {
					t.Fatalf("sample %d of\n%s\ngot  %+v\nwant %+v", i, text, m.Samples[min(i, len(m.Samples)-1)], want[i])
				}
			}
		}
	}
}

// TestRepeatedRecords checks that records of SPE count once, although perf script prints a record of
// a miss for several events.
func TestRepeatedRecords(t *testing.T) {
	once := read(t, "spe.script")
	text, err := os.ReadFile("testdata/spe.script")
	if err != nil {
		t.Fatal(err)
	}
	m := new(Measurements)
	if err := m.Add("t", append(bytes.ReplaceAll(text, []byte(" memory:"), []byte(" l1d-access:")), text...)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Samples, once.Samples) {
		t.Errorf("got %d samples, want %d", len(m.Samples), len(once.Samples))
	}
}

// rows returns the rows of the table with this key, or nil if there is no such table.
func rows(tables []report.Table, key string) [][]report.Value {
	for _, table := range tables {
		if table.Key == key {
			return table.Rows
		}
	}
	return nil
}

func cell(t *testing.T, tables []report.Table, key string, row int, column string) float64 {
	t.Helper()
	for _, table := range tables {
		if table.Key == key {
			x, ok := table.Rows[row][table.Index(column)].Number()
			if !ok {
				t.Errorf("%s: row %d has no number %s", key, row, column)
			}
			return x
		}
	}
	t.Fatalf("there is no table %s", key)
	return 0
}

// TestTablesAgreeWithNaiveSums recomputes each table by a loop over all samples for each row.
func TestTablesAgreeWithNaiveSums(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	nearQuotient := func(what string, got report.Value, part, whole float64) {
		t.Helper()
		x, ok := got.Number()
		if ok != (whole > 0) {
			t.Errorf("%s: got %s, want %v of %v", what, got.Plain(), part, whole)
		} else if ok {
			near(what, x, part/whole)
		}
	}
	for range 200 {
		m := &Measurements{Samples: randomSamples(r)}
		if r.IntN(4) == 0 {
			for i := range m.Samples {
				m.Samples[i].Data = m.Samples[i].Data&^31 | opStore
			}
		}
		hasOp := func(op string) func(Sample) bool { return func(s Sample) bool { return s.Data.Op() == op } }
		op := "load"
		if !slices.ContainsFunc(m.Samples, hasOp("load")) {
			op = "store"
		}
		var list []Sample
		for _, s := range m.Samples {
			if s.Data.Op() == op {
				list = append(list, s)
			}
		}
		tables := m.Tables(Options{LineBytes: 64}, nil)
		sum := func(is func(s Sample) bool) (x float64) {
			for _, s := range list {
				if is(s) {
					x += float64(s.Period)
				}
			}
			return x
		}
		row := 0
		for level := 1; level <= 3; level++ {
			missed := sum(func(s Sample) bool { return s.Data.Source().at(level) == miss })
			hits := sum(func(s Sample) bool { return s.Data.Source().at(level) == hit })
			if missed+hits == 0 {
				continue
			}
			near("miss ratio", cell(t, tables, "levels", row, "miss_ratio"), missed/(missed+hits))
			row++
		}
		latency := func(is func(s Sample) bool) (x float64) {
			for _, s := range list {
				if is(s) {
					x += float64(s.Period * s.Cycles)
				}
			}
			return x
		}
		all := func(Sample) bool { return true }
		for _, table := range tables {
			if strings.Contains(table.Title, "loads") != (op == "load") && table.Key != "sources" && table.Key != "lines" && table.Key != "accesses" {
				t.Errorf("the title of a table of %ss is %q", op, table.Title)
			}
			switch table.Key {
			case "code":
				for _, row := range table.Rows {
					function, source := row[0].Plain(), row[1].Plain()
					own := func(s Sample) bool {
						f, l := s.name(false)
						return f == function && l == source
					}
					with := func(level int, o outcome) float64 {
						return sum(func(s Sample) bool { return own(s) && s.Data.Source().at(level) == o })
					}
					missed := sum(func(s Sample) bool { return s.Data.Source().at(1) == miss })
					nearQuotient("L1 miss ratio", row[table.Index("miss_ratio")], with(1, miss), with(1, miss)+with(1, hit))
					nearQuotient("L3 miss ratio", row[table.Index("l3_miss_ratio")], with(3, miss), with(3, miss)+with(3, hit))
					nearQuotient("share of the L1 misses", row[table.Index("misses_share")], with(1, miss), missed)
					nearQuotient("share of the latency", row[table.Index("latency_share")], latency(own), latency(all))
				}
			case "sources":
				for _, row := range table.Rows {
					var cycles []uint64
					for _, s := range m.Samples {
						if s.Cycles > 0 && s.Data.Op() == row[0].Plain() && s.Data.Source().String() == row[1].Plain() {
							cycles = append(cycles, slices.Repeat([]uint64{s.Cycles}, int(s.Period))...)
						}
					}
					slices.Sort(cycles)
					if got := row[table.Index("median_cycles")]; len(cycles) == 0 && !got.IsNone() || len(cycles) > 0 && !report.Equal(got, report.Count(cycles[(len(cycles)-1)/2])) {
						t.Errorf("the median of %v is %s", cycles, got.Plain())
					}
				}
			case "lines":
				total := 0.0
				for i := range table.Rows {
					total += cell(t, tables, "lines", i, "contended")
				}
				want := 0
				for _, s := range m.Samples {
					if s.Data.Contended() {
						want++
					}
				}
				near("contended samples", total, float64(want))
			}
		}
	}
}

// TestInterval checks that the ends of the interval are those shares from which the measured share is
// 1.96 standard errors away, which defines the Wilson interval.
func TestInterval(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var w weights
		part := 0.0
		for range 1 + r.IntN(200) {
			s := Sample{Period: 7}
			w.add(&s)
			if r.IntN(3) == 0 {
				part += 7
			}
		}
		n, p := float64(w.samples), part/w.sum
		low, high := w.interval(part)
		for _, end := range []float64{low, high} {
			if got, want := math.Abs(p-end), 1.959963984540054*math.Sqrt(end*(1-end)/n); math.Abs(got-want) > 1e-7 && end > 1e-9 && end < 1-1e-9 {
				t.Errorf("%v of %v: the end %v is %v away, want %v", part, w.sum, end, got, want)
			}
		}
		if low > p+1e-12 || high < p-1e-12 {
			t.Errorf("%v is outside of [%v, %v]", p, low, high)
		}
	}
}

func TestSharing(t *testing.T) {
	const modified = 2 | levelHit<<5 | bitL3<<5 | snoopModified<<19 | 3<<33
	for _, test := range []struct {
		offsets [2]uint64
		threads [2]uint32
		want    string
	}{{[2]uint64{0, 8}, [2]uint32{1, 2}, "false sharing"}, {[2]uint64{8, 8}, [2]uint32{1, 2}, "true sharing"}, {[2]uint64{0, 8}, [2]uint32{1, 1}, "unknown"}} {
		m := &Measurements{}
		for i := range 2 {
			m.Samples = append(m.Samples, Sample{Addr: 0x40 + test.offsets[i], Thread: test.threads[i], Data: modified, Period: 1})
		}
		if list := m.sharedLines(Options{LineBytes: 64}); len(list) != 1 || list[0].kind() != test.want {
			t.Errorf("offsets %v of threads %v: got %d lines, want one line with the sharing %s", test.offsets, test.threads, len(list), test.want)
		}
	}
}

func TestCounts(t *testing.T) {
	for name, want := range map[string]string{
		"stat.csv":      "cpu-clock=1.52msec task-clock=1.53msec page-faults=100 context-switches=0 cycles:not supported L1-dcache-load-misses:not supported",
		"intervals.csv": "page-faults=2104 task-clock=6.61msec",
		"repeated.csv":  "page-faults=2105 task-clock=4.76msec cycles:u:not supported",
		"cpus.csv":      "page-faults=3260 task-clock=82.13msec",
		"sockets.csv":   "page-faults=16443 context-switches=290",
		"likwid.csv":    "INSTR_RETIRED_ANY=3145728 CPU_CLK_UNHALTED_CORE=40000000 MEM_UOPS_RETIRED_LOADS=1000000 L1D_REPLACEMENT=6000",
		"papi.csv":      "PAPI_LD_INS=1000000 PAPI_L1_DCM=6000 PAPI_TLB_DM=17",
	} {
		var got []string
		for _, c := range read(t, name).Counts {
			if c.Missing != "" {
				got = append(got, c.Event+":"+c.Missing)
			} else {
				got = append(got, c.Event+"="+strconv.FormatFloat(math.Round(c.Value*100)/100, 'f', -1, 64)+c.Unit)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, text, want)
		}
	}
}

// TestSplitEvent checks events whose names contain the separator, and each separator.
func TestSplitEvent(t *testing.T) {
	for _, text := range []string{
		"5,,cpu/event=0xd1,umask=0x8/u,1000,50.00,,", "5;;cpu/event=0xd1,umask=0x8/u;1000;50.00;;", "5\t\tcpu/event=0xd1,umask=0x8/u\t1000\t50.00", "app-7|5||cpu/event=0xd1,umask=0x8/u|0.1%|1000|50.00||",
	} {
		s, ok := statLine([]byte(text))
		if want := (Count{Event: "cpu/event=0xd1,umask=0x8/u", Value: 5, Running: 0.5}); !ok || s.Count != want {
			t.Errorf("%s: got %+v, want %+v", text, s.Count, want)
		}
	}
}

// TestMissingValues checks lines without a value, with fields before the value and with a unit.
func TestMissingValues(t *testing.T) {
	for _, test := range []struct{ text, event, unit, missing string }{
		{"1.000123,<not counted>,msec,task-clock,0,100.00,,", "task-clock", "msec", "not counted"},
		{"S0,1,<not supported>,Joules,power/energy-pkg/,0,100.00,,", "power/energy-pkg/", "Joules", "not supported"},
		{"     1.000123,S0-D0-C0,2,<not counted>,,cycles:u,0,0.00,,", "cycles:u", "", "not counted"},
	} {
		m := new(Measurements)
		if err := m.Add("f", []byte(test.text+"\n")); err != nil {
			t.Error(err)
		} else if c := m.Counts[0]; c.Event != test.event || c.Unit != test.unit || c.Missing != test.missing {
			t.Errorf("%s: got %+v", test.text, c)
		}
	}
}

// TestUnknownOutcomes checks that no ratio is printed if the outcomes of all samples are unknown, and
// that samples with unknown outcomes do not count as hits.
func TestUnknownOutcomes(t *testing.T) {
	m := &Measurements{Samples: []Sample{{Data: opLoad, Period: 1}}}
	tables := m.Tables(Options{LineBytes: 64}, &Prediction{Levels: []Level{{"L1", 10, 1}, {"L2", 0, 0}}})
	for _, row := range rows(tables, "levels") {
		if !row[3].IsNone() || !row[4].IsNone() || !row[7].IsNone() {
			t.Errorf("%s: a ratio of no samples is %s", row[0].Plain(), row[3].Plain())
		}
	}
	if row := rows(tables, "levels")[1]; !row[6].IsNone() {
		t.Errorf("the predicted miss ratio of no accesses is %s", row[6].Plain())
	}
	for _, x := range rows(tables, "code")[0][3:7] {
		if !x.IsNone() {
			t.Errorf("a ratio of no samples is %s", x.Plain())
		}
	}

	// Only one of these loads has a known outcome in L3.
	m = &Measurements{Samples: []Sample{
		{Data: opLoad | (levelMiss|bitL1)<<5, Period: 1}, {Data: opLoad | (levelMiss|bitL3)<<5, Period: 1}, {Data: opLoad, Period: 1},
	}}
	if got := cell(t, m.Tables(Options{LineBytes: 64}, nil), "code", 0, "l3_miss_ratio"); got != 1 {
		t.Errorf("the L3 miss ratio is %v, want 1", got)
	}
}

func TestWarnings(t *testing.T) {
	p := &Prediction{Loads: 2, Stores: 1, Cycles: 9, Levels: []Level{{"L1", 3, 1}}}
	const onlyLoads = "count only the misses of loads"
	for _, test := range []struct {
		text string
		p    *Prediction
		want []string // texts that the warnings contain, in this order
	}{
		{"event,value\nL1-dcache-load-misses:u,384\n", p, []string{"events such as L1-dcache-load-misses:u " + onlyLoads}},
		{"event,value\nL1-dcache-load-misses:u,384\n", nil, nil},
		{"event,value\nL1-dcache-load-misses:u,384\n", &Prediction{Loads: 2, Levels: p.Levels}, nil},
		{"event,value\nmem_load_retired.l2_miss:u,384\n", p, nil}, // the prediction has no L2
		{"event,value\nPAPI_L1_DCM,384\nPAPI_LD_INS,2\nL1-dcache-loads:u,4\n", p, nil},
		{"1,,cycles,5,100.00\n", p, []string{"add :u", "predicted cycles"}},
		{"<not supported>,,cycles,0,100.00,,\n<not supported>,,L1-dcache-load-misses,0,100.00,,\n", p, nil},
	} {
		m := new(Measurements)
		if err := m.Add("f", []byte(test.text)); err != nil {
			t.Fatal(err)
		}
		got := m.Warnings(test.p)
		if !slices.EqualFunc(got, test.want, strings.Contains) {
			t.Errorf("%q: got the warnings %q, want %q", test.text, got, test.want)
		}
	}
	for skipped, want := range map[int]string{1: "1 sample contains no data source, and was skipped", 1234: "1,234 samples contain no data source, and were skipped"} {
		if got := (&Measurements{Skipped: skipped}).Warnings(nil); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	stores := &Measurements{Samples: []Sample{{Data: opStore, Period: 1}}}
	if got := stores.Warnings(p); len(got) != 1 || !strings.Contains(got[0], "cover only stores") {
		t.Errorf("got %q for stores", got)
	}
}

// TestOnlyLoads checks which events count only misses of loads.
func TestOnlyLoads(t *testing.T) {
	both := []string{"l1d_replacement", "l1d_cache_refill", "papi_l1_dcm", "l2d_cache_refill", "papi_l2_dcm", "cache_misses", "longest_lat_cache_miss",
		"papi_l3_tcm", "papi_l3_dcm", "dtlb_walk", "papi_tlb_dm"}
	for event, q := range events {
		isMiss := q == countL1Misses || q == countL2Misses || q == countMemory || q == countWalks
		if got, want := (&Count{Event: event}).onlyLoads(), isMiss && !slices.Contains(both, event); got != want {
			t.Errorf("%s: got %v, want %v", event, got, want)
		}
	}
}

func TestComparison(t *testing.T) {
	m := read(t, "likwid.csv", "mem.script")
	p := &Prediction{Loads: 800000, Stores: 200000, Memory: 50, Cycles: 2e7, Translations: 100, PageWalks: 25,
		Levels: []Level{{"L1", 1000000, 5000}, {"L2", 5000, 500}},
		Misses: func(function, source string) (float64, bool) { return 0.5, function == "walk" }}
	tables := m.Tables(Options{LineBytes: 64, ByFunction: true}, p)
	for _, test := range []struct {
		table  string
		row    int
		column string
		want   float64
	}{
		{"counts", 1, "relative_difference", 1}, {"counts", 2, "relative_difference", 0.25}, {"counts", 3, "predicted", 5000}, {"counts", 3, "relative_difference", 0.2},
		{"levels", 0, "predicted_miss_ratio", 0.005}, {"levels", 1, "difference", 28.0/31 - 0.1}, {"translation", 0, "predicted_share", 0.25},
		{"code", 0, "predicted_misses_share", 0.5},
	} {
		if got := cell(t, tables, test.table, test.row, test.column); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s, row %d, %s: got %v, want %v", test.table, test.row, test.column, got, test.want)
		}
	}
	if limited := m.Tables(Options{LineBytes: 64, Top: 1}, p); len(limited[4].Rows) != 1 || limited[4].Title != "Sampled loads by source line (1 of 2 rows)" {
		t.Errorf("with Top 1, the table is %q with %d rows", limited[4].Title, len(limited[4].Rows))
	}
}

func TestErrors(t *testing.T) {
	software, err := os.ReadFile("testdata/software.script")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{string(software), `f: the samples of the event cpu-clock contain no data source, so it is unknown which cache served them; record with "perf mem record" or "perf c2c record", and print with "perf script"`},
		{"hello\n", `f: the file contains neither samples of perf script nor counts of perf stat -x, likwid-perfctr -O or CSV; record with "perf mem record" or "perf c2c record", and print with "perf script"`},
		{" app 7 1.5: 1 mem:    1668100142 |OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No   5\n", `f:1: sample " app 7 1.5: 1 mem:    1668100142 |OP LOA"…, want the address of the data; print it with "perf script -F +addr"`},
		{"event,value\nPAPI_L1_DCM,x\n", `f:2: line "PAPI_L1_DCM,x", want an event, a comma and a number`},
		{"event,value\nA,1\nA,2\n", `f:3: line "A,2", want each event only once; keep only one of the runs, groups or regions in the file`},
		{"1,,cycles,5,100.00\nwrong\n", `f:2: line "wrong", want VALUE,UNIT,EVENT,…, as perf stat -x, prints it`},
		{"event,value\n", `f: the file contains no count; record counts with "perf stat -x, -o FILE" or "likwid-perfctr -O -o FILE"`},
		{"Event,Counter,Core 0\nA,PMC0,x\n", `f:2: value "x", want a number`},
	} {
		err := new(Measurements).Add("f", []byte(test.text))
		if err == nil || err.Error() != test.want {
			t.Errorf("%.40q:\ngot  %v\nwant %s", test.text, err, test.want)
		}
	}
}

// TestTracesAreNotMeasurements checks that traces in text formats are not recognised as measurements.
func TestTracesAreNotMeasurements(t *testing.T) {
	for _, name := range tracetest.SmallTraces {
		if Recognise(tracetest.Small(name)) {
			t.Errorf("%s is recognised as measurements", name)
		}
	}
	for _, text := range []string{"", "\n", "0 1000\n1 2000\n", "addr,rw,size,tid,pc\n0x10,r,8,1,0x20\n", "  500: system.cpu: ReadReq addr=5\n", "1,2,3,4,5\n"} {
		if Recognise([]byte(text)) {
			t.Errorf("%q is recognised as measurements", text)
		}
	}
}

func FuzzAdd(f *testing.F) {
	names, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text[:min(len(text), 2000)])
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m := new(Measurements)
		if err := m.Add("f", text); err != nil {
			var wrong *trace.SyntaxError
			var whole *Error
			if !errors.As(err, &wrong) && !errors.As(err, &whole) {
				t.Errorf("unexpected error %v", err)
			}
			return
		}
		if lines := bytes.Count(text, []byte("\n")) + 1; len(m.Samples)+len(m.Counts)+m.Skipped > lines {
			t.Errorf("%d lines contain %d samples and %d counts", lines, len(m.Samples)+m.Skipped, len(m.Counts))
		}
		p := &Prediction{Loads: 1, Levels: []Level{{"L1", 2, 1}}}
		for _, table := range m.Tables(Options{LineBytes: 64}, p) {
			for _, row := range table.Rows {
				if len(row) != len(table.Columns) {
					t.Fatalf("%s: a row has %d cells, want %d", table.Key, len(row), len(table.Columns))
				}
				for _, key := range []string{"share", "miss_ratio", "at_least", "at_most", "l3_miss_ratio"} {
					if i := table.Index(key); i >= 0 {
						if x, ok := row[i].Number(); ok && !(x >= 0 && x <= 1+1e-9) {
							t.Errorf("%s: %s is %v", table.Key, key, x)
						}
					}
				}
			}
		}
		_ = m.Warnings(p)
	})
}
