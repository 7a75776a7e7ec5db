package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/hierarchy/config"
)

const jsonSample = `{
  "name": "toy", "clock_ghz": 2.5,
  "levels": [
    {"name": "L1", "size": "32KiB", "ways": 8, "latency_cycles": 4, "bytes_per_cycle": 64},
    {"name": "L2", "size": 1048576, "ways": "full", "line": 128, "shared_by": 4, "hashed": true,
     "replacement": "plru", "inclusion": "exclusive", "write": "through", "allocate": false}
  ],
  "memory": {"latency_cycles": 200.5, "bytes_per_cycle": 8},
  "sources": ["a \"manual\", \u00a7 4 \ud83d\ude00"]
}
`

var toy = hierarchy.Hierarchy{
	Name: "toy", ClockGHz: 2.5,
	Levels: []hierarchy.Cache{
		{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64, LatencyCycles: 4, BytesPerCycle: 64},
		{Name: "L2", SizeBytes: 1 << 20, LineBytes: 128, SharedBy: 4, Hashed: true, Replacement: hierarchy.TreePLRU,
			Inclusion: hierarchy.Exclusive, Write: hierarchy.WriteThroughAround},
	},
	Memory:  hierarchy.Memory{LatencyCycles: 200.5, BytesPerCycle: 8},
	Sources: []string{`a "manual", § 4 😀`},
}

// pptSample has the layout of PPT's hardware files.
const pptSample = `###########
# toy.py
'''
  A processor with cache_sizes = [1, 2]
'''
ns = 1.0 * 10 ** (-9)  # nanoseconds
kb = 1024.0
mb = 1024.0 ** 2
clockspeed = (
    2.00 * 10 ** 9  # Hertz
)
cache_levels = 3
cache_sizes = [32 * kb, 256 * kb,
    3 * mb]  # bytes
cache_line_sizes = [64, 64, 64 ]
associativity = [8, 8, 12]
num_cache_lines = [cache_sizes[0] / cache_line_sizes[0], cache_sizes[1] / 64]
cache_cycles = [4.0, 12.0, 34.5]
cache_latency = [cache_cycles[0] / clockspeed, 1]
cache_bandwidth_cycles = [4 / 8.0, 1, 1]
bw_ram = (
    20000 * 10**6
)
ram_latency = 50 * ns + 25 / clockspeed
pipelinetypes = ["iadd", "fadd"]
pipelinelatencies = {"iadd": 1.0 / clockspeed, "fadd": f(3)}
`

const drSample = `// Two cores.
num_cores       2
line_size       64
coherence       true
P0L1I { // P0 L1 I$
  type instruction
  core 0
  size 32768
  assoc 4
  parent P0L2
}
P0L1D {
  type            data
  core            0
  size            32K
  assoc           8
  parent          P0L2
  replace_policy  LRU
}
P1L1D { type data core 1 size 32K assoc 8 parent P1L2 }
P0L2 { size 512K assoc 16 inclusive true parent LLC }
P1L2 { size 512K assoc 16 inclusive true parent LLC }
LLC {
  size 1M
  assoc 16
  exclusive true
  parent memory
  replace_policy FIFO
  prefetcher nextline
  miss_file misses.txt
}
`

