package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/tools/capture"
)

// pageRows returns the rows of the table on the page: for each kernel and size, the other cells of
// the row.
func pageRows(t *testing.T, text string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 8 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[cells[0]+" "+cells[1]] = cells[2:]
	}
	return rows
}

// readLevels reads the levels of memory that the page states, which were measured when the page was
// written.
func readLevels(page string) (list []pipeline.Level, overlap pipeline.Overlap, err error) {
	for line := range strings.Lines(page) {
		var l pipeline.Level
		var kib string
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 7 || strings.TrimSpace(cells[0]) == "level" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		l.Name, kib = strings.TrimSpace(cells[0]), strings.TrimSuffix(cells[1], " KiB")
		if kib != "–" {
			n, err := strconv.ParseUint(kib, 10, 64)
			if err != nil {
				return nil, 0, err
			}
			l.SizeBytes = n << 10
		}
		if _, err := fmt.Sscan(strings.Join(cells[2:], " "), &l.LatencyCycles, &l.ReadCycles, &l.WrittenCycles, &l.ScatteredCycles, &l.StoredCycles); err != nil {
			return nil, 0, err
		}
		list = append(list, l)
	}
	switch {
	case strings.Contains(page, overlapNotes[pipeline.FullOverlap]):
		overlap = pipeline.FullOverlap
	case strings.Contains(page, overlapNotes[pipeline.OverlapBeyondL2]):
		overlap = pipeline.OverlapBeyondL2
	}
	return list, overlap, nil
}

// TestPageIsCurrent checks that the predictions on the page equal the model's current predictions.
// The test checks only sizes that are traced quickly. Measurements depend on the machine, so they
// are not checked.
func TestPageIsCurrent(t *testing.T) {
	needPrograms(t, clangProgram)
	text, err := os.ReadFile("RUNTIMES.md")
	if err != nil {
		t.Fatal(err)
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	k, err := buildKernels(t.TempDir(), testdata, "sapphirerapids")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(k.module, []byte("clang version 19.1.7")) {
		t.Skip("skipped: this is not clang 19.1.7, which was used for the page")
	}
	levels, overlap, err := readLevels(string(text))
	if err != nil || len(levels) < 3 {
		t.Fatalf("the page has %d levels of memory, want at least 3 (%v)", len(levels), err)
	}
	for i := range 2 {
		levels[i].Ways = k.processor.Levels[i].Ways
	}
	k.processor.Levels, k.processor.Overlap = levels, overlap
	rows, list := pageRows(t, string(text)), runtimeRows()
	for i := range list {
		o := &list[i]
		row := rows[o.kernel.name+" "+strconv.Itoa(o.size.n)]
		if row == nil {
			t.Errorf("%s with n = %d is not on the page; run make runtimes", o.kernel.name, o.size.n)
			continue
		}
		if o.size.level != "L1" {
			continue
		}
		if err := k.predict(o); err != nil {
			t.Fatal(err)
		}
		if got := wholeCycles(o.predicted); got != row[1] || o.by != row[4] {
			t.Errorf("%s with n = %d takes %s cycles, limited by %s; the page has %s, limited by %s; run make runtimes", o.kernel.name, o.size.n, got, o.by, row[1], row[4])
		}
	}
	_, summary, _ := strings.Cut(string(text), "The mean error is ")
	summary, _, _ = strings.Cut(strings.ReplaceAll(summary, ", and the median error is", ", median"), ".\n")
	accuracy, err := os.ReadFile("../../site/docs/accuracy.md")
	if err != nil || !strings.Contains(string(accuracy), "mean error "+summary+", worst ") {
		t.Errorf("the manual does not state the errors of the page: mean error %s (%v)", summary, err)
	}
	for name, row := range rows { // the page must explain large errors
		if e, err := strconv.ParseFloat(strings.TrimSuffix(row[3], " %"), 64); err == nil && (e > largeError || e < -largeError) && (row[5] == "" || row[5] == "unknown") {
			t.Errorf("%s has an error of %v %%, but the page gives no reason", name, e)
		}
	}
}

func TestPage(t *testing.T) {
	p := &pipeline.Processor{Name: "toy", Title: "A toy", Source: "made up", Levels: []pipeline.Level{{Name: "L1", LatencyCycles: 4, SizeBytes: 1024}, {Name: "memory", LatencyCycles: 90, ReadCycles: 7}}}
	k := runtimeKernel{name: "one", about: "a kernel"}
	list := []runtimeRow{
		{kernel: &k, size: &size{10, "L1", "a reason"}, predicted: 110, by: "ports", measured: 100},
		{kernel: &k, size: &size{20, "memory", "a reason"}, predicted: 50, by: "misses", measured: 100},
	}
	var w bytes.Buffer
	writePage(&w, p, "a processor", list)
	for _, want := range []string{
		"| L1 | 1 KiB | 4 | 0 | 0 | 0 | 0 |\n| memory | – | 90 | 7 | 0 | 0 | 0 |\n",
		"| one | 10 | L1 | 110 | 100 | +10.0 % | ports |  |\n| one | 20 | memory | 50 | 100 | -50.0 % | misses | a reason |\n",
		"The mean error is 30.0 %, and the median error is 30.0 %.", "A toy; made up", "\n- " + pipeline.NotModelled()[0] + "\n",
	} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("no %q in\n%s", want, w.String())
		}
	}
	if rows := pageRows(t, w.String()); len(rows["one 10"]) != 6 || rows["one 20"][1] != "50" {
		t.Errorf("%v", rows)
	}
}

