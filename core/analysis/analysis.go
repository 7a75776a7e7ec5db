// Package analysis runs analyses over a trace in one pass and collects their results in a
// profile.
//
//  1. A [Spec] selects the kinds of references, the threads and the part of the trace to analyse,
//     the line sizes, and the analyses to run.
//  2. A [Runner] reads the trace in batches, counts the records that the spec selects, and passes
//     these records to every requested analysis (table.go lists the analyses). Every analysis
//     receives the references. Analyses that request events receive events, too. Package contract
//     defines the interface of an analysis.
//  3. [Runner.Profile] returns the results of the part of the trace that has been read so far.
//     [Runner.Finish] ends the run and returns the final results.
//
// A run can be interrupted between batches. If the run is saved with [Runner.Save] and restored
// with [Runner.Restore], its profile is byte-identical to the profile of an uninterrupted run. A
// run can also be divided: [JoinSegments] joins the results of segments of a trace exactly
// (MODELS §9). [Divided] divides a run among processors or web workers, each of which reads one
// segment of the trace. [Parallel] divides a run among processors if the trace can only be read
// sequentially.
package analysis

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Spec selects the analyses and their input. By default, a run analyses all data references, with
// 64-byte lines.
type Spec struct {
	Kinds     trace.Kinds // kinds of references to analyse; 0: data references
	Skip      uint64      // number of references to skip at the start (MODELS §9.1)
	Limit     uint64      // maximum number of references to analyse; 0: all references
	Threads   []uint32    // threads to analyse, ascending; nil: all threads
	LineBytes []uint32    // line sizes in ascending order: powers of two from 8 to 4,096; nil: 64
	SkipBad   uint64      // maximum number of bad records to tolerate
	Mergeable bool        // store the run's final state, which contains addresses, in the profile
	Analyses  Analyses    // analyses to run; 0: [Default]

	// SetNumbers selects the numbers of sets that set tables cover; 0: all numbers.
	SetNumbers stack.SetNumbers

	// Utilisation lists capacities, in bytes and in ascending order. Package sites measures line
	// utilisation in LRU caches with these capacities. UtilisationWays lists the number of ways of
	// each cache; 0 or missing: fully associative. If Previous is set, package sites records, for
	// each access, the site that last accessed the line. Utilisation and Previous make the run
	// slower, and increase the memory usage per line.
	Utilisation     []uint64
	UtilisationWays []uint32
	Previous        bool

	// Cores lists groups of threads. The threads of a group run on the same core, and therefore use
	// the same private cache. A thread is in at most one group. A thread in no group has its own
	// core. Domains lists groups of threads whose cores share a cache, in addition to the domain of
	// all cores. The threads of a group are in ascending order. Only the analysis Sharing uses
	// Cores and Domains.
	Cores, Domains [][]uint32
	// Stacks selects the multi-core stacks that Sharing counts; 0: all stacks. The counts of the
	// stacks that are not selected are meaningless, so the profile should not be stored. Mergeable
	// profiles, Sites and Communication require all stacks.
	Stacks Stacks

	// Sample selects the accesses from which package locality estimates its counts; nil: all
	// accesses. The analyses Sites and Sharing use the same sample. Communication also uses this
	// sample, unless it consists of single accesses. Counters remain exact.
	Sample Sampling

	// Budget limits the memory of the stacks, and provides the spill store; nil: no limit. Sites,
	// Sharing and Communication store more data per line and cannot run with a Budget.
	Budget *contract.Budget

	// Start is the number of references in earlier segments. The reader of a segment begins at the
	// segment's first reference, so Skip is ignored. Limit counts references from the beginning of
	// the trace.
	Start uint64
}

// Sampling selects a sample of the accesses and estimates the counts of package locality from it.
// Package analysis/sample implements Sampling. Package analysis/sample/estimate creates the
// analyses that Locality and Followers return.
type Sampling interface {
	Locality(lineBytes []uint32) SampledLocality
	// KeepsLines reports whether the sample consists of cache lines, and contains every access to
	// these lines. In such a sample, the last writer of each line is known.
	KeepsLines() bool
	// Followers returns the other analyses that read the sample, in the order in which they read
	// each batch.
	Followers(w Wanted) []Analysis
	// Stretches returns a reader of the sampled intervals of the run, or nil if the sample consists
	// of accesses or lines.
	Stretches(r trace.Reader, kinds trace.Kinds, threads []uint32) Stretches
}

// SampledLocality estimates the counts of package locality.
type SampledLocality interface {
	Analysis
	contract.LineCounter
	contract.PieceConsumer
}

// Stretches reads the sampled intervals of a run. Every analysis receives all records in these
// intervals.
type Stretches interface {
	trace.Reader
	Sampled() *profile.Sampled // Sampled describes the intervals that have been read.
}

