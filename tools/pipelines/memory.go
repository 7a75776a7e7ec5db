package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/pipeline"
)

// footprint contains memory.c's measurements for a memory region of one size: the cycles of a load
// that depends on the previous load, and the cycles per line of five other access patterns.
type footprint struct {
	bytes                                      uint64
	chase, read, copy, scattered, stored, busy float64
}

// crossings contains memory.c's measurements of accesses that cross a line boundary.
type crossings struct {
	within, across float64 // cycles per load in a chain of loads: each load is within one line, or crosses into a second line
	loads, stores  float64 // cycles to access two vectors of 32 bytes, one of which crosses a line boundary
}

// beyondCaches is the size, in bytes, of a memory region that does not fit in any cache.
const beyondCaches = 256 << 20

// memoryProbes measures the memory levels of this machine. The system reports the sizes of the
// levels, and probes measure the times.
type memoryProbes struct {
	program string
	caches  []pipeline.Level
	sizes   []string // arguments of the program: the footprints, in KiB
	best    probeResult
}

// newMemoryProbes compiles the probes into a folder.
func newMemoryProbes(dir, testdata string) (*memoryProbes, error) {
	caches, err := systemCaches("/sys/devices/system/cpu/cpu0/cache")
	if err != nil {
		return nil, err
	}
	m := &memoryProbes{program: filepath.Join(dir, "memory"), caches: caches}
	for _, bytes := range footprints(caches) {
		m.sizes = append(m.sizes, strconv.FormatUint(bytes>>10, 10))
	}
	return m, command(clangProgram, "-O2", "-march=native", filepath.Join(testdata, "memory.c"), "-o", m.program)
}

// run measures all levels, and keeps the minimum of all runs, because other programs can only make a
// run slower.
func (m *memoryProbes) run() error {
	out, err := exec.Command(m.program, m.sizes...).Output()
	if err != nil {
		return err
	}
	now, err := readProbed(out)
	if err == nil {
		m.best.keepShortest(now)
	}
	return err
}

// addMemory adds this machine's memory levels to a description.
func addMemory(p *pipeline.Processor, testdata string) error {
	work, err := os.MkdirTemp("", "pipelines")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	m, err := newMemoryProbes(work, testdata)
	for range measurementRounds {
		if err == nil {
			err = m.run()
		}
	}
	if err != nil {
		return err
	}
	p.Levels = levelsOf(m.caches, m.best.list)
	p.Overlap = overlapOf(len(m.caches), m.best.list)
	addCrossingCosts(p, m.best.crossings)
	return nil
}

// systemCaches returns the data caches that the system reports, starting with L1.
func systemCaches(dir string) (list []pipeline.Level, err error) {
	text := func(index int, name string) string {
		content, _ := os.ReadFile(filepath.Join(dir, "index"+strconv.Itoa(index), name))
		return strings.TrimSpace(string(content))
	}
	for i := range 8 {
		if kind := text(i, "type"); kind != "Data" && kind != "Unified" {
			continue
		}
		kib, err1 := strconv.ParseUint(strings.TrimSuffix(text(i, "size"), "K"), 10, 64)
		ways, err2 := strconv.ParseUint(text(i, "ways_of_associativity"), 10, 32)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%s does not contain the size and the number of ways of cache %d", dir, i)
		}
		list = append(list, pipeline.Level{Name: "L" + text(i, "level"), SizeBytes: kib << 10, Ways: uint32(ways)})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s describes no data caches", dir)
	}
	return list, nil
}

// footprints returns the sizes that distinguish the cache levels. The list contains half the size
// of each cache except the last. The next size is four times the size of the second-to-last cache,
// so that this cache has almost no hits. Larger sizes follow, two for each power of two, up to a size
// that exceeds the last cache.
func footprints(caches []pipeline.Level) (list []uint64) {
	for _, c := range caches[:max(1, len(caches)-1)] {
		list = append(list, c.SizeBytes/2)
	}
	if n := len(caches); n > 1 {
		most := min(beyondCaches, caches[n-1].SizeBytes)
		for bytes := caches[n-2].SizeBytes * 4; bytes < most; bytes *= 2 {
			list = append(list, bytes)
			if between := bytes / 2 * 3; between < most {
				list = append(list, between)
			}
		}
	}
	return append(list, beyondCaches)
}

// levelsOf derives the memory levels from the measurements of footprints. The last cache is shared, so
// a program can use only a part of it, and with small pages, the latency grows with the footprint,
// because page tables are read from ever farther levels. Therefore, the last cache becomes one level
// for each footprint whose times differ from the times of the smaller footprint. Such a level reaches
// up to the geometric mean of its footprint and the next.
func levelsOf(caches []pipeline.Level, list []footprint) (levels []pipeline.Level) {
	first, last, from := list[0], len(list)-1, 0
	add := func(l pipeline.Level, f footprint) {
		l.LatencyCycles = math.Round(f.chase)
		if f.bytes != first.bytes {
			tenths := func(x float64) float64 { return max(0.1, math.Round(10*x)/10) }
			l.ReadCycles = tenths(f.read - first.read)
			l.WrittenCycles = tenths(f.copy - first.copy - l.ReadCycles)
			l.ScatteredCycles = tenths(f.scattered - first.scattered)
			l.StoredCycles = tenths(f.stored - first.stored)
		}
		levels = append(levels, l)
	}
	near := max(1, len(caches)-1)
	for i := range near {
		add(caches[i], list[i])
	}
	for k := near; k < last; k++ {
		l := caches[near]
		if end := uint64(math.Sqrt(float64(list[k].bytes)*float64(list[k+1].bytes))) >> 20 << 20; end < l.SizeBytes {
			l.SizeBytes, l.Ways = end, 0
		}
		switch previous := &levels[len(levels)-1]; {
		case k > near && alike(list[from], list[k]):
			previous.SizeBytes, previous.Ways = l.SizeBytes, l.Ways
		default:
			from = k
			add(l, list[k])
		}
	}
	if len(levels) > near && alike(list[from], list[last]) {
		levels = levels[:len(levels)-1] // the last footprints are in memory
	}
	if len(levels) > near+1 {
		for i := range levels[near:] {
			l := &levels[near+i]
			l.Name += " " + strconv.FormatUint(l.SizeBytes>>20, 10) + "MiB"
		}
	}
	add(pipeline.Level{Name: "memory"}, list[last])
	return levels
}

