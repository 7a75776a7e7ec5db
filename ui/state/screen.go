package state

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// Screen is what the URL's hash says: which analysis, which view of it, and
// its settings. It holds no data: a link gives nothing away but the key of an
// entry in the reader's own store.
type Screen struct {
	Open      string // key of the analysis; "": the first screen
	Other     string // key of the analysis that it is compared with; "": none
	Demo      string // the demo that a link leads to, by its name; an open one has Open
	Tab       Tab
	LineBytes uint32            // 0: the profile's default
	Levels    []hierarchy.Cache // nil: the preset
	Memory    hierarchy.Memory  // behind Levels
	ClockGHz  float64           // of Levels
	Preset    string            // "": the default one
	Threads   hierarchy.Placement
	// Beside is a hierarchy that was kept beside the one in question; without
	// levels: none.
	Beside    hierarchy.Hierarchy
	Cell      Cell               // sets × ways that are picked
	Conflicts bool               // the map of these shows conflict misses
	Log2Lines []int              // capacities of the view over time; nil: the default ones
	Table     string             // the chart whose table is open; "": none
	Page      int                // of that table, from 0
	By        answers.CountersBy // what counters are summed up by; "": the program
	Sort      string             // the column that they, or places in the code, are sorted by; "": the default one
	Place     CodeBy             // what misses in the code are summed up by; "": lines
	Picked    int                // the place that is picked, from 1; 0: none

	Stack       Stack  // of which threads' curves are shown; "": private
	OwnBytes    uint64 // size of a cache for each thread; 0: that of the first level
	SharedBytes uint64 // of a cache that threads share; 0: that of the last level
	Groups      string // of threads that share one, as [Groups]; "": all

	Granule int         // of flows between threads: 0 words, 1 lines, 2 pages
	Measure FlowMeasure // of them; "": transfers
	Window  int         // of the run, from 1; 0: all of it
	Flow    [2]int      // row and column of the matrix that are picked, from 1; 0: none
	Owner   int         // the data structure whose owners are shown, from 1; 0: the first
	Loop    int         // the loop that is picked, from 1; 0: the one with most references of its own

	Cores      int    // that are predicted, from 1; 0: 4
	Division   string // of their work; "": by iterations
	Schedule   string // of loops; "": as the program says
	Interleave string // of their references; "": round robin
	Model      string // what SDCM is asked about, see Models; "": a few lines

	Processor string // of runtimes; "": the default one
	Function  int    // the function that is picked, from 1; 0: the one that takes most
	Block     int    // the block of it, from 1; 0: the same
}

// Hash writes the screen for the URL, without "#". What is the default is left
// out.
func (s Screen) Hash() string {
	if s.Open == "" {
		return ""
	}
	parts := []string{"open=" + safe(s.Open), "view=" + s.Tab.Slug()}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+value)
		}
	}
	add("with", safe(s.Other))
	if s.LineBytes != 0 {
		add("line", strconv.FormatUint(uint64(s.LineBytes), 10))
	}
	add("preset", safe(s.Preset))
	if s.Levels != nil {
		add("levels", formatMachine(hierarchy.Hierarchy{Levels: s.Levels, Memory: s.Memory, ClockGHz: s.ClockGHz}))
	}
	if s.Threads == hierarchy.OnOneCore {
		add("threads", oneCore)
	}
	add("beside", formatMachine(s.Beside))
	add("cell", s.Cell.format())
	if s.Conflicts {
		add("map", "conflicts")
	}
	var capacities []string
	for _, k := range s.Log2Lines {
		capacities = append(capacities, strconv.Itoa(k))
	}
	add("time", strings.Join(capacities, "."))
	add("table", safeKey(s.Table))
	add("by", safe(string(s.By)))
	add("sort", safeKey(s.Sort))
	add("place", safe(string(s.Place)))
	if s.Picked > 0 {
		add("picked", strconv.Itoa(s.Picked))
	}
	add("stack", safe(string(s.Stack)))
	for _, size := range []struct {
		name  string
		bytes uint64
	}{{"own", s.OwnBytes}, {"shared", s.SharedBytes}} {
		if size.bytes > 0 {
			add(size.name, strconv.FormatUint(size.bytes, 10))
		}
	}
	add("groups", safe(s.Groups))
	add("measure", safe(string(s.Measure)))
	add("processor", safe(s.Processor))
	add("division", safe(s.Division))
	add("schedule", safe(strings.ReplaceAll(s.Schedule, ",", "-")))
	add("interleave", safe(s.Interleave))
	add("sdcm", safe(s.Model))
	for _, n := range []struct {
		name  string
		value int
	}{{"granule", s.Granule}, {"window", s.Window}, {"from", s.Flow[0]}, {"to", s.Flow[1]}, {"owner", s.Owner}, {"loop", s.Loop}, {"function", s.Function}, {"block", s.Block}, {"cores", s.Cores}} {
		if n.value > 0 {
			add(n.name, strconv.Itoa(n.value))
		}
	}
	if s.Page > 0 {
		add("page", strconv.Itoa(s.Page+1))
	}
	return strings.Join(parts, "&")
}

