package diagnose

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/report"
)

// Verdict returns a sentence on whether the program's use of memory is worth improving.
func (d *Diagnosis) Verdict() string {
	waiting := d.Waiting()
	text := "Memory costs " + percent2(waiting) + " of the estimated cycles"
	if waiting < small {
		text = "Memory is not the bottleneck: " + percent2(waiting) + " of the estimated cycles"
	}
	if worst := d.worst(); worst >= 0 && waiting >= small {
		text += ", most of them waiting for "
		if name := d.Waits[worst].Name; name == pageTables {
			text += "address translation"
		} else {
			text += "lines from " + name
		}
	}
	return text + "; " + d.changes()
}

// changes returns a clause about the total saving of the changes of all findings. Changes that
// could not be tried are counted separately, because only a range is known for their savings.
func (d *Diagnosis) changes() string {
	tried, untried := 0, 0
	saved, least, most := 0.0, 0.0, 0.0
	for i := range d.Findings {
		if f := &d.Findings[i]; f.exact() {
			tried, saved = tried+1, saved+f.Saved
		} else {
			untried, least, most = untried+1, least+f.Least, most+max(f.Saved, f.Most)
		}
	}
	text := "no change that would save 1 % of the cycles was found"
	share2 := func(cycles float64) string { return percent2(min(1, share(cycles, d.Cycles))) }
	switch {
	case tried == 1:
		text = "one change would save about " + share2(saved)
	case tried > 1:
		text = strconv.Itoa(tried) + " changes together would save about " + share2(saved)
	}
	if tried > 0 && share(saved, d.Cycles) > d.Waiting()+0.01 {
		text += ", because the computation would also become faster"
	}
	if untried == 0 {
		return text
	}
	together := ""
	if untried > 1 {
		together = " together"
	}
	number, range2 := "one change", " that could not be tried may"+together+" save up to "+share2(most)
	if from := share2(least); from != "0 %" {
		range2 = together + " would save " + from + " to " + share2(most)
	}
	switch {
	case tried > 0 && untried == 1:
		number = "another"
	case tried > 0:
		number = strconv.Itoa(untried) + " others"
	case untried > 1:
		number = strconv.Itoa(untried) + " changes"
	}
	if tried > 0 {
		return text + ", and " + number + range2
	}
	return number + range2
}

// small is the smallest share of the cycles that waits for memory must take to be worth a
// change.
const small = 0.1

// Saved returns the share of the cycles, from 0 to 1, that the fixes of all findings save.
func (d *Diagnosis) Saved() float64 {
	sum := 0.0
	for i := range d.Findings {
		sum += d.Findings[i].Saved
	}
	return min(1, share(sum, d.Cycles))
}

// bounds returns the smallest and the largest number of cycles that a finding may save.
func (f *Finding) bounds() (least, most float64) {
	if f.Tried && f.Most <= 1.01*f.Saved {
		return f.Saved, f.Saved
	}
	return f.Least, f.Most
}

// exact reports whether the saving of a finding is a number, and not a range.
func (f *Finding) exact() bool {
	least, most := f.bounds()
	return least == most
}

func (d *Diagnosis) worst() int {
	worst := -1
	for i := range d.Waits {
		if d.Waits[i].Cycles > 0 && (worst < 0 || d.Waits[i].Cycles > d.Waits[worst].Cycles) {
			worst = i
		}
	}
	return worst
}

