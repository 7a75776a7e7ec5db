package program

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// Simulate is the verb that simulates a cache hierarchy.
var Simulate = ask.Add(&ask.Verb{
	Name:    "simulate",
	Use:     "--cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
	Title:   "Hits and misses of a hierarchy, by exact simulation",
	Machine: ask.AllCaches,
	Args: []ask.Arg{
		{Name: "seed", Kind: ask.Number, Default: "0", Help: "the `SEED` for random replacement"},
		{Name: "protocol", Default: simulate.MESI.String(), Help: "the coherence `PROTOCOL` of private caches: mesi, msi, or none (stores do not invalidate lines in other caches)"},
		{Name: "warmup", Kind: ask.Number, Default: "0", Help: "simulate the first `N` references without counting them"},
		{Name: ask.Range.Name, Help: "count only the references in this `PART` of the run, such as 10%..35% or 2000000..5000000 (reference numbers); the references before the part only fill the caches"},
		{Name: "region", Help: "count only the references in marked regions with this `NAME`; all other references only fill the caches"},
		{Name: "causes", Kind: ask.Switch, Help: "divide misses into cold, capacity and conflict misses"},
		{Name: "bound", Kind: ask.Switch, Help: "also count the misses of optimal replacement (Belady's OPT), the minimum for policies that insert every line"},
		{Name: "baseline", Kind: ask.Switch, Help: "also simulate the hierarchy with LRU replacement and without prefetchers, and list the differences"},
	},
	Check: func(q ask.Question) error {
		_, err := simulate.ParseProtocol(q.Text("protocol"))
		return err
	},
	Missing: func(*profile.Profile) string { return "a simulation needs the trace" },
	Answer: func(r *ask.Run, q ask.Question, d *report.Document) error {
		if r.Replay == nil {
			return r.Cannot("a simulation needs the trace; give the trace")
		}
		s, err := NewSimulation(r, q)
		if err != nil {
			return err
		}
		if err := r.Replay.Read(r, s.Consumer(analysis.None)); err != nil {
			return err
		}
		s.Finish()
		if err := errors.Join(s.checkRange(), s.checkRegion()); err != nil {
			return err
		}
		s.report(d)
		return nil
	},
})

// Simulation simulates a hierarchy while a trace is read.
type Simulation struct {
	Result simulate.Result // the result, after Finish

	run        *ask.Run
	q          ask.Question
	h          hierarchy.Hierarchy
	options    simulate.Options
	simulator  *simulate.Simulator
	baseline   *simulate.Simulator // simulates the hierarchy with LRU and without prefetchers; nil if this is not requested
	plain      simulate.Result     // the result of the baseline
	translator *simulate.Simulator // simulates the TLBs; nil if the hierarchy has none
	translated simulate.Result
	counted    [2]uint64 // the part that the argument "range" selects: the first reference, and the reference after the part

	program      func() *trace.Program
	instructions bool // whether a batch contained the instructions of its references
}

