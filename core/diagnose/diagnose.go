// Package diagnose finds the source locations at which a run waits for memory. The package
// determines the cause and the cost of each wait, and proposes changes to the program.
//
// The input is the profile of a run and a machine: a hierarchy of caches and a processor. The
// output is a [Diagnosis]: a verdict about the run as a whole, and findings, ranked by the cycles
// that their fixes would save.
//
//  1. cost.go computes costs. The cost of a block is its cycles if every load hits in the first
//     level (package pipeline), plus the waits for lines. The waits are computed for each source
//     location and each level, from the misses that package attribution computes. The pattern of
//     addresses determines how far fetches overlap. Loads whose address is the result of another
//     load do not overlap. For such loads, the pipeline model computes the cycles from the average
//     latency of each load.
//  2. unchanged.go counts misses and translations. If one thread ran and its loops are regular, the
//     misses of caches and TLBs are counted in the loop-compressed trace. Otherwise, a trace that
//     is short enough is replayed in a simulation (schedule.go, replay.go). The threads run in the
//     order in which a machine with a core for each thread would run them. The simulation also
//     covers address translation, references that cross line boundaries, the thread that first
//     stores to each page, and the time that threads wait for the slowest thread.
//  3. trial.go tries changes. To try a change to a loop, package loops/change makes this change to
//     the nest in the loop-compressed trace, and the misses of the nest in each level are counted
//     again. In a long nest, only the misses in the first iterations are counted. To try a
//     different data layout, the addresses are changed (rename.go, data.go), and the whole run is
//     replayed. The change with the largest saving is the finding. Loops whose references depend on
//     the data do not compress. Such loops are interchanged by reordering the recorded references
//     (reorder.go).
//  4. cause.go and threads.go find causes. If no change helps a source location, the cause is found
//     by elimination: misses because another core stored to the line; dependent loads; lines with
//     few used bytes; irregular addresses; or lines that are never used again. The saving is then
//     only a range, and the finding states that no change was tried.
//  5. A trace without code has no source locations. The misses of the whole run are then divided
//     into conflict, capacity and cold misses (whole.go).
//  6. A loop that does not wait for memory may wait for its own operations: a dependency chain from
//     iteration to iteration (compute.go).
//
// Each cycle that could be saved belongs to only one finding. MODELS §13.5 describes the model of
// cycles and its limits.
package diagnose

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/change"
	"github.com/stackglass/stackglass/core/loops/misses"
	"github.com/stackglass/stackglass/core/loops/outline"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
)

// Kind is a kind of problem.
type Kind string

const (
	Stride         Kind = "stride"          // the order of loops does not match the layout of an array
	Conflict       Kind = "conflict"        // lines that are used together share few sets
	Capacity       Kind = "capacity"        // a loop reuses data after the cache has evicted the data
	Fusion         Kind = "fusion"          // two loops access the same data one after the other
	Layout         Kind = "layout"          // few bytes of each line are used
	Alignment      Kind = "alignment"       // accesses cross line boundaries
	PointerChasing Kind = "pointer-chasing" // each address is the result of the previous load
	RandomAccess   Kind = "random-access"   // independent loads at irregular addresses
	Streaming      Kind = "streaming"       // sequential lines that are not used again
	TLB            Kind = "tlb"             // more pages than the TLB covers
	NUMA           Kind = "numa"            // memory that was first touched by a thread other than the thread that uses it
	Imbalance      Kind = "imbalance"       // threads wait for the slowest thread
	FalseSharing   Kind = "false-sharing"   // threads write different words of a line
	TrueSharing    Kind = "true-sharing"    // threads write the same words
	Compute        Kind = "compute"         // operations wait for each other, not for memory
)

