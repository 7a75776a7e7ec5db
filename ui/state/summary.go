package state

import (
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Summary is the content of a result's header.
type Summary struct {
	Facts  []Fact   // numbers with their units, such as "22 494 lines"
	Chips  []string // labels: how the result was computed, and from which part of the run
	Digest string   // the first eight digits of the profile's digest; "" while the result is growing
	Whole  string   // the whole digest
}

// NewSummary describes a view. The parameter "digest" is hexadecimal, or "" while the profile is
// still growing.
func NewSummary(v *View, digest string, live bool) Summary {
	t := &v.Profile.Totals
	s := Summary{Whole: digest}
	if len(digest) >= 8 {
		s.Digest = digest[:4] + " " + digest[4:8]
	}
	add := func(id, value, name string) { s.Facts = append(s.Facts, Fact{ID: id, Name: name, Value: value}) }
	add("references", SI(t.AllReferences()), "references")
	add("lines", Exact(v.Lines), "lines, "+Bytes(v.FootprintBytes()))
	if n := len(t.Threads); n > 1 {
		add("threads", strconv.Itoa(n), "threads")
	}
	add("line", strconv.FormatUint(v.LineBytes, 10)+"-byte", "lines")
	if v.Curve.Accesses > 0 {
		s.Chips = append(s.Chips, v.How())
	}
	s.Chips = append(s.Chips, completeness(v.Profile.State, live))
	return s
}

// Exactly is the word for numbers that are not estimates.
const Exactly = "exact"

// The method How describes in one word how the numbers of a view were computed.
func (v *View) How() string {
	if s := v.Profile.Sampled; s != nil {
		return s.Chip()
	}
	if v.Profile.Predicted != nil {
		return "predicted"
	}
	return Exactly
}

func completeness(state profile.State, live bool) string {
	switch {
	case live:
		return "growing"
	case state.Partial:
		return "partial"
	}
	return "complete"
}

// KindsTable lists the references by kind.
func (v *View) KindsTable() *Table {
	return v.cachedTable("kinds", func() *Table {
		d := &report.Document{Schema: "stackglass.summary", Version: 1, Input: v.Run.Facts(uint32(v.LineBytes)),
			Tables: answers.Summary(v.Profile), Warnings: v.Run.Warnings}
		kinds := answers.Kinds(v.Profile)
		return show(&kinds, answerWords, nil).setDocument(func() *report.Document { return d })
	})
}
