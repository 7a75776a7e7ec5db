package state

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Finding is one sentence about the run.
type Finding struct {
	_     incomparable
	ID    string // a name that is the same in all versions, for tests and links
	Title string // a title of two or three words
	Text  string // the sentence, with its numbers
	Tab   Tab    // tab with the evidence
}

// Findings describes the profile in sentences, beginning with the most general sentences, for
// caches of common sizes and for the current hierarchy.
func (v *View) Findings(h hierarchy.Hierarchy) []Finding {
	if v.Curve.Accesses == 0 {
		return []Finding{{ID: "empty", Title: "Nothing to see", Tab: TabDiagnosis, Text: Nothing(v.Profile)}}
	}
	list := []Finding{v.footprint(), v.halfDistance(), v.firstLevel(), v.steps(), v.cold(), v.kinds()}
	for _, f := range []func(hierarchy.Hierarchy) (Finding, bool){v.coherence, v.worstLine} {
		if finding, ok := f(h); ok {
			list = append(list, finding)
		}
	}
	for _, f := range []func() (Finding, bool){v.operations, v.falseSharing, v.largestFlow, v.splits, v.phases, v.recorded, v.doubts} {
		if finding, ok := f(); ok {
			list = append(list, finding)
		}
	}
	return list
}

// The function Nothing explains in sentences why a profile has no references, and gives advice. If
// the profile has references, the result is "".
func Nothing(p *profile.Profile) string {
	t := &p.Totals
	switch {
	case t.AllReferences() > 0:
		return ""
	case t.Unselected > 0:
		return "The settings exclude all " + Plural(t.Unselected, "reference", "references") + " of this trace: the settings select “" + p.Input.Kinds.String() +
			"”, and the trace contains no such references. Go back, choose other kinds of references in the settings, and drop the trace again."
	}
	return "No reference has been analysed."
}

// recorded says whether a container has the references of LLVM IR or of machine code.
func (v *View) recorded() (Finding, bool) {
	f := Finding{ID: "recorded", Title: "What was recorded", Tab: TabCode}
	h, c := &v.Profile.Input.Header, v.Profile.Counters
	switch {
	case h.Format != "sgt":
		return f, false
	case c != nil && c.Ops: // only traces of stackglass cc list the operations
		f.Text = "The trace contains the loads and stores of the optimised LLVM IR, but no spilled registers, no constants that are loaded from memory, " +
			"and no accesses of code that was not recompiled, such as libraries. The command “stackglass trace” records all of these."
	case h.PCs:
		f.Text = "The trace contains the loads and stores of the machine code."
	default:
		return f, false
	}
	return f, true
}

func (v *View) footprint() Finding {
	a := v.Curve.Accesses
	return Finding{ID: "footprint", Title: "Footprint", Tab: TabCaches,
		Text: SI(v.Profile.Totals.AllReferences()) + " references touch " + Plural(v.Lines, "line", "lines") + " of " +
			strconv.FormatUint(v.LineBytes, 10) + " bytes, " + Bytes(v.FootprintBytes()) +
			" in all. Each line is used " + significant(float64(a)/float64(max(v.Lines, 1))) + " times on average."}
}

func (v *View) halfDistance() Finding {
	f := Finding{ID: "half", Title: "Half of all accesses", Tab: TabLocality}
	d, ok := v.Curve.DistanceAtShare(0.5)
	if !ok {
		f.Text = "More than half of all accesses are first accesses to a line, so no cache can avoid many misses."
		return f
	}
	if d == 0 {
		f.Text = "Half of all accesses are to the line that was used just before: these accesses hit in a cache of one line."
	} else {
		f.Text = "Half of all accesses hit in a cache of " + Bytes((d+1)*v.LineBytes) + ": their stack distance is at most " + Plural(d, "line", "lines") + "."
	}
	if d90, ok := v.Curve.DistanceAtShare(0.9); ok {
		f.Text += " 90" + thin + "% hit in " + Bytes((d90+1)*v.LineBytes) + "."
	}
	return f
}

