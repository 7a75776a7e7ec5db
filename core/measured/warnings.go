package measured

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/report"
)

// Warnings returns the caveats of the measurements, and of their comparison with the prediction,
// which may be nil.
func (m *Measurements) Warnings(p *Prediction) (list []string) {
	least, multiplexed, kernel, cycles, onlyLoads := uint64(0), false, false, false, ""
	for i := range m.Samples {
		least = max(least, m.Samples[i].threshold())
	}
	for _, c := range m.Counts {
		if c.Missing != "" {
			continue
		}
		multiplexed = multiplexed || c.Running < 0.995
		quantity, _, compared := c.predicted(p)
		if !compared {
			continue
		}
		kernel = kernel || !userOnly(c.Event)
		cycles = cycles || quantity == countCycles
		if onlyLoads == "" && p.Stores > 0 && c.onlyLoads() {
			onlyLoads = c.Event
		}
	}
	switch m.Skipped {
	case 0:
	case 1:
		list = append(list, "1 sample contains no data source, and was skipped")
	default:
		list = append(list, report.Count(uint64(m.Skipped)).Human()+" samples contain no data source, and were skipped")
	}
	if least > 3 {
		list = append(list, "the samples contain only loads that took at least "+strconv.FormatUint(least, 10)+
			" cycles, so most hits in fast caches are missing and miss ratios are too high; sample all loads with \"perf mem record --ldlat 1\"")
	}
	if len(m.Samples) > 0 && p != nil {
		list = append(list, "the prediction covers loads and stores together; the measured miss ratios cover only "+m.operation()+"s, and count a line that is already on its way to L1 as a hit")
	}
	if multiplexed {
		list = append(list, "some events were counted for only a part of the time, and perf extrapolated their counts; count fewer events in each run")
	}
	if onlyLoads != "" {
		list = append(list, "events such as "+onlyLoads+" count only the misses of loads, but the predicted numbers also contain the misses of stores")
	}
	if kernel {
		list = append(list, "the prediction covers only the traced program; to exclude the kernel from the counts, add :u to each event, for example cycles:u")
	}
	if cycles {
		list = append(list, "the predicted cycles are the sum of the latencies of all references, as if accesses did not overlap and instructions took no other time")
	}
	return list
}

// userOnly reports whether an event of perf has modifiers that exclude the kernel. The names of
// likwid's and PAPI's events consist of capital letters, and have no modifiers.
func userOnly(event string) bool {
	if strings.ToUpper(event) == event {
		return true
	}
	modifiers := event[strings.LastIndexAny(event, ":/")+1:]
	return modifiers != event && strings.Contains(modifiers, "u") && !strings.Contains(modifiers, "k")
}
