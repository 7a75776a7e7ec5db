package state

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// Screen is the content of the URL's hash: the analysis, its view, and the view's settings. Screen
// contains no data: a link reveals only the key of an entry in the user's own store.
type Screen struct {
	Open      string // key of the analysis; "": the first screen
	Other     string // key of the analysis to compare with; "": none
	Demo      string // name of the demo to which a link leads; "" once the demo is open, because the field Open then identifies the demo
	Exercise  int    // number of the workshop's exercise, counted from 1; 0: none
	Tab       Tab
	Facts     bool              // the facts below the diagnosis are expanded
	LineBytes uint32            // the line size in view; 0: the profile's default
	Levels    []hierarchy.Cache // the levels of the current hierarchy; nil: the preset's levels
	Memory    hierarchy.Memory  // the memory below the caches in Levels
	ClockGHz  float64           // clock frequency of the processor whose caches are in Levels
	TLBs      []hierarchy.Cache // the TLBs of the processor whose caches are in Levels
	Preset    string            // name of the preset hierarchy; "": the default preset
	Threads   hierarchy.Placement
	Beside    []string           // the hierarchy to compare with, as arguments of --against; nil: none
	Cell      Cell               // the selected cell of the map of sets and ways
	Conflicts bool               // the map shows conflict misses instead of miss ratios
	Log2Lines []int              // capacities of the view over time; nil: the default capacities
	Table     string             // chart whose table is open; "": none
	Range     Range              // part of the run that the views show; zero: the whole run
	Zooms     []Zoom             // charts that show only a part of their x axis
	Orders    []Order            // tables whose rows the user has sorted
	Page      int                // number of the page of the open table, counted from 0
	By        answers.CountersBy // grouping of counters; "": for the program
	Sort      string             // column by which counters or the rows of the Code view are sorted; "": the default
	Place     attribution.By     // grouping of misses in the code; "": by line
	Picked    int                // the selected row of the Code view, counted from 1; 0: none

	Stack       Stack  // kind of LRU stack whose curves are shown for all threads; "": private
	OwnBytes    uint64 // size of each thread's private cache; 0: the size of the first level
	SharedBytes uint64 // size of a cache that threads share; 0: the size of the last level
	// threads that share a cache, in the format of [Groups]; "": all threads share one cache
	Groups string

	Granule int         // granularity of flows between threads: 0 words, 1 lines, 2 pages
	Measure FlowMeasure // unit of flows; "": transfers
	Window  int         // the window of the run, counted from 1; 0: the whole run
	Flow    [2]int      // selected row and column of the matrix, counted from 1; 0: none
	Owner   int         // the data structure whose owners are shown, counted from 1; 0: the first
	Data    int         // the data structure of the Data view, counted from 1; 0: the first of the ranking
	// the selected loop, counted from 1; 0: the loop with the most references outside its inner loops
	Loop int

	Cores      int    // the number of cores for which a run is predicted; 0: the default of 4 cores
	Division   string // division of work among the cores; "": by iterations
	Schedule   string // schedule of loops; "": as in the program
	Interleave string // interleaving of the cores' references; "": round robin
	Model      string // the input of SDCM (see Models); "": a sample of lines

	Calls  string // direction of call paths; see CallDirections
	Root   int    // for CallsFunction: the first path of the function, as numbered in the profile; 0: the function with the most exclusive misses
	Weight string // event by which call paths are weighted; "": misses of the first level
	// the call path whose frame is as wide as the flame graph, in the format of [CallTree.Frame]; "":
	// all paths
	Frame string

	Processor string // the processor for run times; "": the default processor
	Function  int    // the selected function, counted from 1; 0: the function that takes the most time
	// the selected block of the function, counted from 1; 0: the block that takes the most time
	Block int

	own map[string]string // by name: settings that only one view has; see [Screen.Own]
}

// OwnSetting is a setting of a single view. The file of the view declares it as a variable with
// newOwnSetting, so that a new view does not change this file.
type OwnSetting struct{ name string }

// newOwnSetting returns a setting that the URL contains as NAME=TEXT. The text consists of letters,
// digits and the other characters that [safeKey] accepts; "" is the default. newOwnSetting must be
// called during package initialisation.
func newOwnSetting(name string) *OwnSetting {
	own := &OwnSetting{name}
	settings = append(settings, setting{name, func(s *Screen) string { return s.Own(own) }, func(s *Screen, text string) { *s = s.WithOwn(own, text) }})
	return own
}

