// Package pass analyses traces with an Apache Beam pipeline, on many machines. The profiles equal
// those of the command's verb analyze, byte for byte.
//
//  1. divide reads a trace's index, and divides the trace into stretches with about equal numbers
//     of references (analysis.Plan).
//  2. If data structures are distinguished by memory block, follow reads the allocations of each
//     stretch, and lay computes which memory blocks exist at the beginning of each stretch.
//     Otherwise this step is omitted.
//  3. analyse computes the segments of each stretch, on any worker and in any order. A stretch that
//     takes too long is cut, and another worker analyses the rest in the next round. If a segment
//     contains too many lines, it ends, and another one begins.
//  4. inOrder reads the whole trace with the analyses that have no segments, such as communication,
//     while other workers analyse the stretches. Communication is divided into several such runs.
//     Most traces have no such analyses.
//  5. join appends neighbours (MODELS §9). The operation is associative but not commutative, so it
//     cannot be a Beam combiner: runners may combine in any order. Therefore the tree is explicit:
//     the parent of stretch i on level l is i divided by the fan-in l times. Neighbours are grouped
//     by their parent, sorted by position, and joined.
//  6. assemble analyses the references before the first stretch, and appends the remaining segments,
//     one after the other.
//  7. finish adds the results of inOrder, and writes the profile.
//  8. tell writes a report about all traces.
//
// Every step is deterministic, and a file gets its name only when it is complete. A runner may
// therefore repeat lost work, and may run slow work twice. A workspace stores segments, and a
// restarted job reuses them.
package pass

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/stackglass/stackglass/tools/beam/files"
)

func init() {
	register.DoFn6x1[context.Context, string, func(Task), func(Task), func(Task), func(string, Segment), error](&divide{})
	register.DoFn2x3[context.Context, Task, string, Segment, error](&inOrder{})
	register.DoFn2x3[context.Context, Task, string, Moved, error](&follow{})
	register.DoFn4x1[context.Context, string, func(*Moved) bool, func(Task), error](&lay{})
	register.DoFn4x1[context.Context, Task, func(string, Segment), func(Task), error](&analyse{})
	register.DoFn3x3[context.Context, string, func(*Segment) bool, string, Segment, error](&join{})
	register.DoFn3x3[context.Context, string, func(*Segment) bool, string, Segment, error](&assemble{})
	register.DoFn3x2[context.Context, string, func(*Segment) bool, Result, error](&finish{})
	register.DoFn3x1[context.Context, int, func(*Result) bool, error](&tell{})
	register.DoFn2x3[context.Context, Task, string, Part, error](&convert{})
	register.DoFn3x1[context.Context, string, func(*Part) bool, error](&describe{})
	register.DoFn2x0[Task, func(Task)](&tasksOf{})
	register.DoFn3x0[string, Segment, func(string, Segment)](&segmentsOf{})
	register.Function2x2(root)
	register.Function1x2(byTrace)
	register.Function3x0(ungroup)
	register.Iter1[Task]()
	register.Function1x2(together)
	register.Emitter1[Task]()
	register.Emitter2[string, Segment]()
	register.Iter1[Moved]()
	register.Iter1[Part]()
	register.Iter1[Segment]()
	register.Iter1[Result]()
	for _, t := range []reflect.Type{reflect.TypeFor[Task](), reflect.TypeFor[Moved](), reflect.TypeFor[Segment](), reflect.TypeFor[Result](), reflect.TypeFor[Part]()} {
		beam.RegisterType(t)
	}
}

// Load describes the work of a job.
type Load struct {
	Stretches  int    // number of stretches of the trace that has most
	InOrder    bool   // some traces are also read in order, for analyses that have no segments
	References uint64 // number of references that all workers together analyse; 0: unknown
}

// Check checks the traces before the job begins, and after traces in other formats were converted. It
// returns the work of the job, or an error about the first problem. If the length of stretches is not
// chosen, Check chooses it.
func Check(ctx context.Context, traces []string, o *Options) (all Load, err error) {
	if o.References == 0 {
		references := uint64(0)
		for _, name := range traces {
			t, err := openTrace(ctx, name, o)
			if err != nil {
				return all, err
			}
			references += t.plan.References
			all.InOrder = all.InOrder || t.plan.InOrderRuns() > 0
		}
		o.References = o.lengthFor(references, all.InOrder)
	}
	known := true
	for _, name := range traces {
		t, err := openTrace(ctx, name, o)
		if err != nil {
			return all, err
		}
		all.Stretches = max(all.Stretches, len(t.plan.Stretches))
		all.References += t.plan.References
		known = known && t.plan.References > 0
		all.References += uint64(t.plan.InOrderRuns()) * t.plan.References
		all.InOrder = all.InOrder || t.plan.InOrderRuns() > 0
	}
	if !known {
		all.References = 0
	}
	for _, ending := range reportEndings { // a report of an earlier job must not be mistaken for this job's
		if err := files.Remove(ctx, files.Join(o.Output, "report."+ending)); err != nil {
			return all, err
		}
	}
	return all, nil
}

// reportEndings contains the endings of the report's files: text, and JSON.
var reportEndings = []string{"txt", "json"}

// rounds is one more than the number of times that a stretch can be cut because it takes long.
const rounds = 3

