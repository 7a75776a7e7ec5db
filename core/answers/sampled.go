package answers

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Sample are the facts about a sampled profile: how it was chosen, and what its
// counts rest on at the first line size. An exact profile has none.
func Sample(p *profile.Profile) (facts []report.Fact) {
	s := p.Sampled
	if s == nil {
		return nil
	}
	add := func(key, label string, v report.Value) {
		facts = append(facts, report.Fact{Key: key, Label: label, Value: v})
	}
	add("sampled", "sampled", report.TextOf(strings.TrimPrefix(s.Chip(), "sampled ")))
	switch s.Mode {
	case profile.OnOffSample:
		add("references_read", "references read", report.Count(s.Read))
		return facts
	case profile.LinesSample:
		if len(s.Sizes) > 0 {
			add("sample_rate", "rate in the end", report.Ratio(profile.RateOf(s.Sizes[0].Threshold)))
		}
	case profile.SpaceSample:
		add("sample_rate", "rate", report.Ratio(s.Rate()))
	}
	if len(s.Sizes) == 0 {
		return facts
	}
	size := &s.Sizes[0]
	add("samples", "samples", report.Count(size.Samples))
	if size.Lines > 0 {
		add("sampled_lines", "sampled lines", report.Count(size.Lines))
	}
	if s.Mode == profile.TimeSample {
		add("censored_samples", "samples not used again", report.Count(size.Censored))
	}
	if l := p.LocalityAt(size.LineBytes); l != nil {
		add("analysed_share", "accesses analysed", report.Share(size.Analysed, l.Accesses()))
	}
	return facts
}

// FromSample says of a table of exact counts that they are estimates, where they are.
func FromSample(t *report.Table, p *profile.Profile) {
	if p.Sampled != nil {
		t.Title = strings.Replace(t.Title, "exact", p.Sampled.Chip(), 1)
	}
}

// Bound is [FromSample] for a table of misses with a row for each of some capacities in
// lines, and adds their intervals.
func Bound(t *report.Table, p *profile.Profile, lineBytes uint32, capacities []uint64) {
	FromSample(t, p)
	after := t.Index("misses") + 1
	if _, ok := p.MissBounds(lineBytes, 1); !ok {
		return
	}
	t.Columns = slices.Insert(slices.Clone(t.Columns), after, report.Column{Key: "misses_low", Label: "at least"}, report.Column{Key: "misses_high", Label: "at most"})
	for i, row := range t.Rows {
		b, _ := p.MissBounds(lineBytes, capacities[i])
		t.Rows[i] = slices.Insert(slices.Clone(row), after, report.Count(b.Low), report.Count(b.High))
	}
}

// IsOfLines reports whether sites, threads and communication of a profile are those of a
// sample of lines.
func IsOfLines(p *profile.Profile) bool {
	return p.Sampled != nil && p.Sampled.Mode == profile.SpaceSample
}

// What answers rest on, and what they leave open, where they are of a sample of lines.
const (
	SitesOfLines         = "references and strides are of all accesses; how they miss, by place and by data, is that of the sampled lines, and has no interval"
	ThreadsOfLines       = "what cores miss is that of the sampled lines, and has no interval; why sharing changes distances is not told"
	CommunicationOfLines = "communication is that of the sampled lines, and has no interval: what goes through few lines, such as a counter, may be missed, or stand for many; pages are not told"
)

// RestsOnLines gives one of these sentences for a profile that it is true of.
func RestsOnLines(p *profile.Profile, sentence string) []string {
	if !IsOfLines(p) {
		return nil
	}
	return []string{p.Sampled.Chip() + ": " + sentence}
}
