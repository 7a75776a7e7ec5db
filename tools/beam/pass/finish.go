package pass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// assemble computes the profile of a trace, without the results of the runs in order. It analyses the
// references before the first stretch, and appends the segments one after the other.
type assemble struct{ Options Options }

func (f *assemble) ProcessElement(ctx context.Context, name string, parts func(*Segment) bool) (string, Segment, error) {
	whole := Segment{Trace: name}
	t, err := openTrace(ctx, name, &f.Options)
	if err != nil {
		return name, whole, err
	}
	whole.Identity = t.identity
	var list []Segment
	for one := (Segment{}); parts(&one); one = (Segment{}) {
		if one.Identity != t.identity {
			return name, whole, mixed(name)
		}
		if !one.represents() {
			list = append(list, one)
		}
	}
	alone, err := sorted(list)
	if err != nil {
		return name, whole, err
	}
	plan := t.plan
	if alone != nil {
		whole.Alone = alone.Alone
	} else {
		err = f.append(ctx, t, plan, list, &whole)
		if errors.Is(err, branches.ErrManyPaths) && len(plan.Stretches) > 0 {
			whole.Alone, err = err.Error(), nil
		}
	}
	if whole.Alone != "" {
		log.Warnf(ctx, "%s: one worker analyses the whole trace: %s", name, whole.Alone)
		if plan, err = t.undivided(&f.Options); err == nil {
			err = f.append(ctx, t, plan, nil, &whole)
		}
	}
	if err != nil {
		return name, whole, err
	}
	whole, err = f.Options.spill(ctx, whole)
	return name, whole, err
}

// append stores the profile of a trace in the parameter whole.
func (f *assemble) append(ctx context.Context, t *opened, plan *analysis.Plan, list []Segment, whole *Segment) error {
	name := whole.Trace
	begun := time.Now()
	w := begin(name + ", up to the first stretch")
	if len(plan.Stretches) == 0 {
		w = begin(name + ", all references")
	}
	var r trace.Mover
	closer, err := func() {}, error(nil)
	if len(plan.Stretches) > 0 {
		r = t.source.Open(0, trace.AllKinds)
	} else {
		r, closer, err = t.whole(ctx, name, &f.Options)
	}
	if err != nil {
		return err
	}
	defer closer()
	d := decoding{ctx: ctx, list: list}
	p, divided, err := plan.Finish(r, t.source, d.profiles, w.goesOn(ctx))
	if d.err != nil {
		return d.err
	}
	if p == nil || len(plan.Stretches) > 0 && err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	if len(plan.Stretches) > 0 { // otherwise, the original file was read
		p.Totals.Unselected += t.left
	}
	w.end(0)
	unpacking.Update(ctx, d.time.Milliseconds())
	finishing.Update(ctx, (time.Since(begun) - d.time).Milliseconds())
	if !divided {
		references.Inc(ctx, int64(p.Totals.AllReferences()))
	}
	whole.Divided, whole.Profile = divided, pack(p.Encode())
	return nil
}

// mixed returns an error about results that do not belong to the trace.
func mixed(name string) error {
	return fmt.Errorf("%s: its segments belong to another trace, or the file was changed during the job; run the job again", name)
}

// finish adds the results of the runs in order to the profile of a trace, and writes the profile.
type finish struct{ Options Options }

func (f *finish) ProcessElement(ctx context.Context, name string, parts func(*Segment) bool) (Result, error) {
	t, err := openTrace(ctx, name, &f.Options)
	if err != nil {
		return Result{}, err
	}
	var p *profile.Profile
	var whole Segment
	inOrder := make([]*profile.Profile, t.plan.InOrderRuns())
	for one := (Segment{}); parts(&one); one = (Segment{}) {
		if one.Identity != t.identity {
			return Result{}, mixed(name)
		}
		to := &p
		if !one.InOrder {
			whole = one
		} else if one.Number < 0 || one.Number >= len(inOrder) {
			return Result{}, fmt.Errorf("%s: the number of the analyses in order has changed during the job; run the job again", name)
		} else {
			to = &inOrder[one.Number]
		}
		content, err := one.content(ctx)
		if err != nil {
			return Result{}, err
		}
		if *to, err = arrived(name, content); err != nil {
			return Result{}, err
		}
	}
	if p == nil {
		return Result{}, fmt.Errorf("%s: the joined segments did not arrive; run the job again", name)
	}
	if whole.Alone == "" {
		if err := t.plan.AddOrdered(p, inOrder); err != nil {
			return Result{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	result := Result{Trace: name, Input: t.format, Profile: f.Options.profileOf(name), Divided: whole.Divided, Sampled: p.Sampled != nil, Facts: factsOf(p)}
	if p.State.Partial {
		result.Reason = p.State.Reason
		result.Profile = strings.TrimSuffix(result.Profile, ".sgp") + ".partial.sgp"
	}
	return result, files.Write(ctx, result.Profile, unique(), func(w io.Writer) error { return p.EncodeTo(w) })
}

// undivided returns the plan for one worker.
func (t *opened) undivided(o *Options) (*analysis.Plan, error) {
	spec, err := o.spec()
	if err != nil {
		return nil, err
	}
	return analysis.NewPlan(spec, nil, 0)
}

// profileOf returns the path of a trace's profile.
func (o *Options) profileOf(name string) string {
	return files.Join(o.Output, stem(name)+".sgp")
}

// factsOf returns the numbers that a report compares.
func factsOf(p *profile.Profile) []Fact {
	facts := []Fact{{Name: "references", Value: float64(p.Totals.AllReferences())}}
	if len(p.Locality) == 0 {
		return facts
	}
	l := &p.Locality[0]
	c := profile.NewCurve(l.Histogram(trace.AllKinds))
	facts = append(facts, Fact{Name: "lines", Value: float64(l.Lines())})
	if c.Accesses == 0 {
		return facts
	}
	for _, size := range reported {
		facts = append(facts, Fact{"miss ratio in " + size.name, float64(c.Misses(size.bytes/uint64(l.LineBytes))) / float64(c.Accesses), true})
	}
	return facts
}

// reported lists the fully associative LRU caches in the report. They are as large as a first
// level, a larger private level, a core's share of a last level, and a socket's last level.
var reported = []struct {
	name  string
	bytes uint64
}{{"32 KiB", 32 << 10}, {"256 KiB", 256 << 10}, {"2 MiB", 2 << 20}, {"32 MiB", 32 << 20}}