// ToRead returns the number of references that a run reads, including skipped references, if the trace contains the given number
// of references. ToRead assumes that the spec selects all kinds and threads.
func (s Spec) ToRead(references uint64) uint64 {
	if s.Limit > 0 && s.Limit < references-min(s.Skip, references) {
		return s.Skip + s.Limit
	}
	return references
}

// DefaultLineBytes is the line size if the user does not choose one.
const DefaultLineBytes = 64

// WithDefaults replaces zero fields with their default values.
func (s Spec) WithDefaults() Spec {
	if s.Kinds == 0 {
		s.Kinds = trace.DataKinds
	}
	if len(s.LineBytes) == 0 {
		s.LineBytes = []uint32{DefaultLineBytes}
	}
	return s
}

// Check returns an error if the fields are invalid. The error is a [*trace.OptionError].
func (s Spec) Check() error {
	for i, n := range s.LineBytes {
		if !profile.ValidLineBytes(n) {
			return &trace.OptionError{Option: "lines", Got: strconv.FormatUint(uint64(n), 10), Want: "a power of two from 8 to 4096 bytes"}
		}
		if i > 0 && n <= s.LineBytes[i-1] {
			return &trace.OptionError{Option: "lines", Got: strconv.FormatUint(uint64(n), 10), Want: "each line size once, in ascending order"}
		}
	}
	for i, t := range s.Threads {
		if i > 0 && t <= s.Threads[i-1] {
			return &trace.OptionError{Option: "threads", Got: strconv.FormatUint(uint64(t), 10), Want: "each thread number once, in ascending order"}
		}
	}
	for _, check := range []func() error{s.checkUtilisation, s.checkSample, s.checkSharing, s.checkBudget} {
		if err := check(); err != nil {
			return err
		}
	}
	if s.Analyses != None && s.Analyses&^allAnalyses != 0 {
		return &trace.OptionError{Option: "analyses", Got: strconv.Itoa(int(s.Analyses)), Want: "only analyses that this program contains"}
	}
	if r := s.withoutSegments(); r != nil && s.Mergeable {
		return &trace.OptionError{Option: "mergeable", Got: "with " + r.name, Want: "a profile that is not mergeable: " + r.orderReason}
	}
	if s.Stacks&^(CoherentStacks|PrivateStacks|ConcurrentStack) != 0 {
		return &trace.OptionError{Option: "stacks", Got: strconv.Itoa(int(s.Stacks)), Want: "a combination of coherent, private and concurrent stacks"}
	}
	if s.Stacks != 0 && (s.Mergeable || s.wants()&(Sites|Communication) != 0) {
		return &trace.OptionError{Option: "stacks", Got: "only some", Want: "all stacks, because sites, communication and mergeable profiles need them"}
	}
	if s.SetNumbers&^stack.AllSetNumbers != 0 {
		return &trace.OptionError{Option: "sets", Got: strconv.Itoa(int(s.SetNumbers)), Want: "numbers of sets that are powers of two up to 65,536"}
	}
	if s.Kinds&^trace.AllKinds != 0 {
		return &trace.OptionError{Option: "kinds", Got: strconv.Itoa(int(s.Kinds)), Want: "kinds of references"}
	}
	return nil
}

// checkSample rejects analyses that cannot use the sample.
func (s Spec) checkSample() error {
	switch {
	case s.Sample == nil:
		return nil
	case s.Analyses&additional != 0 && s.Analyses != None && s.Sample.Stretches(nil, s.Kinds, nil) != nil:
		return &trace.OptionError{Option: "analyses", Got: s.Analyses.String(), Want: "none of " + strings.Join(names(additional), ", ") + " with an onoff sample, because these analyses need the whole run; sample a share of the lines (space) instead"}
	case s.Mergeable:
		return &trace.OptionError{Option: "mergeable", Got: "with a sample", Want: "either a sample or a mergeable profile, because sampled profiles cannot be joined"}
	case s.Sample.Stretches(nil, s.Kinds, nil) != nil:
		return nil
	case s.Analyses != None && s.Analyses&Communication != 0 && !s.Sample.KeepsLines():
		return &trace.OptionError{Option: "analyses", Got: s.Analyses.String(), Want: "no communication with a time sample, because the last writer of a value is known only if every access to the value is analysed; sample lines (space or lines) or parts of the run (onoff) instead"}
	case len(s.Utilisation) > 0 || s.Previous:
		return &trace.OptionError{Option: "utilisation", Got: "with a sample", Want: "no sample, or a sample of parts of the run (onoff)"}
	}
	return nil
}