// NewSimulation returns a simulation for a question of the verb simulate. The caller must pass the
// simulation's Consumer to the run's Replay.
func NewSimulation(r *ask.Run, q ask.Question) (*Simulation, error) {
	s := &Simulation{run: r, q: q, h: q.Machine, options: simulate.OptionsOf(&q.Machine)}
	protocol, err := simulate.ParseProtocol(q.Text("protocol"))
	if err != nil {
		return nil, err
	}
	o := &s.options
	o.Seed, o.Cores, o.MemoryBytes = q.Number("seed"), r.Replay.Cores, r.Replay.MemoryBytes
	o.UsedBytes = new(uint64) // all simulators share the limit
	if s.h.Threads == hierarchy.OnOneCore {
		o.Cores, o.MostCores = nil, 1
	}
	o.Causes, o.Bound = o.Causes || q.Is("causes"), q.Is("bound")
	if q.Given("warmup") {
		o.Warmup, o.WarmupShare = q.Number("warmup"), 0
	}
	if err := s.selectRange(); err != nil {
		return nil, err
	}
	if err := s.selectRegion(); err != nil {
		return nil, err
	}
	if q.Given("protocol") || o.Protocol != simulate.Incoherent {
		o.Protocol = protocol
	}
	if s.simulator, err = simulate.New(s.h, *o); err != nil {
		return nil, err
	}
	if q.Is("baseline") {
		of := *o
		of.Causes, of.Bound = false, false
		if s.baseline, err = simulate.New(plainOf(s.h), of); err != nil {
			return nil, err
		}
	}
	if len(s.h.TLBs) == 0 {
		return s, nil
	}
	if page := hierarchy.FormatSize(s.h.PageSize()); len(s.h.Translation().Levels) == 0 {
		return nil, &ask.Error{Text: "no TLB of the hierarchy holds pages of " + page + "; choose another size with --pages, or add a TLB with pages=" + page}
	}
	of := *o
	of.Protocol, of.Translation, of.WarmupShare, of.Causes, of.Bound, of.PerReference = simulate.Incoherent, true, 0, false, false, false
	s.translator, err = simulate.New(s.h.Translation(), of)
	return s, err
}

// selectRange limits the counts to the part of the run that the argument "range" selects. The
// references before the part are a warm-up.
func (s *Simulation) selectRange() error {
	if !s.q.Given(ask.Range.Name) {
		return nil
	}
	if s.q.Given("warmup") {
		return &ask.Error{Text: "--range and --warmup cannot be combined: with --range, all references before the part are the warm-up"}
	}
	first, end, all, err := SelectPart(s.q.Text(ask.Range.Name), s.run.Replay.Count)
	if err != nil {
		return err
	}
	o := &s.options
	s.counted = [2]uint64{first, all}
	o.Warmup, o.WarmupShare, o.Limit = first, 0, 0
	if end < all {
		s.counted[1] = end
		o.Limit = end - first
	}
	return nil
}

// SelectPart returns the references [first, end) that a value of the argument "range" selects. The
// result all is the number of references that the trace contains, or MaxUint64 if it is not needed.
// If the part ends with the trace, end is at least all. SelectPart calls the function count only if
// it needs the number of references.
func SelectPart(part string, count func() (uint64, error)) (first, end, all uint64, err error) {
	all = math.MaxUint64
	if strings.Contains(part, "%") {
		if all, err = count(); err != nil {
			return 0, 0, 0, err
		}
	}
	from, to, err := ask.ParseRange(part, all)
	if err != nil {
		return 0, 0, 0, err
	}
	if first, end = uint64(math.Round(from)), all; to < float64(all) {
		end = max(uint64(math.Round(to)), first+1)
	}
	return first, end, all, nil
}

// selectRegion limits the counts to the references in the marked regions that the argument "region"
// selects.
func (s *Simulation) selectRegion() error {
	name, o := s.q.Text("region"), &s.options
	switch {
	case !s.q.Given("region"):
		return nil
	case name == "":
		return &ask.Error{Text: "--region: the name is empty; give the name of a marked region"}
	case s.q.Given(ask.Range.Name) || s.q.Given("warmup"):
		option := "warmup"
		if s.q.Given(ask.Range.Name) {
			option = ask.Range.Name
		}
		return &ask.Error{Text: "--region and --" + option + " cannot be combined: with --region, all references outside the regions only fill the caches"}
	case s.run.Replay.Skip > 0:
		return &ask.Error{Text: "--region cannot be combined with skipped references, because a region can begin in the skipped part; omit --skip and skip_refs"}
	}
	o.Warmup, o.WarmupShare, o.Limit = 0, 0, 0
	o.Region = func(tag trace.Addr) bool {
		p := s.program()
		return p != nil && tag < uint64(len(p.Tags)) && p.Tags[tag] == name
	}
	return nil
}

