package state

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/workers"
)

// RunBar is the progress bar of a run.
type RunBar struct {
	Share   float64 // share of the file that was read, 0 to 1
	Known   bool    // whether the share is known
	Facts   []Fact
	Paused  bool
	Percent string
}

// Fact is one number with its name.
type Fact struct {
	_               incomparable
	ID, Name, Value string
	// the share of a limit that is used: text, or a number from 0 to 1 for a meter; "": there is no
	// limit
	Share string
}

// NewRunBar returns the bar for the progress of a run.
func NewRunBar(p workers.Progress) RunBar {
	part, whole := p.Done()
	p.References += p.Ahead
	bar := RunBar{Paused: p.Paused, Known: whole > 0, Share: min(mostShare, Ratio(part, whole))}
	read := Bytes(p.Bytes)
	if p.TotalBytes > 0 {
		read += " of " + Bytes(p.TotalBytes)
	}
	if bar.Known {
		bar.Percent = strconv.Itoa(int(bar.Share*100)) + thin + "%"
	}
	add := func(id, name, value string) { bar.Facts = append(bar.Facts, Fact{ID: id, Name: name, Value: value}) }
	add("bytes", "read", read)
	add("references", "references", SI(p.References))
	if p.Workers > 1 {
		add("workers", "workers", strconv.Itoa(int(p.Workers)))
	}
	if p.Ahead > 0 {
		add("ahead", "not merged yet", SI(p.Ahead))
	}
	add("rate", "rate", rate(p))
	add("left", "time left", timeLeft(p, part, whole))
	add("lines", "lines", SI(p.Lines))
	if p.Threads > 0 {
		add("threads", "threads", strconv.Itoa(p.Threads))
	}
	if p.BadRecords > 0 {
		add("bad", "unreadable records", Exact(p.BadRecords))
	}
	bar.Facts = append(bar.Facts, memory(p))
	if p.Beyond {
		add("outside", "stored on disk", Bytes(p.Outside))
	}
	add("storage", "storage", Bytes(p.Storage))
	if p.Unsaved != "" {
		add("unsaved", "checkpoint not saved:", p.Unsaved)
	}
	return bar
}

// SameForm reports whether two bars consist of the same elements. The texts of the elements may
// differ.
func (b RunBar) SameForm(other RunBar) bool {
	return b.Known == other.Known && b.Paused == other.Paused && slices.EqualFunc(b.Facts, other.Facts, func(f, g Fact) bool {
		return f.ID == g.ID && f.Name == g.Name && (f.Share == "") == (g.Share == "")
	})
}

// Value returns the length of the bar. Call Value only if the share is known.
func (b RunBar) Value() string { return strconv.FormatFloat(b.Share, 'f', 4, 64) }

// memory describes how much memory the analysis uses, and the memory limit.
func memory(p workers.Progress) Fact {
	f := Fact{ID: "memory", Name: "memory", Value: Bytes(p.Memory)}
	if p.Limit > 0 {
		f.Value += " of " + Bytes(p.Limit)
		f.Share = formatShare(p.Memory, p.Limit)
	}
	return f
}

// formatShare formats the ratio of a part to a whole for a meter, as a number from 0 to 1.
func formatShare(part, whole uint64) string {
	return strconv.FormatFloat(min(1, Ratio(part, whole)), 'f', 3, 64)
}

// BeyondNote describes what happens to an analysis that does not fit in memory.
func BeyondNote(name string, p workers.Progress) string {
	than := "fit in memory"
	if p.Limit > 0 {
		than = "fit in " + Bytes(p.Limit)
	}
	return name + " has more distinct lines than " + than + ", so its LRU stacks are now stored on disk, and the analysis takes longer. Results about stack distances, caches and sets stay exact. " +
		"Results about code, data, single bytes and sharing between threads are omitted. To get these results, raise the memory limit or analyse a sample (space=0.01)."
}

// mostShare is the length of the bar when the whole file has been read. Assembling the result takes
// a few percent of the time.
const mostShare = 0.99

func rate(p workers.Progress) string {
	if p.Millis < 100 {
		return "…"
	}
	return SI(p.References*1000/p.Millis) + "/s"
}

// timeLeft estimates the remaining time from the recent speed. It returns "…" if less than half a
// second has passed or less than 2 % of the work is done.
func timeLeft(p workers.Progress, part, whole uint64) string {
	switch {
	case p.Paused:
		return "paused"
	case p.Ending || whole > 0 && part >= whole:
		return "finishing"
	case whole == 0 || part == 0 || part*50 < whole || p.Millis < 500:
		return "…"
	}
	speed := float64(p.Speed)
	if speed == 0 {
		speed = float64(part) * 1000 / float64(p.Millis)
	}
	return Duration(uint64(float64(whole-part) * 1000 / speed))
}
