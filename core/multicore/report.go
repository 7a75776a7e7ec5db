package multicore

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Report describes a sequential run and how it was divided.
type Report struct {
	Regions uint64 // parallel regions; nested ones are counted in Nested
	Nested  uint64
	Phases  uint64 // parts of regions between barriers
	Loops   []Loop // worksharing loops of the code, by their sites

	References []uint64 // by core, of the selected kinds
	Outside    uint64   // references of core 0 in no region
	Doubts     []string // caveats: differences to real threads, as sentences
}

// Loop is a worksharing loop of the code: all its executions with a schedule.
type Loop struct {
	Site       uint32 // of the event that begins it
	Place      trace.Place
	Asked      string   // the program's schedule: "static", "dynamic,4", "runtime"
	Used       Schedule // the schedule of the division
	Times      uint64   // executions
	Iterations uint64   // of all executions
	Fewest     uint64   // iterations of the shortest execution
}

// Imbalance returns the maximum references of a core in regions by their mean, or 0 without any.
func (r *Report) Imbalance() float64 {
	var most, sum uint64
	for c, n := range r.References {
		if c == 0 {
			n -= r.Outside
		}
		most, sum = max(most, n), sum+n
	}
	if sum == 0 {
		return 0
	}
	return float64(most) * float64(len(r.References)) / float64(sum)
}

// found has the counts of the survey.
type found struct {
	regions, nested, leagues, phases, strayEnds  uint64
	ones, loopsInLoops, unknownLoops             uint64
	criticals, reductions, tasks, allocs, orders uint64
	empty, few, unknown, split, wide             uint64 // loops: without iterations; with fewer than cores; with unknown schedules; split by the compiler; with vectors that are too wide
	runtime, auto                                uint64 // loops whose schedule is set at runtime
	cut, noStack, noStackEnd, steals             bool
	roles                                        roles
	cores                                        int
	loops                                        map[loopKey]*Loop
}

type loopKey struct {
	site  uint32
	asked schedule
	used  Schedule
}

func (f *found) event(k trace.Kind) {
	switch k {
	case trace.CriticalBegin:
		f.criticals++
	case trace.ReduceBegin:
		f.reductions++
	case trace.TaskCreate:
		f.tasks++
	}
}

// loop returns the entry of a loop.
func (f *found) loop(site uint32, l *loop) *Loop {
	if f.loops == nil {
		f.loops = map[loopKey]*Loop{}
	}
	key := loopKey{site, l.asked, l.used}
	e := f.loops[key]
	if e == nil {
		e = &Loop{Site: site, Asked: l.asked.String(), Used: l.used, Fewest: ^uint64(0)}
		f.loops[key] = e
	}
	return e
}

func (f *found) ended(e *Loop, l *loop) {
	e.Times++
	e.Iterations += l.total
	e.Fewest = min(e.Fewest, l.total)
	if l.total > l.units {
		f.split++
	}
	if f.cores > 1 && l.tooWide(uint64(f.cores)) {
		f.wide++
	}
	switch {
	case l.units == 0:
		f.empty++
	case l.total < uint64(f.cores):
		f.few++
	}
	switch l.asked.kind {
	case unknownSchedule:
		f.unknown++
	case byRuntime:
		f.runtime++
	case byItself:
		f.auto++
	}
	if l.steals {
		f.steals = true
	}
	if l.asked.ordered {
		f.orders++
	}
}

// Report returns the report so far.
func (m *Reader) Report() Report {
	if m.executions != nil {
		return m.reportDivided()
	}
	f := &m.found
	r := Report{Regions: f.regions, Nested: f.nested, Phases: f.phases, Outside: m.outside, References: make([]uint64, m.options.Cores)}
	for c := range m.cursors {
		r.References[c] = m.cursors[c].rows
	}
	r.References[0] += m.outside
	for _, e := range f.loops {
		l := *e
		if l.Times == 0 {
			l.Fewest = 0
		}
		if p := m.code.program; uint64(l.Site) < uint64(len(p.Sites)) {
			l.Place = p.Sites[l.Site].Place
		}
		r.Loops = append(r.Loops, l)
	}
	slices.SortFunc(r.Loops, func(a, b Loop) int {
		return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Asked, b.Asked))
	})
	r.Doubts = m.doubts()
	return r
}

const noRegion = "No parallel region began, so core 0 makes all accesses. Was the program compiled with -fopenmp?"