// ParseScreen reads a hash, with or without "#". What it does not understand
// is left at its default: a link is never an error.
func ParseScreen(hash string) Screen {
	var s Screen
	for _, part := range strings.Split(strings.TrimPrefix(hash, "#"), "&") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "demo":
			s.Demo = safe(value)
		case "open":
			s.Open = safe(value)
		case "with":
			s.Other = safe(value)
		case "view":
			s.Tab = TabOf(value)
		case "line":
			if n, err := strconv.ParseUint(value, 10, 13); err == nil {
				s.LineBytes = uint32(n)
			}
		case "preset":
			s.Preset = safe(value)
		case "levels":
			h := parseMachine(value)
			s.Levels, s.Memory, s.ClockGHz = h.Levels, h.Memory, h.ClockGHz
		case "threads":
			s.Threads = placementOf(value)
		case "beside":
			s.Beside = parseMachine(value)
		case "cell":
			s.Cell = parseCell(value)
		case "map":
			s.Conflicts = value == "conflicts"
		case "time":
			s.Log2Lines = parseCapacities(value)
		case "table":
			s.Table = safeKey(value)
		case "by":
			if by := answers.CountersBy(value); by == answers.ByFunction || by == answers.ByBlock {
				s.By = by
			}
		case "sort":
			s.Sort = safeKey(value)
		case "place":
			s.Place = codeByOf(value)
		case "picked":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				s.Picked = n
			}
		case "stack":
			s.Stack = stackOf(value)
		case "own":
			s.OwnBytes = parseSize(value)
		case "shared":
			s.SharedBytes = parseSize(value)
		case "measure":
			s.Measure = measureOf(value)
		case "granule":
			s.Granule = min(parseNumber(value), 2)
		case "window":
			s.Window = parseNumber(value)
		case "from":
			s.Flow[0] = parseNumber(value)
		case "to":
			s.Flow[1] = parseNumber(value)
		case "owner":
			s.Owner = parseNumber(value)
		case "loop":
			s.Loop = parseNumber(value)
		case "processor":
			s.Processor = safe(value)
		case "division":
			s.Division = safe(value)
		case "schedule":
			s.Schedule = strings.ReplaceAll(safe(value), "-", ",")
		case "interleave":
			s.Interleave = safe(value)
		case "sdcm":
			s.Model = safe(value)
		case "cores":
			s.Cores = min(parseNumber(value), MostPredicted)
		case "function":
			s.Function = parseIndex(value)
		case "block":
			s.Block = parseIndex(value)
		case "groups":
			s.Groups = safe(value)
		case "page":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				s.Page = n - 1
			}
		}
	}
	return s
}

