package export

import (
	"cmp"
	"sort"
	"strconv"
	"strings"
)

// Callgrind writes the sheet in the format of profiles of Valgrind's Callgrind
// (Valgrind manual, "Callgrind Format Specification"), version 1: positions are
// source lines, costs are the sheet's events. Entries of one line are added up.
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
	w.lines(s)
	w.text("\ntotals:")
	w.counts(s.Totals())
	return w.b
}

// callgrindEvent is a key as the tools have them: letters and digits only.
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
	modules, files, functions map[string]int // their numbers, from 1
}

func (w *callgrind) text(s string) { w.b = append(w.b, s...) }

func (w *callgrind) counts(list []uint64) {
	for _, n := range list {
		w.b = strconv.AppendUint(append(w.b, ' '), n, 10)
	}
	w.b = append(w.b, '\n')
}

// name writes a position: the name with its number at first, then the number.
func (w *callgrind) name(key, name string, numbers map[string]int) {
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

// lines writes the costs, by module, file, function and line.
func (w *callgrind) lines(s *Sheet) {
	order := make([]*Entry, len(s.Entries))
	for i := range s.Entries {
		order[i] = &s.Entries[i]
	}
	sort.SliceStable(order, func(i, j int) bool { return comparePlaces(order[i], order[j]) < 0 })
	for i := 0; i < len(order); {
		e := order[i]
		if i == 0 || e.Module != order[i-1].Module || e.File != order[i-1].File || e.Name() != order[i-1].Name() {
			w.text("\n")
			w.name("ob", cmp.Or(e.Module, "???"), w.modules)
			w.name("fl", cmp.Or(e.File, "???"), w.files)
			w.name("fn", e.Name(), w.functions)
		}
		sum := make([]uint64, len(s.Events))
		for ; i < len(order) && comparePlaces(e, order[i]) == 0; i++ {
			for event, n := range order[i].Counts {
				sum[event] = saturatingAdd(sum[event], n)
			}
		}
		w.text(strconv.FormatUint(uint64(e.Line), 10))
		w.counts(sum)
	}
}

func comparePlaces(x, y *Entry) int {
	return cmp.Or(strings.Compare(x.Module, y.Module), strings.Compare(x.File, y.File), strings.Compare(x.Name(), y.Name()), cmp.Compare(x.Line, y.Line))
}

// oneLine is s without line ends, which would begin another record.
func oneLine(s string) string { return strings.Map(noLineEnd, s) }

func noLineEnd(r rune) rune {
	if r == '\n' || r == '\r' {
		return ' '
	}
	return r
}
