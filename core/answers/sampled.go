package answers

import (
	"math"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Sample returns facts about the sample on which a profile is based, for the first line size.
// Sample returns nil for an exact profile.
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
			add("sample_rate", "final sampling rate", report.Ratio(profile.RateOf(s.Sizes[0].Threshold)))
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
		add("censored_samples", "samples without a reuse", report.Count(size.Censored))
	}
	if l := p.LocalityAt(size.LineBytes); l != nil {
		add("analysed_share", "accesses analysed", report.Share(size.Analysed, l.Accesses()))
	}
	return facts
}

// FromSample replaces "exact" in a table's title if the profile is sampled.
func FromSample(t *report.Table, p *profile.Profile) {
	if p.Sampled != nil && (p.Sampled.Estimates() || p.Sampled.Mode == profile.OnOffSample) {
		t.Title = strings.Replace(t.Title, "exact", p.Sampled.Chip(), 1)
	}
}

// Bound calls [FromSample], and adds confidence intervals for the misses. Row i of the table must
// describe a cache of capacities[i] lines.
func Bound(t *report.Table, p *profile.Profile, lineBytes uint32, capacities []uint64) {
	FromSample(t, p)
	after := t.Index("misses") + 1
	if _, ok := p.MissBounds(lineBytes, 1); !ok {
		return
	}
	t.Columns = slices.Insert(slices.Clone(t.Columns), after, report.Columns("misses_low=at least", "misses_high=at most")...)
	for i, row := range t.Rows {
		b, _ := p.MissBounds(lineBytes, capacities[i])
		t.Rows[i] = slices.Insert(slices.Clone(row), after, report.Count(b.Low), report.Count(b.High))
	}
}

// IsOfSample reports whether the results for sites, threads and communication are based on a sample
// of lines or accesses.
func IsOfSample(p *profile.Profile) bool { return p.Sampled.Chosen() }

// Warnings about answers from a sample.
const (
	half                  = "; ± is half the width of the 95 % confidence interval"
	SitesOfSample         = "references and strides are counted over all accesses; misses by source location and by data are estimated" + half
	ThreadsOfSample       = "the misses of cores are estimated" + half + "; changes of stack distances due to sharing are not counted"
	CommunicationOfSample = "communication is estimated from the sampled lines" + half + ", but data in few lines, such as a counter, may be missed or overestimated; pages are not counted"
)

// RestsOnSample returns the given sentence as a warning if the profile comes from a sample, and
// otherwise nil.
func RestsOnSample(p *profile.Profile, sentence string) []string {
	if !IsOfSample(p) || !p.Sampled.Estimates() {
		return nil
	}
	return []string{p.Sampled.Chip() + ": " + sentence}
}

// offColumns collects the half-widths of confidence intervals: additional columns with one value
// for each row of a table.
type offColumns struct {
	keys   []string // the keys of the columns to which the half-widths belong
	values map[string][]report.Value
}

// addValue appends the half-width for the next row of a column.
func (o *offColumns) addValue(key string, v report.Value) {
	if o.values == nil {
		o.values = map[string][]report.Value{}
	}
	if _, met := o.values[key]; !met {
		o.keys = append(o.keys, key)
	}
	o.values[key] = append(o.values[key], v)
}

// addFlow adds the half-widths of a flow, if they are known.
func (o *offColumns) addFlow(f *profile.FlowOff, granuleBytes uint32) {
	if f == nil {
		return
	}
	o.addValue("events", report.Count(f.Events))
	o.addValue("transfers", report.Count(f.Transfers))
	o.addValue("bytes", report.Bytes(f.Transfers*uint64(granuleBytes)))
}

// insertInto inserts each column of half-widths after the column to which it belongs. The last rows
// of the table may have no half-widths.
func (o *offColumns) insertInto(t *report.Table) {
	for _, key := range o.keys {
		at := t.Index(key) + 1
		t.Columns = slices.Insert(slices.Clone(t.Columns), at, report.Column{Key: key + "_off", Label: "±"})
		for i, row := range t.Rows {
			v := report.None()
			if i < len(o.values[key]) {
				v = o.values[key][i]
			}
			t.Rows[i] = slices.Insert(slices.Clone(row), at, v)
		}
	}
}

// missesOff returns the half-width of the confidence interval for a cache's misses. The parameter
// bounds contains the intervals for fully associative caches, and full is the number of misses in a
// fully associative cache of the same size.
func missesOff(bounds []profile.Bound, lines, full uint64, misses float64) float64 {
	if len(bounds) == 0 {
		return 0
	}
	b := profile.BoundAt(bounds, lines)
	scale := 1.0
	if full > 0 {
		scale = misses / float64(full)
	}
	return max(0, float64(b.High)*scale-misses, misses-float64(b.Low)*scale)
}

// wholeOff rounds the half-width of a confidence interval up to a whole number.
func wholeOff(x float64) report.Value { return report.Count(uint64(math.Ceil(x))) }
