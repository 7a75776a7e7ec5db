package answers

import (
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// FalseFinding describes a data structure with false sharing: in some of its cache lines, several
// threads write different words.
type FalseFinding struct {
	profile.LineSharing
	Name string // the name of the data structure in the program
	// Seen is true if the lines moved back and forth between threads in this run. If Seen is false,
	// the threads hardly overlapped in time, but the layout may cause false sharing in other runs.
	Seen bool
	Text string // a description of the false sharing
	Fix  string // the change that removes the false sharing
}

// Severity returns "in this run" if the lines moved back and forth, and otherwise "possible".
func (f *FalseFinding) Severity() string {
	if f.Seen {
		return "in this run"
	}
	return "possible"
}

// A data structure is reported if the actual or possible transfers of its lines are at least 1 % of
// the line transfers between threads. False sharing counts as seen in this run if each line was
// transferred back at least twice on average.
const (
	leastOfTransfers = 100
	leastTakenBack   = 2
)

// FalseFindings returns the falsely shared data structures. Data structures whose lines moved back
// and forth in this run come first; the remaining data structures follow in descending order of
// possible moves. The result leftOut is the number of data structures that are omitted because they
// cause less than 1 % of the line transfers.
func (c *Communication) FalseFindings() (list []FalseFinding, leftOut int) {
	transfers := flowTotals(c.lines().Flows).Transfers
	for _, l := range c.lineSharing() {
		if l.Moves < transfers/leastOfTransfers {
			leftOut++
			continue
		}
		f := FalseFinding{LineSharing: l, Name: c.Object(l.Object).Plain(), Seen: l.PingPongs >= leastTakenBack*l.Lines}
		if f.Name == "" {
			f.Name = "data without a name"
		}
		f.Text, f.Fix = c.happens(&f), c.fixText(&f)
		list = append(list, f)
	}
	sort.SliceStable(list, func(i, j int) bool {
		if x, y := &list[i], &list[j]; x.Seen == y.Seen {
			return x.Moves > y.Moves
		}
		return list[i].Seen
	})
	return list, leftOut
}

func (c *Communication) lines() *profile.Granule {
	if g := c.Granule(c.LineBytes()); g != nil {
		return g
	}
	return &c.data().Granules[0]
}

// lineSharing returns the profile's line sharing. If an earlier version of stackglass wrote the
// profile, lineSharing derives the line sharing from the false sharing.
func (c *Communication) lineSharing() (list []profile.LineSharing) {
	if c.data().LineSharing != nil {
		return c.data().LineSharing
	}
	for _, f := range c.data().False {
		if f.Threads[0] == f.Threads[1] {
			continue // this entry is the sum over all lines that are not listed
		}
		i := slices.IndexFunc(list, func(l profile.LineSharing) bool { return l.Object == f.Object })
		if i < 0 {
			i = len(list)
			list = append(list, profile.LineSharing{Object: f.Object, Offset: f.Offset, Owners: 2, Apart: f.Apart, Sites: f.Sites, Threads: f.Threads})
		}
		l := &list[i]
		l.Lines, l.Moves, l.PingPongs = l.Lines+f.Lines, l.Moves+f.Misses, l.PingPongs+f.Misses
		l.Offset, l.Apart = min(l.Offset, f.Offset), min(l.Apart, f.Apart)
	}
	return list
}

func plural(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return report.Count(n).Human() + " " + many
}

func (c *Communication) happens(f *FalseFinding) string {
	which := "the same line"
	if f.Lines > 1 {
		which = "the same " + report.Count(f.Lines).Human() + " lines"
	}
	text := plural(uint64(f.Owners), "thread", "threads") + " write different words of " + which + ", mostly at " + c.siteText(f.Sites[0])
	if f.Sites[1] != f.Sites[0] {
		text += " and " + c.siteText(f.Sites[1])
	}
	atMost := report.Count(f.Moves).Human() + " times"
	switch {
	case f.Seen && f.Moves > f.PingPongs:
		return text + ". In this run, the threads invalidated each other's copies " + plural(f.PingPongs, "time", "times") + "; up to " + atMost + " if the threads always run at the same time."
	case f.Seen:
		return text + ". In this run, the threads invalidated each other's copies " + plural(f.PingPongs, "time", "times") + "."
	case f.PingPongs > 0:
		return text + ". In this run, the threads hardly overlapped (they invalidated each other's copies " + plural(f.PingPongs, "time", "times") + "); if they run at the same time, lines move between cores up to " + atMost + "."
	}
	return text + ". In this run, the threads did not overlap; if they run at the same time, lines move between cores up to " + atMost + "."
}

// fixText describes the change that removes the false sharing. The change depends on the structure
// of the data: adjacent variables, an array with one element per thread, or an array in which each
// thread owns a part.
func (c *Communication) fixText(f *FalseFinding) string {
	line := strconv.FormatUint(uint64(c.LineBytes()), 10)
	switch {
	case c.isScalar(f):
		return "move the variables in this line to separate lines: declare each variable with alignas(" + line + ")"
	case f.Lines <= uint64(f.Owners):
		return "put each thread's element on a separate line (pad it to " + line + " bytes, for instance as a structure with alignas(" + line + ")), or accumulate in a local variable and store the result once at the end"
	}
	return "partition the array so that no line belongs to two threads: give each thread whole rows, and align the rows and each thread's part to " + line + " bytes"
}

// isScalar reports whether the data structure is a global variable that is too small to contain
// words of two threads.
func (c *Communication) isScalar(f *FalseFinding) bool {
	if f.Object == profile.NoSite {
		return false
	}
	o := &c.Profile.Sites.Data[f.Object]
	return o.Kind == profile.GlobalObject && o.Bytes <= uint64(f.Apart)
}

// FalseSharing returns a table with a row for each falsely shared data structure and its fix.
func (c *Communication) FalseSharing() report.Table {
	t := report.Table{Key: "false_sharing", Title: "False sharing: lines in which threads write different words", Columns: slices.Concat(
		report.Columns(
			"object=data", "severity", "threads", "lines", "ping_pongs=invalidations", "moves=at most",
			"offset (bytes)", "apart_bytes=apart (bytes)"),
		placeColumns("store", "stored by"), report.Columns("thread"),
		placeColumns("other_store", "and by"), report.Columns("other_thread=thread", "fix"))}
	list, _ := c.FalseFindings()
	for i := range list {
		f := &list[i]
		t.Add(slices.Concat([]report.Value{report.TextOf(f.Name), report.TextOf(f.Severity()), report.Count(uint64(f.Owners)), report.Count(f.Lines),
			report.Count(f.PingPongs), report.Count(f.Moves), report.Count(f.Offset), report.Count(uint64(f.Apart))},
			c.siteCells(f.Sites[0]), []report.Value{threadNumber(f.Threads[0])}, c.siteCells(f.Sites[1]), []report.Value{threadNumber(f.Threads[1]), report.TextOf(f.Fix)})...)
	}
	return t
}

// Worst describes the data structure that FalseFindings ranks first. Worst returns "" if there is
// no false sharing.
func (c *Communication) Worst() string {
	list, _ := c.FalseFindings()
	if len(list) == 0 {
		return ""
	}
	kind := "False sharing"
	if !list[0].Seen {
		kind = "Possible false sharing"
	}
	return kind + " in " + list[0].Name + ": " + list[0].Text + " To fix it, " + list[0].Fix
}

// FalseSummary returns a sentence that lists the falsely shared data.
func (c *Communication) FalseSummary() string {
	list, leftOut := c.FalseFindings()
	small := ""
	if leftOut > 0 {
		small = " Left out: " + plural(uint64(leftOut), "data structure", "data structures") + " with less than 1 % of the line transfers."
	}
	if len(list) == 0 {
		where := ""
		if IsOfSample(c.Profile) {
			where = " on the sampled lines"
		}
		return "No false sharing" + where + ": no line moves between threads only because the threads write different words of the line." + small
	}
	text := "False sharing: "
	for i := range list {
		f := &list[i]
		if i > 0 {
			text += ", "
		}
		if text += f.Name + " ("; f.Seen {
			text += "invalidated " + plural(f.PingPongs, "time", "times") + " in this run)"
		} else {
			text += "possible, up to " + plural(f.Moves, "time", "times") + ")"
		}
		if i == 3 && len(list) > 5 {
			return text + " and " + plural(uint64(len(list)-i-1), "other", "others") + "." + small
		}
	}
	return text + "." + small
}