// Finding is a problem at a source location, with advice.
type Finding struct {
	Kind     Kind
	Function string
	File     string
	Line     uint32
	Data     string // the data structure; "" if none has a name

	Cost  float64 // cycles that the run spends on the problem
	Saved float64 // part of Cost that the change would save
	// Least and Most are bounds on Saved, and differ if the change was not tried.
	Least, Most float64
	// Before and After are the misses in each level, for the part of the run that the change
	// affects, or nil if the change was not tried.
	Before, After []float64
	Tried         bool

	Why       string // the problem, in a sentence
	Fix       string // the change
	How       string // how Saved was predicted
	IllegalIf string // a clause that states when the change is illegal; "" if nothing is known
	More      string // the command line that shows more details

	unnamed bool     // the data that causes the waits has no known name; the source line may name other data
	also    []uint32 // other source lines to which the finding applies
}

// LevelWait is the time that a run waits for lines from one level or from memory.
type LevelWait struct {
	Name   string // the name of the level, or of memory
	Cycles float64
}

// Diagnosis is the result of a diagnosis.
type Diagnosis struct {
	Cycles   float64 // estimated cycles of all threads together
	Waits    []LevelWait
	Findings []Finding // in descending order of cycles saved
	Notes    []string  // caveats about the whole diagnosis, as sentences without a full stop

	levels []string
}

// Waiting returns the share of the run's cycles that are waits for memory, from 0 to 1.
func (d *Diagnosis) Waiting() float64 {
	sum := 0.0
	for _, w := range d.Waits {
		sum += w.Cycles
	}
	return share(sum, d.Cycles)
}

// If only the waits of the run are known for a change, its reported saving is at most the share
// mostGuessed of the run's cycles.
const mostGuessed = 0.0999

// Least is the minimum share of the run's cycles that a reported finding can save.
const Least = 0.01

// leastSaved is the minimum number of cycles that a reported finding can save. If the run takes
// only a few microseconds, no change is worth the effort.
const leastSaved = 2000

// Options contains the machine and the limits of a diagnosis.
type Options struct {
	Machine   hierarchy.Hierarchy
	Processor *pipeline.Processor
	Readable  func(string) string // makes a function's name readable; nil: names stay unchanged
	GoOn      func() bool         // called regularly; if GoOn returns false, the diagnosis stops; nil: the diagnosis never stops early
	// Progress is called during the search, with the number of changes that have been tried. A call
	// of soFar returns the diagnosis with the findings so far. Progress may be nil.
	Progress func(tried int, soFar func() *Diagnosis)
}

// run contains the state of the diagnosis of one run.
type run struct {
	Options
	p     *profile.Profile
	loops *answers.Loops // nil if the profile has no loops
	// renumbered reports whether the loops differ from the loops that the command numbers.
	renumbered bool
	counted    *loopcount.Misses // misses of the loops in each level; nil if not counted
	byLoop     [][]inLoop        // the result of inLoops; nil before the first call
	// by level: conflict misses of the loops, as a share of their misses; nil if they could not be counted
	conflictsIn   map[int][]float64
	mayConflictIn map[[2]int]bool // results of mayConflict, by nest and level
	plain         map[plainNest]float64
	trials        map[int]nestTrial       // by number of the nest
	rolled        map[int]*change.Rolled  // by number of the nest
	sources       map[uint32]source       // by site, for the nests in rolled
	arraysOf      map[int][]outline.Array // results of arrays, by loop
	misses        [][]float64             // the result of exactMisses; nil before the first call
	number        map[*profile.Site]int   // indices in profile.Sites.Code; nil if not needed yet
	hashed        []bool                  // levels whose sets are chosen by a hash
	cost          *costs
	places        []*place
	taken         map[*place]float64 // share of a location's waits that findings include, 0 to 1
	tried         map[*place]bool    // changes of the loops around a location were tried
	untried       []func()           // functions that add findings at locations without other findings
	moved         []record           // arrays whose layout a finding changes
	searched      map[string]bool    // functions with dependent loads for which reordering the elements saves nothing
	swept         map[*place]uint64  // number of runs of the loops around a location
	fused         map[*place]int     // the finding that fuses the loops around a location with other loops
	instead       map[*place]string  // a change of the loop order that also splits a chain of dependent results
	apart         [2]*counts         // replays with the changes of [apart], by whether words are copied; nil: not simulated yet

	changes   atomic.Int64 // number of changes that were tried
	replaying sync.Mutex   // protects these fields while replays run
	replayed  uint64       // number of rows replayed
	pool      sync.Pool    // buffers that replays reuse
	out       *Diagnosis
}

