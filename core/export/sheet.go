// Package export converts profiles to reports and to the file formats of other tools.
//
//   - [Sheet.Pprof]: profile.proto, for pprof and for other tools that read its files.
//   - [Sheet.Callgrind]: for callgrind_annotate, KCachegrind and QCachegrind.
//   - [Sheet.Folded]: one stack per line, for flame graphs of one event.
//   - [Sheet.Speedscope]: stacks of every event, for speedscope.
//   - [Export.Tables]: everything that a profile contains, for CSV and JSON.
//   - [HTML]: a report with tables and charts, for a browser or a printer.
//
// The first four formats contain source locations. These formats are written from a [Sheet], which
// has a column for each event and a row for each source location. Events without a source location
// are counted in a separate row. Therefore, the sum over all rows is the exact number of events in
// the whole run.
//
// The same profile produces the same file on any machine, because no file contains a time or a
// machine's name.
package export

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
)

// Sheet counts events by source location.
type Sheet struct {
	Command string   // the traced program, or ""
	Notes   []string // warnings and definitions, as sentences
	Events  []Event
	Entries []Entry
	Main    int // index of the main event

	Calls *answers.Calls // the call paths to which the entries belong; nil if unknown
}

// Event is a countable event, such as a miss.
type Event struct {
	Key  string // letters, digits and _, such as "L1_misses"
	Unit string // the unit, such as "count" or "lines"
	Text string // the text for display, such as "misses of L1"
}

// Entry contains the counts of one source location. Unknown texts are "".
type Entry struct {
	Function     string
	Symbol       string // linker name of the function
	File         string
	Line, Column uint32
	PC           uint64 // address of the instruction; 0 if unknown
	Module       string
	Offset       uint64 // offset of the PC in the module
	Kind         string // kind of reference, such as "load"
	Type         string // datatype
	Variable     string
	Path         int // index of the call path in Sheet.Calls.Paths

	Counts []uint64 // count of each event, in the order of Sheet.Events
}

// Name returns the function's name, or the address if the function is unknown.
func (e *Entry) Name() string {
	switch {
	case e.Function != "":
		return e.Function
	case e.Module != "":
		return e.Module + "+0x" + strconv.FormatUint(e.Offset, 16)
	case e.PC != 0:
		return "0x" + strconv.FormatUint(e.PC, 16)
	}
	return "(unknown)"
}

// Totals returns the sum of each event over all entries.
func (s *Sheet) Totals() []uint64 {
	totals := make([]uint64, len(s.Events))
	for i := range s.Entries {
		for event, n := range s.Entries[i].Counts {
			totals[event] = saturatingAdd(totals[event], n)
		}
	}
	return totals
}

// Event returns the index of the event with the given key, or -1.
func (s *Sheet) Event(key string) int {
	return slices.IndexFunc(s.Events, func(e Event) bool { return e.Key == key })
}

