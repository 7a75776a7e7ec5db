package state

import (
	"strconv"

	"github.com/stackglass/stackglass/workers"
)

// RunBar is the quiet bar during a run.
type RunBar struct {
	Share   float64 // of the file, 0 to 1
	Known   bool    // the share is known
	Facts   []Fact
	Paused  bool
	Percent string
}

// Fact is one number with its name.
type Fact struct{ ID, Name, Value string }

// NewRunBar words the progress of a run.
func NewRunBar(p workers.Progress) RunBar {
	bar := RunBar{Paused: p.Paused, Known: p.TotalBytes > 0, Share: min(1, Ratio(p.Bytes, p.TotalBytes))}
	read := Bytes(p.Bytes)
	if bar.Known {
		read += " of " + Bytes(p.TotalBytes)
		bar.Percent = strconv.Itoa(int(bar.Share*100)) + thin + "%"
	}
	add := func(id, name, value string) { bar.Facts = append(bar.Facts, Fact{id, name, value}) }
	add("bytes", "read", read)
	add("references", "references", SI(p.References))
	add("rate", "rate", rate(p))
	add("left", "time left", left(p))
	add("lines", "lines", SI(p.Lines))
	if p.Threads > 0 {
		add("threads", "threads", strconv.Itoa(p.Threads))
	}
	if p.BadRecords > 0 {
		add("bad", "unreadable records", Exact(p.BadRecords))
	}
	add("memory", "memory", Bytes(p.Memory))
	add("storage", "storage", Bytes(p.Storage))
	if p.Unsaved != "" {
		add("unsaved", "no checkpoint:", p.Unsaved)
	}
	return bar
}

func rate(p workers.Progress) string {
	if p.Millis < 100 {
		return "…"
	}
	return SI(p.References*1000/p.Millis) + "/s"
}

// left estimates from the bytes, which need not be proportional to the work:
// so it says nothing before 2 % or half a second.
func left(p workers.Progress) string {
	if p.Paused {
		return "paused"
	}
	if p.TotalBytes == 0 || p.Bytes == 0 || p.Bytes*50 < p.TotalBytes || p.Millis < 500 {
		return "…"
	}
	if p.Bytes >= p.TotalBytes {
		return "almost done"
	}
	return Duration(uint64(float64(p.Millis) * float64(p.TotalBytes-p.Bytes) / float64(p.Bytes)))
}