// plainNest identifies an unchanged nest and a cache: the key of run.plain, which contains misses.
type plainNest struct {
	nest  *loops.Nest
	cache misses.Cache
}

// Run diagnoses the run of a profile. Run returns an error if the run cannot be diagnosed.
func Run(p *profile.Profile, o Options) (*Diagnosis, error) {
	if o.GoOn = parallel.OneAtATime(o.GoOn); o.GoOn == nil {
		o.GoOn = func() bool { return true }
	}
	if o.Readable == nil {
		o.Readable = func(name string) string { return name }
	}
	readable := o.Readable
	o.Readable = func(name string) string { return shortName(readable(name)) }
	r := &run{Options: o, p: p, taken: map[*place]float64{}, tried: map[*place]bool{}, searched: map[string]bool{}, swept: map[*place]uint64{}, instead: map[*place]string{}, fused: map[*place]int{}, conflictsIn: map[int][]float64{}, mayConflictIn: map[[2]int]bool{}, plain: map[plainNest]float64{}, trials: map[int]nestTrial{}, rolled: map[int]*change.Rolled{}, sources: map[uint32]source{}, out: &Diagnosis{}}
	if len(p.Loops) > 0 {
		l, err := answers.NewLoops(p, mostNests)
		if err != nil {
			return nil, err
		}
		if t := r.untangled(l.Tree()); t != nil {
			r.renumbered = true
			again := *p
			again.Loops = t.Append(nil)
			if l, err = answers.NewLoops(&again, mostNests); err != nil {
				return nil, err
			}
		}
		l.Name = o.Readable
		r.loops = l
	}
	r.shareAmongAll()
	if p.Sites == nil {
		if err := r.whole(); err != nil {
			return nil, err
		}
		return r.out.ranked(), nil
	}
	if err := r.price(); err != nil {
		return nil, err
	}
	for _, search := range []func(){r.sharing, r.imbalance, r.sockets, r.chasing, r.interchange, r.nests, r.translations, r.elements} {
		search()
		r.progress()
	}
	for _, add := range r.untried {
		add()
	}
	r.causes()
	r.compute()
	r.progress()
	return r.out.ranked(), nil
}

// shareAmongAll changes each level for which the profile has no common stack of the cores that share
// a cache: all cores then share one cache of this level.
func (r *run) shareAmongAll() {
	for asker := hierarchy.NewAsker(r.p); ; {
		var missing *hierarchy.DomainError
		if _, _, err := asker.Predict(r.Machine, nil); !errors.As(err, &missing) {
			return // other errors are reported when the levels are priced
		}
		c := missing.Level
		r.Machine.Levels = slices.Clone(r.Machine.Levels)
		for i := range r.Machine.Levels {
			if l := &r.Machine.Levels[i]; l.SharedBy == c.SharedBy {
				l.SharedBy = hierarchy.AllCores
			}
		}
		r.out.Notes = append(r.out.Notes, c.Name+" is assumed to be one cache for all cores, because the profile does not contain the misses of each group of "+strconv.FormatUint(uint64(c.SharedBy), 10)+
			" cores; to count these misses, analyse the trace again, with --domains "+missing.Domains)
	}
}

// progress reports the findings so far.
func (r *run) progress() {
	if r.Progress == nil {
		return
	}
	r.Progress(int(r.changes.Load()), func() *Diagnosis {
		d := *r.out
		d.Findings = slices.Clone(d.Findings)
		return d.ranked()
	})
}

// ranked merges the findings, drops findings that save too little, and sorts the rest by their
// savings.
func (d *Diagnosis) ranked() *Diagnosis {
	d.merge()
	for i := range d.Findings {
		if f := &d.Findings[i]; !f.Tried && (f.Saved < 2*f.Most/uncertaintyDivisor || f.Kind == Layout) {
			f.Saved = min(f.Saved, mostGuessed*d.Cycles)
		}
	}
	d.keepWorth()
	slices.SortStableFunc(d.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Saved, a.Saved), cmp.Compare(b.Most, a.Most))
	})
	return d
}

