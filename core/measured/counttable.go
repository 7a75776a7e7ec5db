package measured

import (
	"math"
	"strings"

	"github.com/stackglass/stackglass/core/report"
)

// quantity is a number that a prediction contains.
type quantity uint8

const (
	countLoads quantity = iota + 1
	countStores
	countReferences
	countL1Misses
	countL2Misses
	countMemory
	countWalks
	countCycles
)

var quantityNames = [...]string{
	countLoads: "loads", countStores: "stores", countReferences: "loads and stores", countL1Misses: "L1 misses", countL2Misses: "L2 misses",
	countMemory: "last-level misses", countWalks: "page walks", countCycles: "cycles",
}

// events maps the names of events, as eventKey returns them, to quantities. The names come from perf,
// from the manuals of Intel, AMD and Arm processors, from likwid and from PAPI. Intel's and Arm's events count the loads
// that missed, or the lines that were fetched.
var events = map[string]quantity{
	"cycles": countCycles, "cpu_cycles": countCycles, "cpu_clk_unhalted_core": countCycles, "cpu_clk_unhalted_thread": countCycles, "cpu_clocks_unhalted": countCycles, "papi_tot_cyc": countCycles,

	"l1_dcache_loads": countLoads, "mem_inst_retired_all_loads": countLoads, "mem_uops_retired_all_loads": countLoads, "mem_uops_retired_loads": countLoads, "mem_uops_retired_loads_all": countLoads, "papi_ld_ins": countLoads,
	"l1_dcache_stores": countStores, "mem_inst_retired_all_stores": countStores, "mem_uops_retired_all_stores": countStores, "mem_uops_retired_stores": countStores, "mem_uops_retired_stores_all": countStores, "papi_sr_ins": countStores,
	"mem_access": countReferences, "ls_dc_accesses": countReferences, "papi_lst_ins": countReferences,

	"l1_dcache_load_misses": countL1Misses, "l1d_replacement": countL1Misses, "l1d_cache_refill": countL1Misses, "papi_l1_dcm": countL1Misses, "papi_l1_ldm": countL1Misses,
	"mem_load_retired_l1_miss": countL1Misses, "mem_load_uops_retired_l1_miss": countL1Misses,
	"mem_load_retired_l2_miss": countL2Misses, "mem_load_uops_retired_l2_miss": countL2Misses, "l2_rqsts_demand_data_rd_miss": countL2Misses, "l2d_cache_refill": countL2Misses, "papi_l2_dcm": countL2Misses, "papi_l2_ldm": countL2Misses,
	"llc_load_misses": countMemory, "cache_misses": countMemory, "longest_lat_cache_miss": countMemory, "ll_cache_miss_rd": countMemory,
	"mem_load_retired_l3_miss": countMemory, "mem_load_uops_retired_l3_miss": countMemory, "papi_l3_tcm": countMemory, "papi_l3_dcm": countMemory,
	"dtlb_load_misses": countWalks, "dtlb_load_misses_walk_completed": countWalks, "dtlb_load_misses_miss_causes_a_walk": countWalks, "dtlb_walk": countWalks, "papi_tlb_dm": countWalks,
}

// eventKey returns the name of an event in lower case, with only underscores as separators, and
// without the counting unit and the modifiers: L1-dcache-loads:u and cpu_core/L1-dcache-loads/u
// both become l1_dcache_loads.
func eventKey(event string) string {
	if _, inside, found := strings.Cut(event, "/"); found {
		event, _, _ = strings.Cut(inside, "/")
	}
	event, _, _ = strings.Cut(event, ":")
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(event))
}

// of returns the predicted number.
func (q quantity) of(p *Prediction) (x float64, known bool) {
	switch q {
	case countLoads:
		return p.Loads, true
	case countStores:
		return p.Stores, true
	case countReferences:
		return p.Loads + p.Stores, true
	case countL1Misses, countL2Misses:
		level := int(q - countL1Misses)
		if level >= len(p.Levels) {
			return 0, false
		}
		return p.Levels[level].Misses, true
	case countMemory:
		return p.Memory, len(p.Levels) > 0
	case countWalks:
		return p.PageWalks, p.Translations > 0
	case countCycles:
		return p.Cycles, p.Cycles > 0
	}
	return 0, false
}

// predicted returns the predicted number for the event, and the quantity that it is the number of.
func (c *Count) predicted(p *Prediction) (q quantity, x float64, known bool) {
	if p == nil {
		return 0, 0, false
	}
	q = events[eventKey(c.Event)]
	x, known = q.of(p)
	return q, x, known
}

// onlyLoads reports whether the event counts the misses of loads, but no misses of stores.
func (c *Count) onlyLoads() bool {
	key := eventKey(c.Event)
	switch events[key] {
	case countL1Misses, countL2Misses, countMemory, countWalks:
		return strings.Contains(key, "load") || strings.Contains(key, "_rd") || strings.HasSuffix(key, "_ldm")
	}
	return false
}

// countTable lists the counts, and the predicted number for each event that the prediction contains.
func (m *Measurements) countTable(p *Prediction) report.Table {
	t := report.Table{Key: "counts", Title: "Counted events", Columns: report.Columns(
		"event", "measured", "unit", "running=time counted", "quantity=compared with", "predicted", "relative_difference=relative difference")}
	for _, c := range m.Counts {
		value := report.None()
		switch counted := c.Missing == ""; {
		case counted && c.Value >= 0 && c.Value < 1<<63 && c.Value == math.Trunc(c.Value):
			value = report.Count(uint64(c.Value))
		case counted:
			value = report.Decimal(c.Value)
		}
		compared, predicted, difference := report.None(), report.None(), report.None()
		if q, x, known := c.predicted(p); known {
			compared, predicted = report.TextOf(quantityNames[q]), report.Real(x)
			difference = ratio(c.Value/x-1, x > 0 && c.Missing == "")
		}
		unit := name(c.Unit)
		if c.Missing != "" {
			unit = report.TextOf(c.Missing)
		}
		t.Add(report.TextOf(c.Event), value, unit, ratio(c.Running, c.Missing == ""), compared, predicted, difference)
	}
	return t
}
