package measured

import (
	"bytes"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// Count is the count of an event in a run.
type Count struct {
	Event   string
	Value   float64
	Unit    string  // such as msec; "" for plain counts
	Running float64 // share of the time in which the event was counted; the value is extrapolated to the whole time
	Missing string  // "not counted" or "not supported" if there is no value
}

// separators contains the separators of fields, in the order in which they are tried.
const separators = ",;\t|"

// statFields contains the fields of a line of perf stat -x, without the fields before the value.
type statFields struct {
	prefixed bool // fields before the value name a time, a processor or a thread
	Count
}

// isCounts reports whether a text that begins with head contains counts. The first line that is
// neither blank nor a comment decides.
func isCounts(head []byte) bool {
	for _, line := range lines.All(head) {
		switch {
		case isSkipped(line):
			continue
		case isLikwid(line) || bytes.HasPrefix(line, []byte("Event,Counter,")) || isHeader(line):
			return true
		}
		_, ok := statLine(line)
		return ok
	}
	return false
}

func isSkipped(line []byte) bool { return lines.IsBlank(line) || line[0] == '#' || line[0] == '-' }

// isLikwid reports whether a line begins a part of a file of likwid.
func isLikwid(line []byte) bool {
	return bytes.HasPrefix(line, []byte("STRUCT,")) || bytes.HasPrefix(line, []byte("TABLE,"))
}

func isHeader(line []byte) bool {
	return string(bytes.ToLower(lines.Trim(line))) == "event,value"
}

// readCounts reads counts. The values of an event that was counted for each interval, processor or
// thread are added.
func readCounts(name string, text []byte) ([]Count, error) {
	c := counter{at: map[string]int{}}
	for number, line := range lines.All(text) {
		if isSkipped(line) {
			continue
		}
		if wrong := c.line(line); wrong != nil {
			wrong.SetPlace(name, number)
			return nil, wrong
		}
	}
	if len(c.list) == 0 {
		return nil, &Error{name + ": the file contains no count; record counts with \"perf stat -x, -o FILE\" or \"likwid-perfctr -O -o FILE\""}
	}
	return c.list, nil
}

// counter adds up counts.
type counter struct {
	list  []Count
	at    map[string]int // index in list, by event
	table tableKind
}

// tableKind is the kind of the table that the current line belongs to.
type tableKind uint8

const (
	perfLines    tableKind = iota
	likwidEvents           // rows are EVENT,COUNTER,VALUE…
	likwidOther            // rows are not counts
	csvRows                // rows are EVENT,VALUE
)

func (c *counter) line(line []byte) *trace.SyntaxError {
	fields := bytes.Split(bytes.TrimRight(line, "\r"), []byte(","))
	switch {
	case isHeader(line):
		c.table = csvRows
		return nil
	case isLikwid(line) || c.table != perfLines && bytes.HasPrefix(line, []byte("Metric,")):
		c.table = likwidOther
		return nil
	case bytes.HasPrefix(line, []byte("Event,Counter,")):
		// The table of sums repeats the counts of the threads.
		if c.table = likwidEvents; len(fields) > 2 && string(fields[2]) == "Sum" {
			c.table = likwidOther
		}
		return nil
	}
	switch c.table {
	case likwidEvents:
		return c.likwid(line, fields)
	case likwidOther:
		return nil
	case csvRows:
		at := bytes.LastIndexByte(line, ',')
		value, ok := number(line[at+1:])
		if at <= 0 || !ok {
			return lines.Wrong("line", line, "an event, a comma and a number")
		}
		return c.add(line, Count{Event: string(lines.Trim(line[:at])), Value: value, Running: 1}, false)
	}
	s, ok := statLine(line)
	switch {
	case ok:
		return c.add(line, s.Count, s.prefixed)
	case isMetric(line):
		return nil
	}
	return lines.Wrong("line", line, "VALUE,UNIT,EVENT,…, as perf stat -x, prints it")
}

// likwid adds a row of the table of a group: the event, the counter, and a value for each thread.
func (c *counter) likwid(line []byte, fields [][]byte) *trace.SyntaxError {
	sum := Count{Event: string(lines.Trim(fields[0])), Running: 1}
	if len(fields) < 3 || sum.Event == "" {
		return lines.Wrong("line", line, "an event, a counter, and a number for each thread")
	}
	for _, f := range fields[2:] {
		value, ok := number(f)
		switch {
		case ok:
			sum.Value += value
		case len(lines.Trim(f)) > 0 && string(f) != "-" && string(f) != "nil":
			return lines.Wrong("value", f, "a number")
		}
	}
	return c.add(line, sum, false)
}

// add adds a count. Only counts with a prefix may repeat an event.
func (c *counter) add(line []byte, n Count, repeats bool) *trace.SyntaxError {
	n.Event, n.Unit = strings.ToValidUTF8(n.Event, "\uFFFD"), strings.ToValidUTF8(n.Unit, "\uFFFD")
	at, known := c.at[n.Event]
	switch {
	case !known:
		c.at[n.Event] = len(c.list)
		c.list = append(c.list, n)
	case !repeats:
		return lines.Wrong("line", line, "each event only once; keep only one of the runs, groups or regions in the file")
	case n.Missing == "" && c.list[at].Missing != "":
		c.list[at] = n
	case n.Missing == "":
		sum := &c.list[at]
		sum.Value += n.Value
		sum.Running = min(sum.Running, n.Running)
	}
	return nil
}

// isMetric reports whether a line contains only a metric, such as ",,,,,,0.5,insn per cycle".
func isMetric(line []byte) bool {
	for _, sep := range separators {
		empty := strings.Repeat(string(sep), 3)
		if bytes.Contains(line, []byte(empty)) {
			return true
		}
	}
	return false
}

// statLine reads a line of perf stat -x: fields that name a time, a processor or a thread, then the
// value, the unit, the event, optionally the variance, the time in which the event was counted, and
// the share of the time in percent.
func statLine(line []byte) (s statFields, ok bool) {
	for _, sep := range separators {
		if s, ok = splitStat(bytes.Split(lines.TrimBlanks(line), []byte(string(sep)))); ok {
			return s, true
		}
	}
	return s, false
}

func splitStat(fields [][]byte) (s statFields, ok bool) {
	for i := 0; i+3 < len(fields) && i < 4; i++ {
		value, isNumber := number(fields[i])
		state := strings.Trim(string(lines.Trim(fields[i])), "<>")
		missing := state == "not counted" || state == "not supported"
		unit, event := lines.Trim(fields[i+1]), fields[i+2]
		if _, is := number(unit); is || !isNumber && !missing || bytes.HasPrefix(unit, []byte("<not ")) {
			continue // the value follows later
		}
		if _, is := number(event); is || len(event) == 0 {
			continue
		}
		rest := fields[i+3:]
		for bytes.Count(event, []byte("/"))%2 == 1 && len(rest) > 0 { // an event such as cpu/event=1,umask=2/ was split
			event, rest = bytes.Join([][]byte{event, rest[0]}, []byte(",")), rest[1:]
		}
		if len(rest) > 0 && bytes.HasSuffix(rest[0], []byte("%")) {
			rest = rest[1:] // the variance of repeated runs
		}
		if len(rest) < 2 {
			continue
		}
		_, timed := number(rest[0])
		percent, shared := number(rest[1])
		if !timed || !shared {
			continue
		}
		s = statFields{i > 0, Count{Event: string(event), Value: value, Unit: string(unit), Running: percent / 100}}
		if missing {
			s.Missing = state
		}
		return s, true
	}
	return s, false
}