// Build adds the steps to a pipeline.
func Build(s beam.Scope, traces []string, load Load, o Options) {
	names := beam.Reshuffle(s, beam.CreateList(s, traces))
	ready, toFollow, ordered, whole := beam.ParDo4(s.Scope("Divide"), &divide{o}, names)
	tasks := beam.Flatten(s, ready, o.laid(s.Scope("Lay"), toFollow))
	if load.InOrder && o.Workers < Parts {
		// Segments are joined while other workers read in order. With more workers, a run in order takes
		// longer than a stretch, so it begins first. The stretches take one step longer to arrive.
		ordered = later(s.Scope("Later1"), later(s.Scope("Later0"), ordered))
	}
	inOrderResults := o.inOrder(s.Scope("InOrder"), ordered)

	var leaves []beam.PCollection
	for round := range rounds {
		last := round == rounds-1 || o.PatienceMS == 0
		at := s.Scope(fmt.Sprintf("Analyse%d", round))
		var rests []beam.PCollection
		for _, some := range o.lanes(at, tasks) {
			made, rest := beam.ParDo2(at, &analyse{o, last}, some)
			leaves, rests = append(leaves, made), append(rests, rest)
		}
		if last {
			break
		}
		tasks = beam.Flatten(at, rests...)
	}
	nodes := beam.Flatten(s, leaves...)
	span := o.FanIn
	for level := 1; span < load.Stretches; level++ {
		nodes = o.joined(s.Scope(fmt.Sprintf("Join%d", level)), nodes, span*o.FanIn)
		span *= o.FanIn
	}
	roots := beam.ParDo(s, root, nodes)
	// The last segments are joined here, while other workers read in order.
	var assembled, results []beam.PCollection
	for _, some := range o.segments(s.Scope("Assemble"), beam.Flatten(s, whole, roots)) {
		assembled = append(assembled, beam.ParDo(s, &assemble{o}, beam.GroupByKey(s, some)))
	}
	all := beam.Flatten(s, append(assembled, inOrderResults)...)
	for _, some := range o.segments(s.Scope("Finish"), all) {
		results = append(results, beam.ParDo(s, &finish{o}, beam.GroupByKey(s, some)))
	}
	beam.ParDo0(s.Scope("Tell"), &tell{o}, beam.GroupByKey(s, beam.ParDo(s, together, beam.Flatten(s, results...))))
}

// laid adds to tasks which memory blocks exist when they begin.
func (o *Options) laid(s beam.Scope, tasks beam.PCollection) beam.PCollection {
	var moved []beam.PCollection
	for _, some := range o.lanes(s, tasks) {
		moved = append(moved, beam.ParDo(s, &follow{*o}, some))
	}
	return beam.ParDo(s, &lay{*o}, beam.GroupByKey(s, beam.Flatten(s, moved...)))
}

// later returns tasks that arrive one step later, when the workers have already taken other tasks.
func later(s beam.Scope, tasks beam.PCollection) beam.PCollection {
	return beam.ParDo(s, ungroup, beam.GroupByKey(s, beam.ParDo(s, byTrace, tasks)))
}

func byTrace(t Task) (string, Task) { return t.Trace, t }

func ungroup(_ string, tasks func(*Task) bool, emit func(Task)) {
	for one := (Task{}); tasks(&one); one = (Task{}) {
		emit(one)
	}
}

// lanes distributes tasks among branches, for runners that process a collection on one worker.
func (o *Options) lanes(s beam.Scope, tasks beam.PCollection) (parts []beam.PCollection) {
	if o.Lanes == 1 {
		return []beam.PCollection{beam.Reshuffle(s, tasks)}
	}
	for i := range o.Lanes {
		parts = append(parts, beam.Reshuffle(s, beam.ParDo(s, &tasksOf{lane{i, o.Lanes}}, tasks)))
	}
	return parts
}

// inOrder runs the analyses that have no segments.
func (o *Options) inOrder(s beam.Scope, ordered beam.PCollection) beam.PCollection {
	var parts []beam.PCollection
	for _, some := range o.lanes(s, ordered) {
		parts = append(parts, beam.ParDo(s, &inOrder{*o}, some))
	}
	return beam.Flatten(s, parts...)
}

// joined joins the segments of each node. span is the number of stretches that a parent covers.
func (o *Options) joined(s beam.Scope, nodes beam.PCollection, span int) beam.PCollection {
	var parts []beam.PCollection
	for _, some := range o.segments(s, nodes) {
		parts = append(parts, beam.ParDo(s, &join{*o, span}, beam.GroupByKey(s, some)))
	}
	return beam.Flatten(s, parts...)
}

// segments distributes segments among branches by their key.
func (o *Options) segments(s beam.Scope, all beam.PCollection) (parts []beam.PCollection) {
	if o.Lanes == 1 {
		return []beam.PCollection{all}
	}
	for i := range o.Lanes {
		parts = append(parts, beam.ParDo(s, &segmentsOf{lane{i, o.Lanes}}, all))
	}
	return parts
}

// lane is one of several branches of the pipeline.
type lane struct{ Lane, Lanes int }

func (l *lane) has(n uint64) bool { return n%uint64(l.Lanes) == uint64(l.Lane) }

// tasksOf selects the tasks of a lane. Neighbouring tasks belong to different lanes.
type tasksOf struct{ Lane lane }

func (f *tasksOf) ProcessElement(t Task, emit func(Task)) {
	if f.Lane.has(uint64(t.Number+1) + hash(t.Trace)) {
		emit(t)
	}
}

// segmentsOf selects the segments of a lane. The segments of a node belong to the same lane.
type segmentsOf struct{ Lane lane }

func (f *segmentsOf) ProcessElement(key string, s Segment, emit func(string, Segment)) {
	if f.Lane.has(hash(key)) {
		emit(key, s)
	}
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64() >> 8
}

// root replaces the key by the name of the trace.
func root(key string, s Segment) (string, Segment) {
	name, _, _ := strings.Cut(key, "\x00")
	return name, s
}

// together assigns the same key to all results.
func together(r Result) (int, Result) { return 0, r }