// keepWorth removes the findings that save too little to be reported. If the other findings save
// only a small part of the waits, keepWorth keeps findings whose changes could not be tried but may
// save more.
func (d *Diagnosis) keepWorth() {
	least := max(Least*d.Cycles, leastSaved)
	all := slices.Clone(d.Findings)
	d.Findings = slices.DeleteFunc(d.Findings, func(f Finding) bool { return f.Saved < least })
	if d.littleFound() {
		d.Findings = slices.DeleteFunc(all, func(f Finding) bool { return max(f.Saved, f.Most/2) < least })
	}
}

// littleFound reports whether the findings save only a small part of the waits for memory.
func (d *Diagnosis) littleFound() bool {
	return d.Waiting() >= small && d.Saved() < d.Waiting()/10
}

// merge merges findings of the same kind at the same source location, for example in loops that the
// compiler duplicated, or in a function with several callers. Findings that could not be tried are
// also merged if they are about the same data in the same function, or if their lines are close to
// each other.
func (d *Diagnosis) merge() {
	var all []Finding
	for _, f := range d.Findings {
		i := slices.IndexFunc(all, func(g Finding) bool {
			same := !f.Tried && !g.Tried && f.Line > 0 && (f.Data != "" && f.Data == g.Data || max(f.Line, g.Line)-min(f.Line, g.Line) <= nextTo)
			return g.Kind == f.Kind && g.Function == f.Function && g.File == f.File && (g.Line == f.Line || same)
		})
		if i < 0 {
			all = append(all, f)
			continue
		}
		g := &all[i]
		if f.Line != g.Line {
			for name := range strings.SplitSeq(f.Data, ", ") {
				if name != "" && !slices.Contains(strings.Split(g.Data, ", "), name) {
					g.Data = strings.TrimPrefix(g.Data+", "+name, ", ")
				}
			}
			f.Data = g.Data
			g.also = append(g.also, f.Line)
			if f.Saved > g.Saved {
				g.also[len(g.also)-1], g.Line = g.Line, f.Line
			}
		}
		if f.Saved > g.Saved {
			g.Why, g.Fix, g.IllegalIf, g.Data, g.More = f.Why, f.Fix, f.IllegalIf, f.Data, f.More
		}
		g.Cost, g.Saved, g.Least, g.Most = g.Cost+f.Cost, g.Saved+f.Saved, g.Least+f.Least, g.Most+f.Most
		g.Tried = g.Tried && f.Tried
		if len(g.Before) != len(f.Before) {
			continue
		}
		g.Before, g.After = slices.Clone(g.Before), slices.Clone(g.After)
		for k := range f.Before {
			g.Before[k] += f.Before[k]
			g.After[k] += f.After[k]
		}
	}
	for i := range all {
		f := &all[i]
		f.Why += alsoAt(f.Line, f.also)
		f.Saved, f.Least, f.Most = min(f.Saved, d.Cycles), min(f.Least, d.Cycles), min(f.Most, d.Cycles)
	}
	d.Findings = all
}

// nextTo is the maximum distance, in source lines, between two findings about the same statements,
// such as a look-up that first loads the address of a table and then an entry.
const nextTo = 4

// alsoAt returns a phrase that lists the other source lines of a finding.
func alsoAt(line uint32, also []uint32) string {
	also = slices.Sorted(slices.Values(also)) // a copy, because the search may continue with the finding
	also = slices.DeleteFunc(slices.Compact(also), func(l uint32) bool { return l == line })
	if len(also) == 0 {
		return ""
	}
	text := "; the same applies to line"
	if len(also) > 1 {
		text += "s"
	}
	for i, l := range also {
		switch {
		case i > 0 && i == len(also)-1:
			text += " and"
		case i > 0:
			text += ","
		}
		text += " " + strconv.FormatUint(uint64(l), 10)
	}
	return text
}

// mostNests is the maximum number of nests that are examined, starting with the nests with the most
// references.
const mostNests = 200