// Own returns the text of a setting, or "" for the default.
func (s Screen) Own(setting *OwnSetting) string { return s.own[setting.name] }

// WithOwn returns the screen with another text of a setting.
func (s Screen) WithOwn(setting *OwnSetting, text string) Screen {
	s.own = maps.Clone(s.own)
	if text = safeKey(text); text == "" {
		delete(s.own, setting.name)
		return s
	}
	if s.own == nil {
		s.own = map[string]string{}
	}
	s.own[setting.name] = text
	return s
}

// setting is a setting of a screen. The URL contains it as NAME=TEXT.
type setting struct {
	name  string
	write func(s *Screen) string // returns the setting's text; "": the default, which the URL omits
	read  func(s *Screen, text string)
}

// settings lists all settings, in the order of the URL. Settings of single views follow at the end.
var settings = []setting{
	wordSetting("open", func(s *Screen) *string { return &s.Open }),
	{"view", func(s *Screen) string { return s.Tab.Slug() }, func(s *Screen, text string) { s.Tab = TabOf(text) }},
	{"facts", func(s *Screen) string {
		if s.Facts {
			return "1"
		}
		return ""
	}, func(s *Screen, text string) { s.Facts = text == "1" }},
	wordSetting("with", func(s *Screen) *string { return &s.Other }),
	{"line", func(s *Screen) string { return formatPositive(uint64(s.LineBytes)) }, func(s *Screen, text string) { s.LineBytes = uint32(parse(text, 13)) }},
	wordSetting("preset", func(s *Screen) *string { return &s.Preset }),
	{"levels", func(s *Screen) string {
		if s.Levels == nil {
			return ""
		}
		return formatMachine(hierarchy.Hierarchy{Levels: s.Levels, Memory: s.Memory, ClockGHz: s.ClockGHz, TLBs: s.TLBs})
	}, func(s *Screen, text string) {
		h := parseMachine(text)
		s.Levels, s.Memory, s.ClockGHz, s.TLBs = h.Levels, h.Memory, h.ClockGHz, h.TLBs
	}},
	{"threads", func(s *Screen) string {
		if s.Threads == hierarchy.OnOneCore {
			return oneCore
		}
		return ""
	}, func(s *Screen, text string) { s.Threads = placementOf(text) }},
	{against, func(s *Screen) string { return strings.Join(s.Beside, "&"+against+"=") }, func(s *Screen, text string) {
		if text = safeLine(text); text != "" && len(s.Beside) < hierarchy.MostLevels {
			s.Beside = append(s.Beside, text)
		}
	}},
	{"cell", func(s *Screen) string { return s.Cell.format() }, func(s *Screen, text string) { s.Cell = parseCell(text) }},
	{"map", func(s *Screen) string {
		if s.Conflicts {
			return "conflicts"
		}
		return ""
	}, func(s *Screen, text string) { s.Conflicts = text == "conflicts" }},
	{"time", func(s *Screen) string {
		var capacities []string
		for _, k := range s.Log2Lines {
			capacities = append(capacities, strconv.Itoa(k))
		}
		return strings.Join(capacities, ".")
	}, func(s *Screen, text string) { s.Log2Lines = parseCapacities(text) }},
	{"range", func(s *Screen) string { return s.Range.String() }, func(s *Screen, text string) { s.Range = ParseRange(text) }},
	{"zoom", func(s *Screen) string {
		var parts []string
		for _, z := range s.Zooms {
			parts = append(parts, z.String())
		}
		return strings.Join(parts, "&zoom=")
	}, func(s *Screen, text string) {
		if len(s.Zooms) < mostZooms {
			*s = s.Zoomed(parseZoom(text))
		}
	}},
	{"order", func(s *Screen) string {
		parts := make([]string, len(s.Orders))
		for i, o := range s.Orders {
			parts[i] = o.String()
		}
		return strings.Join(parts, "&order=")
	}, func(s *Screen, text string) {
		if o := parseOrder(text); o.Table != "" && o.Column != "" && len(s.Orders) < mostOrders && s.Order(o.Table) == (Order{}) {
			s.Orders = append(s.Orders, o)
		}
	}},
	{"table", func(s *Screen) string { return safeKey(s.Table) }, func(s *Screen, text string) { s.Table = safeKey(text) }},
	{"by", func(s *Screen) string { return safeName(string(s.By)) }, func(s *Screen, text string) {
		if by := answers.CountersBy(text); by == answers.ByFunction || by == answers.ByBlock {
			s.By = by
		}
	}},
	{"sort", func(s *Screen) string { return safeKey(s.Sort) }, func(s *Screen, text string) { s.Sort = safeKey(text) }},
	{"place", func(s *Screen) string { return safeName(string(s.Place)) }, func(s *Screen, text string) {
		if by := attribution.By(text); slices.Contains(CodeBys()[1:], by) {
			s.Place = by
		}
	}},
	numberSetting("picked", 31, func(s *Screen) *int { return &s.Picked }),
	{"stack", func(s *Screen) string { return safeName(string(s.Stack)) }, func(s *Screen, text string) { s.Stack = stackOf(text) }},
	{"own", func(s *Screen) string { return formatPositive(s.OwnBytes) }, func(s *Screen, text string) { s.OwnBytes = parse(text, 41) }},
	{"shared", func(s *Screen) string { return formatPositive(s.SharedBytes) }, func(s *Screen, text string) { s.SharedBytes = parse(text, 41) }},
	wordSetting("groups", func(s *Screen) *string { return &s.Groups }),
	{"measure", func(s *Screen) string { return safeName(string(s.Measure)) }, func(s *Screen, text string) { s.Measure = measureOf(text) }},
	{"calls", func(s *Screen) string { return safeName(s.Calls) }, func(s *Screen, text string) {
		if text == CallsUp || text == CallsFunction {
			s.Calls = text
		}
	}},
	numberSetting("of", 31, func(s *Screen) *int { return &s.Root }),
	{"weight", func(s *Screen) string { return safeKey(s.Weight) }, func(s *Screen, text string) { s.Weight = safeKey(text) }},
	{"frame", func(s *Screen) string { return safeKey(s.Frame) }, func(s *Screen, text string) { s.Frame = safeKey(text) }},
	wordSetting("processor", func(s *Screen) *string { return &s.Processor }),
	wordSetting("division", func(s *Screen) *string { return &s.Division }),
	{"schedule", func(s *Screen) string { return safeName(strings.ReplaceAll(s.Schedule, ",", "-")) },
		func(s *Screen, text string) { s.Schedule = strings.ReplaceAll(safeName(text), "-", ",") }},
	wordSetting("interleave", func(s *Screen) *string { return &s.Interleave }),
	wordSetting("sdcm", func(s *Screen) *string { return &s.Model }),
	{"granule", func(s *Screen) string { return formatPositive(uint64(s.Granule)) }, func(s *Screen, text string) { s.Granule = int(min(parse(text, 16), 2)) }},
	numberSetting("exercise", 8, func(s *Screen) *int { return &s.Exercise }),
	numberSetting("window", 16, func(s *Screen) *int { return &s.Window }),
	numberSetting("from", 16, func(s *Screen) *int { return &s.Flow[0] }),
	numberSetting("to", 16, func(s *Screen) *int { return &s.Flow[1] }),
	numberSetting("owner", 16, func(s *Screen) *int { return &s.Owner }),
	numberSetting("data", 31, func(s *Screen) *int { return &s.Data }),
	numberSetting("loop", 31, func(s *Screen) *int { return &s.Loop }),
	numberSetting("function", 31, func(s *Screen) *int { return &s.Function }),
	numberSetting("block", 31, func(s *Screen) *int { return &s.Block }),
	{"cores", func(s *Screen) string { return formatPositive(uint64(s.Cores)) }, func(s *Screen, text string) { s.Cores = int(min(parse(text, 16), MostPredicted)) }},
	{"page", func(s *Screen) string {
		if s.Page == 0 {
			return ""
		}
		return strconv.Itoa(s.Page + 1)
	}, func(s *Screen, text string) { s.Page = int(max(parse(text, 31), 1)) - 1 }},
	// a URL that the page writes never contains the demo, because the field Open already identifies
	// it
	{"demo", func(*Screen) string { return "" }, func(s *Screen, text string) { s.Demo = safeName(text) }},
}

