package answers

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// Communication provides tables about the values that one thread writes and another thread uses.
type Communication struct {
	Profile *profile.Profile    // the profile; its field Communication must not be nil
	Name    func(string) string // makes a function's name readable; may be nil

	sources *profile.Curve // curve of the stack distances of all line transfers; computed on first use
}

func (c *Communication) data() *profile.Communication { return c.Profile.Communication }

// NoCommunication explains why a profile of several threads has no communication.
func NoCommunication(p *profile.Profile) string {
	switch p.NoCommunication {
	case profile.NotAnalysed:
		return "communication was not requested"
	case profile.BeyondMemory:
		return "the cache lines did not fit in memory, so communication between threads was left out"
	case profile.NotInSample:
		return "either this kind of sample does not record which thread last wrote a line, or a single thread made all sampled references"
	case profile.UnlistedThreads:
		return "in a mergeable profile, communication can be analysed only if the trace states the number of threads before the first reference, and this trace does not"
	case profile.LateThread:
		return "by default, communication is analysed only if a second thread appears before reference " + report.Count(profile.SecondThreadBy).Human()
	}
	return "the profile was written by an earlier version of stackglass"
}

// Granule returns the communication at a granularity in bytes (words, lines or pages), or nil if
// the profile does not contain it.
func (c *Communication) Granule(bytes uint32) *profile.Granule {
	granules := c.data().Granules
	if i := slices.IndexFunc(granules, func(g profile.Granule) bool { return g.Bytes == bytes }); i >= 0 {
		return &granules[i]
	}
	return nil
}

// LineBytes returns the line size for tables of sites: 64 bytes if the profile contains it, and
// otherwise the first line size of the profile.
func (c *Communication) LineBytes() uint32 {
	if l := c.Profile.Locality; len(l) > 0 && c.Profile.LocalityAt(usualLine) == nil {
		return l[0].LineBytes
	}
	return usualLine
}

const usualLine = 64 // bytes

func flowTotals(flows []profile.Flow) (sum profile.Flow) {
	for _, f := range flows {
		sum.Events += f.Events
		sum.Transfers += f.Transfers
		sum.Bytes += f.Bytes
	}
	return sum
}

// Traffic returns a table with a row for each granularity.
func (c *Communication) Traffic() report.Table {
	t := report.Table{Key: "traffic", Title: c.Sentence(exactShare), Columns: report.Columns(
		"granule_bytes=unit (bytes)", "references",
		"events=uses of another thread's value", "transfers", "bytes=transferred")}
	for _, class := range classColumns {
		t.Columns = append(t.Columns, report.Column{Key: class.key, Label: class.label})
	}
	var off offColumns
	for i := range c.data().Granules {
		g := &c.data().Granules[i]
		sum := flowTotals(g.Flows)
		row := append([]report.Value{report.Count(uint64(g.Bytes)), report.Count(sumReferences(&g.Classes))}, flowValues(&sum)...)
		for class := range classColumns {
			row = append(row, report.Count(g.Classes[class].Granules))
		}
		t.Add(row...)
		if o := c.data().Off; o != nil {
			var sum profile.FlowOff
			for _, f := range o.Granules[i].Flows {
				sum = addOff(sum, f)
			}
			off.addValue("references", report.Count(sumReferences(&o.Granules[i].Classes)))
			off.addFlow(&sum, g.Bytes)
			for class, name := range classColumns {
				off.addValue(name.key, report.Count(o.Granules[i].Classes[class].Granules))
			}
		}
	}
	off.insertInto(&t)
	return t
}

// sumReferences returns the total number of references to granules of all sharing classes.
func sumReferences(classes *[profile.NumSharingClasses]profile.ClassCount) (sum uint64) {
	for i := range classes {
		sum += classes[i].References
	}
	return sum
}

func exactShare(part, whole uint64) string { return report.Share(part, whole).Human() }

// Sentence returns a sentence that summarises the traffic between threads. The traffic is counted
// in 8-byte words. The function share formats a share.
func (c *Communication) Sentence(share func(part, whole uint64) string) string {
	g := &c.data().Granules[0]
	sum := flowTotals(g.Flows)
	switch {
	case sum.Events == 0 && IsOfSample(c.Profile):
		return "No reference to the sampled lines uses a value that another thread wrote"
	case sum.Events == 0:
		return "No reference uses a value that another thread wrote"
	}
	return share(sum.Events, sumReferences(&g.Classes)) + " of the references access words that were last written by another thread; at least " +
		report.Bytes(c.data().Messages).Human() + " must be transferred between threads"
}

// classColumns are the columns for the number of granules in each class.
var classColumns = [profile.NumSharingClasses]struct{ key, label string }{
	{"private", "private"}, {"read_shared", "read-shared"}, {"producer_consumer", "producer-consumer"},
	{"migratory", "migratory"}, {"falsely_shared", "falsely shared"},
}

