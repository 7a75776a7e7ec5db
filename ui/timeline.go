package ui

import (
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/ui/state"
)

// timelineState is the timeline of the view and the hierarchy for which it was computed.
type timelineState struct {
	of     *state.View
	levels []attribution.Attribution
	drawn  *state.Timeline // the timeline without the chosen range; nil: no timeline
	part   *state.View     // the view of the chosen range; nil: no range
	whole  *state.View
	chosen state.Range
	asked  string // the hierarchy, as text
}

// timeline returns the timeline above the views, without the chosen range. The result is nil, for
// example, while references are counted, if two results are compared, or if the profile has no
// timeline.
func (a *App) timeline() *state.Timeline {
	r, made := a.result, &a.line
	if r == nil || r.View == nil || r.Live || a.comparing() || r.Profile.Timeline == nil || r.Profile.Sites == nil {
		return nil
	}
	h := a.Machine()
	asked := ""
	for _, line := range h.Lines() {
		asked += line + "\n"
	}
	if made.of != r.View || made.asked != asked {
		*made = timelineState{of: r.View, asked: asked, part: made.part, whole: made.whole, chosen: made.chosen}
		if rank := r.View.Run.Ranker(); rank != nil {
			made.levels, _, _ = rank.Attribute(h) // the Caches view explains why there is no answer
			made.drawn = r.View.Timeline(made.levels, h.Memory.LatencyCycles)
		}
	}
	return made.drawn
}

// ranged reports whether a range of the run is chosen.
func (a *App) ranged() bool { return a.timeline() != nil && a.Screen.Range != (state.Range{}) }

// inRange returns the view of the chosen range of the run, or of the whole run.
func (a *App) inRange() *state.View {
	v, made := a.result.View, &a.line
	if !a.ranged() {
		return v
	}
	if made.whole != v || made.chosen != a.Screen.Range {
		made.whole, made.chosen, made.part = v, a.Screen.Range, v.Within(a.Screen.Range)
	}
	if made.part == nil {
		return v
	}
	return made.part
}

// SetRange chooses the windows [from, to) of the timeline; both 0 mean the whole run. If the
// parameter "phase" is set, the user chose a phase, and the page shows the source lines of this
// phase.
func (a *App) SetRange(from, to int, phase bool) {
	t := a.timeline()
	if t == nil {
		return
	}
	s := a.Screen
	s.Range = a.result.View.RangeOf(from, to)
	if phase && !s.Tab.Ranged() {
		s = s.With(state.TabCode)
	}
	// Pass the timeline to timeline.js again, because timeline.js sends its next range only then.
	delete(a.handed, "timeline")
	a.adjust("range", s)
	a.Port.Announce(t.Choose(a.result.View, s.Range).Sentence)
}

// BrushRange is SetRange for timeline.js, which calls it from a separate goroutine.
func (a *App) BrushRange(from, to int, phase bool) {
	a.update(func() { a.SetRange(from, to, phase) })
}