// against is the name of an argument of "stackglass what-if". The setting with the values of this
// argument has the same name.
const against = "against"

// wordSetting returns a setting whose text consists of letters and digits.
func wordSetting(name string, of func(*Screen) *string) setting {
	return setting{name, func(s *Screen) string { return safeName(*of(s)) }, func(s *Screen, text string) { *of(s) = safeName(text) }}
}

// numberSetting returns a setting whose text is a positive number with at most the given number of bits.
func numberSetting(name string, bits int, of func(*Screen) *int) setting {
	return setting{name, func(s *Screen) string { return formatPositive(uint64(max(*of(s), 0))) }, func(s *Screen, text string) { *of(s) = int(parse(text, bits)) }}
}

// formatPositive formats a number; 0 becomes "".
func formatPositive(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// parse parses a number with at most the given number of bits, and returns 0 if the text is not
// such a number.
func parse(text string, bits int) uint64 {
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0
	}
	return n
}

// Hash returns the URL's hash for the screen, without "#". Hash omits settings with default values.
func (s Screen) Hash() string {
	if s.Open == "" {
		return ""
	}
	var parts []string
	for _, of := range settings {
		if text := of.write(&s); text != "" {
			parts = append(parts, of.name+"="+text)
		}
	}
	return strings.Join(parts, "&")
}

