package pass

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
)

// node is the key of the leaf's parent: neighbours have the same.
func (o *Options) node(s *Segment) string { return nodeKey(s.Trace, s.Number/o.FanIn) }

// nodeKey is the key of a node of a trace's tree, within its level.
func nodeKey(name string, number int) string { return name + "\x00" + strconv.Itoa(number) }

// join joins the segments of a node, in their order.
type join struct {
	Options Options
	Span    int // stretches that a node of the parents' level covers
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

// joinAll joins neighbours that come in any order.
func joinAll(ctx context.Context, o *Options, list []Segment) (Segment, error) {
	slices.SortFunc(list, func(a, b Segment) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	for i := range list {
		if list[i].Alone != "" {
			return list[i], nil
		}
	}
	first := list[0]
	for i := range list[1:] {
		a, b := &list[i], &list[i+1]
		if a.Identity != b.Identity {
			return Segment{}, fmt.Errorf("%s: segments of two traces, or of two ways to analyse it, are mixed; was the file written to while the job ran?", first.Trace)
		}
		if a.End != b.Start {
			return Segment{}, fmt.Errorf("%s: the segment that ends before reference %d is followed by one from %d on: its index disagrees with its chunks, or a segment is missing",
				first.Trace, a.End, b.Start)
		}
	}
	if len(list) == 1 {
		return first, nil
	}
	spec, err := o.spec()
	if err != nil {
		return Segment{}, err
	}
	begun := time.Now()
	var profiles []*profile.Profile
	for i := range list {
		p, err := list[i].profile()
		if err != nil {
			return Segment{}, err
		}
		list[i].Profile = nil
		profiles = append(profiles, p)
	}
	decoded := time.Now()
	unpacking.Update(ctx, decoded.Sub(begun).Milliseconds())
	whole, err := analysis.JoinSegments(spec, profiles...)
	if err != nil {
		return Segment{}, fmt.Errorf("%s: %w", first.Trace, err)
	}
	joins.Inc(ctx, int64(len(list)-1))
	joining.Update(ctx, time.Since(decoded).Milliseconds())
	s, err := segmentOf(ctx, first.Trace, first.Identity, first.Number, whole)
	sentNodes.Update(ctx, int64(len(s.Profile)))
	return s, err
}
