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

// joinAll joins neighbours, which may arrive in any order, and encodes the result.
func joinAll(ctx context.Context, o *Options, list []Segment) (Segment, error) {
	first, whole, err := joinTo(ctx, o, list)
	if err != nil || whole == nil {
		return first, err
	}
	s := segmentOf(ctx, first.Trace, first.Identity, first.Number, whole)
	sentNodes.Update(ctx, int64(len(s.Profile)))
	return o.spill(ctx, s)
}

// joinTo joins neighbours, which may arrive in any order. If there is only one segment, or if one of
// them cannot be joined, it returns this segment, and no profile.
func joinTo(ctx context.Context, o *Options, list []Segment) (first Segment, whole *profile.Profile, err error) {
	for i := range list {
		if list[i].Alone != "" {
			return list[i], nil, nil
		}
	}
	slices.SortFunc(list, func(a, b Segment) int { return cmp.Compare(a.Start, b.Start) })
	first = list[0]
	for i := range list[1:] {
		a, b := &list[i], &list[i+1]
		if a.Identity != b.Identity {
			return first, nil, fmt.Errorf("%s: segments of two traces, or of two analyses, are mixed; if the file was changed during the job, run the job again", first.Trace)
		}
		if a.End != b.Start {
			return first, nil, fmt.Errorf("%s: a segment ends before reference %d, but the next one begins at %d; the index does not match the chunks, or a segment is missing",
				first.Trace, a.End, b.Start)
		}
	}
	if len(list) == 1 {
		return first, nil, nil
	}
	spec, err := o.spec()
	if err != nil {
		return first, nil, err
	}
	begun, decoding, unreadable := time.Now(), time.Duration(0), error(nil)
	whole, err = analysis.JoinSequence(spec, func(yield func(*profile.Profile, error) bool) {
		for i := range list { // only one decoded segment at a time is in memory
			from := time.Now()
			var p *profile.Profile
			p, unreadable = list[i].profile(ctx)
			list[i].Profile = nil
			decoding += time.Since(from)
			if !yield(p, unreadable) {
				return
			}
		}
	})
	if errors.Is(err, branches.ErrManyPaths) {
		return Segment{Trace: first.Trace, Identity: first.Identity, Number: first.Number, Alone: err.Error()}, nil, nil
	}
	if unreadable != nil {
		return first, nil, unreadable // names the trace
	}
	if err != nil {
		return first, nil, fmt.Errorf("%s: %w", first.Trace, err)
	}
	joins.Inc(ctx, int64(len(list)-1))
	unpacking.Update(ctx, decoding.Milliseconds())
	joining.Update(ctx, (time.Since(begun) - decoding).Milliseconds())
	return first, whole, nil
}
