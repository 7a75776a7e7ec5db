package state

import (
	"strconv"
	"time"

	"github.com/stackglass/stackglass/core/profile"
)

// KeptRow is one line of the list of stored analyses.
type KeptRow struct {
	_                                        incomparable
	Key, Name, When, References, Size, State string
	Reason                                   string // why the analysis is partial
	Hash                                     string // the link that opens the analysis; "" if it was interrupted
	Interrupted                              bool
	Running                                  bool // the analysis is running in some tab
}

// KeptRows returns a row for each entry of the store. The parameter "now" is the current time in the
// user's time zone.
func KeptRows(entries []profile.Entry, now time.Time) []KeptRow {
	var rows []KeptRow
	for _, e := range entries {
		row := KeptRow{
			Key: e.Key, Name: e.Name, Reason: e.Reason,
			When:       When(time.UnixMilli(e.Created).In(now.Location()), now),
			References: SI(e.References), Size: Bytes(e.Bytes), State: string(e.State),
		}
		if e.State == profile.EntryInterrupted {
			row.Interrupted = true
			row.State = "interrupted at " + strconv.Itoa(int(e.Done*100)) + thin + "%"
		} else {
			row.Hash = "#" + Screen{Open: e.Key}.Hash()
		}
		rows = append(rows, row)
	}
	return rows
}

// The function When formats a point in time relative to now, such as "today 10:12", "yesterday
// 9:30", "Tuesday 16:20", "12 March" or "12 March 2024".
func When(t, now time.Time) string {
	clock := t.Format("15:04")
	switch days := daysBetween(t, now); {
	case days == 0:
		return "today " + clock
	case days == 1:
		return "yesterday " + clock
	case days > 1 && days < 7:
		return t.Weekday().String() + " " + clock
	case t.Year() == now.Year():
		return strconv.Itoa(t.Day()) + " " + t.Month().String()
	}
	return strconv.Itoa(t.Day()) + " " + t.Month().String() + " " + strconv.Itoa(t.Year())
}

func daysBetween(t, now time.Time) int {
	midnight := func(t time.Time) time.Time {
		return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	}
	return int(midnight(now).Sub(midnight(t)).Hours() / 24)
}

// Storage describes approximately how the browser's storage is used. The parameter "used" is the
// total number of bytes, or 0 if it is unknown. The parameter "running" is the number of bytes in
// the spill store of the analysis with the given key.
func Storage(entries []profile.Entry, used uint64, key string, running uint64) (parts []Fact, total string) {
	var finished, checkpoints, outside uint64
	for _, e := range entries {
		if e.State == profile.EntryInterrupted {
			checkpoints += e.Bytes
		} else {
			finished += e.Bytes
			continue
		}
		if e.Key == key {
			running = max(running, e.Outside)
		} else {
			outside += e.Outside
		}
	}
	outside += running
	sum := finished + checkpoints + outside
	rest := max(used, sum) - sum
	for _, p := range []struct {
		id, name string
		bytes    uint64
	}{
		{"finished", "finished analyses", finished},
		{"checkpoints", "checkpoints of interrupted analyses", checkpoints},
		{"outside", "stacks spilled to disk", outside},
		{"rest", "this page and the browser's own data", rest},
	} {
		if p.bytes > 0 {
			parts = append(parts, Fact{ID: p.id, Name: p.name, Value: Bytes(p.bytes), Share: formatShare(p.bytes, sum+rest)})
		}
	}
	return parts, Bytes(sum + rest)
}

// Reopening says whether the page can open the file of an interrupted analysis again.
type Reopening int

const (
	ReopensNever  Reopening = iota // the browser never lets a page open a file again
	ReopensOthers                  // the browser supports reopening, but not for this file
	Reopens                        // the page can open the file again
)

// InterruptedNote says that an analysis was interrupted, and how to resume it. The first row is the
// interrupted analysis, and the others are earlier interrupted analyses.
func InterruptedNote(rows []KeptRow, again Reopening) string {
	name := rows[0].Name
	text := "The analysis of " + name + " was " + rows[0].State + ". "
	switch again {
	case ReopensNever:
		text += "This browser does not let a page open a file again. To resume the analysis where it stopped, choose " + name + " again, or drop it on this page."
	case ReopensOthers:
		text += "To resume it where it stopped, choose " + name + " again, or drop it on this page."
	case Reopens:
		text += "Press “resume” to resume it where it stopped. The browser may ask whether this page may read the file."
	}
	switch others := len(rows) - 1; others {
	case 0:
	case 1:
		text += " Another interrupted analysis is in the list below."
	default:
		text += " " + strconv.Itoa(others) + " other interrupted analyses are in the list below."
	}
	return text
}

// LostNote says that an analysis was interrupted before its first checkpoint. It returns "" if the
// name of the analysis is "".
func LostNote(name string) string {
	if name == "" {
		return ""
	}
	return "The analysis of " + name + " was interrupted before its first checkpoint, so nothing of it is kept. To restart the analysis, choose " + name + " again, or drop the file on this page."
}