func saturatingAdd(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Folded returns one event as folded stacks, the input format of flamegraph.pl and speedscope. Each
// line contains the frames, separated by semicolons (file, function, and line with the kind of
// reference), a space, and the count. Stacks are in the order of their first entry. Stacks with a
// count of 0 are omitted.
func (s *Sheet) Folded(event int) []byte {
	counts := map[string]uint64{}
	var order []string
	for i := range s.Entries {
		n := s.Entries[i].Counts[event]
		if n == 0 {
			continue
		}
		stack := foldedStack(s.frames(&s.Entries[i]))
		if _, known := counts[stack]; !known {
			order = append(order, stack)
		}
		counts[stack] = saturatingAdd(counts[stack], n)
	}
	var b []byte
	for _, stack := range order {
		b = strconv.AppendUint(append(append(b, stack...), ' '), counts[stack], 10)
		b = append(b, '\n')
	}
	return b
}

// frames returns the source location as stack frames, with the outermost frame first.
func (e *Entry) frames() []frame {
	frames := []frame{{name: cmp.Or(e.File, e.Module, "(no file)"), file: e.File}, {name: e.Name(), file: e.File}}
	if e.Line != 0 {
		leaf := "line " + strconv.FormatUint(uint64(e.Line), 10)
		if e.Kind != "" {
			leaf += " " + e.Kind
		}
		frames = append(frames, frame{leaf, e.File, e.Line})
	}
	return frames
}

// foldedStack joins frames with semicolons. It replaces semicolons in names, because they would end
// the frame.
func foldedStack(frames []frame) string {
	names := make([]string, len(frames))
	for i := range frames {
		names[i] = strings.ReplaceAll(oneLine(frames[i].name), ";", ",")
	}
	return strings.Join(names, ";")
}

// Callgrind returns the sheet in version 1 of Callgrind's profile format (Valgrind manual,
// "Callgrind Format Specification"). Positions are source lines, and costs are the sheet's events.
// Entries for the same line are added up.
func (s *Sheet) Callgrind() []byte {
	w := &callgrind{files: map[string]int{}, functions: map[string]int{}, modules: map[string]int{}}
	w.text("# callgrind format\nversion: 1\ncreator: stackglass\n")
	if s.Command != "" {
		w.text("cmd: " + oneLine(s.Command) + "\n")
	}
	for _, note := range s.Notes {
		w.text("desc: Note: " + oneLine(note) + "\n")
	}
	w.text("positions: line\n")
	for _, e := range s.Events {
		w.text("event: " + callgrindEvent(e.Key) + " : " + oneLine(e.Text) + "\n")
	}
	w.text("events:")
	for _, e := range s.Events {
		w.text(" " + callgrindEvent(e.Key))
	}
	w.text("\nsummary:")
	w.counts(s.Totals())
	w.writeCosts(s)
	w.writeCalls(s)
	w.text("\ntotals:")
	w.counts(s.Totals())
	return w.b
}

// callgrindEvent converts a key to an event name, which contains only letters and digits.
func callgrindEvent(key string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(key, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

type callgrind struct {
	b                         []byte
	modules, files, functions map[string]int // number of each name, starting from 1
}

func (w *callgrind) text(s string) { w.b = append(w.b, s...) }

func (w *callgrind) counts(list []uint64) {
	for _, n := range list {
		w.b = strconv.AppendUint(append(w.b, ' '), n, 10)
	}
	w.b = append(w.b, '\n')
}

// writeName writes the number that represents a name. At the first use of a name, the number is
// followed by the name.
func (w *callgrind) writeName(key, name string, numbers map[string]int) {
	name = oneLine(name)
	number, known := numbers[name]
	if !known {
		number = len(numbers) + 1
		numbers[name] = number
	}
	w.text(key + "=(" + strconv.Itoa(number) + ")")
	if !known {
		w.text(" " + name)
	}
	w.text("\n")
}

// writeCosts writes the costs by module, file, function and line. If call paths are known, each
// function is listed in the file that defines it, even if some lines, such as inlined code, are in
// other files.
func (w *callgrind) writeCosts(s *Sheet) {
	order := make([]Entry, len(s.Entries))
	files := map[string]string{} // for each function: the file that defines it
	if s.Calls != nil {
		for i := range s.Calls.Paths {
			if name := s.Calls.Names[i]; files[name] == "" {
				files[name] = s.Calls.Paths[i].File
			}
		}
	}
	home := func(e *Entry) string { return cmp.Or(files[e.Name()], e.File, "???") }
	for i := range s.Entries {
		order[i] = s.Entries[i]
		if order[i].File == "" {
			order[i].File = files[order[i].Name()]
		}
	}
	compare := func(x, y *Entry) int {
		return cmp.Or(strings.Compare(x.Module, y.Module), strings.Compare(home(x), home(y)), strings.Compare(x.Name(), y.Name()), strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	}
	sort.SliceStable(order, func(i, j int) bool { return compare(&order[i], &order[j]) < 0 })
	in := ""
	for i := 0; i < len(order); {
		e := &order[i]
		if i == 0 || e.Module != order[i-1].Module || home(e) != home(&order[i-1]) || e.Name() != order[i-1].Name() {
			in = home(e)
			w.text("\n")
			w.writeName("ob", cmp.Or(e.Module, "???"), w.modules)
			w.writeName("fl", in, w.files)
			w.writeName("fn", e.Name(), w.functions)
		}
		if file := cmp.Or(e.File, "???"); file != in {
			in = file
			if file == home(e) {
				w.writeName("fe", file, w.files)
			} else {
				w.writeName("fi", file, w.files)
			}
		}
		sum := make([]uint64, len(s.Events))
		for ; i < len(order) && compare(e, &order[i]) == 0; i++ {
			for event, n := range order[i].Counts {
				sum[event] = saturatingAdd(sum[event], n)
			}
		}
		w.text(strconv.FormatUint(uint64(e.Line), 10))
		w.counts(sum)
	}
}

// writeCalls writes the edges of the call graph. An edge contains the number of calls and the
// inclusive counts, that is, the counts of the callee and of all functions that it calls.
func (w *callgrind) writeCalls(s *Sheet) {
	if s.Calls == nil {
		return
	}
	order, calls, counts := s.callEdges()
	sort.SliceStable(order, func(i, j int) bool { return order[i].from < order[j].from })
	c := s.Calls
	for i, a := range order {
		if i == 0 || a.from != order[i-1].from {
			w.text("\n")
			w.writeName("ob", "???", w.modules)
			w.writeName("fl", cmp.Or(c.Paths[a.from].File, "???"), w.files)
			w.writeName("fn", c.Names[a.from], w.functions)
		}
		w.writeName("cfi", cmp.Or(c.Paths[a.to].File, "???"), w.files)
		w.writeName("cfn", c.Names[a.to], w.functions)
		w.text("calls=" + strconv.FormatUint(calls[a], 10) + " " + strconv.Itoa(int(c.Paths[a.to].Line)) + "\n" + strconv.Itoa(int(c.Paths[a.from].Line)))
		w.counts(counts[a])
	}
}

// oneLine replaces line breaks by spaces, because a line break would start a new record.
func oneLine(s string) string { return lineEnds.Replace(s) }

var lineEnds = strings.NewReplacer("\n", " ", "\r", " ")
