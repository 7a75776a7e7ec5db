package pass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/profile"
)

// node returns the key of the segment's parent. Neighbours have the same parent.
func (o *Options) node(s *Segment) string { return nodeKey(s.Trace, s.Number/o.FanIn) }

// nodeKey returns the key of a node of a trace's tree, within its level.
func nodeKey(name string, number int) string { return name + "\x00" + strconv.Itoa(number) }

// join joins the segments of a node in ascending order.
type join struct {
	Options Options
	Span    int // number of stretches that a node of the parents' level covers
}

func (f *join) ProcessElement(ctx context.Context, key string, parts func(*Segment) bool) (string, Segment, error) {
	var list []Segment
	for one := (Segment{}); parts(&one); one = (Segment{}) {
		list = append(list, one)
	}
	joined, err := joinAll(ctx, &f.Options, list)
	if err != nil {
		return "", Segment{}, err
	}
	name, _, _ := strings.Cut(key, "\x00")
	return nodeKey(name, joined.Number/f.Span), joined, nil
}

// joinAll joins neighbours, which may arrive in any order, and encodes the result. If there is only
// one segment, or if one of them cannot be joined, joinAll returns this segment.
func joinAll(ctx context.Context, o *Options, list []Segment) (Segment, error) {
	alone, err := sorted(list)
	switch {
	case err != nil:
		return Segment{}, err
	case alone != nil:
		return *alone, nil
	}
	first := list[0]
	if len(list) == 1 {
		return first, nil
	}
	spec, err := o.spec()
	if err != nil {
		return first, err
	}
	d := decoding{ctx: ctx, list: list}
	begun := time.Now()
	whole, err := analysis.JoinSequence(spec, d.profiles)
	if errors.Is(err, branches.ErrManyPaths) {
		return Segment{Trace: first.Trace, Identity: first.Identity, Number: first.Number, Alone: err.Error()}, nil
	}
	if err != nil {
		return first, d.explained(err)
	}
	joins.Inc(ctx, int64(len(list)-1))
	unpacking.Update(ctx, d.time.Milliseconds())
	joining.Update(ctx, (time.Since(begun) - d.time).Milliseconds())
	s := segmentOf(ctx, first.Trace, first.Identity, first.Number, whole)
	sentNodes.Update(ctx, int64(len(s.Profile)))
	return o.spill(ctx, s)
}

// sorted sorts neighbours, which may arrive in any order, and checks that none is missing. If one of
// them cannot be joined, sorted returns this segment.
func sorted(list []Segment) (alone *Segment, err error) {
	for i := range list {
		if list[i].Alone != "" {
			return &list[i], nil
		}
	}
	slices.SortFunc(list, func(a, b Segment) int { return cmp.Compare(a.Start, b.Start) })
	for i := range len(list) - 1 {
		a, b := &list[i], &list[i+1]
		if a.Identity != b.Identity {
			return nil, fmt.Errorf("%s: segments of two traces, or of two analyses, are mixed; if the file was changed during the job, run the job again", a.Trace)
		}
		if a.End != b.Start {
			return nil, fmt.Errorf("%s: a segment ends before reference %d, but the next one begins at %d; the index does not match the chunks, or a segment is missing",
				a.Trace, a.End, b.Start)
		}
	}
	return nil, nil
}

// decoding decodes segments, one after the other, so that only one decoded segment is in memory.
type decoding struct {
	ctx  context.Context
	list []Segment
	time time.Duration
	err  error // names the trace
}

func (d *decoding) profiles(yield func(*profile.Profile, error) bool) {
	for i := range d.list {
		begun := time.Now()
		var p *profile.Profile
		p, d.err = d.list[i].profile(d.ctx)
		d.list[i].Profile = nil
		d.time += time.Since(begun)
		if !yield(p, d.err) {
			return
		}
	}
}

// explained adds the name of the trace to an error of a join.
func (d *decoding) explained(err error) error {
	if d.err != nil {
		return d.err
	}
	return fmt.Errorf("%s: %w", d.list[0].Trace, err)
}
