package pass

import (
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// tell writes the report about all traces of a job.
type tell struct{ Options Options }

func (f *tell) ProcessElement(ctx context.Context, _ int, results func(*Result) bool) error {
	var list []Result
	for one := (Result{}); results(&one); one = (Result{}) {
		list = append(list, one)
	}
	d := Report(list)
	for _, form := range []struct {
		format report.Format
		ending string
	}{{report.Text, "txt"}, {report.JSON, "json"}} {
		err := files.Write(ctx, files.Join(f.Options.Output, "report."+form.ending), unique(), func(w io.Writer) error {
			return d.Write(w, form.format)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Report returns the numbers of each trace, the quantiles of each number over all traces, and the
// traces whose numbers differ from the others.
func Report(list []Result) *report.Document {
	slices.SortFunc(list, func(a, b Result) int { return compareNames(a.Trace, b.Trace) })
	d := &report.Document{Schema: "stackglass.beam", Version: 1, Input: []report.Fact{
		{Key: "traces", Label: "traces", Value: report.Count(uint64(len(list)))},
	}}
	var names []string
	values := map[string][]float64{}
	ratio := map[string]bool{}
	exactly := "exact"
	if slices.ContainsFunc(list, func(r Result) bool { return r.Sampled }) {
		exactly = "estimated from a sample"
	}
	traces := report.Table{Key: "traces", Title: "Traces (miss ratios: fully associative LRU, " + exactly + ")", Columns: []report.Column{
		{Key: "trace", Label: "trace"}, {Key: "input", Label: "input"}, {Key: "profile", Label: "profile"}, {Key: "divided", Label: "divided"},
	}}
	for _, r := range list {
		for _, f := range r.Facts {
			if _, known := values[f.Name]; !known {
				names = append(names, f.Name)
				ratio[f.Name] = f.Ratio
				traces.Columns = append(traces.Columns, report.Column{Key: keyOf(f.Name), Label: f.Name})
			}
			values[f.Name] = append(values[f.Name], f.Value)
		}
		if r.Reason != "" {
			d.Warnings = append(d.Warnings, r.Trace+": "+r.Reason+"; its profile covers only a part, and is stored as a partial profile")
		}
	}
	for _, r := range list {
		row := []report.Value{report.TextOf(r.Trace), report.TextOf(r.Input), report.TextOf(r.Profile), report.YesNo(r.Divided)}
		for _, name := range names {
			row = append(row, r.value(name))
		}
		traces.Add(row...)
	}
	d.Tables = []report.Table{traces}
	if len(list) > 1 {
		d.Tables = append(d.Tables, quantiles(names, values, ratio), outliers(list, names, values, ratio))
	}
	return d
}

func keyOf(name string) string { return strings.ReplaceAll(name, " ", "_") }

func (r *Result) value(name string) report.Value {
	for _, f := range r.Facts {
		if f.Name == name {
			return valueOf(f.Value, f.Ratio)
		}
	}
	return report.None()
}

func valueOf(x float64, ratio bool) report.Value {
	if ratio {
		return report.Ratio(x)
	}
	return report.Count(uint64(x))
}

var shares = []struct {
	key, label string
	at         float64
}{{"least", "least", 0}, {"p10", "10 %", 0.1}, {"p25", "25 %", 0.25}, {"median", "median", 0.5}, {"p75", "75 %", 0.75}, {"p90", "90 %", 0.9}, {"most", "most", 1}}

func quantiles(names []string, values map[string][]float64, ratio map[string]bool) report.Table {
	t := report.Table{Key: "quantiles", Title: "Over all traces", Columns: []report.Column{{Key: "number", Label: "number"}}}
	for _, s := range shares {
		t.Columns = append(t.Columns, report.Column{Key: s.key, Label: s.label})
	}
	for _, name := range names {
		row := []report.Value{report.TextOf(name)}
		for _, s := range shares {
			row = append(row, valueOf(quantile(values[name], s.at), ratio[name]))
		}
		t.Add(row...)
	}
	return t
}

// quantile returns the smallest of the values that at least the given share of the values do not
// exceed.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// An outlier lies beyond a quartile by more than 1.5 times the interquartile range (Tukey, Exploratory
// Data Analysis, 1977), and differs from the median by more than 1 %, because ranks that do the same
// work differ by a few references.
const (
	fence    = 1.5
	leastOff = 0.01
)

func outliers(list []Result, names []string, values map[string][]float64, ratio map[string]bool) report.Table {
	t := report.Table{Key: "outliers", Title: "Outliers (beyond a quartile by more than 1.5 times the interquartile range)", Columns: []report.Column{
		{Key: "trace", Label: "trace"}, {Key: "number", Label: "number"}, {Key: "value", Label: "value"}, {Key: "median", Label: "median"},
	}}
	for _, name := range names {
		low, middle, high := quantile(values[name], 0.25), quantile(values[name], 0.5), quantile(values[name], 0.75)
		for _, r := range list {
			for _, f := range r.Facts {
				if beyond := max(low-f.Value, f.Value-high); f.Name == name && beyond > fence*(high-low) && math.Abs(f.Value-middle) > leastOff*middle {
					t.Add(report.TextOf(r.Trace), report.TextOf(name), valueOf(f.Value, f.Ratio), valueOf(middle, ratio[name]))
				}
			}
		}
	}
	return t
}

// compareNames compares numbers in names by value, so that rank 10 follows rank 9.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		n, m := digits(a), digits(b)
		if n > 0 && m > 0 {
			x, errX := strconv.ParseUint(a[:n], 10, 64)
			y, errY := strconv.ParseUint(b[:m], 10, 64)
			if errX == nil && errY == nil && x != y {
				if x < y {
					return -1
				}
				return 1
			}
		}
		if a[0] != b[0] {
			break
		}
		a, b = a[1:], b[1:]
	}
	return strings.Compare(a, b)
}

func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
