package multicore

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Report describes a sequential run, and how the run was divided.
type Report struct {
	Regions uint64 // number of parallel regions; nested regions are counted in Nested
	Nested  uint64
	Phases  uint64 // number of phases, which are separated by barriers
	Loops   []Loop // the worksharing loops in the code, sorted by site

	References []uint64 // number of references of each core, only of the selected kinds
	Outside    uint64   // number of core 0's references outside regions
	Doubts     []string // caveats: differences from real threads, as sentences
}

// Loop describes a worksharing loop. The counts are totals over all executions of the loop that
// have the same schedule.
type Loop struct {
	Site       uint32 // site of the event that begins the loop
	Place      trace.Place
	Asked      string   // the program's schedule: "static", "dynamic,4", "runtime"
	Used       Schedule // the schedule by which the loop was divided
	Times      uint64   // number of executions
	Iterations uint64   // number of iterations in all executions
	Fewest     uint64   // number of iterations of the shortest execution
}

// Imbalance returns the maximum number of references that a core makes in regions, divided by the
// mean over the cores. Imbalance returns 0 if there are no references in regions.
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

// scanCounts contains the numbers of events and loops that the pre-scan of the trace has found.
type scanCounts struct {
	regions, nested, leagues, phases, strayEnds  uint64
	ones, loopsInLoops, unknownLoops             uint64
	criticals, reductions, tasks, allocs, orders uint64
	// numbers of loops, by property: no iterations (empty), fewer iterations than cores (few),
	// unknown schedule (unknown), vectorised or unrolled by the compiler (split), vectors longer
	// than a chunk (wide)
	empty, few, unknown, split, wide uint64
	runtime, auto                    uint64 // numbers of loops whose schedule is runtime or auto
	cut, noStack, noStackEnd, steals bool
	roles                            roles
	cores                            int
	loops                            map[loopKey]*Loop
}

type loopKey struct {
	site  uint32
	asked schedule
	used  Schedule
}

func (f *scanCounts) event(k trace.Kind) {
	switch k {
	case trace.CriticalBegin:
		f.criticals++
	case trace.ReduceBegin:
		f.reductions++
	case trace.TaskCreate:
		f.tasks++
	}
}

// loopEntry returns the entry for a loop in the report.
func (f *scanCounts) loopEntry(site uint32, l *loop) *Loop {
	if f.loops == nil {
		f.loops = map[loopKey]*Loop{}
	}
	key := loopKey{site, l.requested, l.used}
	e := f.loops[key]
	if e == nil {
		e = &Loop{Site: site, Asked: l.requested.String(), Used: l.used, Fewest: ^uint64(0)}
		f.loops[key] = e
	}
	return e
}

