// Package analysis runs analyses over a trace in one pass and collects their
// results in a profile.
//
//  1. A [Spec] says what to analyse: kinds, threads and part of the trace, the
//     line sizes, and which analyses.
//  2. A [Runner] asks the reader for the events that its analyses take, reads the
//     trace in batches, keeps the rows that the spec selects, counts them, and
//     hands each batch to every analysis of the table in table.go: references to
//     all, events with them to those that ask. Package contract says what an
//     analysis implements.
//  3. [Runner.Profile] collects the results while running, [Runner.Finish] at the
//     end.
//
// A run can be interrupted: [Runner.Save] between two batches and
// [Runner.Restore] give the same bytes in the end as a run without a break. And
// it can be split: segments of a trace, analysed one by one, are joined by
// [Append], which is exact (MODELS §9). So [Divided] shares a run among processors, or
// workers of a browser, that read parts of a trace on their own; and [Parallel] among
// processors, of a trace that can only be read from front to back.
package analysis

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Spec is what to analyse and how. The zero value with the defaults of
// [Spec.WithDefaults] analyses all data references with 64-byte lines.
type Spec struct {
	Kinds     trace.Kinds // kinds of references; 0: data references
	Skip      uint64      // references to leave out at the start
	Limit     uint64      // references to analyse at most; 0: all
	Threads   []uint32    // threads to analyse, ascending; nil: all
	LineBytes []uint32    // line sizes, ascending, powers of two from 8 to 4,096; nil: 64
	SkipBad   uint64      // bad records to tolerate
	Mergeable bool        // keep what Append needs (addresses) in the profile
	Analyses  Analyses    // which to run; 0: those of [Default]

	// Utilisation are the capacities in bytes of LRU caches for which sites tell how
	// much of the lines they fetch is used, and UtilisationWays their ways, 0 or
	// left out for fully associative ones; ascending. Previous has sites tell who
	// touched lines before. Both cost time, and memory by line.
	Utilisation     []uint64
	UtilisationWays []uint32
	Previous        bool

	// Cores are the threads that have a private cache in common, each thread in at
	// most one; those in none have one of their own. Domains are groups of threads
	// whose cores share a cache; that of all is always there. Threads are ascending.
	// Both are for Sharing.
	Cores, Domains [][]uint32

	// Sample has locality be estimated from a sample of the accesses; nil: from all.
	// Sites and sharing follow it, and communication where it has lines that stay in it.
	// Counters stay exact.
	Sample Sampling

	// Budget is how much memory the stacks may take, and where what does not fit goes;
	// nil: there is no limit. Analyses that keep something else of every line are left
	// out then: Sites, Sharing, Communication.
	Budget *contract.Budget

	// Start is the number of references analysed in earlier segments. A segment
	// is read by a reader that begins at its first reference: Skip was applied
	// before, and Limit counts from the beginning of the trace.
	Start uint64
}

// Sampling estimates what package locality counts. Package analysis/sample has some.
type Sampling interface {
	Locality(lineBytes []uint32) SampledLocality
	// KeepsLines tells whether all accesses to some lines are in the sample, so that
	// it tells who wrote to them last.
	KeepsLines() bool
	// Followers are the analyses that estimate what others tell, in the order in which
	// they take batches.
	Followers(w Wanted) []Analysis
	// Stretches gives what is read of r where whole stretches of the run are sampled,
	// of references of these kinds and threads; nil: of all of it.
	Stretches(r trace.Reader, kinds trace.Kinds, threads []uint32) Stretches
}

// SampledLocality is an analysis that estimates what package locality counts.
type SampledLocality interface {
	Analysis
	contract.LineCounter
	contract.PieceConsumer
}

// Stretches reads parts of a run, which every analysis sees in full.
type Stretches interface {
	trace.Reader
	Sampled() *profile.Sampled // what was read
}

// ToRead is how many references a run of a whole trace with this many references reads. With
// a limit, those that are left out by kind or thread do not count.
func (s Spec) ToRead(references uint64) uint64 {
	references -= min(s.Skip, references)
	if s.Limit > 0 {
		references = min(references, s.Limit)
	}
	return references
}

// DefaultLineBytes is the line size unless the user wants another.
const DefaultLineBytes = 64

// WithDefaults fills in the fields that are zero.
func (s Spec) WithDefaults() Spec {
	if s.Kinds == 0 {
		s.Kinds = trace.DataKinds
	}
	if len(s.LineBytes) == 0 {
		s.LineBytes = []uint32{DefaultLineBytes}
	}
	return s
}

