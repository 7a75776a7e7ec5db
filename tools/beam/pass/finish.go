package pass

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// finish writes the profile of a trace. It appends the joined stretches to the references before the
// first stretch.
type finish struct{ Options Options }

func (f *finish) ProcessElement(ctx context.Context, name string, parts func(*Segment) bool) (Result, error) {
	t, err := openTrace(ctx, name, &f.Options)
	if err != nil {
		return Result{}, err
	}
	var list []Segment
	inOrder := make([]*profile.Profile, t.plan.InOrderRuns())
	for one := (Segment{}); parts(&one); one = (Segment{}) {
		if one.Identity != t.identity {
			return Result{}, fmt.Errorf("%s: its segments belong to another trace, or the file was changed during the job; run the job again", name)
		}
		switch {
		case one.InOrder:
			if one.Number < 0 || one.Number >= len(inOrder) {
				return Result{}, fmt.Errorf("%s: the number of the analyses in order has changed during the job; run the job again", name)
			}
			content, err := one.content(ctx)
			if err != nil {
				return Result{}, err
			}
			if inOrder[one.Number], err = ordered(name, content); err != nil {
				return Result{}, err
			}
		case !one.represents():
			list = append(list, one)
		}
	}
	var rest *profile.Profile
	plan := t.plan
	if len(list) > 0 {
		root, whole, err := joinTo(ctx, &f.Options, list)
		switch {
		case err == nil && root.Alone != "":
			log.Warnf(ctx, "%s: one worker analyses the whole trace: %s", name, root.Alone)
			plan, err = t.undivided(&f.Options)
		case err == nil && whole == nil:
			whole, err = root.profile(ctx)
		}
		if err != nil {
			return Result{}, err
		}
		rest = whole
	}
	begun := time.Now()
	w := begin(name + ", up to the first stretch")
	if len(plan.Stretches) == 0 {
		w = begin(name + ", all references")
	}
	var r trace.Mover
	closer := func() {}
	if len(plan.Stretches) > 0 {
		r = t.source.Open(0, trace.AllKinds)
	} else {
		r, closer, err = t.whole(ctx, name, &f.Options)
	}
	if err != nil {
		return Result{}, err
	}
	defer closer()
	p, divided, err := plan.Finish(r, t.source, rest, inOrder, w.goesOn(ctx))
	if p == nil || len(plan.Stretches) > 0 && err != nil {
		return Result{}, fmt.Errorf("%s: %w", w.name, err)
	}
	if len(plan.Stretches) > 0 { // otherwise, the original file was read
		p.Totals.Unselected += t.left
	}
	w.end(0)
	finishing.Update(ctx, time.Since(begun).Milliseconds())
	if !divided {
		references.Inc(ctx, int64(p.Totals.AllReferences()))
	}
	result := Result{Trace: name, Input: t.format, Profile: f.Options.profileOf(name), Divided: divided, Sampled: p.Sampled != nil, Facts: factsOf(p)}
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
