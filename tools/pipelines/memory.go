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
// that depends on the previous load, and the cycles per line of three other access patterns.
type footprint struct {
	bytes                        uint64
	chase, read, copy, scattered float64
}

// crossings contains memory.c's measurements of accesses that cross a line boundary.
type crossings struct {
	within, across float64 // cycles per load in a chain of loads: each load is within one line, or crosses into a second line
	loads, stores  float64 // cycles to access two vectors of 32 bytes, one of which crosses a line boundary
}

// beyondCaches is the size, in bytes, of a memory region that does not fit in any cache.
const beyondCaches = 256 << 20

// addMemory adds this machine's memory levels to a description. The system reports the sizes of the
// levels, and probes measure the times.
func addMemory(p *pipeline.Processor, testdata string) error {
	caches, err := systemCaches("/sys/devices/system/cpu/cpu0/cache")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "pipelines")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "memory")
	if err := command(clangProgram, "-O2", "-march=native", filepath.Join(testdata, "memory.c"), "-o", program); err != nil {
		return err
	}
	var sizes []string
	for _, bytes := range footprints(caches) {
		sizes = append(sizes, strconv.FormatUint(bytes>>10, 10))
	}
	var best probeResult
	for range 3 { // use the minimum of several runs, because other programs can only make a run slower
		out, err := exec.Command(program, sizes...).Output()
		if err != nil {
			return err
		}
		now, err := readProbed(out)
		if err != nil {
			return err
		}
		best.keepShortest(now)
	}
	p.Levels = levelsOf(caches, best.list)
	addCrossingCosts(p, best.crossings)
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
// so that this cache has almost no hits. Larger sizes follow, up to a size that exceeds the last
// cache.
func footprints(caches []pipeline.Level) (list []uint64) {
	for _, c := range caches[:max(1, len(caches)-1)] {
		list = append(list, c.SizeBytes/2)
	}
	if n := len(caches); n > 1 {
		for bytes := caches[n-2].SizeBytes * 4; bytes < min(beyondCaches, caches[n-1].SizeBytes); bytes *= 2 {
			list = append(list, bytes)
		}
	}
	return append(list, beyondCaches)
}

// levelsOf derives the memory levels from the measurements of footprints. The last cache is shared,
// and a virtual machine can use only a part of it. The usable size is estimated from the cycles: it
// is the largest footprint for which the cache supplies half of the lines that are read in
// sequence. The latencies of a pointer chase do not show the usable size, because address
// translation dominates the latencies of large footprints.
func levelsOf(caches []pipeline.Level, list []footprint) []pipeline.Level {
	levels := slices.Clone(caches)
	first, last := list[0], list[len(list)-1]
	note := func(l *pipeline.Level, f footprint) {
		l.LatencyCycles = math.Round(f.chase)
		if f.bytes == first.bytes {
			return
		}
		tenths := func(x float64) float64 { return max(0.1, math.Round(10*x)/10) }
		l.ReadCycles = tenths(f.read - first.read)
		l.WrittenCycles = tenths(f.copy - first.copy - l.ReadCycles)
		l.ScatteredCycles = tenths(f.scattered - first.scattered)
	}
	for i := range levels {
		note(&levels[i], list[i])
	}
	if n := len(levels); n > 1 {
		shared := &levels[n-1]
		half, size := (list[n-1].read+last.read)/2, uint64(0)
		for _, f := range list[n-1 : len(list)-1] {
			if f.read < half {
				size = f.bytes
			}
		}
		if size > 0 && size < shared.SizeBytes/2 {
			shared.SizeBytes, shared.Ways = size>>20<<20, 0
		}
	}
	memory := pipeline.Level{Name: "memory"}
	note(&memory, last)
	return append(levels, memory)
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
		f.chase, f.read, f.copy, f.scattered = min(f.chase, o.chase), min(f.read, o.read), min(f.copy, o.copy), min(f.scattered, o.scattered)
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
		case fields[0] == "level" && len(x) == 5:
			p.list = append(p.list, footprint{uint64(x[0]) << 10, x[1], x[2], x[3], x[4]})
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