// Check tests the fields; the error is a [*trace.OptionError].
func (s Spec) Check() error {
	for i, n := range s.LineBytes {
		if !profile.ValidLineBytes(n) {
			return &trace.OptionError{Option: "line size", Got: strconv.FormatUint(uint64(n), 10), Want: "a power of two from 8 to 4096 bytes"}
		}
		if i > 0 && n <= s.LineBytes[i-1] {
			return &trace.OptionError{Option: "line size", Got: strconv.FormatUint(uint64(n), 10), Want: "line sizes in ascending order, each once"}
		}
	}
	for i, t := range s.Threads {
		if i > 0 && t <= s.Threads[i-1] {
			return &trace.OptionError{Option: "threads", Got: strconv.FormatUint(uint64(t), 10), Want: "thread numbers in ascending order, each once"}
		}
	}
	if err := s.checkUtilisation(); err != nil {
		return err
	}
	if err := s.checkSample(); err != nil {
		return err
	}
	if err := s.checkSharing(); err != nil {
		return err
	}
	if err := s.checkBudget(); err != nil {
		return err
	}
	if s.Analyses != None && s.Analyses&^allAnalyses != 0 {
		return &trace.OptionError{Option: "analyses", Got: strconv.Itoa(int(s.Analyses)), Want: "analyses of this program"}
	}
	if r := s.inOrder(); r != nil && s.Mergeable {
		return &trace.OptionError{Option: "mergeable", Got: "with " + r.name, Want: "one of both: " + r.inOrder}
	}
	if s.Kinds&^trace.AllKinds != 0 {
		return &trace.OptionError{Option: "kinds", Got: strconv.Itoa(int(s.Kinds)), Want: "kinds of references"}
	}
	return nil
}

// checkSample tests that nothing is asked for which a sample cannot tell.
func (s Spec) checkSample() error {
	switch {
	case s.Sample == nil:
		return nil
	case s.Analyses&beside != 0 && s.Analyses != None && s.Sample.Stretches(nil, s.Kinds, nil) != nil:
		return &trace.OptionError{Option: "analyses", Got: s.Analyses.String(), Want: "no loops or blocks with stretches of the run (onoff): what is left out is missing in them; take a share of the lines (space)"}
	case s.Mergeable:
		return &trace.OptionError{Option: "mergeable", Got: "with a sample", Want: "one of both: sampled profiles cannot be joined"}
	case s.Sample.Stretches(nil, s.Kinds, nil) != nil:
		return nil
	case s.Analyses != None && s.Analyses&Communication != 0 && !s.Sample.KeepsLines():
		return &trace.OptionError{Option: "analyses", Got: s.Analyses.String(), Want: "no communication with a sample of single accesses: who wrote a value last, only those know who " +
			"saw every access to it; take a share of the lines (space), so many of them (lines), or stretches of the run (onoff)"}
	case len(s.Utilisation) > 0 || s.Previous:
		return &trace.OptionError{Option: "utilisation", Got: "with a sample", Want: "all accesses, or stretches of the run (onoff)"}
	}
	return nil
}

// checkBudget tests that what is kept of each line are stacks alone.
func (s Spec) checkBudget() error {
	bad := &trace.OptionError{Option: "spill"}
	switch {
	case s.Budget == nil:
		return nil
	case s.Mergeable || s.Start > 0:
		bad.Got, bad.Want = "with mergeable", "one of both: a profile to be joined holds the whole stack"
	case s.Sample != nil && s.Sample.Stretches(nil, s.Kinds, nil) == nil:
		bad.Got, bad.Want = "with a sample", "one of both: a sample is small"
	case len(s.Utilisation) > 0 || s.Previous:
		bad.Got, bad.Want = "with utilisation or who touched lines before", "neither: sites keep them for every line, in memory"
	case s.Analyses != None && s.Analyses&byLine != 0:
		bad.Got, bad.Want = "with "+s.Analyses.String(), "locality, sets and counters: sites, sharing and communication keep more of every line, in memory"
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
			bad.Want = "a cache of at most 2^24 lines, in sets of at most 1,024 ways, which divide them"
		case i > 0 && (n < s.Utilisation[i-1] || n == s.Utilisation[i-1] && s.waysOf(i) <= s.waysOf(i-1)):
			bad.Want = "capacities in ascending order, each once"
		default:
			continue
		}
		return bad
	}
	return nil
}

// Measure adds a cache of bytes in sets of ways, 0: fully associative, to those that
// utilisation is measured for, in their order and each once. One that cannot be
// measured, or for which there is no more room, is left out.
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

// waysOf are those of a cache that utilisation is measured for, 0 where it is
// fully associative.
func (s Spec) waysOf(i int) uint32 {
	if i < len(s.UtilisationWays) {
		return s.UtilisationWays[i]
	}
	return 0
}