// add adds a finding at a source location.
func (r *run) add(at *place, f Finding) {
	f.Function, f.File, f.Line = sourceFunction(at.function), at.file, at.line
	if f.Data == "" && !f.unnamed {
		f.Data = at.data
	}
	if f.Least == 0 && f.Most == 0 {
		f.Least, f.Most = f.Saved, f.Saved
	}
	if at.pages > at.wait && f.waits() {
		if !strings.Contains(f.Why, "page") {
			f.Why += "; most of this time is address translation, because the accesses are to more pages than the TLB has entries"
		}
		if !strings.Contains(f.Fix, "page") {
			f.Fix += "; or use " + largePages(at.file)
		}
	}
	r.out.Findings = append(r.out.Findings, f)
}

// waits reports whether a finding is about waits for memory in a single thread.
func (f *Finding) waits() bool {
	switch f.Kind {
	case Compute, NUMA, Imbalance, FalseSharing, TrueSharing:
		return false
	}
	return true
}

// sourceFunction returns the source function of a name. Compilers turn OpenMP's parallel regions
// into separate functions.
func sourceFunction(name string) string {
	for _, suffix := range []string{".omp_outlined", "..omp_par"} {
		if before, _, ok := strings.Cut(name, suffix); ok && before != "" {
			return before
		}
	}
	return name
}

// shortName removes template arguments, parameters and the return type from the name of a C++ function.
func shortName(name string) string {
	out := make([]byte, 0, len(name))
	angles, parens, operator := 0, 0, false
	for i := 0; i < len(name); i++ {
		if rest := name[i:]; angles == 0 && parens == 0 && strings.HasPrefix(rest, "operator") {
			n := len("operator")
			for n < len(rest) && strings.IndexByte("<>=!+-*/%^&|~,[]", rest[n]) >= 0 {
				n++
			}
			if strings.HasPrefix(rest[n:], "()") {
				n += len("()")
			}
			out, operator = append(out, rest[:n]...), true
			i += n - 1
			continue
		} else if angles == 0 && parens == 0 && strings.HasPrefix(rest, "(anonymous namespace)::") {
			i += len("(anonymous namespace)::") - 1
			continue
		}
		switch c := name[i]; {
		case c == '<':
			angles++
		case c == '>' && angles > 0:
			angles--
		case angles > 0:
		case c == '(' || c == '{':
			if parens++; c == '{' && parens == 1 {
				out = append(out, "lambda"...)
			}
		case c == ')' || c == '}':
			parens--
		case parens > 0:
		case c == ' ' && (operator || name[i:] == " const"):
		case c == ' ':
			out = out[:0] // the space ends the return type
		default:
			out = append(out, c)
		}
	}
	text := strings.TrimSuffix(string(out), "const")
	if text = strings.Trim(text, ":&*[]"); text == "" || angles != 0 || parens != 0 {
		return name
	}
	return text
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

// placeOf returns the source location that waits longest among the locations with references in a
// loop, or nil.
func (r *run) placeOf(loop int) *place {
	var worst *place
	for _, at := range r.placesOf(loop) {
		if worst == nil || at.wait > worst.wait {
			worst = at
		}
	}
	return worst
}

// placesOf returns the source locations of a loop's references.
func (r *run) placesOf(loop int) (list []*place) {
	for _, ref := range r.loops.Refs(loop) {
		s := r.loops.Place(ref)
		if s == nil {
			continue
		}
		if at := r.cost.bySite[s]; at != nil && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return list
}

// strided returns the array with the largest stride in the innermost loop. strided considers only
// arrays whose stride in a different loop is less than a line, and returns nil if there is no such
// array.
func strided(arrays []outline.Array, lineBytes int64) *outline.Array {
	var found *outline.Array
	for i := range arrays {
		a := &arrays[i]
		n := len(a.Strides)
		if n < 2 || a.Wild || magnitude(a.Strides[n-1]) < lineBytes {
			continue
		}
		near := slices.ContainsFunc(a.Strides[:n-1], func(s int64) bool { return s != 0 && magnitude(s) < lineBytes })
		if near && (found == nil || a.References > found.References) {
			found = a
		}
	}
	return found
}

func magnitude(v int64) int64 { return max(v, -v) }