// Tables returns the tables of the diagnosis: the verdict, the findings, and the waits of the run.
func (d *Diagnosis) Tables() []report.Table {
	verdict := report.Table{Key: "verdict", Title: "Is memory the bottleneck?", Columns: []report.Column{
		{Key: "verdict", Label: "verdict"}, {Key: "cycles", Label: "cycles"}, {Key: "memory_cycles", Label: "cycles waiting for memory"},
		{Key: "memory_share", Label: "share"}, {Key: "saved_share", Label: "could be saved"}}}
	verdict.Add(report.TextOf(d.Verdict()), cycles(d.Cycles), cycles(d.Waiting()*d.Cycles), report.Ratio(d.Waiting()), report.Ratio(d.Saved()))
	findings := report.Table{Key: "findings", Title: "Findings, by the cycles that a change would save", Columns: []report.Column{
		{Key: "rank", Label: "rank"}, {Key: "kind", Label: "kind"}, {Key: "function", Label: "function"}, {Key: "file", Label: "file"}, {Key: "line", Label: "line"}, {Key: "data", Label: "data"},
		{Key: "cost_share", Label: "costs"}, {Key: "saved_share", Label: "saves"}, {Key: "saved_least_share", Label: "at least"}, {Key: "saved_most_share", Label: "at most"},
		{Key: "saved_cycles", Label: "cycles saved"}, {Key: "tried", Label: "tried"}, {Key: "why", Label: "why"}, {Key: "fix", Label: "fix"},
		{Key: "how", Label: "how predicted"}, {Key: "illegal_if", Label: "not allowed if"}, {Key: "more", Label: "see also"}}}
	misses := report.Table{Key: "misses", Title: "Misses of the changed loops, before and after", Columns: []report.Column{
		{Key: "rank", Label: "rank"}, {Key: "kind", Label: "kind"}, {Key: "function", Label: "function"}, {Key: "data", Label: "data"}, {Key: "level", Label: "level"}, {Key: "misses_before", Label: "misses before"}, {Key: "misses_after", Label: "after"}, {Key: "change_ratio", Label: "change"}}}
	for i := range d.Findings {
		f := &d.Findings[i]
		line := report.None()
		if f.Line > 0 {
			line = report.Count(uint64(f.Line))
		}
		rank := report.Count(uint64(i + 1))
		findings.Add(rank, report.TextOf(string(f.Kind)), report.TextOf(f.Function), report.TextOf(f.File), line, report.TextOf(f.Data),
			report.Ratio(share(f.Cost, d.Cycles)), report.Ratio(share(f.Saved, d.Cycles)), report.Ratio(share(f.Least, d.Cycles)), report.Ratio(share(f.Most, d.Cycles)),
			cycles(f.Saved), report.YesNo(f.Tried), report.TextOf(f.Why), report.TextOf(f.Fix), report.TextOf(f.How), report.TextOf(f.IllegalIf), report.TextOf(f.More))
		for k := range f.Before {
			before, after := report.Count(uint64(f.Before[k])), report.Count(uint64(f.After[k]))
			misses.Add(rank, report.TextOf(string(f.Kind)), report.TextOf(f.Function), report.TextOf(f.Data), report.TextOf(d.levels[k]), before, after, report.Change(before, after))
		}
	}
	waits := report.Table{Key: "waits", Title: "Where the run waits", Columns: []report.Column{
		{Key: "level", Label: "for lines from"}, {Key: "cycles", Label: "cycles"}, {Key: "share", Label: "of all"}}}
	for _, w := range d.Waits {
		waits.Add(report.TextOf(w.Name), cycles(w.Cycles), report.Ratio(share(w.Cycles, d.Cycles)))
	}
	return []report.Table{verdict, findings, misses, waits}
}

// Cards returns the verdict, and a table for each of the first findings. Each table has two columns.
func (d *Diagnosis) Cards(most int, source func(file string, line uint32) string) (list []report.Table) {
	list = append(list, report.Table{Key: "verdict", Title: strings.Join(slices.Collect(wrappedLines(d.Verdict(), wide+len("not allowed if  "))), "\n")})
	for i := range d.Findings[:min(most, len(d.Findings))] {
		f := &d.Findings[i]
		where := f.File
		if f.Line > 0 {
			where += ":" + strconv.FormatUint(uint64(f.Line), 10)
		}
		if f.Function != "" {
			where += " in " + f.Function
		}
		if where == "" {
			where = "the whole run"
		}
		saves := "saves " + percent2(share(f.Saved, d.Cycles))
		if least, most := f.bounds(); most > least {
			saves = "saves " + percent2(share(least, d.Cycles)) + " to " + percent2(share(most, d.Cycles))
		}
		t := report.Table{Key: "finding_" + strconv.Itoa(i+1), Title: strconv.Itoa(i+1) + ". " + string(f.Kind) + ", " + where + ": " + saves,
			Columns: []report.Column{{Key: "about", Label: ""}, {Key: "text", Label: ""}}}
		add := func(key, text string) {
			for line := range wrappedLines(text, wide) {
				t.Add(report.TextOf(key), report.TextOf(line))
				key = ""
			}
		}
		if source != nil {
			text := source(f.File, f.Line)
			if strings.Trim(text, "}; ") == "" && text != "" {
				text += " (the end of a block, where the destructors of local variables run)"
			}
			add("source", text)
		}
		add("data", f.Data)
		add("why", f.Why)
		add("fix", f.Fix)
		add("predicted", f.How)
		add("not allowed if", f.IllegalIf)
		verb, options, _ := strings.Cut(f.More, " ")
		add("see also", strings.TrimSpace("stackglass "+verb+" FILE "+options))
		list = append(list, t)
	}
	return list
}

// wrappedLines breaks a text between words into lines of at most the given number of characters.
func wrappedLines(text string, most int) iter.Seq[string] {
	return func(yield func(string) bool) {
		line := ""
		for word := range strings.FieldsSeq(text) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
				if !yield(line) {
					return
				}
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		if line != "" {
			yield(line)
		}
	}
}

// wide is the maximum length of a line on the right of a label, in characters, so that both fit in a
// terminal with 100 columns.
const wide = 74

func cycles(n float64) report.Value { return report.Real(math.Round(n)) }

// percent2 formats a share as a whole percentage.
func percent2(of float64) string { return strconv.Itoa(int(math.Round(100*of))) + " %" }

// number formats a number of cycles with one decimal.
func number(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
