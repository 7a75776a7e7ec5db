package analysis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// checkSharing tests the groups of threads.
func (s Spec) checkSharing() error {
	if len(s.Cores) > profile.MaxCores {
		return &trace.OptionError{Option: "cores", Got: strconv.Itoa(len(s.Cores)) + " groups", Want: "at most " + strconv.Itoa(profile.MaxCores)}
	}
	if len(s.Domains) >= profile.MaxDomains {
		return &trace.OptionError{Option: "domains", Got: strconv.Itoa(len(s.Domains)) + " groups", Want: "at most " + strconv.Itoa(profile.MaxDomains-1) + ", besides that of all cores"}
	}
	for _, groups := range [][][]uint32{s.Cores, s.Domains} {
		for _, threads := range groups {
			if len(threads) == 0 || !slices.IsSorted(threads) || len(slices.Compact(slices.Clone(threads))) < len(threads) {
				return &trace.OptionError{Option: "cores or domains", Got: FormatGroups([][]uint32{threads}), Want: "groups of threads in ascending order, each once, as in 0,1/2,3"}
			}
		}
	}
	return s.checkOverlap()
}

// checkOverlap checks that no thread is on two cores, and that domains contain whole cores.
func (s Spec) checkOverlap() error {
	for i, threads := range s.Cores {
		shared := func(other []uint32) (n int) {
			for _, t := range other {
				if _, found := slices.BinarySearch(threads, t); found {
					n++
				}
			}
			return n
		}
		for _, other := range s.Cores[:i] {
			if shared(other) > 0 {
				return &trace.OptionError{Option: "cores", Got: FormatGroups([][]uint32{other, threads}), Want: "each thread on one core"}
			}
		}
		for _, domain := range s.Domains {
			if n := shared(domain); n > 0 && n < len(threads) {
				return &trace.OptionError{Option: "domains", Got: FormatGroups([][]uint32{domain}), Want: "all threads of a core, such as " + FormatGroups([][]uint32{threads}) + ", or none"}
			}
		}
	}
	return nil
}

// ParseGroups parses groups of threads, as in 0,1/2,3 or 0-3/4-7. The error is a
// [*trace.OptionError] about the option.
func ParseGroups(option, text string) (groups [][]uint32, err error) {
	bad := &trace.OptionError{Option: option, Got: text, Want: "groups of thread numbers, as in 0,1/2,3 or 0-3/4-7"}
	for group := range strings.SplitSeq(text, "/") {
		var threads []uint32
		for word := range strings.SplitSeq(group, ",") {
			from, to, isRange := strings.Cut(strings.TrimSpace(word), "-")
			if !isRange {
				to = from
			}
			low, err := strconv.ParseUint(from, 10, 32)
			high, err2 := strconv.ParseUint(to, 10, 32)
			if err != nil || err2 != nil || low > high || high-low >= mostThreads {
				return nil, bad
			}
			for t := low; t <= high; t++ {
				threads = append(threads, uint32(t))
			}
		}
		slices.Sort(threads)
		groups = append(groups, slices.Compact(threads))
	}
	return groups, nil
}

// mostThreads is the most that one range of threads may name.
const mostThreads = 1 << 16

// FormatGroups writes groups as [ParseGroups] reads them.
func FormatGroups(groups [][]uint32) string {
	var all []string
	for _, threads := range groups {
		var numbers []string
		for _, t := range threads {
			numbers = append(numbers, strconv.FormatUint(uint64(t), 10))
		}
		all = append(all, strings.Join(numbers, ","))
	}
	return strings.Join(all, "/")
}