// checkBudget rejects analyses that store more data per line than a stack does.
func (s Spec) checkBudget() error {
	bad := &trace.OptionError{Option: "spill"}
	switch {
	case s.Budget == nil:
		return nil
	case s.Mergeable || s.Start > 0:
		bad.Got, bad.Want = "with mergeable", "a profile that is not mergeable, because a mergeable profile contains the whole stack"
	case s.Sample != nil && s.Sample.Stretches(nil, s.Kinds, nil) == nil:
		bad.Got, bad.Want = "with a sample", "either a spill store or a sample, not both; a sample does not need a spill store, because it fits in memory"
	case len(s.Utilisation) > 0 || s.Previous:
		bad.Got, bad.Want = "with line utilisation or previous sites", "neither line utilisation nor previous sites, because both need memory for every line"
	case s.Analyses != None && s.Analyses&byLine != 0:
		bad.Got, bad.Want = "with "+s.Analyses.String(), "no analyses except locality, sets and counters, because all other analyses store additional data for each line"
	default:
		return nil
	}
	return bad
}

func (s Spec) checkUtilisation() error {
	line := uint64(s.SiteLineBytes())
	for i, n := range s.Utilisation {
		bad := &trace.OptionError{Option: "utilisation", Got: strconv.FormatUint(n, 10)}
		switch {
		case i == profile.MaxCapacities:
			bad.Want = "at most " + strconv.Itoa(profile.MaxCapacities) + " capacities"
		case n == 0 || n%line != 0:
			bad.Want = "a capacity that is a multiple of the line size of " + strconv.FormatUint(line, 10) + " bytes"
		case len(s.UtilisationWays) > len(s.Utilisation) || !profile.ValidUtilisation(n/line, s.waysOf(i)):
			bad.Want = "a cache of at most 2^24 lines, divided into equal sets of at most 1,024 ways"
		case i > 0 && (n < s.Utilisation[i-1] || n == s.Utilisation[i-1] && s.waysOf(i) <= s.waysOf(i-1)):
			bad.Want = "each capacity once, in ascending order"
		default:
			continue
		}
		return bad
	}
	return nil
}

// Measure adds a cache to the sorted list of caches in which line utilisation is measured. Measure
// does nothing if the list is full, if it already contains the cache, or if line utilisation cannot
// be measured in such a cache. Zero ways means a fully associative cache.
func (s *Spec) Measure(bytes uint64, ways uint32) {
	line := uint64(s.SiteLineBytes())
	if bytes%line != 0 || !profile.ValidUtilisation(bytes/line, ways) || len(s.Utilisation) == profile.MaxCapacities {
		return
	}
	at := 0
	for at < len(s.Utilisation) && (s.Utilisation[at] < bytes || s.Utilisation[at] == bytes && s.waysOf(at) < ways) {
		at++
	}
	if at < len(s.Utilisation) && s.Utilisation[at] == bytes && s.waysOf(at) == ways {
		return
	}
	all := make([]uint32, len(s.Utilisation))
	copy(all, s.UtilisationWays)
	s.Utilisation = slices.Insert(slices.Clone(s.Utilisation), at, bytes)
	s.UtilisationWays = slices.Insert(all, at, ways)
}

// waysOf returns the number of ways of the i-th measured cache, or 0 if the cache is fully
// associative.
func (s Spec) waysOf(i int) uint32 {
	if i < len(s.UtilisationWays) {
		return s.UtilisationWays[i]
	}
	return 0
}

// checkSharing checks the options Cores and Domains.
func (s Spec) checkSharing() error {
	if len(s.Cores) > profile.MaxCores {
		return &trace.OptionError{Option: "cores", Got: strconv.Itoa(len(s.Cores)) + " groups", Want: "at most " + strconv.Itoa(profile.MaxCores)}
	}
	if len(s.Domains) >= profile.MaxDomains {
		return &trace.OptionError{Option: "domains", Got: strconv.Itoa(len(s.Domains)) + " groups", Want: "at most " + strconv.Itoa(profile.MaxDomains-1) + " groups, because the group of all cores also counts"}
	}
	for _, groups := range [][][]uint32{s.Cores, s.Domains} {
		for _, threads := range groups {
			if len(threads) == 0 || !slices.IsSorted(threads) || len(slices.Compact(slices.Clone(threads))) < len(threads) {
				return &trace.OptionError{Option: "cores or domains", Got: FormatGroups([][]uint32{threads}), Want: "groups that list each thread once, in ascending order, for example 0,1/2,3"}
			}
		}
	}
	return s.checkOverlap()
}

// checkOverlap checks that no thread is assigned to two cores, and that a domain contains either
// all threads of a core or none.
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
				return &trace.OptionError{Option: "cores", Got: FormatGroups([][]uint32{other, threads}), Want: "each thread on only one core"}
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

// ParseGroups parses groups of threads, such as 0,1/2,3 or 0-3/4-7. The error is a
// [*trace.OptionError] that names the option.
func ParseGroups(option, text string) (groups [][]uint32, err error) {
	bad := &trace.OptionError{Option: option, Got: text, Want: "groups of thread numbers, for example 0,1/2,3 or 0-3/4-7"}
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

const mostThreads = 1 << 16 // maximum number of threads in one range, such as 0-3

// FormatGroups formats groups for [ParseGroups].
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
