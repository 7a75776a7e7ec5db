package measured

import (
	"strconv"
	"strings"
)

// Warnings returns the caveats of the measurements.
func (m *Measurements) Warnings(compared bool) (list []string) {
	least, multiplexed, kernel, cycles := uint64(0), false, false, false
	for i := range m.Samples {
		least = max(least, m.Samples[i].threshold())
	}
	for _, c := range m.Counts {
		quantity := events[eventKey(c.Event)]
		multiplexed = multiplexed || c.Missing == "" && c.Running < 0.995
		kernel = kernel || quantity != 0 && !userOnly(c.Event)
		cycles = cycles || quantity == countCycles
	}
	if m.Skipped > 0 {
		list = append(list, strconv.Itoa(m.Skipped)+" samples contain no data source, and are left out")
	}
	if least > 3 {
		list = append(list, "the samples contain only loads that took at least "+strconv.FormatUint(least, 10)+
			" cycles, so most hits in fast caches are missing and miss ratios are too high; sample all loads with \"perf mem record --ldlat 1\"")
	}
	if len(m.Samples) > 0 && compared {
		list = append(list, "the prediction covers loads and stores together; the measured miss ratios cover only loads, and count a line that is already on its way to L1 as a hit")
	}
	if multiplexed {
		list = append(list, "some events were counted for only a part of the time, and perf extrapolated their counts; count fewer events in each run")
	}
	if !compared {
		return list
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
