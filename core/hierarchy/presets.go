package hierarchy

import (
	"slices"
	"sort"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// cached is a cache of a preset, with 64-byte lines.
func cached(name string, bytes uint64, ways uint32, latencyCycles float64, more ...func(*Cache)) Cache {
	c := Cache{Name: name, SizeBytes: bytes, Ways: ways, LineBytes: DefaultLineBytes, LatencyCycles: latencyCycles}
	for _, change := range more {
		change(&c)
	}
	return c
}

func sharedBy(cores uint32) func(*Cache) { return func(c *Cache) { c.SharedBy = cores } }

func gives(bytesPerCycle float64) func(*Cache) {
	return func(c *Cache) { c.BytesPerCycle = bytesPerCycle }
}

func hashed(c *Cache)    { c.Hashed = true }
func inclusive(c *Cache) { c.Inclusion = Inclusive }
func exclusive(c *Cache) { c.Inclusion = Exclusive }

// Presets are hierarchies to start from, the default one first: the data caches
// that one core of a processor sees. A level is non-inclusive unless its sources say
// that it is inclusive or exclusive. Every level and memory has a latency, in cycles of
// ClockGHz. Sources name where each is from, and which are estimates. Bandwidths that no
// source states are zero: not known. All are taken to replace the least recently
// used line, which real ones come near.
func Presets() []Hierarchy {
	return slices.Concat(desktops(), laptops(), servers(), boards(), settings())
}

func desktops() []Hierarchy {
	return []Hierarchy{
		{Name: "i7-4770K", Title: "Intel Core i7-4770K, desktop 2013 (Haswell)",
			Levels: []Cache{
				cached("L1", 32*kib, 8, 4, gives(64)),
				cached("L2", 256*kib, 8, 12, gives(64)),
				cached("L3", 8*mib, 16, 36, sharedBy(4), hashed, inclusive),
			},
			Memory: Memory{LatencyCycles: 235.5, BytesPerCycle: 25.6 / 3.5}, ClockGHz: 3.5,
			Sources: []string{
				"sizes and ways: Intel 64 and IA-32 Architectures Optimization Reference Manual, Haswell, cache parameters",
				"latencies: 7-cpu.com, Haswell (L1 4, L2 12, L3 36 cycles, RAM 36 cycles + 57 ns)",
				"memory bandwidth: Intel ARK, i7-4770K, 25.6 GB/s",
				"hashed L3: C. Maurice et al., Reverse Engineering Intel Last-Level Cache Complex Addressing, RAID 2015",
				"inclusion: CPUID leaf 4 of Haswell, as InstLatx64 lists it: L3 is inclusive, L2 is not",
			}},
		{Name: "i7-6700", Title: "Intel Core i7-6700, desktop 2015 (Skylake)",
			Levels: []Cache{
				cached("L1", 32*kib, 8, 4),
				cached("L2", 256*kib, 4, 12),
				cached("L3", 8*mib, 16, 42, sharedBy(4), hashed, inclusive),
			},
			Memory: Memory{LatencyCycles: 246, BytesPerCycle: 34.1 / 4}, ClockGHz: 4,
			Sources: []string{
				"sizes and ways: Intel 64 and IA-32 Architectures Optimization Reference Manual, Skylake client, cache parameters",
				"latencies: 7-cpu.com, Skylake at 4.0 GHz (L1 4, L2 12, L3 42 cycles, RAM 42 cycles + 51 ns)",
				"memory bandwidth: Intel ARK, i7-6700, 34.1 GB/s",
				"inclusion: CPUID leaf 4 of Skylake, as InstLatx64 lists it: L3 is inclusive, L2 is not",
			}},
		{Name: "i9-12900K", Title: "Intel Core i9-12900K, desktop 2021 (Alder Lake, a performance core)",
			Levels: []Cache{
				cached("L1", 48*kib, 12, 5),
				cached("L2", 1280*kib, 10, 15),
				cached("L3", 30*mib, 12, 64, sharedBy(16), hashed),
			},
			Memory: Memory{LatencyCycles: 300}, ClockGHz: 3.2,
			Sources: []string{
				"sizes and ways: Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove",
				"latencies: AnandTech, Intel Architecture Day 2021: Alder Lake, Golden Cove (L1 5, L2 15 cycles)",
				"latencies of L3 and memory: InstLatx64, i9-12900K at 3.2 GHz, page-random test, 8 MB and 512 MB",
				"inclusion: CPUID leaf 4 of Alder Lake, as InstLatx64 lists it: L2 and L3 are not inclusive",
			}},
		{Name: "ryzen-5800x", Title: "AMD Ryzen 7 5800X, desktop 2020 (Zen 3)",
			Levels: []Cache{
				cached("L1", 32*kib, 8, 4),
				cached("L2", 512*kib, 8, 12, gives(32), inclusive),
				cached("L3", 32*mib, 16, 46, sharedBy(8), exclusive),
			},
			Memory: Memory{LatencyCycles: 329}, ClockGHz: 3.8,
			Sources: []string{
				"caches: AMD Software Optimization Guide for AMD Family 19h Processors (56665), sections on the L1, L2 and L3 caches: 4, 12 and 46 cycles on average",
				"latency of memory: InstLatx64, Ryzen 9 5900X at 3.7 GHz, page-random test, 512 MB: 320 cycles, 86.6 ns",
				"inclusion: CPUID leaf 8000001D, as InstLatx64 lists it: L2 is inclusive, L3 is not; by the same guide L3 holds victims of L2",
			}},
		{Name: "ryzen-9950x", Title: "AMD Ryzen 9 9950X, desktop 2024 (Zen 5)",
			Levels: []Cache{
				cached("L1", 48*kib, 12, 4),
				cached("L2", 1*mib, 16, 14, inclusive),
				cached("L3", 32*mib, 16, 47, sharedBy(8), exclusive),
			},
			Memory: Memory{LatencyCycles: 359}, ClockGHz: 4.3,
			Sources: []string{
				"sizes, ways and latencies: AMD Software Optimization Guide for the AMD Zen5 Microarchitecture (58455), sections on the L1 and L2 caches",
				"L3 of one of its two chiplets: Chips and Cheese, AMD's Ryzen 9950X: Zen 5 on Desktop",
				"latency of L3: Wikipedia, Zen 5, 3.5 cycles less than Zen 4, which has 50",
				"latency of memory: an estimate, 83.5 ns as of the Ryzen 9 7950X, which has the same I/O die (InstLatx64, 375 cycles at 4.5 GHz)",
				"inclusion: CPUID leaf 8000001D, as InstLatx64 lists it: L2 is inclusive, L3 is not; by the same guide L3 holds victims of L2",
			}},
	}
}

func laptops() []Hierarchy {
	return []Hierarchy{
		{Name: "i7-1165G7", Title: "Intel Core i7-1165G7, laptop 2020 (Tiger Lake)",
			Levels: []Cache{
				cached("L1", 48*kib, 12, 5),
				cached("L2", 1280*kib, 20, 14),
				cached("L3", 12*mib, 12, 76, sharedBy(4), hashed),
			},
			Memory: Memory{LatencyCycles: 365}, ClockGHz: 2.8,
			Sources: []string{
				"sizes and ways: CPUID leaf 4 of Willow Cove, as in HardwareTimes, Intel Sapphire Rapids-SP Cache Hierarchy",
				"latencies: AnandTech, Intel's Tiger Lake 11th Gen Core i7-1185G7 Review (L1 5, L2 14 cycles)",
				"latencies of L3 and memory: InstLatx64, i5-1135G7 at 2.42 GHz, page-random test, 3 MB (76 cycles) and 128 MB (315 cycles, 130 ns)",
				"inclusion: CPUID leaf 4 of Tiger Lake, as InstLatx64 lists it: L2 and L3 are not inclusive",
			}},
		{Name: "apple-m1", Title: "Apple M1, laptop 2020 (a performance core, Firestorm)",
			About: "Its second level has lines of 128 bytes, which a profile must have been made for.",
			Levels: []Cache{
				cached("L1", 128*kib, 8, 3),
				cached("L2", 12*mib, 12, 15, sharedBy(4), func(c *Cache) { c.LineBytes = 128 }),
			},
			Memory: Memory{LatencyCycles: 304}, ClockGHz: 3.2,
			Sources: []string{
				"sizes and latency of L1: AnandTech, Apple Announces The Apple Silicon M1, Apple's Humongous CPU Microarchitecture",
				"ways and lines: cache identification registers (CCSIDR_EL1) as printed by m1n1, Asahi Linux",
				"latencies of L2 and memory: Apple Silicon CPU Optimization Guide, M1 (about 15 cycles, about 95 ns)",
				"inclusion: an assumption, non-inclusive, for Apple does not publish it",
			}},
	}
}

func servers() []Hierarchy {
	return []Hierarchy{
		{Name: "xeon-8480", Title: "Intel Xeon Platinum 8480+, server 2023 (Sapphire Rapids)",
			Levels: []Cache{
				cached("L1", 48*kib, 12, 5),
				cached("L2", 2*mib, 16, 20),
				cached("L3", 105*mib, 15, 103, sharedBy(56), hashed),
			},
			Memory: Memory{LatencyCycles: 436}, ClockGHz: 2,
			Sources: []string{
				"sizes and ways: Intel 64 and IA-32 Architectures Optimization Reference Manual, Sapphire Rapids; L3 of 1.875 MiB and 15 ways for each of 56 cores",
				"latency of L1: AnandTech, Intel Architecture Day 2021: Alder Lake, Golden Cove",
				"latencies of L2, L3 and memory: an estimate, those that tools/pipelines measured on a guest of its successor with the same core and mesh (processor sapphirerapids-measured)",
				"inclusion: CPUID leaf 4 of Sapphire Rapids, as InstLatx64 lists it: L2 and L3 are not inclusive",
			}},
		{Name: "epyc-7742", Title: "AMD EPYC 7742, server 2019 (Zen 2)",
			Levels: []Cache{
				cached("L1", 32*kib, 8, 4),
				cached("L2", 512*kib, 8, 13, inclusive),
				cached("L3", 16*mib, 16, 34, sharedBy(4), exclusive),
			},
			Memory: Memory{LatencyCycles: 414.8}, ClockGHz: 3.4,
			Sources: []string{
				"sizes and ways: AMD Software Optimization Guide for AMD Family 17h Models 30h and Greater (56305)",
				"latencies: AnandTech, AMD Rome Second Generation EPYC Review, Memory Subsystem: Latency (4, 13 and about 34 cycles, 122 ns at 3.4 GHz)",
				"inclusion: CPUID leaf 8000001D, as InstLatx64 lists it: L2 is inclusive, L3 is not; by the same guide L3 holds victims of L2",
			}},
		{Name: "epyc-9654", Title: "AMD EPYC 9654, server 2022 (Zen 4)",
			Levels: []Cache{
				cached("L1", 32*kib, 8, 4),
				cached("L2", 1*mib, 8, 14, gives(32), inclusive),
				cached("L3", 32*mib, 16, 50, sharedBy(8), exclusive),
			},
			Memory: Memory{LatencyCycles: 278}, ClockGHz: 2.4,
			Sources: []string{
				"caches: AMD Software Optimization Guide for the AMD Zen4 Microarchitecture (57647), sections on the L1, L2 and L3 caches: 4, 14 and 50 cycles on average",
				"latency of memory: an estimate, 116 ns as of the Threadripper PRO 7995WX, of the same generation (InstLatx64, page-random test, 512 MB: 289 cycles at 2.5 GHz)",
				"inclusion: CPUID leaf 8000001D, as InstLatx64 lists it: L2 is inclusive, L3 is not; by the same guide L3 holds victims of L2",
			}},
		{Name: "epyc-9755", Title: "AMD EPYC 9755, server 2024 (Zen 5)",
			Levels: []Cache{
				cached("L1", 48*kib, 12, 4),
				cached("L2", 1*mib, 16, 14, inclusive),
				cached("L3", 32*mib, 16, 47, sharedBy(8), exclusive),
			},
			Memory: Memory{LatencyCycles: 313}, ClockGHz: 2.7,
			Sources: []string{
				"sizes, ways and latencies: AMD Software Optimization Guide for the AMD Zen5 Microarchitecture (58455), sections on the L1 and L2 caches",
				"L3: Tom's Hardware, 128-core EPYC with 512 MB of L3, 32 MB for each of 16 chiplets",
				"latency of L3: Wikipedia, Zen 5, 3.5 cycles less than Zen 4, which has 50",
				"latency of memory: an estimate, 116 ns as of the Threadripper PRO 7995WX, a Zen 4 (InstLatx64)",
				"inclusion: CPUID leaf 8000001D, as InstLatx64 lists it: L2 is inclusive, L3 is not; by the same guide L3 holds victims of L2",
			}},
		{Name: "graviton2", Title: "AWS Graviton2, server 2020 (Arm Neoverse N1)",
			Levels: []Cache{
				cached("L1", 64*kib, 4, 4),
				cached("L2", 1*mib, 8, 11, inclusive),
				cached("L3", 32*mib, 16, 83, sharedBy(64), hashed),
			},
			Memory: Memory{LatencyCycles: 202.5}, ClockGHz: 2.5,
			Sources: []string{
				"sizes and ways: Arm Learning Paths, Memory subsystem, Cache levels (L1 4-way, L2 8-way); Arm CoreLink CMN-600 Technical Reference Manual, system level cache",
				"latencies: AnandTech, Amazon's Arm-based Graviton2 Against AMD and Intel, Memory Subsystem & Latency (4 and 11 cycles, 81 ns)",
				"latency of L3: an estimate, 33 ns as of another mesh of about that size (Chips and Cheese, Grace Hopper, Nvidia's Halfway APU: Xeon Platinum 8480+)",
				"inclusion: Arm Neoverse N1 Technical Reference Manual, L2 memory system: strictly inclusive of the L1 data cache",
			}},
		{Name: "graviton3", Title: "AWS Graviton3, server 2022 (Arm Neoverse V1)",
			Levels: []Cache{
				cached("L1", 64*kib, 4, 4),
				cached("L2", 1*mib, 8, 11, inclusive),
				cached("L3", 32*mib, 16, 86, sharedBy(64), hashed),
			},
			Memory: Memory{LatencyCycles: 297}, ClockGHz: 2.6,
			Sources: []string{
				"sizes: WikiChip, AWS Graviton3",
				"ways: Arm Neoverse V1 Technical Reference Manual, L1 and L2 memory systems; Arm CoreLink CMN-650 Technical Reference Manual",
				"latency of L1: Arm Neoverse V1 Software Optimization Guide, load instructions",
				"latencies of L2, L3 and memory: estimates, 11 cycles as of the Neoverse N1, 33 ns as of another mesh, and 114 ns as of Graviton4, with DDR5 too (Chips and Cheese, Grace Hopper, Nvidia's Halfway APU)",
				"inclusion: Arm Neoverse V1 Technical Reference Manual, L2 memory system: strictly inclusive of the L1 data cache",
			}},
	}
}

func boards() []Hierarchy {
	return []Hierarchy{
		{Name: "snapdragon-865", Title: "Qualcomm Snapdragon 865, phone 2020 (its prime core, Arm Cortex-A77)",
			About: "The system level cache of 3 MB behind L3 is left out.",
			Levels: []Cache{
				cached("L1", 64*kib, 4, 4),
				cached("L2", 512*kib, 8, 9, inclusive),
				cached("L3", 4*mib, 16, 31, sharedBy(8)),
			},
			Memory: Memory{LatencyCycles: 392}, ClockGHz: 2.84,
			Sources: []string{
				"sizes: AnandTech, Qualcomm Announces Snapdragon 865 and 765(G), Cortex-A77 Cores",
				"ways: Arm Cortex-A77 Technical Reference Manual, L1 and L2 memory systems; Arm DynamIQ Shared Unit Technical Reference Manual, L3 cache",
				"latency of L1: Arm Cortex-A77 Software Optimization Guide, load instructions",
				"latencies of L2 and L3: AnandTech, Arm's Cortex-A76 CPU Unveiled (9 and 26 to 31 cycles), whose cache hierarchy the Cortex-A77 has",
				"latency of memory: AnandTech, The Snapdragon 888 vs The Exynos 2100, Memory Subsystem & Latency (Snapdragon 865: 138 ns)",
				"inclusion: Arm Cortex-A77 Technical Reference Manual, L2 memory system: strictly inclusive of the L1 data cache",
			}},
		{Name: "raspberry-pi-4", Title: "Raspberry Pi 4, single board 2019 (BCM2711, Arm Cortex-A72)",
			Levels: []Cache{
				cached("L1", 32*kib, 2, 4),
				cached("L2", 1*mib, 16, 22, sharedBy(4), inclusive),
			},
			Memory: Memory{LatencyCycles: 225}, ClockGHz: 1.5,
			Sources: []string{
				"sizes and ways: Arm Cortex-A72 MPCore Processor Technical Reference Manual, L1 and L2 memory systems; BCM2711 has 1 MiB of L2",
				"latency of L1: Arm Cortex-A72 Software Optimization Guide, load instructions",
				"latencies of L2 and memory: estimates, about 22 cycles and 150 ns, without a measurement to name",
				"inclusion: Arm Cortex-A72 MPCore Processor Technical Reference Manual, L2 memory system: strictly enforced inclusion of the L1 data caches",
			}},
		{Name: "raspberry-pi-5", Title: "Raspberry Pi 5, single board 2023 (BCM2712, Arm Cortex-A76)",
			Levels: []Cache{
				cached("L1", 64*kib, 4, 4),
				cached("L2", 512*kib, 8, 9, inclusive),
				cached("L3", 2*mib, 16, 31, sharedBy(4)),
			},
			Memory: Memory{LatencyCycles: 288}, ClockGHz: 2.4,
			Sources: []string{
				"sizes: Raspberry Pi documentation, Processors, BCM2712",
				"ways: Arm Cortex-A76 Core Technical Reference Manual, L1 and L2 memory systems; Arm DynamIQ Shared Unit Technical Reference Manual, L3 cache",
				"latency of L1: Arm Cortex-A76 Software Optimization Guide, load instructions",
				"latencies of L2 and L3: AnandTech, Arm's Cortex-A76 CPU Unveiled (9 and 26 to 31 cycles)",
				"latency of memory: an estimate, about 120 ns, without a measurement to name",
				"inclusion: Arm Cortex-A76 Core Technical Reference Manual, L2 memory system: strictly inclusive of the L1 data cache",
			}},
		{Name: "hifive-unmatched", Title: "SiFive HiFive Unmatched, single board 2021 (RISC-V U74)",
			Levels: []Cache{
				cached("L1", 32*kib, 8, 3),
				cached("L2", 2*mib, 16, 12, sharedBy(5), inclusive),
			},
			Memory: Memory{LatencyCycles: 120}, ClockGHz: 1.2,
			Sources: []string{
				"sizes and ways: SiFive FU740-C000 Manual, U74 memory system, Level 2 cache controller",
				"latencies: Data Structures in Practice, appendix B, HiFive Unmatched (3 and 12 cycles, about 100 ns)",
				"inclusion: SiFive FU740-C000 Manual, Level 2 cache controller: inclusive of the L1 caches, with a directory of their lines",
			}},
	}
}

// settings are those of papers.
func settings() []Hierarchy {
	return []Hierarchy{
		{Name: "opteron", Title: "AMD Opteron, server 2007 (K10)",
			About: "The processor that ScalaMemAnalysis was compared with. The third level is left out: its ways differ from model to model.",
			Levels: []Cache{
				cached("L1", 64*kib, 2, 3),
				cached("L2", 512*kib, 16, 12, exclusive),
			},
			Memory: Memory{LatencyCycles: 236},
			Sources: []string{
				"L1: the thesis on ScalaMemTrace and ScalaMemAnalysis, section 5.4; its 3 cycles for a hit and 12 for a miss, section 5.2, after P. Conway et al., Cache Hierarchy and Memory Subsystem of the AMD Opteron Processor, IEEE Micro 30(2), 2010",
				"L2: AMD Software Optimization Guide for AMD Family 10h and 12h Processors (40546), cache and memory",
				"latency of memory: InstLatx64, Opteron 2378 at 2.4 GHz, 64 MB",
			}},
		{Name: "sasmm", Title: "The setting of PPT-SASMM's evaluation",
			About: "The two levels of the evaluation in the paper on PPT-SASMM, a predictor of this kind: the second one is shared by all cores there.",
			Levels: []Cache{
				cached("L1", 8*kib, 8, 4),
				cached("L2", 128*kib, 16, 14, sharedBy(AllCores)),
			},
			Memory: Memory{LatencyCycles: 300},
			Sources: []string{
				"sizes and ways: PPT-SASMM: Scalable Analytical Shared Memory Model, section 4",
				"latencies: estimates, usual ones of caches and memory: the paper has none",
				"inclusion: an assumption, non-inclusive: stack distances, which the paper predicts with, know of no line that a lower level takes from an upper one",
			}},
	}
}

// Preset is the preset of that name, in capitals or not. The error is a
// [*trace.OptionError] that says which names are near.
func Preset(name string) (Hierarchy, error) {
	presets := Presets()
	for _, h := range presets {
		if strings.EqualFold(h.Name, name) {
			return h, nil
		}
	}
	near := nearest(name, presets)
	return Hierarchy{}, &trace.OptionError{Option: "hierarchy", Got: name, Want: "a preset, as " + strings.Join(near, " or ")}
}

// nearest are the names of the presets with the least edits to get there, in
// order, at most three.
func nearest(name string, presets []Hierarchy) (names []string) {
	name = strings.ToLower(name)
	distance := map[string]int{}
	for _, h := range presets {
		lower := strings.ToLower(h.Name)
		distance[h.Name] = edits(name, lower)
		if len(name) >= 3 && (strings.Contains(lower, name) || strings.Contains(strings.ToLower(h.Title), name)) {
			distance[h.Name] = 0
		}
		names = append(names, h.Name)
	}
	sort.SliceStable(names, func(i, j int) bool { return distance[names[i]] < distance[names[j]] })
	last := 1
	for last < min(3, len(names)) && distance[names[last]] <= distance[names[0]]+1 {
		last++
	}
	return names[:last]
}

// edits is the Levenshtein distance: the fewest insertions, removals and
// changes of a byte that make one of the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