// Consumer returns the consumer that simulates the references. The given analyses run in the same
// pass.
func (s *Simulation) Consumer(analyses analysis.Analyses) ask.Consumer {
	c := ask.Consumer{Analyses: analyses, Sites: usesStrides(s.h), Events: s.options.Region != nil}
	if c.Events { // this analysis selects the events that begin and end regions
		if c.Analyses == analysis.None {
			c.Analyses = 0
		}
		c.Analyses |= analysis.Regions
	}
	c.Make = func(program func() *trace.Program) func(*trace.Batch) error {
		s.program = program
		return s.consume
	}
	return c
}

// plainOf returns the hierarchy with LRU replacement and without prefetchers.
func plainOf(h hierarchy.Hierarchy) hierarchy.Hierarchy {
	h.Levels, h.Instructions = slices.Clone(h.Levels), slices.Clone(h.Instructions)
	for _, list := range [][]hierarchy.Cache{h.Levels, h.Instructions} {
		for i := range list {
			list[i].Replacement, list[i].Prefetch = hierarchy.LRU, hierarchy.Prefetch{}
		}
	}
	return h
}

// consume simulates the references of a batch.
func (s *Simulation) consume(b *trace.Batch) error {
	s.instructions = s.instructions || b.PC != nil || b.Site != nil
	err := s.simulator.Consume(b)
	for _, other := range []*simulate.Simulator{s.baseline, s.translator} {
		if other != nil {
			err = errors.Join(err, other.Consume(b))
		}
	}
	return err
}

// Finish ends the simulation at the end of the trace.
func (s *Simulation) Finish() {
	if s.baseline != nil {
		s.plain = s.baseline.Finish()
	}
	if s.translator != nil {
		s.translated = s.translator.Finish()
	}
	s.Result = s.simulator.Finish()
}

// checkRange returns an error if the part that the argument "range" selects begins after the last
// reference.
func (s *Simulation) checkRange() error {
	part, n := s.q.Text(ask.Range.Name), s.run.Profile.Totals.AllReferences()
	if part != "" && s.counted[0] >= n {
		return EmptyPart(part, s.run.Name, n)
	}
	return nil
}

// EmptyPart returns the error for a value of the argument "range" that selects no references.
func EmptyPart(part, name string, references uint64) error {
	return &ask.Error{Text: "--range " + part + ": the part begins after the last reference: " + name + " has only " + plural(references, "reference")}
}