func (v *View) firstLevel() Finding {
	const small, large = 32 << 10, 1 << 20
	f := Finding{ID: "first-level", Title: "Common sizes", Tab: TabCaches}
	atSmall, atLarge := v.MissRatio(small), v.MissRatio(large)
	f.Text = Percent(atSmall) + " of accesses would miss in a cache of 32" + thin + "KiB, and " + Percent(atLarge) + " in a cache of 1" + thin + "MiB" +
		" (fully associative, LRU" + v.oneCache() + ")."
	if four := v.MissRatio(4 * small); atSmall > 0 && four < atSmall {
		f.Text += " In a cache of 128" + thin + "KiB, " + Percent(1-four/atSmall) + " of the misses in 32" + thin + "KiB would be hits."
	}
	return f
}

// steps returns the finding about the sizes at which the miss ratio drops.
func (v *View) steps() Finding {
	f := Finding{ID: "knees", Title: "Steps", Tab: TabCaches}
	d, err := v.Run.Answer(v.question("curve").With("steps", "true"))
	if err != nil || len(d.Tables[0].Rows) == 0 {
		f.Title, f.Text = "No steps", "The miss ratio falls gradually: no small increase in cache size turns the misses of more than 2"+thin+"% of accesses into hits."
		return f
	}
	for i := range d.Tables[0].Rows {
		value := func(key string) string { return shown(cell(&d.Tables[0], i, key), answerWords) }
		// this is the text for a step that is not a cliff
		text := "between " + value("below_bytes") + " and " + value("capacity_bytes")
		if cellText(&d.Tables[0], i, "cliff") == "true" {
			text = "between " + value("below_lines") + " and " + value("capacity_lines") + " lines (" + value("capacity_bytes") + ")"
		}
		if i == 0 {
			f.Text = upper(text) + ", the miss ratio falls"
		} else {
			f.Text += "; " + text
		}
		f.Text += " from " + value("miss_ratio_below") + " to " + value("miss_ratio")
	}
	f.Text += "."
	return f
}

func (v *View) cold() Finding {
	share := Ratio(v.Curve.Cold, v.Curve.Accesses)
	text := Exact(v.Curve.Cold) + " accesses, " + Percent(share) + ", are first accesses to a line (cold misses). No cache can avoid cold misses; prefetching, or touching less data, can."
	if longest, ok := v.Curve.Longest(); ok {
		text += " With " + Bytes((longest+1)*v.LineBytes) + " or more, only cold misses remain."
	}
	return Finding{ID: "cold", Title: "First accesses", Text: text, Tab: TabLocality}
}

func (v *View) kinds() Finding {
	text := ""
	for i := range v.Locality.Kinds {
		k := &v.Locality.Kinds[i]
		if text != "" {
			text += "; "
		}
		a := k.Accesses()
		misses := profile.NewCurve(&k.Distances, k.Cold).Misses(32 << 10 / v.LineBytes)
		text += kindPlural(k.Kind.String()) + " make up " + Percent(Ratio(a, v.Curve.Accesses)) + " of the accesses and cause " +
			Percent(Ratio(misses, v.Curve.Misses(32<<10/v.LineBytes))) + " of the misses in a cache of 32" + thin + "KiB"
	}
	text += v.oneCache()
	return Finding{ID: "kinds", Title: "Kinds", Text: upper(text) + ".", Tab: TabLocality}
}

func (v *View) splits() (Finding, bool) {
	n := v.Splits()
	if n == 0 {
		return Finding{}, false
	}
	return Finding{ID: "splits", Title: "Split references", Tab: TabDiagnosis,
		Text: "There are " + Exact(n) + " more accesses than references, " + Percent(Ratio(n, v.Profile.Totals.AllReferences())) +
			", because a reference that crosses a line boundary accesses two or more lines."}, true
}