func TestReadEveryFormat(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		form  config.Form
		want  hierarchy.Hierarchy
		notes []string // words that must appear in each note
	}{
		"TLBs": {`{"levels": [{"name": "L1", "size": "32KiB", "ways": 8}], "instructions": [{"name": "L1I", "size": "16KiB", "ways": 4, "prefetch": "next-line:degree=2"}],
			"tlbs": [{"name": "ITLB", "entries": 64, "ways": 8, "instructions": true}, {"name": "DTLB", "entries": 64, "ways": "full", "replacement": "fifo"}, {"name": "STLB", "entries": 1536, "ways": 12}], "page_size": "2MiB"}`, config.JSON,
			hierarchy.Hierarchy{
				Levels:          []hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64}},
				Instructions:    []hierarchy.Cache{{Name: "L1I", SizeBytes: 16 << 10, Ways: 4, LineBytes: 64, Prefetch: hierarchy.Prefetch{Kind: hierarchy.NextLine, Degree: 2}}},
				InstructionTLBs: []hierarchy.Cache{{Name: "ITLB", SizeBytes: 64 << 12, Ways: 8, LineBytes: 4096}},
				TLBs:            []hierarchy.Cache{{Name: "DTLB", SizeBytes: 64 << 12, LineBytes: 4096, Replacement: hierarchy.FIFO}, {Name: "STLB", SizeBytes: 1536 << 12, Ways: 12, LineBytes: 4096}},
				PageBytes:       2 << 20,
			}, nil},
		"JSON": {jsonSample, config.JSON, toy, nil},
		"lines": {"# mine\nL1=32KiB,8,latency=4\n\n L2 = 1M,full,128 \nmemory=latency=200\nclock = 3.5 GHz\n", config.Lines,
			hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64, LatencyCycles: 4}, {Name: "L2", SizeBytes: 1 << 20, LineBytes: 128}},
				Memory: hierarchy.Memory{LatencyCycles: 200}, ClockGHz: 3.5}, nil},
		"PPT": {pptSample, config.PPT, hierarchy.Hierarchy{Levels: []hierarchy.Cache{
			{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64, LatencyCycles: 4},
			{Name: "L2", SizeBytes: 256 << 10, Ways: 8, LineBytes: 64, LatencyCycles: 12},
			{Name: "L3", SizeBytes: 3 << 20, Ways: 12, LineBytes: 64, LatencyCycles: 34.5},
		}, Memory: hierarchy.Memory{LatencyCycles: 125, BytesPerCycle: 10}, ClockGHz: 2}, []string{"is ignored"}},
		"PPT, in a class": {"class core(object):\n  def __init__(self):\n    self.clockspeed = 10**9\n    self.cache_sizes = [2**15, 2**18]\n    self.cache_latency = [3e-9, 1.0e-8]\n", config.PPT,
			hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 32 << 10, LineBytes: 64, LatencyCycles: 3}, {Name: "L2", SizeBytes: 256 << 10, LineBytes: 64, LatencyCycles: 10}}, ClockGHz: 1},
			[]string{"fully associative"}},
		"PPT, in a dictionary": {"hw = {\n 'name': 'x',\n 'cache_sizes': [4096],\n 'associativity': [4], 'cache_cycles': [-(-2)], 'ports': {'a': [1, 2]} }\n", config.PPT,
			hierarchy.Hierarchy{Levels: []hierarchy.Cache{{Name: "L1", SizeBytes: 4096, Ways: 4, LineBytes: 64, LatencyCycles: 2}}}, nil},
		"drcachesim": {drSample, config.DrCacheSim, hierarchy.Hierarchy{Levels: []hierarchy.Cache{
			{Name: "P0L1D", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64, Inclusion: hierarchy.NonInclusive},
			{Name: "P0L2", SizeBytes: 512 << 10, Ways: 16, LineBytes: 64, Inclusion: hierarchy.Inclusive},
			{Name: "LLC", SizeBytes: 1 << 20, Ways: 16, LineBytes: 64, Inclusion: hierarchy.Exclusive, SharedBy: 2, Replacement: hierarchy.FIFO, Prefetch: hierarchy.Prefetch{Kind: hierarchy.NextLine}},
		}, Instructions: []hierarchy.Cache{{Name: "P0L1I", SizeBytes: 32 << 10, Ways: 4, LineBytes: 64}}, Simulation: hierarchy.Simulation{Cores: 2}}, []string{"miss_file"}},
	} {
		if form := config.Recognise([]byte(c.text)); form != c.form {
			t.Errorf("%s recognised as %s, want %s", name, form, c.form)
		}
		got, notes, err := config.Read([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
		if len(notes) != len(c.notes) {
			t.Errorf("%s: notes %q, want %d notes", name, notes, len(c.notes))
		}
		for i := range min(len(notes), len(c.notes)) {
			if !strings.Contains(notes[i], c.notes[i]) {
				t.Errorf("%s: note %q, want it to contain %q", name, notes[i], c.notes[i])
			}
		}
	}
}

// TestDrCacheSimParameters checks that each parameter of drcachesim is applied, ignored with a
// note, or rejected.
func TestDrCacheSimParameters(t *testing.T) {
	const cache = "L1 { core 0 size 32K assoc 8 }"
	type settings = hierarchy.Simulation
	for text, c := range map[string]struct {
		want settings
		note string
	}{
		"num_cores 2":         {settings{Cores: 2, Incoherent: true}, ""},
		"skip_refs 1000000":   {settings{Skip: 1000000, Incoherent: true}, ""},
		"sim_refs 5000":       {settings{Limit: 5000, Incoherent: true}, ""},
		"warmup_fraction 0.5": {settings{WarmupShare: 0.5, Incoherent: true}, ""},
		"warmup_refs 10":      {settings{Warmup: 10, Incoherent: true}, ""},
		"coherence true":      {settings{}, ""},
		"coherent false":      {settings{Incoherent: true}, ""},
		"cpu_scheduling true": {settings{Incoherent: true}, "cpu_scheduling true is ignored"},
		"use_physical true":   {settings{Incoherent: true}, "use_physical true is ignored"},
		"use_physical false":  {settings{Incoherent: true}, ""},
		"verbose 1":           {settings{Incoherent: true}, ""},
		"line_size 64":        {settings{Incoherent: true}, ""},
	} {
		h, notes, err := config.Read([]byte(text + "\n" + cache))
		if err != nil || h.Simulation != c.want || (c.note == "") != (len(notes) == 0) || !strings.Contains(strings.Join(notes, "; "), c.note) {
			t.Errorf("%s: settings %+v, notes %q, error %v, want %+v and %q", text, h.Simulation, notes, err, c.want, c.note)
		}
	}
	for _, text := range []string{"num_cores 0", "num_cores x", "skip_refs -1", "warmup_fraction 2", "coherence maybe", "page_size 4K"} {
		if _, _, err := config.Read([]byte(text + "\n" + cache)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// TestDrCacheSimPolicies checks the replacement policies of drcachesim's configurations.
func TestDrCacheSimPolicies(t *testing.T) {
	for text, want := range map[string]string{
		"LRU": "lru", "LFU": "lfu", "FIFO": "fifo", "BIT_PLRU": "bit-plru", "{ type FIFO }": "fifo",
		"{ type RRIP rrpv_bits 2 rrpv_period 32 rrpv_long_per_period 1 }": "brrip",
		"{ type RRIP rrpv_bits 2 rrpv_period 0 rrpv_long_per_period 0 }":  "srrip",
		"{ type RRIP rrpv_bits 3 rrpv_period 64 rrpv_long_per_period 1 }": "",
		"RRIP": "", "MRU": "", "{ type LRU x 1 }": "", "{ type": "",
	} {
		h, _, err := config.Read([]byte("L1 { core 0 size 32K assoc 8 replace_policy " + text + "}"))
		if got := err == nil; got != (want != "") || got && h.Levels[0].Replacement.String() != want {
			t.Errorf("replacement policy %s: levels %+v, error %v, want %q", text, h.Levels, err, want)
		}
	}
}

// TestDineroIVOptions checks DineroIV options that describe a split first level above a unified
// level.
func TestDineroIVOptions(t *testing.T) {
	const common = "-l1-isize 8k -l1-ibsize 16 -l1-dsize 16k -l1-dbsize 16 -l1-dassoc 2 -l1-drepl f -l1-dfetch t -l1-dpfdist 2 -l1-dwalloc f " +
		"-l2-usize 1m -l2-ubsize 64 -l2-usbsize 16 -l2-uassoc 4 -l2-uwback n -l2-uccc -flushcount 10k -informat d"
	h, notes, err := config.Read([]byte("dineroIV " + common))
	want := []string{
		"L1I=8KiB,1,16,subblock=16,instructions",
		"L1D=16KiB,2,16,subblock=16,prefetch=tagged:distance=2:reads:chained,fifo,allocate-whole",
		"L2=1MiB,4,subblock=16,write-through",
	}
	if err != nil || len(notes) > 0 || !slices.Equal(h.Lines(), want) || h.Simulation != (hierarchy.Simulation{FlushEvery: 10240, Causes: true}) {
		t.Errorf("%q, %+v, %q, %v", h.Lines(), h.Simulation, notes, err)
	}
	for _, bad := range []string{"-l1-usize 8k", "-l1-usize 8k -l1-ubsize 16 -l1-urepl x", "-l1-isize 8k -l1-ibsize 16", "-l1-usize 8k -l1-ubsize 16 -l2-isize 8k -l2-ibsize 16 -l2-dsize 8k -l2-dbsize 16",
		"-l1-usize 8k -l1-ubsize 16 -on-trigger 0x10", "-l1-usize 8k -l1-ubsize 16 -l1-uwidth 4", "-l1-usize 8k -l1-ubsize 16 -l1-uwalloc f -l1-uwback n"} {
		if _, _, err := config.Read([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Errors contain the location of the invalid text.
func TestErrorLocations(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "no cache",
		"L1=32KiB,8\nL2=1MiB,x\n": "line 2: cache",
		"L1=32KiB,8\nL1=1MiB,8\n": "line 2: cache",
		"memory=latency=1\nmemory=latency=2\nL1=1K,1": "line 2",
		"clock=fast\nL1=1K,1":                         "line 1",
		"{\n  \"levels\": [\n    {\"name\": \"L1\", \"size\": \"32K\",\n     \"ways\": 7}]}": "line 3: L1=32KiB,7, want a number of ways that divides",
		"{\n\"levels\": [],\n}": "line 3: '}', want a key",
		"{\"levels\": []}":      "no cache",
		"{\"level\": []}":       `unknown key "level"`,
		"{\n\"levels\": [{\"name\": \"L1\", \"size\": 64}]}":                                                           `line 2: a level lacks "ways"`,
		"{\"levels\": [{\"name\": \"L1\", \"name\": \"L2\"}]}":                                                         `duplicate key "name"`,
		"{\"levels\": [{\"name\": \"L1\", \"size\": 64, \"ways\": 1, \"write\": \"x\"}]}":                              `"x", want back, through`,
		"{\"levels\": [{\"name\": \"L1\", \"size\": 64, \"ways\": 1, \"latency_cycles\": -1}]}":                        "-1, want a number above 0",
		"{\"levels\": [{\"name\": \"L1\", \"size\": 64, \"ways\": 1}, {\"name\": \"L1\", \"size\": 64, \"ways\": 1}]}": "two caches named",
		"{\"levels\": 1} x":                                 "the end of the text",
		"{\"levels\": tru}":                                 "want a value",
		"{\"name\": \"a\nb\"}":                              "line 1",
		"{\"levels\": " + strings.Repeat("[", 100):          "nested less deeply",
		"---\nlevels:\n":                                    "YAML",
		"x = 1\ncache_sizes = [x, y]\n":                     "line 2: cache_sizes",
		"cache_sizes = 4096\n":                              "line 1: cache_sizes",
		"cache_sizes = [4096]\ncache_sizes = [8192]\n":      "line 2: duplicate cache_sizes, after line 1",
		"cache_sizes = [4000]\nassociativity = [4]\n":       "line 1: L1=4000,4",
		"cache_sizes = [4096]\nassociativity = [3.5]\n":     "line 2: associativity[0] is 3.5",
		"L1 {\n size 32K\n assoc 8\n colour red\n}":         `line 4: cache L1: "colour"`,
		"L1 {\n core 0\n size 32K\n assoc 8\n parent L2\n}": `line 1: cache L1 has the parent "L2"`,
		"L1 {\n core 0\n size 32K\n assoc 8\n parent L1\n}": "is an ancestor of itself",
		"L1 {\n size 32K\n assoc 8\n}":                      "no first-level data cache",
		"L1 {\n core 0\n size 32K\n}":                       "has no size or no assoc",
		"num_cores 2\nL1 {\n core 0\n size 32K\n assoc":     "or the } at the end is missing",
		"L1 { core 0 size 96 assoc 1 }":                     "",
		"line_size 48\nL1 { core 0 size 96 assoc 1 }":       "power of two",
		strings.Repeat(" ", 1<<20+1):                        "1 MiB",
	} {
		_, _, err := config.Read([]byte(text))
		var own *config.Error
		if !errors.As(err, &own) || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%.80q): error %v, want an error with %q", text, err, want)
		}
	}
}

// withTLBs is a hierarchy with TLBs and all other features that only simulations use.
var withTLBs = func() (h hierarchy.Hierarchy) {
	for _, line := range []string{"L1I=16KiB,4,prefetch=next-line,instructions", "L1=32KiB,full,32,subblock=8,prefetch=stride:degree=2:distance=4:reads,drrip,allocate-whole",
		"ITLB=16,2,tlb,instructions", "DTLB=64,full,shared=2,lfu,tlb", "STLB=1536,12,tlb", "pages=1GiB"} {
		if err := h.Add(line); err != nil {
			panic(err)
		}
	}
	return h
}()

// format writes a hierarchy as JSON that follows the schema, and omits default values.
func format(h hierarchy.Hierarchy) []byte {
	type object = map[string]any
	put := func(o object, key string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			o[key] = value
		}
	}
	levels, instructions := []object{}, []object{}
	for i, c := range slices.Concat(h.Instructions, h.Levels) {
		o := object{"size": hierarchy.FormatSize(c.SizeBytes), "line": c.LineBytes, "ways": c.Ways}
		if c.Ways == 0 {
			o["ways"] = "full"
		}
		put(o, "shared_by", c.SharedBy)
		if c.SharedBy == hierarchy.AllCores {
			o["shared_by"] = "all"
		}
		put(o, "name", c.Name)
		put(o, "latency_cycles", c.LatencyCycles)
		put(o, "bytes_per_cycle", c.BytesPerCycle)
		put(o, "hashed", c.Hashed)
		o["replacement"] = c.Replacement.String()
		put(o, "sub_block", c.SubBlockBytes)
		if c.Prefetch.Kind != hierarchy.NoPrefetch {
			o["prefetch"] = c.Prefetch.String()
		}
		o["inclusion"] = []string{"non-inclusive", "inclusive", "exclusive"}[c.Inclusion]
		if c.Write.Through() {
			o["write"] = "through"
		}
		if c.Write.Around() {
			o["allocate"] = false
		}
		if c.Write == hierarchy.WriteBackWhole {
			o["allocate"] = "whole"
		}
		if i < len(h.Instructions) {
			instructions = append(instructions, o)
		} else {
			levels = append(levels, o)
		}
	}
	all, memory, tlbs := object{"levels": levels}, object{}, []object{}
	for i, c := range slices.Concat(h.InstructionTLBs, h.TLBs) {
		o := object{"name": c.Name, "entries": c.Lines(), "ways": c.Ways, "replacement": c.Replacement.String()}
		if c.Ways == 0 {
			o["ways"] = "full"
		}
		put(o, "shared_by", c.SharedBy)
		if c.SharedBy == hierarchy.AllCores {
			o["shared_by"] = "all"
		}
		put(o, "instructions", i < len(h.InstructionTLBs))
		sizes := ""
		for page := uint64(4 << 10); page <= 1<<30; page <<= 1 {
			if c.Pages&page != 0 {
				sizes += "+" + hierarchy.FormatSize(page)
			}
		}
		put(o, "pages", strings.TrimPrefix(sizes, "+"))
		tlbs = append(tlbs, o)
	}
	if len(tlbs) > 0 {
		all["tlbs"] = tlbs
	}
	put(all, "page_size", h.PageBytes)
	if len(instructions) > 0 {
		all["instructions"] = instructions
	}
	put(all, "name", h.Name)
	put(all, "title", h.Title)
	put(all, "about", h.About)
	put(all, "clock_ghz", h.ClockGHz)
	put(all, "sources", h.Sources)
	put(memory, "latency_cycles", h.Memory.LatencyCycles)
	put(memory, "bytes_per_cycle", h.Memory.BytesPerCycle)
	if len(memory) > 0 {
		all["memory"] = memory
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text
}

// Every preset can be written as JSON and read back unchanged, and the JSON conforms to the
// published schema.
func TestReadPresetsAsJSON(t *testing.T) {
	for _, h := range append(hierarchy.Presets(), toy, withTLBs) {
		text := format(h)
		again, notes, err := config.Read(text)
		if err != nil || len(notes) > 0 || !reflect.DeepEqual(again, h) {
			t.Errorf("%s reads as %+v, %q, %v", text, again, notes, err)
		}
		if err := validate(t, text); err != "" {
			t.Errorf("%s: %s", h.Name, err)
		}
	}
}

// A hierarchy that is written in the format Lines and read again has the same levels, memory and
// clock.
func TestWriteLinesRoundTrip(t *testing.T) {
	for _, h := range append(hierarchy.Presets(), toy, withTLBs) {
		again, _, err := config.Read([]byte(strings.Join(h.Lines(), "\n")))
		if err != nil || !reflect.DeepEqual(again.Levels, h.Levels) || !reflect.DeepEqual(again.Instructions, h.Instructions) || !reflect.DeepEqual(again.Translation(), h.Translation()) && again.Name == h.Name || again.Memory != h.Memory || again.ClockGHz != h.ClockGHz {
			t.Errorf("%s reads as %+v, %v", h.Lines(), again, err)
		}
	}
}

// document generates random documents that are nearly valid.
func document(t *rapid.T) map[string]any {
	pick := func(what string, values ...any) any { return rapid.SampledFrom(values).Draw(t, what) }
	level := func(name string) map[string]any {
		l := map[string]any{"name": name, "size": pick("size", "32KiB", "1m", 65536), "ways": pick("ways", 1, 4, "full")}
		if rapid.IntRange(0, 3).Draw(t, "spoilt") == 0 {
			l["size"], l["ways"] = pick("bad size", 65536, 0, "x", 8192.5), pick("bad ways", 4, 0, "some")
		}
		for range rapid.IntRange(1, 2).Draw(t, "keys") {
			if rapid.IntRange(0, 2).Draw(t, "more") > 0 {
				continue
			}
			key := pick("key", "latency_cycles", "shared_by", "hashed", "replacement", "inclusion", "write", "allocate", "line", "bytes_per_cycle", "ways", "prefetch", "sub_block", "colour").(string)
			l[key] = pick("value", 4, 0.5, true, false, "plru", "exclusive", "through", "full", 128, -1, "x", "next-line", "stride:degree=2", "load-forward", "whole")
		}
		if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
			delete(l, pick("dropped", "name", "size", "ways").(string))
		}
		return l
	}
	d := map[string]any{"levels": []any{level("L1"), level("L2")}}
	if key := pick("top", "", "name", "clock_ghz", "memory", "sources", "levels", "instructions", "other", "", "").(string); key != "" {
		d[key] = pick("content", "x", 3.5, 0, []any{}, []any{"a"}, map[string]any{"latency_cycles": 200}, map[string]any{"latency_cycles": 0})
	}
	return d
}

// The schema accepts every document that the reader accepts. The reader also rejects inconsistent
// sizes and ways, which a schema cannot describe.
func TestSchemaMatchesReader(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(document(t))
		if err != nil {
			t.Fatal(err)
		}
		_, _, refused := config.Read(text)
		invalid := validate(t, text)
		switch {
		case refused == nil && invalid != "":
			t.Errorf("%s is accepted, but invalid under the schema: %s", text, invalid)
		case refused != nil && invalid == "" && !strings.Contains(refused.Error(), "divides") && !strings.Contains(refused.Error(), "multiple of") && !strings.Contains(refused.Error(), "power of two"):
			t.Errorf("%s is valid under the schema, but rejected: %v", text, refused)
		case refused == nil:
			accepted++
		}
	})
	if accepted == 0 {
		t.Error("no document was accepted")
	}
}

// validate checks text against the published schema and returns the errors.
func validate(t interface{ Fatal(...any) }, text []byte) string {
	file, err := os.ReadFile("hierarchy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(file, &schema); err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err.Error()
	}
	schemaLevel = schema["$defs"].(map[string]any)["level"].(map[string]any)
	return schemaViolation(schema, v, "$")
}

// schemaLevel is the only definition that the schema refers to.
var schemaLevel map[string]any

// schemaViolation checks a value against a schema, and returns the first violation or "". Only the
// JSON Schema keywords that this project's schema uses are implemented.
func schemaViolation(schema map[string]any, v any, at string) string {
	for key, want := range schema {
		text := ""
		switch key {
		case "$schema", "title", "description", "$defs":
		case "$ref":
			return schemaViolation(schemaLevel, v, at)
		case "type":
			text = ofType(want.(string), v)
		case "required":
			for _, name := range want.([]any) {
				if m, ok := v.(map[string]any); ok && m[name.(string)] == nil {
					text = "lacks " + name.(string)
				}
			}
		case "properties", "additionalProperties":
			properties, _ := schema["properties"].(map[string]any)
			m, _ := v.(map[string]any)
			for name, field := range m {
				if sub, ok := properties[name].(map[string]any); !ok {
					if schema["additionalProperties"] == false {
						text = "has " + name
					}
				} else if why := schemaViolation(sub, field, at+"."+name); why != "" {
					return why
				}
			}
		case "items":
			list, _ := v.([]any)
			for _, item := range list {
				if why := schemaViolation(want.(map[string]any), item, at+"[]"); why != "" {
					return why
				}
			}
		case "allOf":
			for _, sub := range want.([]any) {
				if why := schemaViolation(sub.(map[string]any), v, at); why != "" {
					return why
				}
			}
		case "if":
			if schemaViolation(want.(map[string]any), v, at) == "" {
				if why := schemaViolation(schema["then"].(map[string]any), v, at); why != "" {
					return why
				}
			}
		case "then": // the case "if" also handles this keyword
		case "anyOf":
			text = "is not one of the alternatives"
			for _, sub := range want.([]any) {
				if schemaViolation(sub.(map[string]any), v, at) == "" {
					text = ""
				}
			}
		case "enum":
			text = "is not one of the allowed words"
			for _, word := range want.([]any) {
				if word == v {
					text = ""
				}
			}
		case "minItems", "maxItems":
			if list, ok := v.([]any); ok && (key == "minItems" && len(list) < int(want.(float64)) || key == "maxItems" && len(list) > int(want.(float64))) {
				text = "has too few or too many items"
			}
		case "minimum", "maximum", "exclusiveMinimum":
			x, ok := v.(float64)
			bound := want.(float64)
			if ok && (key == "minimum" && x < bound || key == "maximum" && x > bound || key == "exclusiveMinimum" && x <= bound) {
				text = "is out of bounds"
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(want.(string)).MatchString(s) {
				text = "does not match"
			}
		default:
			text = "the test does not know the keyword " + key
		}
		if text != "" {
			return at + " " + text
		}
	}
	return ""
}

func ofType(want string, v any) string {
	ok := false
	switch x := v.(type) {
	case string:
		ok = want == "string"
	case bool:
		ok = want == "boolean"
	case float64:
		ok = want == "number" || want == "integer" && x == math.Trunc(x)
	case []any:
		ok = want == "array"
	case map[string]any:
		ok = want == "object"
	}
	if !ok {
		return "is no " + want
	}
	return ""
}

// FuzzRead checks that no input makes Read panic, and that encoding/json accepts all JSON that Read
// accepts. Every hierarchy that Read returns must be valid, and must not change when it is written
// and read again.
func FuzzRead(f *testing.F) {
	for _, s := range []string{jsonSample, pptSample, drSample, "-l1-usize 8k -l1-ubsize 16 -l1-ufetch a\n", "L1I=1K,1,instructions\nL1=1K,full,prefetch=stride:degree=2,subblock=8\n", "L1=32KiB,8\nmemory=latency=4\n", "{}", "a{b c}", "cache_sizes = [((((1))))]\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, _, err := config.Read(text)
		if err != nil {
			var own *config.Error
			if !errors.As(err, &own) {
				t.Fatalf("%T", err)
			}
			return
		}
		for _, c := range h.Levels {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if config.Recognise(text) == config.JSON && !json.Valid(bytes.TrimSpace(text)) {
			t.Fatalf("%q is accepted as JSON", text)
		}
		again, _, err := config.Read(format(h))
		if err != nil || !reflect.DeepEqual(again.Levels, h.Levels) || !reflect.DeepEqual(again.Instructions, h.Instructions) || again.Memory != h.Memory {
			t.Fatalf("%s reads as %+v, %v; want %+v", format(h), again, err, h)
		}
	})
}