// overlapOf derives which transfers overlap with accesses from the time that six more loads from the
// first level take for each line that is read. A transfer overlaps with these loads if they take less
// than half the time that they take without transfers.
func overlapOf(caches int, list []footprint) pipeline.Overlap {
	first := list[0]
	hides := func(f footprint) bool { return f.busy-f.read < (first.busy-first.read)/2 }
	switch {
	case hides(list[1]):
		return pipeline.FullOverlap
	case caches > 2 && hides(list[2]):
		return pipeline.OverlapBeyondL2
	}
	return pipeline.NoOverlap
}

// alike reports whether the times of two footprints differ by less than a tenth.
func alike(a, b footprint) bool {
	for _, pair := range [][2]float64{{a.chase, b.chase}, {a.read, b.read}, {a.copy, b.copy}, {a.scattered, b.scattered}, {a.stored, b.stored}} {
		if max(pair[0], pair[1]) > 1.1*min(pair[0], pair[1]) {
			return false
		}
	}
	return true
}

// addCrossingCosts adds to a description the costs of accesses that cross a line boundary. The
// description models such accesses with separate execution units, because few cores have more than
// one unit that combines two lines.
func addCrossingCosts(p *pipeline.Processor, c crossings) {
	unit := func(name string) uint64 {
		at := slices.Index(p.Ports, name)
		if at < 0 {
			at = len(p.Ports)
			p.Ports = append(p.Ports, name)
		}
		return 1 << at
	}
	tenths := func(x float64) float64 { return math.Round(10*x) / 10 }
	load, _ := p.Cost(pipeline.Key{Class: pipeline.Load, Type: "<4 x double>"})
	uses := append(slices.Clone(load.Uses), pipeline.Use{Ports: unit("SPLITLOAD"), Cycles: tenths(c.loads)})
	p.Set(pipeline.Key{Class: pipeline.CrossingLoad}, pipeline.Cost{Latency: math.Round(c.across - c.within), Uses: uses})
	store, _ := p.Cost(pipeline.Key{Class: pipeline.Store, Type: "<4 x double>"})
	uses = append(slices.Clone(store.Uses), pipeline.Use{Ports: unit("SPLITSTORE"), Cycles: tenths(c.stores)})
	p.Set(pipeline.Key{Class: pipeline.CrossingStore}, pipeline.Cost{Uses: uses})
}

// probeResult is the output of memory.c.
type probeResult struct {
	list []footprint
	crossings
}

// keepShortest keeps, for each measurement, the shorter time of two runs.
func (b *probeResult) keepShortest(other probeResult) {
	if b.list == nil {
		*b = other
		return
	}
	for i := range b.list {
		f, o := &b.list[i], &other.list[i]
		f.chase, f.read, f.copy = min(f.chase, o.chase), min(f.read, o.read), min(f.copy, o.copy)
		f.scattered, f.stored, f.busy = min(f.scattered, o.scattered), min(f.stored, o.stored), min(f.busy, o.busy)
	}
	b.within, b.across, b.loads, b.stores = min(b.within, other.within), min(b.across, other.across), min(b.loads, other.loads), min(b.stores, other.stores)
}

func readProbed(out []byte) (p probeResult, err error) {
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		var x []float64
		for _, field := range fields[1:] {
			value, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return p, fmt.Errorf("unexpected output of the memory probes: %q", line)
			}
			x = append(x, value)
		}
		switch {
		case fields[0] == "level" && len(x) == 7:
			p.list = append(p.list, footprint{uint64(x[0]) << 10, x[1], x[2], x[3], x[4], x[5], x[6]})
		case fields[0] == "chain" && len(x) == 2 && x[0] == 0:
			p.within = x[1]
		case fields[0] == "chain" && len(x) == 2:
			p.across = x[1]
		case fields[0] == "loads" && len(x) == 1:
			p.loads = x[0]
		case fields[0] == "stores" && len(x) == 1:
			p.stores = x[0]
		default:
			return p, fmt.Errorf("unexpected output of the memory probes: %q", line)
		}
	}
	if len(p.list) == 0 {
		return p, fmt.Errorf("unexpected output of the memory probes: %q", out)
	}
	return p, nil
}

// measureMemory updates the memory levels of a measured description with new measurements.
func measureMemory(dir, testdata, machine string) error {
	p, err := pipeline.Named(machine + "-measured")
	if err != nil {
		return err
	}
	of, err := pipeline.Named(machine)
	if err != nil {
		return err
	}
	p.Window, p.Scheduler, p.Notes = of.Window, of.Scheduler, measuredNotes(of)
	if err := addMemory(p, testdata); err != nil {
		return err
	}
	return writeMeasured(dir, p)
}

func writeMeasured(dir string, p *pipeline.Processor) error {
	text := append([]byte("# Made by `make probes`. DO NOT EDIT.\n"), p.Write()...)
	return os.WriteFile(filepath.Join(dir, p.Name+".yaml"), text, 0o644)
}
