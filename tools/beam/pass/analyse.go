package pass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// analyse computes the segments of stretches. A segment with very many lines ends, and another one
// begins, so that the stack's memory is bounded. The segments of a stretch are sent together. If a
// stretch takes longer than the option PatienceMS, another worker analyses the rest in the next
// round. In the last round, the time is not limited.
type analyse struct {
	Options Options
	Last    bool
}

// stepsBetweenLooks is the number of steps between two checks of the time, about 260,000 references.
const stepsBetweenLooks = 64

func (f *analyse) ProcessElement(ctx context.Context, task Task, emit func(string, Segment), left func(Task)) error {
	t, err := openTrace(ctx, task.Trace, &f.Options)
	if err != nil {
		return err
	}
	if task.Number < 0 || task.Number >= len(t.plan.Stretches) {
		return fmt.Errorf("%s: there is no stretch %d; the file was changed after the job began, so run the job again", task.Trace, task.Number)
	}
	name := f.Options.keptAs(t, &task)
	from, to := t.plan.Range(task.Number)
	w := begin(fmt.Sprintf("%s, stretch %d of %d, references %s to %s, from byte %d on",
		task.Trace, task.Number+1, len(t.plan.Stretches), decimal(from), decimal(to), task.From.Chunk))
	all, err := f.Options.taken(ctx, t, &task, name)
	if err != nil {
		return err
	}
	if all != nil && (all.Rest == nil || !f.Last) {
		kept.Inc(ctx, int64(len(all.Segments)))
	} else {
		all = &result{}
		if all.Segments, all.Rest, err = f.segments(ctx, t, &task, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if name != "" {
			if err := keep(ctx, name, all); err != nil {
				return err
			}
		}
		segments.Inc(ctx, int64(len(all.Segments)))
	}
	done := uint64(0)
	for i := range all.Segments {
		done += all.Segments[i].End - all.Segments[i].Start
	}
	w.end(done)
	for _, s := range all.Segments {
		sentLeaves.Update(ctx, int64(len(s.Profile)))
		if s, err = f.Options.spill(ctx, s); err != nil {
			return err
		}
		emit(f.Options.node(&s), s)
	}
	if all.Rest != nil {
		rests.Inc(ctx, 1)
		left(*all.Rest)
	}
	return nil
}

// result is the result of a task.
type result struct {
	Segments []Segment
	Rest     *Task // the rest of the task, or nil
}

// segments analyses a stretch, or the part for which there is time.
func (f *analyse) segments(ctx context.Context, t *opened, task *Task, w *work) (made []Segment, rest *Task, err error) {
	of := t.plan.Stretches[task.Number]
	if task.Rest {
		of = t.plan.Rest(of, task.From)
	}
	spec, err := f.Options.spec()
	if err != nil {
		return nil, nil, err
	}
	s := analysis.NewStretcher(spec, t.source)
	if task.Laid {
		layout, err := unpackValue[[]sites.Block](task.Layout)
		if err != nil {
			return nil, nil, fmt.Errorf("the list of memory blocks arrived damaged; run the job again: %w", err)
		}
		s.BeginLaid(of, layout)
	} else {
		s.Begin(of)
	}
	begun := time.Now()
	for {
		from := time.Now()
		whole, late, err := f.step(ctx, s, begun, w)
		if errors.Is(err, branches.ErrTorn) || errors.Is(err, branches.ErrManyPaths) {
			return []Segment{{Trace: task.Trace, Identity: t.identity, Number: task.Number, Alone: err.Error()}}, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		part := s.Segment(whole)
		if part.Profile == nil {
			return nil, nil, errors.New("it could not be analysed as a segment")
		}
		analysing.Update(ctx, time.Since(from).Milliseconds())
		made = append(made, segmentOf(ctx, task.Trace, t.identity, task.Number, part.Profile))
		if whole {
			return made, nil, nil
		}
		of = t.plan.Rest(of, part.To)
		if late {
			rest = &Task{Trace: task.Trace, Number: task.Number, From: of.From, Rest: true, Laid: task.Laid}
			if task.Laid {
				rest.Layout, err = layoutOf(s.Layout())
			}
			return made, rest, err
		}
		s.Begin(of)
	}
}

// step analyses until the stretch ends, its segment is large, or it takes too long.
func (f *analyse) step(ctx context.Context, s *analysis.Stretcher, begun time.Time, w *work) (whole, late bool, err error) {
	counted := uint64(0)
	for step := 1; ; step++ {
		if err := s.Step(); err == io.EOF {
			n, _ := s.Progress()
			references.Inc(ctx, int64(n-counted))
			w.add(n - counted)
			return true, false, nil
		} else if err != nil {
			return false, false, err
		}
		if step%stepsBetweenLooks != 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, false, err
		}
		n, lines := s.Progress()
		references.Inc(ctx, int64(n-counted))
		w.add(n - counted)
		counted = n
		late = !f.Last && f.Options.PatienceMS > 0 && time.Since(begun) > time.Duration(f.Options.PatienceMS)*time.Millisecond
		if n > 0 && (late || lines >= f.Options.MostLines) {
			return false, late, nil
		}
	}
}

// segmentOf compresses a segment.
func segmentOf(ctx context.Context, name, identity string, number int, p *profile.Profile) Segment {
	begun := time.Now()
	packed := pack(p.Encode())
	packing.Update(ctx, time.Since(begun).Milliseconds())
	return Segment{
		Trace: name, Identity: identity, Number: number,
		Start: p.Segment.Start, End: p.Segment.Start + p.Totals.AllReferences(), Profile: packed,
	}
}

// keptAs returns the name of a task's result in the workspace, or "". The rest of a stretch is not
// stored, because it begins where the time had elapsed, which differs between jobs.
func (o *Options) keptAs(t *opened, task *Task) string {
	if o.Workspace == "" || task.Rest {
		return ""
	}
	return files.Join(o.Workspace, t.identity+"/"+strconv.Itoa(task.Number)+".segments")
}

// taken returns the result that an earlier job stored for a task, or nil. A damaged result is
// ignored.
func (o *Options) taken(ctx context.Context, t *opened, task *Task, name string) (*result, error) {
	if name == "" {
		return nil, nil
	}
	content, found, err := files.Read(ctx, name)
	if err != nil || !found {
		return nil, err
	}
	all, err := decode[result](content)
	if err != nil || len(all.Segments) == 0 {
		return nil, nil
	}
	for i := range all.Segments {
		s := &all.Segments[i]
		if s.Identity != t.identity || s.Number != task.Number || i > 0 && s.Start != all.Segments[i-1].End {
			return nil, nil
		}
		s.Trace = task.Trace
		if s.Alone != "" {
			continue
		}
		if p, err := s.profile(ctx); err != nil || p.Segment.Start != s.Start || s.Start+p.Totals.AllReferences() != s.End {
			return nil, nil
		}
	}
	if all.Rest != nil {
		all.Rest.Trace = task.Trace
	}
	return &all, nil
}

// keep stores the result of a task in the workspace.
func keep(ctx context.Context, name string, all *result) error {
	content, err := encode(*all)
	if err != nil {
		return err
	}
	return files.Write(ctx, name, unique(), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// unique returns a part of the names of incomplete files. It is unique, because two workers may do
// the same work if the runner believes that one of them is lost.
func unique() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}
