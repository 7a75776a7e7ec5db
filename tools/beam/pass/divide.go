package pass

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// divide emits the stretches of traces, and the runs over the whole trace for the analyses that have no
// segments. If the memory blocks at their beginnings matter, it emits
// them as tasks for follow, together with the references before the first stretch.
type divide struct{ Options Options }

func (f *divide) ProcessElement(ctx context.Context, name string, ready, toFollow, ordered func(Task), whole func(string, Segment)) error {
	t, err := openTrace(ctx, name, &f.Options)
	if err != nil {
		return err
	}
	whole(name, Segment{Trace: name, Identity: t.identity})
	for i := range t.plan.InOrderRuns() {
		ordered(Task{Trace: name, Number: i})
	}
	emit := ready
	if t.plan.Moves && len(t.plan.Stretches) > 0 {
		emit = toFollow
		emit(Task{Trace: name, Number: -1})
	}
	for i := range t.plan.Stretches {
		emit(Task{Trace: name, Number: i, From: t.plan.Stretches[i].From})
	}
	stretches.Inc(ctx, int64(len(t.plan.Stretches)))
	return nil
}

// inOrder reads a whole trace in order, for some of the analyses that have no segments. The number of
// the task is the number of the run (analysis.Plan.InOrder).
type inOrder struct{ Options Options }

func (f *inOrder) ProcessElement(ctx context.Context, task Task) (string, Segment, error) {
	name, s := task.Trace, Segment{Trace: task.Trace, Number: task.Number, InOrder: true}
	t, err := openTrace(ctx, name, &f.Options)
	if err != nil {
		return name, s, err
	}
	runs := t.plan.InOrderRuns()
	if task.Number < 0 || task.Number >= runs {
		return name, s, fmt.Errorf("%s: there is no run %d in order; the file was changed after the job began, so run the job again", name, task.Number)
	}
	s.Identity = t.identity
	w := begin(fmt.Sprintf("%s, all references in order, run %d of %d", name, task.Number+1, runs))
	stored := ""
	if f.Options.Workspace != "" {
		stored = files.Join(f.Options.Workspace, fmt.Sprintf("%s/in-order-%d-of-%d.sgp", t.identity, task.Number+1, runs))
		if content, found, err := files.Read(ctx, stored); err != nil {
			return name, s, err
		} else if found {
			if _, err := arrived(name, content); err == nil {
				s.Profile = content
				w.end(t.plan.References)
				kept.Inc(ctx, 1)
				s, err = f.Options.spill(ctx, s)
				return name, s, err
			}
		}
	}
	begun := time.Now()
	r, closer, err := t.reader(ctx, name, &f.Options)
	if err != nil {
		return name, s, err
	}
	defer closer()
	p, err := t.plan.InOrder(task.Number, r, w.goesOn(ctx))
	if err != nil {
		return name, s, fmt.Errorf("%s: %w", w.name, err)
	}
	w.end(t.plan.References)
	s.Profile = pack(p.Encode())
	analysing.Update(ctx, time.Since(begun).Milliseconds())
	sentOrdered.Update(ctx, int64(len(s.Profile)))
	if stored != "" {
		err = files.Write(ctx, stored, unique(), func(w io.Writer) error {
			_, err := w.Write(s.Profile)
			return err
		})
		if err != nil {
			return name, s, err
		}
	}
	s, err = f.Options.spill(ctx, s)
	return name, s, err
}

// arrived decodes the result of inOrder or assemble.
func arrived(name string, packed []byte) (*profile.Profile, error) {
	b, err := unpack(packed)
	if err == nil {
		var p *profile.Profile
		if p, err = profile.Decode(b); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s: a result for the whole trace arrived damaged; run the job again: %w", name, err)
}

// follow reads the allocations of stretches.
type follow struct{ Options Options }

func (f *follow) ProcessElement(ctx context.Context, task Task) (string, Moved, error) {
	t, err := openTrace(ctx, task.Trace, &f.Options)
	if err != nil {
		return "", Moved{}, err
	}
	made := Moved{Task: task}
	if task.Number+1 < len(t.plan.Stretches) { // no stretch follows the last one
		moves, err := t.plan.MovesOf(t.source, task.Number)
		if err != nil {
			return "", Moved{}, fmt.Errorf("%s: stretch %d: %w", task.Trace, task.Number, err)
		}
		if made.Moves, err = packValue(moves); err != nil {
			return "", Moved{}, err
		}
		sentMoves.Update(ctx, int64(len(made.Moves)))
	}
	return task.Trace, made, nil
}

// lay computes which memory blocks exist at the beginning of each stretch of a trace.
type lay struct{ Options Options }

func (f *lay) ProcessElement(ctx context.Context, name string, parts func(*Moved) bool, emit func(Task)) error {
	t, err := openTrace(ctx, name, &f.Options)
	if err != nil {
		return err
	}
	var list []Moved
	for one := (Moved{}); parts(&one); one = (Moved{}) {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Moved) int { return a.Number - b.Number })
	if len(list) != len(t.plan.Stretches)+1 {
		return fmt.Errorf("%s: the allocations of %d parts arrived, want %d; run the job again", name, len(list), len(t.plan.Stretches)+1)
	}
	layouts := t.plan.Layouts(t.source)
	for i := range list[1:] {
		moves, err := unpackValue[analysis.Moves](list[i].Moves)
		if err != nil {
			return fmt.Errorf("%s: the allocations of part %d arrived damaged; run the job again: %w", name, i, err)
		}
		list[i].Moves = nil
		task := list[i+1].Task
		task.Laid = true
		if task.Layout, err = layoutOf(layouts.Behind(moves)); err != nil {
			return err
		}
		sentLayouts.Update(ctx, int64(len(task.Layout)))
		emit(task)
	}
	return nil
}

// Namespace is the namespace of the metrics.
const Namespace = "stackglass"

// Metrics, as Beam's runners show them.
var (
	stretches   = beam.NewCounter(Namespace, "stretches")
	references  = beam.NewCounter(Namespace, "references")
	segments    = beam.NewCounter(Namespace, "segments")
	kept        = beam.NewCounter(Namespace, "segments read from the workspace")
	rests       = beam.NewCounter(Namespace, "stretches that another worker continued")
	joins       = beam.NewCounter(Namespace, "joins")
	sentMoves   = beam.NewDistribution(Namespace, "bytes of moves")
	sentLayouts = beam.NewDistribution(Namespace, "bytes of layouts")
	sentLeaves  = beam.NewDistribution(Namespace, "bytes of segments")
	sentOrdered = beam.NewDistribution(Namespace, "bytes of results in order")
	sentNodes   = beam.NewDistribution(Namespace, "bytes of joined segments")
	conversions = beam.NewCounter(Namespace, "converted parts")
	spilled     = beam.NewDistribution(Namespace, "bytes of segments in files")
	analysing   = beam.NewDistribution(Namespace, "milliseconds of analysing")
	joining     = beam.NewDistribution(Namespace, "milliseconds of joining")
	finishing   = beam.NewDistribution(Namespace, "milliseconds of finishing")
	packing     = beam.NewDistribution(Namespace, "milliseconds of encoding")
	unpacking   = beam.NewDistribution(Namespace, "milliseconds of decoding")
)