// doubts returns the caveats.
func (m *Reader) doubts() (list []string) {
	f := &m.found
	say := func(is bool, text string) {
		if is {
			list = append(list, text)
		}
	}
	count := func(n uint64, one, more string) {
		switch {
		case n == 1:
			list = append(list, "1 "+one)
		case n > 1:
			list = append(list, strconv.FormatUint(n, 10)+" "+more)
		}
	}
	say(f.regions == 0, noRegion)
	say(f.cut, "The trace ends within a parallel region.")
	count(f.strayEnds, "parallel region ended that had not begun.", "parallel regions ended that had not begun.")
	say(f.noStack, "The trace does not contain the address of the stack at the beginning of a region: nothing on it is private there.")
	say(f.noStackEnd, "The trace does not tell where the stack ends: 8 MiB below the function that forks are taken for it.")
	count(f.nested, "parallel region began within another one: one thread does it, which is the default of OpenMP.",
		"parallel regions began within others: one thread does each, which is the default of OpenMP.")
	count(f.leagues, "league of teams began: it is taken to have one team.", "leagues of teams began: each is taken to have one team.")
	count(f.unknownLoops, "worksharing loop was not divided, for its code is not known: every core does all of it.",
		"worksharing loops were not divided, for their code is not known: every core does all of them.")
	count(f.loopsInLoops, "worksharing loop began within another one, and was not divided separately.",
		"worksharing loops began within others, and were not divided separately.")
	count(f.empty, "worksharing loop had no recognisable iterations: every core does all its work.",
		"worksharing loops had no recognisable iterations: every core does all their work.")
	count(f.few, "worksharing loop had fewer iterations than there are cores.", "worksharing loops had fewer iterations than there are cores.")
	count(f.split, "worksharing loop was compiled to several, vectorised or unrolled: the bytes that they reference show how many of the program's iterations are one of theirs, and these stay together.",
		"worksharing loops were compiled to several, vectorised or unrolled: the bytes that they reference show how many of the program's iterations are one of theirs, and these stay together.")
	count(f.wide, "worksharing loop has vectors that are longer than a chunk or a core's part: threads would do the iterations one by one, in code that the run did not execute; compile with -fno-vectorize to divide them.",
		"worksharing loops have vectors that are longer than a chunk or a core's part: threads would do the iterations one by one, in code that the run did not execute; compile with -fno-vectorize to divide them.")
	if m.options.Schedule == nil {
		count(f.unknown, "worksharing loop has a schedule that is not known: it was divided as static.",
			"worksharing loops have schedules that are not known: they were divided as static.")
		count(f.runtime, "worksharing loop has the schedule that OMP_SCHEDULE says when it runs, which the trace does not tell: it was divided as static; choose a schedule to have another.",
			"worksharing loops have the schedule that OMP_SCHEDULE says when they run, which the trace does not tell: they were divided as static; choose a schedule to have another.")
		count(f.auto, "worksharing loop leaves its schedule to the runtime, which the trace does not tell: it was divided as static; choose a schedule to have another.",
			"worksharing loops leave their schedule to the runtime, which the trace does not tell: they were divided as static; choose a schedule to have another.")
	}
	say(f.steals, "LLVM's runtime begins dynamic schedules as static ones, and idle threads steal chunks. Cores do the same here, as if every reference took the same time; in a real run the order depends on chance.")
	count(f.orders, "worksharing loop is ordered: cores do not wait for each other there.",
		"worksharing loops are ordered: cores do not wait for each other there.")
	count(f.criticals, "critical section: cores are not kept from being in it at the same time.",
		"critical sections: cores are not kept from being in one at the same time.")
	count(f.reductions, "reduction: every core adds its part to the whole, as threads do in teams of up to 4; larger ones add two by two.",
		"reductions: every core adds its part to the whole, as threads do in teams of up to 4; larger ones add two by two.")
	count(f.tasks, "task: the core that made it does it.", "tasks: the core that made one does it.")
	say(f.tasks == 0 && f.roles&makesTasks != 0, "The program makes tasks: the core that makes one does it.")
	count(f.allocs, "object was allocated within a parallel region: cores have it at the same address, threads would not.",
		"objects were allocated within parallel regions: cores have them at the same addresses, threads would not.")
	say(f.roles&usesNumber != 0, "The program asks for the number of a thread, or of all: work that it divides by them is done by every core.")
	say(f.roles&setsThreads != 0, "The program says how many threads it wants: it gets the number of cores instead.")
	say(f.roles&locks != 0, "The program uses locks: cores do not wait for them.")
	say(f.roles&keepsPrivate != 0, "The program has threadprivate variables: cores have them at the same addresses, threads would not.")
	say(f.roles&inOrder != 0, "Iterations wait for others in the program: cores do not.")
	say(f.roles&cancels != 0, "The program may cancel a loop or region: all cores continue.")
	return list
}
