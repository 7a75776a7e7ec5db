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

// A footprint is what memory.c measures of a piece of memory: cycles of a load that waits
// for the one before, and of a line, of many.
type footprint struct {
	bytes                        uint64
	chase, read, copy, scattered float64
}

// crossings are what memory.c measures of accesses across two lines.
type crossings struct {
	within, across float64 // a chain of loads in one line, and across two
	loads, stores  float64 // of two vectors of 32 bytes each, of which one lies across two lines
}

// beyond is a footprint that no cache holds.
const beyond = 256 << 20

// remember puts the levels of the machine at hand into a description, as loads find them:
// their sizes as the system tells them, their times by probes.
func remember(p *pipeline.Processor, testdata string) error {
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
	var best probed
	for range 3 { // other programs only ever make it slower
		out, err := exec.Command(program, sizes...).Output()
		if err != nil {
			return err
		}
		now, err := readProbed(out)
		if err != nil {
			return err
		}
		best.take(now)
	}
	p.Levels = levelsOf(caches, best.list)
	across(p, best.crossings)
	return nil
}

// systemCaches are the data caches of a processor, nearest first.
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
			return nil, fmt.Errorf("%s does not tell the size and ways of cache %d", dir, i)
		}
		list = append(list, pipeline.Level{Name: "L" + text(i, "level"), SizeBytes: kib << 10, Ways: uint32(ways)})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s describes no data caches", dir)
	}
	return list, nil
}

// footprints are those that tell the caches' levels: half of each but the last one; four times the
// last but one, of which next to nothing hits there; then larger ones up to what is beyond them.
func footprints(caches []pipeline.Level) (list []uint64) {
	for _, c := range caches[:max(1, len(caches)-1)] {
		list = append(list, c.SizeBytes/2)
	}
	if n := len(caches); n > 1 {
		for bytes := caches[n-2].SizeBytes * 4; bytes < min(beyond, caches[n-1].SizeBytes); bytes *= 2 {
			list = append(list, bytes)
		}
	}
	return append(list, beyond)
}

// levelsOf makes levels of footprints. The last cache is shared with others, and a guest
// gets a part of it: it is as large as the largest footprint of whose lines, read one after
// the other, it gives half, as far as what they take tells. Latencies of a chase do not tell
// it: beyond some footprint they are of translating addresses.
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

// across gives a description what accesses across two lines take, with units of their own:
// few cores have more than one that puts two lines together.
func across(p *pipeline.Processor, c crossings) {
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

// probed is what the program says.
type probed struct {
	list []footprint
	crossings
}

// take keeps the faster of two runs.
func (b *probed) take(other probed) {
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

func readProbed(out []byte) (p probed, err error) {
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		var x []float64
		for _, field := range fields[1:] {
			value, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return p, fmt.Errorf("the probes of memory say %q", line)
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
			return p, fmt.Errorf("the probes of memory say %q", line)
		}
	}
	if len(p.list) == 0 {
		return p, fmt.Errorf("the probes of memory say %q", out)
	}
	return p, nil
}

// remeasure measures the memory of a measured description again.
func remeasure(dir, testdata, machine string) error {
	p, err := pipeline.Named(machine + "-measured")
	if err != nil {
		return err
	}
	of, err := pipeline.Named(machine)
	if err != nil {
		return err
	}
	p.Window, p.Scheduler, p.Notes = of.Window, of.Scheduler, measuredNotes(of)
	if err := remember(p, testdata); err != nil {
		return err
	}
	return writeMeasured(dir, p)
}

func writeMeasured(dir string, p *pipeline.Processor) error {
	text := append([]byte("# Made by `make probes`. DO NOT EDIT.\n"), p.Write()...)
	return os.WriteFile(filepath.Join(dir, p.Name+".yaml"), text, 0o644)
}