// TestLevelsOfProbes checks the memory levels that levelsOf computes for a virtual machine that can
// use only a part of the last-level cache. The expected values were computed by hand.
func TestLevelsOfProbes(t *testing.T) {
	caches := []pipeline.Level{{Name: "L1", SizeBytes: 32 << 10, Ways: 8}, {Name: "L2", SizeBytes: 1 << 20, Ways: 16}, {Name: "L3", SizeBytes: 64 << 20, Ways: 11}}
	list := footprints(caches)
	want := []uint64{16 << 10, 512 << 10, 4 << 20, 6 << 20, 8 << 20, 12 << 20, 16 << 20, 24 << 20, 32 << 20, 48 << 20, beyondCaches}
	if !reflect.DeepEqual(list, want) {
		t.Fatalf("footprints = %v, want %v", list, want)
	}
	probes := make([]footprint, len(list))
	for i := range probes {
		probes[i] = footprint{list[i], 300, 7, 14, 20, 30, 8}
	}
	probes[0] = footprint{list[0], 5.1, 1, 1.5, 0.5, 0.6, 3}
	probes[1] = footprint{list[1], 14.2, 2, 4.5, 1.7, 3.1, 4}
	probes[2] = footprint{list[2], 60, 4, 9, 5.5, 9, 4.5}
	probes[3] = footprint{list[3], 62, 4.1, 9, 5.5, 9, 4.6} // the same times within the tolerance
	probes[4] = footprint{list[4], 90, 4.1, 9, 5.5, 9, 4.6}
	got := levelsOf(caches, probes)
	levels := []pipeline.Level{
		{Name: "L1", LatencyCycles: 5, SizeBytes: 32 << 10, Ways: 8},
		{Name: "L2", LatencyCycles: 14, SizeBytes: 1 << 20, Ways: 16, ReadCycles: 1, WrittenCycles: 2, ScatteredCycles: 1.2, StoredCycles: 2.5},
		{Name: "L3 6MiB", LatencyCycles: 60, SizeBytes: 6 << 20, ReadCycles: 3, WrittenCycles: 4.5, ScatteredCycles: 5, StoredCycles: 8.4},
		{Name: "L3 9MiB", LatencyCycles: 90, SizeBytes: 9 << 20, ReadCycles: 3.1, WrittenCycles: 4.4, ScatteredCycles: 5, StoredCycles: 8.4},
		{Name: "memory", LatencyCycles: 300, ReadCycles: 6, WrittenCycles: 6.5, ScatteredCycles: 19.5, StoredCycles: 29.4},
	}
	if !reflect.DeepEqual(got, levels) {
		t.Errorf("levels\n%+v, want\n%+v", got, levels)
	}
	for i := 4; i < len(probes)-1; i++ {
		probes[i] = probes[3]
		probes[i].bytes = list[i]
	}
	if got := levelsOf(caches, probes); len(got) != 4 || got[2].SizeBytes != 64<<20 || got[2].Ways != 11 || got[2].Name != "L3" {
		t.Errorf("a cache that supplies all footprints is %+v, want its complete size", got)
	}
	for _, c := range []struct {
		second, third float64 // cycles for a line with six more loads, from the second and the third level
		want          pipeline.Overlap
	}{{4, 4.5, pipeline.OverlapBeyondL2}, {4, 6, pipeline.NoOverlap}, {2.5, 4.5, pipeline.FullOverlap}} {
		if probes[1].busy, probes[2].busy = c.second, c.third; overlapOf(3, probes) != c.want {
			t.Errorf("%+v: overlap %v", c, overlapOf(3, probes))
		}
	}
}