var flowColumns = report.Columns("events", "transfers", "bytes=transferred")

func flowValues(f *profile.Flow) []report.Value {
	return []report.Value{report.Count(f.Events), report.Count(f.Transfers), report.Bytes(f.Bytes)}
}

// Flows returns a table with a row for each pair of threads that communicate.
func (c *Communication) Flows(g *profile.Granule) report.Table {
	t := report.Table{Key: "flows", Title: "Flows between threads, in units of " + granuleName(g.Bytes), Columns: append(report.Columns(
		"from=from thread", "to=to thread"), flowColumns...)}
	var off offColumns
	for i := range g.Flows {
		f := &g.Flows[i]
		t.Add(append([]report.Value{threadNumber(f.From), threadNumber(f.To)}, flowValues(f)...)...)
		off.addFlow(c.flowOff(g, i), g.Bytes)
	}
	off.insertInto(&t)
	return t
}

// flowOff returns the half-widths of a flow's confidence intervals, or nil.
func (c *Communication) flowOff(g *profile.Granule, flow int) *profile.FlowOff {
	if c.data().Off == nil {
		return nil
	}
	if i := slices.IndexFunc(c.data().Granules, func(other profile.Granule) bool { return other.Bytes == g.Bytes }); i >= 0 {
		return &c.data().Off.Granules[i].Flows[flow]
	}
	return nil
}

// addOff adds the half-widths of two intervals, because both errors may have the same sign.
func addOff(x, y profile.FlowOff) profile.FlowOff {
	return profile.FlowOff{Events: x.Events + y.Events, Transfers: x.Transfers + y.Transfers}
}

func granuleName(bytes uint32) string { return strconv.FormatUint(uint64(bytes), 10) + " bytes" }

// threadNumber returns a thread's number as text, because the number is a name and not a count.
func threadNumber(n uint32) report.Value { return report.TextOf(strconv.FormatUint(uint64(n), 10)) }

// Matrix returns a table of transferred bytes, with a row for each producing thread and a column
// for each consuming thread.
func (c *Communication) Matrix(g *profile.Granule) report.Table {
	t := report.Table{Key: "matrix", Title: "Bytes transferred from the row's thread to the column's thread, in units of " + granuleName(g.Bytes),
		Columns: report.Columns("from=from \\ to")}
	var froms, tos []uint32
	for _, f := range g.Flows {
		froms, tos = append(froms, f.From), append(tos, f.To)
	}
	slices.Sort(froms)
	slices.Sort(tos)
	tos = slices.Compact(tos)
	for _, to := range tos {
		name := strconv.FormatUint(uint64(to), 10)
		t.Columns = append(t.Columns, report.Column{Key: "to_" + name, Label: name})
	}
	for _, from := range slices.Compact(froms) {
		row := []report.Value{threadNumber(from)}
		for range tos {
			row = append(row, report.None())
		}
		for _, f := range g.Flows {
			if at, _ := slices.BinarySearch(tos, f.To); f.From == from {
				row[1+at] = report.Bytes(f.Bytes)
			}
		}
		t.Add(row...)
	}
	return t
}

// Sites returns a table with a row for each producing source line, consuming source line and data
// object. An event is a use of a value that the first line wrote and the second line read. The rows
// are in descending order of events. The counts are summed over all threads unless byThread is set.
// The table lists at most the given number of rows (top), and sums the rest in one row.
func (c *Communication) Sites(top int, byThread bool) report.Table {
	threads := report.Columns("from=from thread", "to=to thread")
	if !byThread {
		threads = nil
	}
	t := report.Table{Key: "sites", Title: "Values that one thread wrote and another thread used (for all rows, with their threads, use --by site --format csv)", Columns: slices.Concat(
		placeColumns("producer", "written by"), placeColumns("consumer", "used by"),
		report.Columns("consumer_kind=kind", "object=data"), threads, flowColumns)}
	used := c.sumUses(byThread)
	var off offColumns
	for i := range used[:min(top, len(used))] {
		u := &used[i]
		if c.data().Off != nil {
			off.addFlow(&u.off, profile.WordBytes)
		}
		t.Add(append(u.cells, flowValues(&u.flow)...)...)
	}
	if top < len(used) {
		var rest profile.Flow
		for i := range used[top:] {
			rest = flowTotals([]profile.Flow{rest, used[top+i].flow})
		}
		none := report.None()
		cells := []report.Value{report.TextOf(othersName), report.TextOf(""), none, report.TextOf(""), report.TextOf(""), none, none, report.TextOf("")}
		for range threads {
			cells = append(cells, none)
		}
		t.Add(append(cells, flowValues(&rest)...)...)
	}
	off.insertInto(&t)
	return t
}

