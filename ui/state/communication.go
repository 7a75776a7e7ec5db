package state

import (
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// FlowMeasure is the unit of flows between threads.
type FlowMeasure string

// These are the measures of flows.
const (
	Transfers FlowMeasure = "transfers" // first loads of a value that another thread wrote
	Events    FlowMeasure = "events"    // references to data that another thread wrote last
	FlowBytes FlowMeasure = "bytes"     // number of transferred bytes
)

// FlowMeasures returns all measures.
func FlowMeasures() []FlowMeasure { return []FlowMeasure{Transfers, Events, FlowBytes} }

func measureOf(text string) FlowMeasure {
	if m := FlowMeasure(text); m == Events || m == FlowBytes {
		return m
	}
	return ""
}

func (m FlowMeasure) of(f *profile.Flow) uint64 {
	switch m {
	case Events:
		return f.Events
	case FlowBytes:
		return f.Bytes
	}
	return f.Transfers
}

// text formats a number in the unit of the measure.
func (m FlowMeasure) text(n uint64) string {
	if m == FlowBytes {
		return Bytes(n)
	}
	return Exact(n)
}

// Communication is the view of the values that one thread writes and another thread reads.
type Communication struct {
	*profile.Communication
	view    *View
	threads []uint32               // threads that the profile distinguishes, ascending
	objects []int                  // the result of the method Objects; nil: not computed yet
	answers *answers.Communication // the answers that the command also prints
	flowMap drawnMatrix
	owned   drawnMatrix
	falses  []answers.FalseFinding
}

// drawnMatrix is the last matrix that was drawn, with its subject.
type drawnMatrix struct {
	of     any
	matrix *Matrix
}

// cachedMatrix returns the matrix of a subject. It calls the function "draw" unless the last matrix
// had the same subject.
func (d *drawnMatrix) cachedMatrix(of any, draw func() *Matrix) *Matrix {
	if d.matrix == nil || d.of != of {
		d.of, d.matrix = of, draw()
	}
	return d.matrix
}

// Communication returns the view, or nil if the profile has no communication.
func (v *View) Communication() *Communication {
	if v.communication == nil && v.Profile.Communication != nil {
		c := &Communication{Communication: v.Profile.Communication, view: v, answers: &answers.Communication{Profile: v.Profile, Name: v.Run.FunctionName}}
		c.threads = c.separateThreads()
		v.communication = c
	}
	return v.communication
}

// separateThreads returns the threads that are shown separately: first the threads that flows
// and owners distinguish, and then other threads until the maximum number is reached. The last
// thread in the flows may represent several threads.
func (c *Communication) separateThreads() []uint32 {
	named := map[uint32]bool{}
	for i := range c.Granules {
		for _, f := range c.Granules[i].Flows {
			named[f.From], named[f.To] = true, true
		}
	}
	for i := range c.Owners {
		for _, p := range c.Owners[i].Parts {
			if p.References > 0 {
				named[p.FirstTouch], named[p.Most] = true, true
			}
		}
	}
	for _, t := range c.view.Profile.Totals.Threads {
		if len(named) < profile.MaxThreads {
			named[t] = true
		}
	}
	list := slices.Sorted(maps.Keys(named))
	return list[:min(len(list), profile.MaxThreads)]
}

// Doubts returns sentences about data that was omitted or is unknown.
func (c *Communication) Doubts() []string {
	return c.view.threadDoubts(answers.ManyThreads(c.view.Profile, true), answers.CommunicationOfSample)
}

// threadDoubts converts the caveats in the list to sentences, and adds caveats about the order of
// threads and about samples.
func (v *View) threadDoubts(list []string, ofSample string) []string {
	var doubts []hierarchy.Warning
	for _, text := range append(list, answers.RestsOnSample(v.Profile, ofSample)...) {
		doubts = append(doubts, hierarchy.Warning(text))
	}
	if text := hierarchy.OrderDoubt(v.Profile); text != "" {
		doubts = append(doubts, text)
	}
	return Warnings(nil, doubts)
}

// GranuleName returns the name of a granularity: words, lines or pages.
func (c *Communication) GranuleName(i int) string {
	size := " of " + Exact(uint64(c.Granules[i].Bytes)) + " bytes"
	switch {
	case i == 0:
		return "words" + size
	case c.Granules[i].Bytes == profile.PageBytes:
		return "pages" + size
	}
	return "lines" + size
}

// Flows returns the flows at a granularity, or the flows of words in one window (counted from 1).
func (c *Communication) Flows(granule, window int) []profile.Flow {
	if window > 0 && window <= len(c.Windows) {
		return c.Windows[window-1].Flows
	}
	return c.Granules[granule].Flows
}

// Matrix contains the cells that matrix.js draws, for example a row for each thread that writes
// values, and a column for each thread that uses these values.
type Matrix struct {
	ID                  string
	Title               string
	Summary             string
	Rows                []string // names of the rows
	Columns             []string
	RowAxis, ColumnAxis string
	Values              []float64 // the values of the cells, row by row
	Texts               []string  // the text of each cell
	Row, Column         int       // the selected cell; -1: none
	// Letters contains, for each value from 1 upwards, the letter that selects a colour in app.css.
	// If Letters is nil, the shade of a cell shows its value. A value of 0 is not drawn.
	Letters []string
	// If Map is set, cells are drawn without gaps or texts. Screen readers read the texts. A value
	// of -1 is not drawn, and a value of -2 is hatched.
	Map  bool
	Zoom bool // the user can zoom into the map
	// If the user can zoom into the map, RowStep and ColumnStep are the height and width of a cell,
	// in the units of the axes. The axes begin at 0.
	RowStep, ColumnStep float64
	Part                Part // the part of the map that is shown; zero: the whole map
	// Names contains the name of the area to which each cell of a map belongs. Cells that are in the
	// same row and have the same name are drawn as one area. If Names is nil, the map has no areas.
	Names []string
}

// FlowMatrix returns the matrix of flows between threads. Like [Communication.OwnerMap], FlowMatrix
// returns the same pointer again if the matrix has not changed.
func (c *Communication) FlowMatrix(granule, window int, m FlowMeasure, picked [2]int) *Matrix {
	type question struct {
		granule, window int
		measure         FlowMeasure
		picked          [2]int
	}
	return c.flowMap.cachedMatrix(question{granule, window, m, picked}, func() *Matrix { return c.drawFlows(granule, window, m, picked) })
}

func (c *Communication) drawFlows(granule, window int, m FlowMeasure, picked [2]int) *Matrix {
	n := len(c.threads)
	x := &Matrix{ID: "flows", Title: upper(string(m)) + " from thread to thread", RowAxis: "written by", ColumnAxis: "used by",
		Values: make([]float64, n*n), Texts: make([]string, n*n), Row: picked[0], Column: picked[1]}
	for _, t := range c.threads {
		x.Rows = append(x.Rows, strconv.FormatUint(uint64(t), 10))
	}
	x.Columns = x.Rows
	flows := c.Flows(granule, window)
	for i := range flows {
		from, ok1 := slices.BinarySearch(c.threads, flows[i].From)
		to, ok2 := slices.BinarySearch(c.threads, flows[i].To)
		if ok1 && ok2 {
			v := m.of(&flows[i])
			x.Values[from*n+to], x.Texts[from*n+to] = float64(v), m.text(v)
		}
	}
	x.Summary = c.flowSentence(flows, m) + c.windowWords(window)
	return x
}

// windowWords describes the part of the run that is drawn.
func (c *Communication) windowWords(window int) string {
	if window == 0 || window > len(c.Windows) {
		return ""
	}
	from := uint64(window-1) * c.Window
	return " This window covers references " + Exact(from+1) + " to " + Exact(from+c.Window) + "."
}

func (c *Communication) flowSentence(flows []profile.Flow, m FlowMeasure) string {
	var sum, most uint64
	var largest *profile.Flow
	for i := range flows {
		n := m.of(&flows[i])
		if sum += n; n > most {
			most, largest = n, &flows[i]
		}
	}
	if sum == 0 {
		return "No thread used a value that another thread wrote."
	}
	link := ", "
	switch {
	case most < sum && most > sum-most:
		link = "; the largest flow, " + m.text(most) + ", goes "
	case most < sum:
		link = "; at most " + m.text(most) + " from one thread to another, for example "
	}
	return m.text(sum) + m.noun() + " in all" + link + "from thread " +
		strconv.FormatUint(uint64(largest.From), 10) + " to thread " + strconv.FormatUint(uint64(largest.To), 10) + "."
}

func (m FlowMeasure) noun() string {
	if m == FlowBytes {
		return ""
	}
	return " " + string(m)
}

// FlowSentence describes a cell of the matrix.
func (c *Communication) FlowSentence(granule, window int, picked [2]int) string {
	if !c.valid(picked) {
		return "To see the source locations behind a cell, click it, or use the arrow keys and Enter."
	}
	from, to := c.threads[picked[0]], c.threads[picked[1]]
	text := "Thread " + strconv.FormatUint(uint64(from), 10) + " to thread " + strconv.FormatUint(uint64(to), 10) + ": "
	for _, f := range c.Flows(granule, window) {
		if f.From == from && f.To == to {
			return text + Exact(f.Transfers) + " transfers, " + Bytes(f.Bytes) + ", in " + Exact(f.Events) + " events."
		}
	}
	return text + "nothing."
}

func (c *Communication) valid(picked [2]int) bool {
	return picked[0] >= 0 && picked[0] < len(c.threads) && picked[1] >= 0 && picked[1] < len(c.threads)
}

// flow returns the pair of threads of a cell. The result ok reports whether the cell exists.
func (c *Communication) flow(picked [2]int) (from, to uint32, ok bool) {
	if !c.valid(picked) {
		return 0, 0, false
	}
	return c.threads[picked[0]], c.threads[picked[1]], true
}

// granularity returns the command's name for a granularity.
func (c *Communication) granularity(i int) string {
	switch {
	case c.Granules[i].Bytes == profile.PageBytes:
		return "page"
	case i == 0:
		return "word"
	}
	return "line"
}

// FlowsTable returns the flows as a list.
func (c *Communication) FlowsTable(granule, window int) *Table {
	q, where := c.view.question("communication"), map[string]string{}
	if window > 0 {
		q, where["first_reference"] = q.With("by", "window"), strconv.FormatUint(uint64(window-1)*c.Window, 10)
	} else {
		q = q.With("by", "flow").With("granularity", c.granularity(granule))
	}
	return c.view.cachedTable("flows "+c.granularity(granule)+" "+strconv.Itoa(window), func() *Table {
		return c.view.table("Flows between threads, by "+c.GranuleName(granule), q, where, "from", "to", "transfers", "bytes", "events")
	})
}

// SiteName returns the name of a source location of the profile, or a description for NoSite.
func (v *View) SiteName(site uint32) string {
	if s := v.Profile.Sites; s != nil && site < uint32(len(s.Code)) {
		return siteName(&s.Code[site], v.Run.FunctionName)
	}
	return "unnamed code"
}

// ObjectName returns the name of a data structure of the profile, or a description.
func (v *View) ObjectName(object uint32) string {
	if s := v.Profile.Sites; s != nil && object < uint32(len(s.Data)) {
		return objectName(&s.Data[object], v.Run.FunctionName)
	}
	return "data without a name"
}

// PairsTable lists pairs of source locations that write and use values, most events first, for the
// selected flow or for all flows.
func (c *Communication) PairsTable(picked [2]int) *Table {
	caption, where := "Source locations that write values for other threads", map[string]string{}
	q := c.view.question("communication").With("by", "site")
	if from, to, ok := c.flow(picked); ok {
		where["from"], where["to"] = strconv.FormatUint(uint64(from), 10), strconv.FormatUint(uint64(to), 10)
		caption += ", thread " + where["from"] + " to thread " + where["to"]
	}
	return c.view.cachedTable(caption, func() *Table {
		return c.view.table(caption, q, where, "producer_file,producer_line,producer", "consumer_file,consumer_line,consumer", "object",
			"from", "to", "transfers", "events")
	})
}

// LineExchanges lists the values that the given source lines write and other threads use, and the
// values that other threads write and these lines use. Values with the most events are first. The
// lines have the form FILE:LINE. LineExchanges returns nil if there are no such values.
func (v *View) LineExchanges(lines map[string]bool) *Table {
	q := v.question("communication").With("by", "site")
	d, err := v.Answer(q)
	if err != nil {
		return nil
	}
	t := &d.Tables[0]
	part := rowsWith(t, func(i int) bool {
		return lines[cellText(t, i, "producer_file")+":"+cellText(t, i, "producer_line")] || lines[cellText(t, i, "consumer_file")+":"+cellText(t, i, "consumer_line")]
	})
	if part == nil {
		return nil
	}
	part.Title = "Values that this code exchanges between threads"
	return show(part, answerWords, nil, "producer_file,producer_line,producer", "consumer_file,consumer_line,consumer", "object", "from", "to", "transfers", "events").
		setDocument(v.document(q))
}

// TrafficTable counts how threads use words, lines and pages.
func (c *Communication) TrafficTable() *Table {
	return c.view.cachedTable("traffic", func() *Table {
		traffic := c.answers.Traffic()
		t := show(&traffic, answerWords, nil, "granule_bytes", "transfers", "bytes", "private", "read_shared", "producer_consumer", "migratory", "falsely_shared").setDocument(c.view.document(c.view.question("communication")))
		t.Caption = "How threads use words, lines and pages"
		return t
	})
}

// FalseFindings returns the ranked cases of false sharing; see
// [answers.Communication.FalseFindings].
func (c *Communication) FalseFindings() []answers.FalseFinding {
	if c.falses == nil {
		c.falses, _ = c.answers.FalseFindings()
	}
	return c.falses
}

// FalseTable returns a table with a row for each falsely shared data structure, or nil.
func (c *Communication) FalseTable() *Table {
	return c.view.cachedTable("false sharing", func() *Table {
		if len(c.FalseFindings()) == 0 {
			return nil
		}
		return c.view.table("Data structures with false sharing", c.view.question("communication").With("false-sharing", "true"), nil,
			"object", "severity", "threads", "lines", "ping_pongs", "moves", "fix")
	})
}

// FalseSentence summarises the false sharing.
func (c *Communication) FalseSentence() string { return Spaced(c.answers.FalseSummary()) }

// Objects returns the data structures for which Owners lists the parts. The data structures are in
// descending order of the number of references to parts that several threads use.
func (c *Communication) Objects() []int {
	if c.objects == nil {
		c.objects = c.byUse()
	}
	return c.objects
}

func (c *Communication) byUse() []int {
	order := make([]int, len(c.Owners))
	weight := make([]uint64, len(c.Owners))
	for i := range c.Owners {
		order[i] = i
		for _, p := range c.Owners[i].Parts {
			if p.Class != profile.PrivateData {
				weight[i] += p.References
			}
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return weight[order[j]] < weight[order[i]] })
	return order
}

// OwnerName returns the name of the data structure to which entry i of Owners belongs.
func (c *Communication) OwnerName(i int) string {
	o := &c.Owners[i]
	return c.view.ObjectName(o.Object) + ", " + Plural(uint64(len(o.Parts)), "part", "parts") + " of " + Bytes(o.PartBytes)
}

// OwnerMap returns a matrix with the first thread and the most frequent thread of each part of a
// data structure.
func (c *Communication) OwnerMap(i int) *Matrix {
	return c.owned.cachedMatrix(i, func() *Matrix { return c.drawOwners(&c.Owners[i]) })
}

func (c *Communication) drawOwners(o *profile.Ownership) *Matrix {
	const perRow = 64
	m := &Matrix{ID: "owners", Title: "Owners of " + c.view.ObjectName(o.Object), RowAxis: "", ColumnAxis: "parts of " + Bytes(o.PartBytes), Row: -1, Column: -1}
	columns := min(perRow, max(len(o.Parts), 1))
	for k := range columns {
		m.Columns = append(m.Columns, strconv.Itoa(k))
	}
	for _, t := range c.threads {
		m.Letters = append(m.Letters, strconv.FormatUint(uint64(t), 10))
	}
	for from := 0; from < len(o.Parts); from += columns {
		offset := Bytes((o.First + uint64(from)) * o.PartBytes)
		m.Rows = append(m.Rows, offset+" first", "most")
		for pass := range 2 {
			for k := range columns {
				value, text := 0.0, ""
				if from+k < len(o.Parts) && o.Parts[from+k].References > 0 {
					p := &o.Parts[from+k]
					value, text = c.owner(p, pass), c.partWords(o, from+k)
				}
				m.Values, m.Texts = append(m.Values, value), append(m.Texts, text)
			}
		}
	}
	m.Summary = c.ownerSentence(o)
	return m
}

// owner returns 1 + the index of the thread that touched a part first (pass 0) or uses it most
// (pass 1).
func (c *Communication) owner(p *profile.OwnedPart, pass int) float64 {
	t := p.FirstTouch
	if pass == 1 {
		t = p.Most
	}
	if at, ok := slices.BinarySearch(c.threads, t); ok {
		return float64(at + 1)
	}
	return 0
}

func (c *Communication) partWords(o *profile.Ownership, part int) string {
	p := &o.Parts[part]
	from := (o.First + uint64(part)) * o.PartBytes
	return "bytes " + Exact(from) + " to " + Exact(from+o.PartBytes-1) + ": first touched by thread " + strconv.FormatUint(uint64(p.FirstTouch), 10) +
		", used most by thread " + strconv.FormatUint(uint64(p.Most), 10) + " (" + Percent(Ratio(p.Own, p.References)) + " of " + Plural(p.References, "reference", "references") + "), " + p.Class.String()
}

func (c *Communication) ownerSentence(o *profile.Ownership) string {
	var touched, moved, shared uint64
	for i := range o.Parts {
		p := &o.Parts[i]
		if p.References == 0 {
			continue
		}
		touched++
		if p.FirstTouch != p.Most {
			moved++
		}
		if p.Class != profile.PrivateData {
			shared++
		}
	}
	by, elsewhere := "none", "Every part is used most by the thread that touched it first"
	if shared > 0 {
		by = Exact(shared) + " of them"
	}
	if moved > 0 {
		elsewhere = Plural(moved, "part is used more by another thread than by the thread that touched it first", "parts are used more by other threads than by the threads that touched them first")
	}
	return Plural(touched, "part was", "parts were") + " touched, " + by + " by several threads. " +
		elsewhere + ". First-touch placement puts memory near the thread that touches it first."
}

// OwnersTable lists the parts of a data structure.
func (c *Communication) OwnersTable(i int) *Table {
	object := map[string]string{"object": c.answers.Object(c.Owners[i].Object).Plain()}
	return c.view.cachedTable("owners "+strconv.Itoa(i), func() *Table {
		return c.view.table("Parts of "+c.view.ObjectName(c.Owners[i].Object), c.view.question("communication").With("by", "owner"),
			object,
			"offset", "first_touch", "most", "references", "own_share", "readers", "writers", "class")
	})
}

// Sentence summarises the flows between threads.
func (c *Communication) Sentence() string {
	return Spaced(c.answers.Sentence(func(part, whole uint64) string { return Percent(Ratio(part, whole)) })) + "."
}

// SourceSentence returns a sentence about the origin of transferred lines, assuming that each core
// has a private cache of the given size.
func (c *Communication) SourceSentence(bytes uint64) string {
	if c.Sources == nil {
		return "The sources of lines were not counted: analyse the trace again, and include “sharing” among the requested analyses."
	}
	t := c.answers.Caches([]hierarchy.Cache{{SizeBytes: bytes}})
	of := func(key string) string { return shown(cell(&t, 0, key), answerWords) }
	if numberIn(&t, 0, "transfers") == 0 {
		return "No line is transferred between threads."
	}
	others := "the others come"
	if numberIn(&t, 0, "from_memory") == 0 {
		others = "none comes"
	}
	return of("cache_to_cache") + " of " + of("transfers") + " line transfers (" + of("cache_share") + ") come from another thread's cache of " + of("capacity_bytes") +
		"; " + others + " from memory. The caches exchange " + of("bytes_per_kilo_reference") + " bytes per 1000 references."
}

// missingCommunication returns the reason why a profile has no data about communication.
func missingCommunication(p *profile.Profile) string {
	switch {
	case p.Communication != nil:
		return ""
	case len(p.Totals.Threads) > 1:
		return "This analysis did not record communication between threads: " + answers.NoCommunication(p) + ". Analyse the trace again, including communication, " +
			"or run “stackglass analyze --analyses sharing,communication -o file.sgp” and drop that file here."
	}
	return "This trace has only one thread, or does not record which thread made each reference, so no data moves between threads. " +
		"Traces of multithreaded programs that were compiled with “stackglass cc” record threads. Traces of gem5 and drmemtrace, and CSV traces with a thread column, also record threads. Drop such a trace here, or try the demos with several threads."
}