func (f *scanCounts) ended(e *Loop, l *loop) {
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
	switch l.requested.kind {
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
	if l.requested.ordered {
		f.orders++
	}
}

// Report returns a report on the rows that have been read so far.
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

const noRegion = "There is no parallel region, so core 0 makes all accesses: compile the program with -fopenmp."

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
	count(f.strayEnds, "parallel region has an end, but no beginning.", "parallel regions have an end, but no beginning.")
	say(f.noStack, "The trace does not contain the stack pointer at the beginning of a region, so no part of the stack is treated as private in this region.")
	say(f.noStackEnd, "The trace does not contain the end of the stack: the stack is assumed to extend 8 MiB below the function that forks.")
	count(f.nested, "parallel region was nested: one thread executes this region, which is the default in OpenMP.",
		"parallel regions were nested: one thread executes each of these regions, as by default in OpenMP.")
	count(f.leagues, "league of teams is assumed to have one team.", "leagues of teams are assumed to have one team each.")
	count(f.unknownLoops, "worksharing loop was not divided, because its code is unknown: every core executes the whole loop.",
		"worksharing loops were not divided, because their code is unknown: every core executes the whole loops.")
	count(f.loopsInLoops, "worksharing loop was nested in another worksharing loop and was not divided separately.",
		"worksharing loops were nested in other worksharing loops and were not divided separately.")
	count(f.empty, "worksharing loop had no recognisable iterations: every core executes the whole loop.",
		"worksharing loops had no recognisable iterations: every core executes the whole loops.")
	count(f.few, "worksharing loop had fewer iterations than there are cores.", "worksharing loops had fewer iterations than there are cores.")
	count(f.split, "worksharing loop was vectorised or unrolled, so one iteration of the compiled code executes several iterations of the source loop: the number of source iterations was determined from the accessed bytes, and the source iterations of one compiled iteration run on the same core.",
		"worksharing loops were vectorised or unrolled, so one iteration of the compiled code executes several iterations of the source loops: the number of source iterations was determined from the accessed bytes, and the source iterations of one compiled iteration run on the same core.")
	count(f.wide, "worksharing loop executes vectors of iterations that are longer than a chunk or a core's share: with several threads, the program would execute these iterations one by one, in code that this run did not execute; compile with -fno-vectorize to divide the iterations.",
		"worksharing loops execute vectors of iterations that are longer than a chunk or a core's share: with several threads, the program would execute these iterations one by one, in code that this run did not execute; compile with -fno-vectorize to divide the iterations.")
	if m.options.Schedule == nil {
		count(f.unknown, "worksharing loop has an unknown schedule: the loop was divided statically.",
			"worksharing loops have unknown schedules: these loops were divided statically.")
		count(f.runtime, "worksharing loop takes its schedule from OMP_SCHEDULE, which the trace does not contain: the loop was divided statically; set a schedule to divide the loop differently.",
			"worksharing loops take their schedules from OMP_SCHEDULE, which the trace does not contain: these loops were divided statically; set a schedule to divide the loops differently.")
		count(f.auto, "worksharing loop leaves its schedule to the runtime, and the trace does not contain the schedule: the loop was divided statically; set a schedule to divide the loop differently.",
			"worksharing loops leave their schedules to the runtime, and the trace does not contain the schedules: these loops were divided statically; set a schedule to divide the loops differently.")
	}
	say(f.steals, "LLVM's runtime starts a dynamic schedule like a static schedule, and idle threads then steal chunks. The predicted cores also steal chunks, but every reference takes the same time; in a real run, the order of the chunks varies.")
	count(f.orders, "worksharing loop is ordered: in this loop, the predicted cores do not wait for each other.",
		"worksharing loops are ordered: in these loops, the predicted cores do not wait for each other.")
	count(f.criticals, "critical section: several predicted cores may be in the section at the same time.",
		"critical sections: several predicted cores may be in the same section at the same time.")
	count(f.reductions, "reduction: every core adds its partial result to the total, as threads do in teams of up to 4; in larger teams, threads combine their results in pairs.",
		"reductions: every core adds its partial result to the total, as threads do in teams of up to 4; in larger teams, threads combine their results in pairs.")
	count(f.tasks, "task: the prediction assumes that the core that created the task executes it.", "tasks: the prediction assumes that the core that created a task executes it.")
	say(f.tasks == 0 && f.roles&makesTasks != 0, "The program creates tasks: the prediction assumes that the core that creates a task executes it.")
	count(f.allocs, "memory block was allocated within a parallel region: the prediction uses the same address on every core; with several threads, each thread would allocate a different block.",
		"memory blocks were allocated within parallel regions: the prediction uses the same addresses on every core; with several threads, each thread would allocate different blocks.")
	say(f.roles&usesNumber != 0, "The program calls omp_get_thread_num or omp_get_num_threads: if the program uses these numbers to divide work, every core executes all of this work.")
	say(f.roles&setsThreads != 0, "The program sets the number of threads: the number of cores is used instead.")
	say(f.roles&locks != 0, "The program uses locks: the predicted cores do not wait for locks.")
	say(f.roles&keepsPrivate != 0, "The program has threadprivate variables: the prediction uses the same addresses on all cores; threads would use different addresses.")
	say(f.roles&inOrder != 0, "The program has loop iterations that wait for earlier iterations: the predicted cores do not wait.")
	say(f.roles&cancels != 0, "The program may cancel a loop or region: the predicted cores execute the loop or region to its end.")
	return list
}
