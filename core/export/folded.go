package export

import (
	"cmp"
	"strconv"
	"strings"
)

// Folded writes one event as folded stacks, a line each: file;function;line and
// kind of reference, a space and the count, as flamegraph.pl and speedscope read
// them. Stacks are in the order in which they come first, without those that
// count nothing.
func (s *Sheet) Folded(event int) []byte {
	counts := map[string]uint64{}
	var order []string
	for i := range s.Entries {
		n := s.Entries[i].Counts[event]
		if n == 0 {
			continue
		}
		stack := s.Entries[i].stack()
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

// stack is the place as frames, outermost first. A semicolon in a name would end
// its frame.
func (e *Entry) stack() string {
	frames := []string{cmp.Or(e.File, e.Module, "(no file)"), e.Name()}
	if e.Line != 0 {
		leaf := "line " + strconv.FormatUint(uint64(e.Line), 10)
		if e.Kind != "" {
			leaf += " " + e.Kind
		}
		frames = append(frames, leaf)
	}
	for i := range frames {
		frames[i] = strings.ReplaceAll(oneLine(frames[i]), ";", ",")
	}
	return strings.Join(frames, ";")
}