// phases compares the misses of the run's windows in a cache of 32 KiB.
func (v *View) phases() (Finding, bool) {
	rows := v.Locality.Windows.Rows
	if len(rows) < 4 {
		return Finding{}, false
	}
	log2 := max(bits.Len64(32<<10/v.LineBytes)-1, 0)
	least, most, at := 1.0, 0.0, 0
	for i := range rows[:len(rows)-1] { // the last window may be shorter
		m := Ratio(rows[i].Misses(log2), rows[i].Accesses())
		if m > most {
			most, at = m, i
		}
		least = min(least, m)
	}
	f := Finding{ID: "phases", Title: "Over time", Tab: TabLocality}
	if most < 2*least+0.01 {
		f.Text = "The run is uniform: the miss ratio of a cache of 32" + thin + "KiB stays between " + Percent(least) + " and " + Percent(most) + "."
		return f, true
	}
	f.Text = "The run has phases: the miss ratio of a cache of 32" + thin + "KiB is between " + Percent(least) + " and " + Percent(most) + ", and is highest in the window " + windowWords(uint64(at)*v.Locality.Windows.References) + "."
	return f, true
}

func windowWords(first uint64) string {
	if first == 0 {
		return "at the start"
	}
	return "that begins at reference " + SI(first)
}

func (v *View) doubts() (Finding, bool) {
	t := &v.Profile.Totals
	text := ""
	if t.BadRecords > 0 {
		text = Plural(t.BadRecords, "unreadable record was", "unreadable records were") + " skipped. "
	}
	if v.Profile.State.Partial {
		text += "This result covers only a part of the run: " + v.Profile.State.Reason + "."
	}
	return Finding{ID: "doubts", Title: "What is missing", Text: text, Tab: TabDiagnosis}, text != ""
}

func kindPlural(kind string) string {
	switch kind {
	case "store":
		return "stores"
	case "modify":
		return "modifies"
	case "fetch":
		return "fetches"
	}
	return kind + "s"
}

// Sentence turns a clause into a sentence: with a capital letter at the start, and a full stop.
func Sentence(clause string) string { return upper(strings.TrimSuffix(clause, ".")) + "." }

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// falseSharing returns the finding about the worst case of false sharing.
func (v *View) falseSharing() (Finding, bool) {
	c := v.Communication()
	if c == nil || len(c.FalseFindings()) == 0 {
		return Finding{}, false
	}
	f := c.FalseFindings()[0]
	title := "False sharing"
	if !f.Seen {
		title = "Possible false sharing"
	}
	return Finding{ID: "false-sharing", Title: title, Tab: TabCommunication, Text: f.Name + ": " + Spaced(f.Text) + " To fix it, " + f.Fix + "."}, true
}

// commonOwnBytes is a common size of the first-level cache in processors.
const commonOwnBytes = 32 << 10

// coherence returns the finding about the cores on which the threads run, and about the coherence
// misses in the first level.
func (v *View) coherence(h hierarchy.Hierarchy) (Finding, bool) {
	text := answers.ThreadsOn(v.Profile, h)
	p, _, err := v.Run.Asker().Predict(h, nil)
	if text == "" || err != nil {
		return Finding{}, false
	}
	l := &p.Levels[0]
	mark := ""
	if l.Method != hierarchy.Exact {
		mark = about
	}
	text += ". " + mark + shareOfWhole(l.Misses, l.Accesses) + " of accesses (" + mark + Count(l.Misses) + ") miss in " + l.Cache.Name
	if len(p.Cores) > 0 {
		text += "; stores by other cores cause " + mark + Count(p.Coherence[0]) + " of these misses (coherence misses)"
	}
	return Finding{ID: "coherence", Title: "Threads", Tab: TabCaches, Text: text + "."}, true
}

// largestFlow returns the finding about the largest flow between two threads.
func (v *View) largestFlow() (Finding, bool) {
	c := v.Communication()
	if c == nil {
		return Finding{}, false
	}
	text := c.Sentence()
	if flows := c.Granules[0].Flows; len(flows) > 0 {
		most := flows[0]
		for _, f := range flows {
			if f.Bytes > most.Bytes {
				most = f
			}
		}
		text += " The largest flow, " + Bytes(most.Bytes) + ", goes from thread " + strconv.FormatUint(uint64(most.From), 10) + " to thread " + strconv.FormatUint(uint64(most.To), 10) + "."
	}
	return Finding{ID: "flow", Title: "From thread to thread", Tab: TabCommunication, Text: text}, true
}