func TestReadMemoryProbes(t *testing.T) {
	p, err := readProbed([]byte("level 16 5.00 0.9 1.4 0.6 1.1 2.5\nchain 0 5\nchain 60 12\nloads 1.25\nstores 3.4\n"))
	if err != nil || len(p.list) != 1 || p.list[0] != (footprint{16 << 10, 5, 0.9, 1.4, 0.6, 1.1, 2.5}) || p.crossings != (crossings{5, 12, 1.25, 3.4}) {
		t.Errorf("%+v, %v", p, err)
	}
	q := p
	q.list = []footprint{{16 << 10, 6, 0.8, 1.5, 0.5, 1.2, 2.4}}
	q.stores = 3
	p.keepShortest(q)
	if p.list[0] != (footprint{16 << 10, 5, 0.8, 1.4, 0.5, 1.1, 2.4}) || p.stores != 3 || p.loads != 1.25 {
		t.Errorf("the minimum of two runs is %+v, which is wrong", p)
	}
	for _, bad := range []string{"", "level 16 5\n", "level a b c d e f g\n", "speed 3\n"} {
		if _, err := readProbed([]byte(bad)); err == nil {
			t.Errorf("readProbed(%q) returned no error", bad)
		}
	}
	of := &pipeline.Processor{Ports: []string{"P2", "P4"}}
	of.Set(pipeline.Key{Class: pipeline.Load, Type: "<4 x double>"}, pipeline.Cost{Latency: 6, MicroOps: 1, Uses: []pipeline.Use{{Ports: 1, Cycles: 1}}})
	for range 2 { // the second call must not add any execution ports
		addCrossingCosts(of, crossings{5, 11.8, 1.25, 3.4})
	}
	c, _ := of.Cost(pipeline.Key{Class: pipeline.CrossingLoad})
	if want := []pipeline.Use{{Ports: 1, Cycles: 1}, {Ports: 4, Cycles: 1.3}}; c.Latency != 7 || !reflect.DeepEqual(c.Uses, want) || len(of.Ports) != 4 {
		t.Errorf("a load across lines costs %+v with ports %v, want %v and latency 7", c, of.Ports, want)
	}
}

func TestSystemCaches(t *testing.T) {
	dir := t.TempDir()
	for index, of := range []map[string]string{
		{"type": "Data", "level": "1", "size": "48K", "ways_of_associativity": "12"},
		{"type": "Instruction", "level": "1", "size": "32K", "ways_of_associativity": "8"},
		{"type": "Unified", "level": "2", "size": "2048K", "ways_of_associativity": "16"},
	} {
		folder := filepath.Join(dir, "index"+strconv.Itoa(index))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range of {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := systemCaches(dir)
	want := []pipeline.Level{{Name: "L1", SizeBytes: 48 << 10, Ways: 12}, {Name: "L2", SizeBytes: 2 << 20, Ways: 16}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("systemCaches = %+v, %v; want %+v", got, err, want)
	}
	if _, err := systemCaches(t.TempDir()); err == nil {
		t.Error("no error for a folder without caches")
	}
}

// TestListTraversalTime checks that the predicted time to traverse a list is the time of its
// misses, no matter which of a node's two fields is read first.
func TestListTraversalTime(t *testing.T) {
	needPrograms(t, clangProgram)
	p, err := pipeline.Named("sapphirerapids-measured")
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs("testdata/list.c")
	if err != nil {
		t.Fatal(err)
	}
	const nodes, walks = 4000, 4 // the nodes occupy 250 KiB, which fit in L2
	var cycles []float64
	for i, flags := range [][]string{{"-O2"}, {"-O2", "-DNEXT_FIRST"}} {
		traced := filepath.Join(t.TempDir(), "list")
		var said bytes.Buffer
		if status, err := capture.Compile(capture.IO{Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said}, capture.Options{}, clangProgram, append(flags, source, "-o", traced)); err != nil || status != 0 {
			t.Fatalf("%v\n%s", err, said.Bytes())
		}
		run, err := profileOf(analysis.Sites|analysis.Blocks, traced, strconv.Itoa(nodes))
		if err != nil {
			t.Fatal(err)
		}
		m, err := costmodel.Open(run.Encode(), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := functionOf(m, p, "walk")
		if err != nil {
			t.Fatal(err)
		}
		cycles = append(cycles, all/(nodes*walks))
		if l2 := p.Levels[1].LatencyCycles; cycles[i] < 0.9*l2 || cycles[i] > 1.6*l2 {
			t.Errorf("%v: %.1f cycles per node, want about the latency of L2, %v", flags, cycles[i], l2)
		}
	}
	if relative(cycles[0], cycles[1]) > 10 || relative(cycles[1], cycles[0]) > 10 {
		t.Errorf("%.1f cycles per node, but %.1f with the loads exchanged", cycles[0], cycles[1])
	}
}