type use struct {
	cells []report.Value // the cells with the names of the producer, the consumer and the data
	flow  profile.Flow
	off   profile.FlowOff
}

// sumUses adds up the events whose sites and data have the same names, and returns the sums in
// descending order.
func (c *Communication) sumUses(byThread bool) (list []use) {
	type alike struct {
		producer, consumer, object int // indices of distinct names
		kind                       trace.Kind
		from, to                   uint32
	}
	names, sites, objects := map[string]int{}, map[uint32]int{}, map[uint32]int{}
	number := func(numbers map[uint32]int, n uint32, cells func(uint32) []report.Value) int {
		at, is := numbers[n]
		if !is {
			name := ""
			for _, cell := range cells(n) {
				name += cell.Plain() + "\x00"
			}
			if at, is = names[name]; !is {
				at = len(names)
				names[name] = at
			}
			numbers[n] = at
		}
		return at
	}
	object := func(n uint32) []report.Value { return []report.Value{c.Object(n)} }
	known := map[alike]int{}
	for i := range c.data().Pairs {
		p := &c.data().Pairs[i]
		key := alike{producer: number(sites, p.Producer, c.siteCells), consumer: number(sites, p.Consumer, c.siteCells), object: number(objects, p.Object, object), kind: trace.NumKinds}
		kind := report.None()
		if p.Consumer != profile.NoSite {
			key.kind = c.Profile.Sites.Code[p.Consumer].Kind
			kind = report.TextOf(key.kind.String())
		}
		if byThread {
			key.from, key.to = p.From, p.To
		}
		at, is := known[key]
		if !is {
			cells := slices.Concat(c.siteCells(p.Producer), c.siteCells(p.Consumer), []report.Value{kind, c.Object(p.Object)})
			if byThread {
				cells = append(cells, threadNumber(p.From), threadNumber(p.To))
			}
			at = len(list)
			known[key], list = at, append(list, use{cells: cells})
		}
		u := &list[at]
		u.flow = flowTotals([]profile.Flow{u.flow, pairFlow(p)})
		if o := c.data().Off; o != nil {
			u.off = addOff(u.off, o.Pairs[i])
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[j].flow.Events < list[i].flow.Events })
	return list
}

func pairFlow(p *profile.SitePair) profile.Flow {
	return profile.Flow{Events: p.Events, Transfers: p.Transfers, Bytes: p.Transfers * profile.WordBytes}
}

func placeColumns(key, label string) []report.Column {
	return []report.Column{{Key: key, Label: label}, {Key: key + "_file", Label: "file"}, {Key: key + "_line", Label: "line"}}
}

// siteCells returns the cells for the function, file and line of a site.
func (c *Communication) siteCells(site uint32) []report.Value {
	if site == profile.NoSite {
		return []report.Value{report.TextOf("(unknown)"), report.TextOf(""), report.None()}
	}
	s := &c.Profile.Sites.Code[site]
	function := s.Function
	if c.Name != nil {
		function = c.Name(function)
	}
	if function == "" {
		function = AddressOf(s)
	}
	return []report.Value{report.TextOf(function), report.TextOf(s.File), report.Known(uint64(s.Line))}
}

// siteText returns a short description of a site.
func (c *Communication) siteText(site uint32) string {
	p := c.siteCells(site)
	if p[1].Plain() == "" || p[2].Plain() == "" {
		return p[0].Plain()
	}
	at := p[1].Plain() + ":" + p[2].Plain()
	if p[0].Plain() == "" {
		return at
	}
	return at + " in " + p[0].Plain()
}

// Object returns the name of a data object.
func (c *Communication) Object(data uint32) report.Value {
	if data == profile.NoSite {
		return report.TextOf("")
	}
	return report.TextOf(ObjectName(&c.Profile.Sites.Data[data], c.Name))
}

// Objects returns a table with a row for each data object, in descending order of events. A row
// shows the communication through the data object, and the threads that own its parts. Objects
// without communication are omitted unless the parameter all is true.
func (c *Communication) Objects(all bool) report.Table {
	t := report.Table{Key: "objects", Title: "Data that threads share", Columns: slices.Concat(report.Columns(
		"object=data"), flowColumns, report.Columns(
		"references=references to words", "own_share=share made by the most frequent users",
		"first_touch_share=share made by first-touch owners", "threads=threads owning parts",
		"class=most frequent class"))}
	flows, halves := map[uint32]profile.Flow{}, map[uint32]profile.FlowOff{}
	for i := range c.data().Pairs {
		p := &c.data().Pairs[i]
		flows[p.Object] = flowTotals([]profile.Flow{flows[p.Object], pairFlow(p)})
		if o := c.data().Off; o != nil {
			halves[p.Object] = addOff(halves[p.Object], o.Pairs[i])
		}
	}
	var off offColumns
	owners := slices.Clone(c.data().Owners)
	sort.SliceStable(owners, func(i, j int) bool {
		x, y := &owners[i], &owners[j]
		return cmp.Compare(flows[y.Object].Events, flows[x.Object].Events) < 0
	})
	for i := range owners {
		o := &owners[i]
		f := flows[o.Object]
		if f.Events == 0 && !all {
			break
		}
		name := c.Object(o.Object)
		if o.Object == profile.NoSite {
			name = report.TextOf("[all data]")
		}
		t.Add(slices.Concat([]report.Value{name}, flowValues(&f), ownerValues(o))...)
		if half := halves[o.Object]; c.data().Off != nil {
			off.addFlow(&half, profile.WordBytes)
		}
	}
	off.insertInto(&t)
	return t
}