// checkRegion returns an error if the trace has no marked region with the name that the argument
// "region" selects.
func (s *Simulation) checkRegion() error {
	name, r := s.q.Text("region"), s.run.Profile.Regions
	switch {
	case name == "" || r != nil && r.TooMany:
		return nil
	case r == nil || len(r.List) == 0:
		return &ask.Error{Text: "--region " + name + ": " + s.run.Name + " has no marked regions; to mark a region, call stackglass_begin and stackglass_end (stackglass.h) and record the program with stackglass cc"}
	}
	var names []string
	for i := range r.List {
		names = append(names, r.List[i].Name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); slices.Contains(names, name) {
		return nil
	}
	return &ask.Error{Text: "--region " + name + ": " + s.run.Name + " has no region with this name; the regions are " + strings.Join(names, ", ")}
}

// usesStrides reports whether any level has a stride prefetcher, which observes individual
// instructions.
func usesStrides(h hierarchy.Hierarchy) bool {
	return slices.ContainsFunc(slices.Concat(h.Levels, h.Instructions), func(c hierarchy.Cache) bool { return c.Prefetch.Kind == hierarchy.Stride })
}

// Measured converts the result to a prediction, so that it can be printed like an answer of the
// verb what-if.
func (s *Simulation) Measured() hierarchy.Prediction { return s.measured(s.h, &s.Result) }

func (s *Simulation) measured(h hierarchy.Hierarchy, r *simulate.Result) hierarchy.Prediction {
	var counted []hierarchy.Counted
	for i := range r.Levels {
		run := &r.Levels[i].Run
		counted = append(counted, hierarchy.Counted{Accesses: run.Accesses(), Misses: run.Misses()})
	}
	p := hierarchy.Measured(h, counted, &s.run.Profile.Totals)
	p.MemoryBytes, p.References = float64(r.Memory.BytesRead), r.References
	return p
}

// changes compares the baseline (A) with the hierarchy (B). In a comparison of two runs, the columns
// are before and after.
func (s *Simulation) changes() report.Table {
	plain := plainOf(s.h)
	var keys []string
	if s.q.Brief {
		keys = []string{"misses", "miss_ratio", "fetched_bytes", "cycles", "ns"}
	}
	t := answers.Against([2]hierarchy.Hierarchy{plain, s.h}, [2]hierarchy.ByCore{{Prediction: s.measured(plain, &s.plain)}, {Prediction: s.Measured()}}, [2][]report.Table{}, keys...)
	sides := [2]string{"A", "B"}
	if s.run.Beside != nil { // A and B are the compared runs
		sides = [2]string{"before", "after"}
		for i, key := range []string{"a", "b"} {
			t.Columns[t.Index(key)] = report.Columns(sides[i])[0]
		}
	}
	t.Title = "The hierarchy with LRU replacement and without prefetchers (" + sides[0] + "), compared with the hierarchy as given (" + sides[1] + ")"
	return t
}

// report adds the tables, the facts and the warnings to the document.
func (s *Simulation) report(d *report.Document) {
	result := &s.Result
	idle, reason := s.idleCaches()
	if idle != "" {
		result.Instructions, s.translated.Instructions = nil, nil
	}
	_, unknown := hierarchy.Preset(s.h.Name)
	d.Input = s.run.Facts(0)
	if idle != "" && unknown == nil {
		d.Input = append(d.Input, report.Fact{Key: "not_simulated", Label: "not simulated", Value: report.TextOf(idle + " (" + reason + ")")})
	}
	d.Input = append(d.Input, s.rangeFacts()...)
	d.Tables = answers.Predicted(s.h, s.Measured())
	levels := slices.Concat(result.Instructions, result.Levels)
	addInstructions(&d.Tables[0], *result)
	addWriteBacks(&d.Tables[0], levels)
	addFeatures(&d.Tables[0], levels)
	addWrites(&d.Tables[1], *result)
	if t := boundTable(levels); len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
	if t := prefetchTable(levels); len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
	if s.baseline != nil {
		d.Tables = append(d.Tables, s.changes())
	}
	if s.translator != nil {
		d.Tables = append(d.Tables, translationTables(s.translated)...)
	}
	d.Tables = append(d.Tables, flowTable(levels))
	if len(result.Cores) > 1 {
		addCoherence(&d.Tables[0], levels)
		d.Tables = append(d.Tables, coreTable(*result, levels))
		if t := busTable(*result); len(t.Rows) > 0 || s.q.Text("protocol") != simulate.Incoherent.String() {
			d.Tables = append(d.Tables, t)
		}
	}
	d.Warnings = s.Doubts()
	// A user who selects a preset has not requested its instruction caches explicitly, so a missing
	// instruction cache is a fact and not a warning.
	if idle != "" && unknown != nil {
		d.Warnings = append(d.Warnings, s.idleWarning(idle, reason))
	}
	for _, doubt := range s.h.SizeDoubts() {
		d.Warnings = append(d.Warnings, string(doubt))
	}
}

// rangeFacts returns facts about the part of the run, or the regions, that are counted.
func (s *Simulation) rangeFacts() []report.Fact {
	counted := s.Result.References
	switch {
	case s.q.Given("region"):
		return []report.Fact{
			{Key: "region", Label: "region", Value: report.TextOf(s.q.Text("region"))},
			{Key: "counted_references", Label: "references in the region", Value: report.Count(counted)},
		}
	case !s.q.Given(ask.Range.Name):
		return nil
	}
	return []report.Fact{
		{Key: "from_reference", Label: "from reference", Value: report.Count(s.counted[0])},
		{Key: "to_reference", Label: "to reference", Value: report.Count(s.counted[0] + counted)},
	}
}