// Unread says in sentences which parts of a hash [ParseScreen] leaves at their
// defaults, or takes as something else, although they ask for something.
func Unread(hash string) (list []string) {
	for _, part := range strings.Split(strings.TrimPrefix(hash, "#"), "&") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case value == "":
		case name == "levels" || name == "beside":
			if h := parseMachine(value); h.Levels == nil {
				list = append(list, "The link's "+name+" cannot be read, and are left out: each is NAME.BYTES.WAYS.LINE, as L1.32768.8.64, at most "+strconv.Itoa(MaxLevels)+" of them.")
			} else if formatMachine(h) != value {
				list = append(list, "The link's "+name+" cannot be as they are there: the nearest possible ones are taken. Ways have to divide the lines of a cache.")
			}
		case name == "cell" && parseCell(value) == Cell{}:
			list = append(list, "The link's cell cannot be read, and is left out: it is SETSxWAYS, as 64x8.")
		case name == "preset" && !isPreset(safe(value)):
			list = append(list, "The page knows no preset that is called as in the link: another hierarchy is shown.")
		}
	}
	return list
}

// parseNumber reads a small number; anything else is 0.
func parseNumber(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// parseIndex reads the number of a row of a long table; anything else is 0.
func parseIndex(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// parseSize reads a cache's size; anything that is none is left at its default.
func parseSize(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 41)
	if err != nil {
		return 0
	}
	return n
}

func isPreset(slug string) bool {
	for _, p := range hierarchy.Presets() {
		if PresetSlug(p.Name) == slug {
			return true
		}
	}
	return false
}

func parseCapacities(value string) []int {
	var list []int
	for _, word := range strings.Split(value, ".") {
		if k, err := strconv.Atoi(word); err == nil && k >= 0 && k <= 32 && len(list) < MaxLines {
			list = append(list, k)
		}
	}
	return list
}

// safeKey keeps what keys of tables and columns are made of.
func safeKey(key string) string {
	parts := strings.Split(key, "_")
	for i := range parts {
		parts[i] = safe(parts[i])
	}
	return strings.Join(parts, "_")
}

// Anew is the screen of an analysis that begins: of the one before, it keeps the
// hierarchy in question, which the analysis measures.
func (s Screen) Anew(key string) Screen {
	return Screen{Open: key, Tab: TabCaches, Levels: s.Levels, Memory: s.Memory, ClockGHz: s.ClockGHz, Preset: s.Preset, Threads: s.Threads}
}

// With gives the screen on another tab, its table closed. What rows are sorted by
// is the tab's own.
func (s Screen) With(t Tab) Screen {
	if t != s.Tab {
		s.Sort = ""
	}
	s.Tab, s.Table, s.Page = t, "", 0
	return s
}

// Against gives the screen with two analyses side by side; "" ends that.
func (s Screen) Against(key string) Screen {
	s.Other, s.Sort, s.Table, s.Page, s.Picked = key, "", "", 0, 0
	return s
}

// SummedIn gives the screen with misses in the code summed up by something else.
func (s Screen) SummedIn(by CodeBy) Screen {
	s.Place, s.Picked, s.Sort = by, 0, ""
	return s
}

// Summed gives the screen with counters summed up by something else, in its own
// order.
func (s Screen) Summed(by answers.CountersBy) Screen {
	if by == answers.ByProgram {
		by = ""
	}
	s.By, s.Sort, s.Table, s.Page = by, "", "", 0
	return s
}

// Sorted gives the screen with counters sorted by another column.
func (s Screen) Sorted(column string) Screen {
	s.Sort, s.Table, s.Page = column, "", 0
	return s
}

// Toggle opens the table of a chart, or closes it when it is open.
func (s Screen) Toggle(chart string) Screen {
	if s.Table == chart {
		chart = ""
	}
	s.Table, s.Page = chart, 0
	return s
}

// ToggleCapacity shows or hides a capacity in the view over time. shown are the
// ones shown now; beyond [MaxLines] the first one makes room, and the last one
// stays.
func (s Screen) ToggleCapacity(shown []int, k int) Screen {
	var list []int
	found := false
	for _, have := range shown {
		if have == k {
			found = true
			continue
		}
		list = append(list, have)
	}
	switch {
	case found && len(list) == 0:
		list = []int{k}
	case !found && len(list) == MaxLines:
		list = append(list[1:], k)
	case !found:
		list = append(list, k)
	}
	s.Log2Lines = list
	return s
}

// PresetSlug is a preset's name as the hash carries it.
func PresetSlug(name string) string { return safe(name) }