// ownerValues returns the cells for the sums over the parts of an object.
func ownerValues(o *profile.Ownership) []report.Value {
	var references, own, first uint64
	var classes [profile.NumSharingClasses]uint64
	var threads []uint32
	for i := range o.Parts {
		p := &o.Parts[i]
		if p.References == 0 {
			continue
		}
		references += p.References
		own += p.Own
		if p.FirstTouch == p.Most {
			first += p.Own
		}
		classes[p.Class] += p.References
		threads = append(threads, p.Most)
	}
	slices.Sort(threads)
	class := profile.PrivateData
	for k := range classes {
		if classes[k] > classes[class] {
			class = profile.SharingClass(k)
		}
	}
	return []report.Value{report.Count(references), report.Share(own, references), report.Share(first, references),
		report.Count(uint64(len(slices.Compact(threads)))), report.TextOf(class.String())}
}

// Owners returns a table with a row for each part of each data object.
func (c *Communication) Owners() report.Table {
	t := report.Table{Key: "owners", Title: "Data ranges and the threads that own them", Columns: report.Columns(
		"object=data", "offset (bytes)", "bytes=size (bytes)", "first_touch=first touched by",
		"most=most used by", "references=references to words", "own_share=share made by the most frequent user", "readers",
		"writers", "class")}
	for i := range c.data().Owners {
		o := &c.data().Owners[i]
		for n := range o.Parts {
			p := &o.Parts[n]
			if p.References == 0 {
				continue
			}
			t.Add(c.Object(o.Object), report.Count((o.First+uint64(n))*o.PartBytes), report.Count(o.PartBytes), threadNumber(p.FirstTouch), threadNumber(p.Most),
				report.Count(p.References), report.Share(p.Own, p.References), report.Count(uint64(p.Readers)), report.Count(uint64(p.Writers)), report.TextOf(p.Class.String()))
		}
	}
	return t
}

// Windows returns a table with a row for each flow in each window.
func (c *Communication) Windows() report.Table {
	t := report.Table{Key: "windows", Title: "Flows between threads over the run, in units of words", Columns: append(report.Columns(
		"first_reference=from reference", "from=from thread", "to=to thread"), flowColumns...)}
	for i := range c.data().Windows {
		for n := range c.data().Windows[i].Flows {
			f := &c.data().Windows[i].Flows[n]
			t.Add(append([]report.Value{report.Count(uint64(i) * c.data().Window), threadNumber(f.From), threadNumber(f.To)}, flowValues(f)...)...)
		}
	}
	return t
}

// Caches returns a table with a row for each private cache. Caches shows how many line transfers
// come from the cache of the thread that wrote the line, and how many come from memory because that
// cache had evicted the line.
func (c *Communication) Caches(levels []hierarchy.Cache) report.Table {
	line := uint64(c.LineBytes())
	t := report.Table{Key: "caches", Title: "Transfers of lines of " + granuleName(uint32(line)) + ", with private caches", Columns: report.Columns(
		"cache", "capacity_bytes=size", "transfers", "cache_to_cache=from cache to cache",
		"from_memory=from memory", "cache_share=from caches",
		"bytes_per_kilo_reference=coherence bandwidth (bytes per 1,000 references)")}
	if c.sources == nil {
		var sum profile.Histogram
		for i := range c.data().Sources {
			sum.Merge(&c.data().Sources[i].Transfers)
		}
		c.sources = profile.NewCurve(&sum, 0)
	}
	for i := range levels {
		all := c.sources.Accesses
		near := all - c.sources.Misses(levels[i].SizeBytes/line)
		perThousand := report.None()
		if references := c.Profile.Totals.AllReferences(); references > 0 {
			perThousand = report.Decimal(1000 * float64(near*line) / float64(references))
		}
		t.Add(report.TextOf(levels[i].Name), report.Bytes(levels[i].SizeBytes), report.Count(all), report.Count(near), report.Count(all-near), report.Share(near, all), perThousand)
	}
	return t
}