// ParseScreen parses a hash, with or without "#". Settings that ParseScreen does not recognise keep
// their default values, so every link opens a valid screen.
func ParseScreen(hash string) Screen {
	var s Screen
	for _, part := range strings.Split(strings.TrimPrefix(hash, "#"), "&") {
		name, text, _ := strings.Cut(part, "=")
		for _, of := range settings {
			if of.name == name {
				of.read(&s, text)
			}
		}
	}
	return s
}

// Unread returns sentences about the parts of a hash that [ParseScreen] ignores or changes.
func Unread(hash string) (list []string) {
	q := ask.New(ask.VerbOf("what-if"))
	for _, part := range strings.Split(strings.TrimPrefix(hash, "#"), "&") {
		name, value, _ := strings.Cut(part, "=")
		switch {
		case value == "":
		case name == against:
			q = q.With(against, append(slices.Clone(q.List(against)), value)...)
		case name == "levels":
			if h := parseMachine(value); h.Levels == nil {
				list = append(list, "The value of “levels” in the link cannot be read and is ignored. The format of a level is NAME.BYTES.WAYS.LINE, for example L1.32768.8.64, and there can be at most "+strconv.Itoa(MaxLevels)+" levels.")
			} else if formatMachine(h) != value {
				list = append(list, "Some values in “levels” in the link are not possible, so the nearest possible values are used. The number of lines of a cache must be a multiple of the number of ways.")
			}
		case name == "cell" && parseCell(value) == Cell{}:
			list = append(list, "The value of “cell” in the link is invalid and is ignored. The format is SETSxWAYS, for example 64x8.")
		case name == Pages.name && new(hierarchy.Hierarchy).SetPages(value) != nil:
			list = append(list, "The value of “pages” in the link is invalid and is ignored. A page size is a power of two from 4KiB to 1GiB, for example 2MiB.")
		case name == "preset" && !isPreset(safeName(value)):
			list = append(list, "The link names a preset that the page does not know, so the page shows a different hierarchy.")
		}
	}
	if _, err := q.Against(); err != nil {
		list = append(list, "The link names a hierarchy that does not exist or is invalid: "+err.Error()+".")
	}
	return list
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

// safeKey removes characters that are impossible in the keys of tables and columns.
func safeKey(key string) string { return keepCharacters(key, "-_") }

// safeLine removes characters that are impossible in the lines that describe a hierarchy.
func safeLine(text string) string { return keepCharacters(text, "-=,.+:") }

// Anew returns the screen that shows the diagnosis of a new analysis, for the current processor and
// the current hierarchy.
func (s Screen) Anew(key string) Screen {
	return Screen{Open: key, Levels: s.Levels, Memory: s.Memory, ClockGHz: s.ClockGHz, TLBs: s.TLBs, Preset: s.Preset, Threads: s.Threads, Processor: s.Processor}.WithOwn(Pages, s.Own(Pages))
}

// The method With returns the screen on the given tab, with no open table. Each tab has its own
// sort order.
func (s Screen) With(t Tab) Screen {
	if t != s.Tab {
		s.Sort = ""
	}
	s.Tab, s.Table, s.Page = t, "", 0
	return s
}

// Called returns the screen with the given direction of call paths. The parameter "root" is a call
// path that ends in the function in view. This parameter is needed only for CallsFunction.
func (s Screen) Called(direction string, root int) Screen {
	s.Calls, s.Root, s.Frame = direction, root, ""
	return s
}

// Against returns the screen that compares the analysis with the analysis that has the given key,
// or the screen without a comparison if the key is "". A comparison shows whole runs.
func (s Screen) Against(key string) Screen {
	s.Other, s.Sort, s.Table, s.Page, s.Picked, s.Range = key, "", "", 0, 0, Range{}
	return s
}

// SummedIn returns the screen with the given grouping of the misses in the code.
func (s Screen) SummedIn(by attribution.By) Screen {
	if by == attribution.Line {
		by = ""
	}
	s.Place, s.Picked, s.Sort = by, 0, ""
	return s
}

// Summed returns the screen with the given grouping of the counters, in the default order of their
// table.
func (s Screen) Summed(by answers.CountersBy) Screen {
	if by == answers.ByProgram {
		by = ""
	}
	s.By, s.Sort, s.Table, s.Page = by, "", "", 0
	return s
}

// Sorted returns the screen with the table sorted by the given column.
func (s Screen) Sorted(column string) Screen {
	s.Sort, s.Table, s.Page = column, "", 0
	return s
}

// Order is the order of a table's rows. The rows are sorted by a column, with numbers descending
// and words ascending, or in the reverse order. The zero Order is the order of the table's
// document.
type Order struct {
	Table   string // the ID of the table
	Column  string // the key of the column
	Reverse bool
}

// mostOrders is the maximum number of sorted tables in a URL.
const mostOrders = 32

// String returns an order in the form that URLs use, for example "members:size" or, reversed,
// "members:size:reverse".
func (o Order) String() string {
	text := safeKey(o.Table) + ":" + safeKey(o.Column)
	if o.Reverse {
		text += ":reverse"
	}
	return text
}

// parseOrder parses the output of [Order.String].
func parseOrder(text string) Order {
	table, column, _ := strings.Cut(text, ":")
	column, reverse, _ := strings.Cut(column, ":")
	return Order{safeKey(table), safeKey(column), reverse == "reverse"}
}

// Order returns the order of a table's rows, or the zero Order if the user has not sorted them.
func (s Screen) Order(table string) Order {
	for _, o := range s.Orders {
		if o.Table == table {
			return o
		}
	}
	return Order{}
}

// Ordered returns the screen with a table's rows sorted by a column. Sorting by the same column
// again reverses the rows, and sorting a third time restores the document's order.
func (s Screen) Ordered(table, column string) Screen {
	o := s.Order(table)
	s.Orders = slices.DeleteFunc(slices.Clone(s.Orders), func(of Order) bool { return of.Table == table })
	switch {
	case o.Column != column:
		s.Orders = append(s.Orders, Order{Table: table, Column: column})
	case !o.Reverse:
		s.Orders = append(s.Orders, Order{table, column, true})
	}
	if len(s.Orders) == 0 {
		s.Orders = nil
	}
	if len(s.Orders) > mostOrders {
		s.Orders = s.Orders[1:]
	}
	if s.Table == table {
		s.Page = 0
	}
	return s
}

// Toggle opens the table of a chart, or closes the table if it is open.
func (s Screen) Toggle(chart string) Screen {
	if s.Table == chart {
		chart = ""
	}
	s.Table, s.Page = chart, 0
	return s
}

// ToggleCapacity adds a cache size to the chart of misses over time, or removes it if it is already
// shown. The parameter "shown" lists the capacities that are currently shown. If there would be more
// than [MaxLines] capacities, the first capacity is hidden. The last remaining capacity cannot be
// hidden.
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

// PresetSlug returns a preset's name in the form that the hash uses.
func PresetSlug(name string) string { return safeName(name) }
