package config

import (
	"math"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace/ppt/hardware"
)

// pptFile maps each name that a hardware file defines to the value of this name.
type pptFile map[string]hardware.Value

func readPPT(text string) (h hierarchy.Hierarchy, notes []string, err error) {
	p := pptFile(hardware.Read(text))
	sizes := p["cache_sizes"]
	switch {
	case sizes.Kind == hardware.Unknown && sizes.Line > 0:
		return h, nil, errorAt(sizes.Line, "cache_sizes is too complex, want only numbers, lists and arithmetic on names assigned earlier")
	case sizes.Before > 0:
		return h, nil, errorAt(sizes.Line, "duplicate cache_sizes, after line ", strconv.Itoa(sizes.Before), ": want a file with one processor")
	case sizes.Kind != hardware.List || len(sizes.Numbers) == 0 || len(sizes.Numbers) > mostLevels:
		return h, nil, errorAt(sizes.Line, "cache_sizes, want a list of 1 to 16 sizes in bytes")
	}
	clock := p.number("clockspeed")
	h.ClockGHz = positive(clock / 1e9)
	for i := range sizes.Numbers {
		cache, err := p.cache(i, clock)
		if err != nil {
			return h, nil, err
		}
		h.Levels = append(h.Levels, cache)
	}
	h.Memory.LatencyCycles = positive(p.number("ram_cycles"))
	if h.Memory.LatencyCycles == 0 {
		h.Memory.LatencyCycles = positive(p.number("ram_latency") * clock)
	}
	if clock > 0 {
		h.Memory.BytesPerCycle = positive(p.number("bw_ram") / clock)
	}
	if len(p["associativity"].Numbers) == 0 {
		notes = append(notes, "the file does not state the associativity, so the caches are assumed to be fully associative")
	}
	if len(p["cache_bandwidth_cycles"].Numbers) > 0 {
		notes = append(notes, "cache_bandwidth_cycles is ignored, because the unit of this entry differs between files")
	}
	return h, notes, nil
}

// positive returns x, rounded to a millionth, if the result is a positive number that a hierarchy
// can contain. Otherwise, it returns 0. More digits would be meaningless, because the product of a
// time and a clock rate is less precise.
func positive(x float64) float64 {
	x = math.Round(x*1e6) / 1e6
	if _, ok := hierarchy.ParsePositive(hierarchy.FormatNumber(x)); !ok {
		return 0
	}
	return x
}

// cache returns the cache of level i, where 0 is the first level.
func (p pptFile) cache(i int, clock float64) (hierarchy.Cache, error) {
	c := hierarchy.Cache{Name: "L" + strconv.Itoa(i+1), LineBytes: hierarchy.DefaultLineBytes}
	whole := func(name string, most float64) (uint64, error) {
		x := p.item(name, i)
		if x == 0 || x == math.Trunc(x) && x > 0 && x <= most {
			return uint64(x), nil
		}
		return 0, errorAt(p[name].Line, name, "[", strconv.Itoa(i), "] is ", hierarchy.FormatNumber(x), ", want a whole number above 0")
	}
	var err error
	if c.SizeBytes, err = whole("cache_sizes", 1<<50); err != nil {
		return c, err
	}
	ways, err := whole("associativity", 1<<31)
	if err != nil {
		return c, err
	}
	line, err := whole("cache_line_sizes", 4096)
	if err != nil {
		return c, err
	}
	if c.Ways = uint32(ways); line != 0 {
		c.LineBytes = uint32(line)
	}
	if c.LatencyCycles = positive(p.item("cache_cycles", i)); c.LatencyCycles == 0 {
		c.LatencyCycles = positive(p.item("cache_latency", i) * clock)
	}
	if err := c.Check(); err != nil {
		return c, errorAt(p["cache_sizes"].Line, c.String(), ", want ", wantOf(err))
	}
	return c, nil
}

// number returns the number assigned to a name, or 0 if there is none.
func (p pptFile) number(name string) float64 {
	if v := p[name]; v.Kind == hardware.Number {
		return v.Numbers[0]
	}
	return 0
}

// item returns element i of the list assigned to a name, or 0 if there is none.
func (p pptFile) item(name string, i int) float64 {
	if v := p[name]; v.Kind == hardware.List && i < len(v.Numbers) {
		return v.Numbers[i]
	}
	return 0
}
