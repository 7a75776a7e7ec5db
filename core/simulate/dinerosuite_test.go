package simulate

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/hierarchy/config"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestDineroIVSuite runs DineroIV's own regression tests, which are the files test-parms, mm.32,
// mm.64 and mm.*.good.* in the testing folder of DineroIV's sources. These sources must be in the
// dineroIV folder of the external data. TestDineroIVSuite compares every number in the expected
// results except percentages. Two kinds of results depend on the C library's random numbers and on
// their use in DineroIV: results with random replacement (a tag with rr), and results with half of
// the prefetches dropped (P50). For the results that depend on random numbers, the test replaces
// the simulator's random choices with DineroIV's choices.
func TestDineroIVSuite(t *testing.T) {
	dir := filepath.Join(tracetest.DataDir(t), "dineroIV")
	parameters, err := os.ReadFile(filepath.Join(dir, "test-parms"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("skipped: the external data has no folder dineroIV")
	} else if err != nil {
		t.Fatal(err)
	}
	equal, run, results := 0, 0, 0
	for line := range strings.Lines(string(parameters)) {
		tag, options, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ")
		if tag == "" || tag == "#" {
			continue
		}
		input := "mm.32"
		if strings.HasSuffix(tag, "P") {
			input = "mm.64"
		}
		want, err := os.ReadFile(filepath.Join(dir, input+".good."+tag))
		if err != nil {
			continue // test-parms also contains runs without an expected result
		}
		if results++; os.Getenv("STACKGLASS_SOAK") == "" && results%4 != 1 {
			continue // make soak runs all configurations
		}
		run++
		got := runDinero(t, filepath.Join(dir, input), options)
		if differences := got.compare(string(want)); len(differences) > 0 {
			t.Errorf("%s: %s", tag, strings.Join(differences, "; "))
			continue
		}
		equal++
	}
	if t.Logf("%d of %d results equal", equal, run); equal != run || results != 86 {
		t.Errorf("%d of %d results are equal; there are %d results, want 86", equal, run, results)
	}
}

// libraryRandom returns a generator that works like the function random in C libraries of 1997. The
// generator is an additive feedback generator of degree 31, and its state is initialised by a
// linear congruential generator.
func libraryRandom() func() uint64 {
	const degree, apart, discarded = 31, 3, 310
	var state [degree]uint32
	state[0] = 1
	for i := 1; i < degree; i++ {
		state[i] = 1103515145*state[i-1] + 12345
	}
	at := 0
	next := func() uint64 {
		front := (at + apart) % degree
		state[front] += state[at]
		at = (at + 1) % degree
		return uint64(state[front] >> 1)
	}
	for range discarded {
		next()
	}
	return next
}

// dineroRandom implements random replacement as in DineroIV. A random number selects the victim
// from a list of the lines, with the last inserted line first.
type dineroRandom struct {
	index
	ways   uint64
	random func() uint64
	sets   map[uint64][]frame // the last inserted line comes first
}

func (d *dineroRandom) touch(line trace.Line, dirty bool) bool {
	set := d.sets[d.set(line)]
	i := slices.IndexFunc(set, func(f frame) bool { return f.line() == line })
	if i >= 0 && dirty {
		set[i] |= 1
	}
	return i >= 0
}

func (d *dineroRandom) insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool) {
	set := slices.Insert(d.sets[d.set(line)], 0, frameOf(line, dirty))
	if uint64(len(set)) > d.ways {
		at := 1 + int(d.random()%d.ways)
		victim, victimDirty, evicted = set[at].line(), set[at].dirty(), true
		set = slices.Delete(set, at, at+1)
	}
	d.sets[d.set(line)] = set
	return victim, victimDirty, evicted
}

func (d *dineroRandom) cleanAll(back func(trace.Line)) {
	for set := range d.index.sets {
		for i, f := range d.sets[set] {
			if f.dirty() {
				d.sets[set][i] &^= 1
				back(f.line())
			}
		}
	}
}

func (d *dineroRandom) each(f func(trace.Line)) {
	for _, set := range d.sets {
		eachFrame(set, f)
	}
}

func (d *dineroRandom) resident() (lines uint64) {
	d.each(func(trace.Line) { lines++ })
	return lines
}

// The suite does not call any of the following methods.
func (d *dineroRandom) remove(trace.Line) (present, dirty bool) { panic("not needed") }
func (d *dineroRandom) peek(trace.Line) (present, dirty bool)   { panic("not needed") }
func (d *dineroRandom) markClean(trace.Line)                    { panic("not needed") }

// useLibrary replaces the random choices of a level with DineroIV's random choices.
func useLibrary(l *level, random func() uint64) {
	if p := l.watch.prefetch; p != nil && p.Drop > 0 {
		p.dropped = func() bool { return random()/((1<<31-1)/100) < uint64(p.Drop) }
	}
	if l.cache.Replacement != hierarchy.Random {
		return
	}
	replaced := func(sets, ways uint64) tags {
		return &dineroRandom{newIndex(sets, false), ways, random, map[uint64][]frame{}}
	}
	l.tags = replaced(l.cache.Sets(), l.cache.Lines()/l.cache.Sets())
	if l.watch.causes != nil {
		l.watch.causes.full = replaced(1, l.cache.Lines())
	}
}

// label is the kind of a reference. The kinds are the columns of DineroIV's results.
type label int

const (
	read label = iota
	write
	instruction
	misc
	labels
)

// dineroCounts contains a level's counts for each row of DineroIV's results.
type dineroCounts struct {
	rows     map[string]*[labels]uint64
	from, to uint64 // bytes received from the next level, and bytes sent to it
	multi    uint64
}

// dineroResult contains the counts of the caches by name, as in DineroIV's results.
type dineroResult map[string]*dineroCounts

// runDinero simulates a trace in pixie's format with DineroIV's options.
func runDinero(t *testing.T, path, options string) dineroResult {
	h, _, err := config.Read([]byte(options))
	if err != nil {
		t.Fatalf("%s: %v", options, err)
	}
	s := begin(t, h, OptionsOf(&h))
	format := options[strings.Index(options, "-informat ")+len("-informat "):][:1]
	var now label
	all := dineroResult{}
	watched := func(name string, l *level) *dineroCounts {
		d := all[name]
		if d == nil {
			d = &dineroCounts{rows: map[string]*[labels]uint64{}}
			all[name] = d
		}
		l.watch.observe = func(o observation) { d.count(o, now) }
		return d
	}
	combined := strings.Contains(options, "-stat-idcombine")
	var list []*dineroCounts
	random := libraryRandom()
	for _, caches := range slices.Concat(s.icaches, s.caches) {
		useLibrary(caches[0], random)
	}
	for i, c := range s.caches {
		switch name := "l" + strconv.Itoa(i+1); {
		case i >= len(h.Instructions):
			list = append(list, watched(name+"-ucache", c[0]))
		case combined:
			watched(name+"-I/Dcaches", s.icaches[i][0])
			list = append(list, watched(name+"-I/Dcaches", c[0]))
		default:
			list = append(list, watched(name+"-icache", s.icaches[i][0]))
			list = append(list, watched(name+"-dcache", c[0]))
		}
	}
	for _, r := range pixie(t, path, format) {
		now = r.label
		kind := [labels]trace.Kind{trace.Load, trace.Store, trace.Fetch, trace.Load}[r.label]
		if s.now == nil {
			if err := s.switchTo(0); err != nil {
				t.Fatal(err)
			}
		}
		s.silent = r.label == misc
		s.simulateReference(kind, r.addr, r.bytes)
	}
	now = write
	r := s.Finish()
	last := list[len(list)-1]
	last.from, last.to = r.Memory.BytesRead, r.Memory.BytesWritten+r.Flush.BytesWritten
	list[0].multi = r.Split
	if below := all["l2-ucache"]; below != nil { // the second level counts 16 bytes for each access by the first level, except stores that bypass the first level
		for _, name := range []string{"l1-icache", "l1-dcache"} {
			all[name].from, all[name].to = below.fromOf(name == "l1-icache"), below.toOf(name == "l1-icache")
		}
	}
	return all
}

// fromOf and toOf return the bytes that the level above reads and writes, for instructions or for data.
func (d *dineroCounts) fromOf(instructions bool) (bytes uint64) {
	n := d.row("bytes read")
	if instructions {
		return n[instruction]
	}
	return n[read] + n[misc]
}

func (d *dineroCounts) toOf(instructions bool) uint64 {
	if instructions {
		return 0
	}
	return d.row("bytes written")[write]
}

func (d *dineroCounts) row(name string) *[labels]uint64 {
	if d.rows[name] == nil {
		d.rows[name] = &[labels]uint64{}
	}
	return d.rows[name]
}

// count adds an access to a level's counts. The parameter cause is the kind of the reference that
// causes the access.
func (d *dineroCounts) count(o observation, cause label) {
	kind := cause
	switch {
	case o.store:
		kind = write
	case cause == write:
		kind = read // the access fetches a line for a store
	}
	if o.store {
		d.row("bytes written")[kind] += o.bytes
	} else if !o.prefetch {
		d.row("bytes read")[kind] += o.bytes
	}
	what := []string{"Demand", "Total"}
	if o.prefetch {
		what[0] = "Prefetch"
	}
	for _, what := range what {
		d.row(what + " Fetches")[kind]++
		if o.missed {
			d.row(what + " Misses")[kind]++
			if name := causeNames[o.cause]; what != "Total" && name != "" {
				d.row(what + " " + name + " misses")[kind]++
			}
		}
		if o.lineMissed {
			d.row(what + " Block Misses")[kind]++
			if name := causeNames[o.lineCause]; what != "Total" && name != "" {
				d.row(what + " " + name + " Block Misses")[kind]++
			}
		}
	}
}

var causeNames = [...]string{"", "Compulsory", "Capacity", "Conflict"}

// compare returns the differences between the counts and an expected result.
func (all dineroResult) compare(text string) (differences []string) {
	_, text, _ = strings.Cut(text, "---Simulation complete.")
	var d *dineroCounts
	section, caused := "", ""
	for line := range strings.Lines(text) {
		name, numbers := splitRow(line)
		if name == "" {
			continue
		}
		if found := all[name]; found != nil {
			section, d = name, found
			continue
		}
		if d == nil || len(numbers) == 0 || strings.Contains(line, ".") {
			continue // skip blank lines, headings and ratios
		}
		switch name {
		case "Demand Misses", "Prefetch Misses", "Demand Block Misses", "Prefetch Block Misses", "Total Misses", "Total Block Misses":
			caused = name
		}
		var got []uint64
		why := causeIn(name)
		switch {
		case name == "Multi-block refs":
			got = []uint64{d.multi}
		case name == "Bytes From Memory":
			got = []uint64{d.from}
		case name == "Bytes To Memory":
			got = []uint64{d.to}
		case name == "Total Bytes r/w Mem":
			got = []uint64{d.from + d.to}
		case why != "":
			row := strings.Fields(caused)[0] + " " + why + " misses"
			if strings.Contains(caused, "Block") {
				row = strings.Fields(caused)[0] + " " + why + " Block Misses"
			}
			if strings.HasPrefix(caused, "Total") {
				other := d.row("Prefetch" + strings.TrimPrefix(row, "Total"))
				both := *d.row("Demand" + strings.TrimPrefix(row, "Total"))
				for k := range both {
					both[k] += other[k]
				}
				got = columns(&both)
				break
			}
			got = columns(d.row(row))
		default:
			got = columns(d.row(name))
		}
		if !slices.Equal(got, numbers) {
			differences = append(differences, section+" "+name+" ("+caused+")"+": "+join(got)+", want "+join(numbers))
		}
	}
	return differences
}

// causeIn returns the cause that the name of a row mentions, or "".
func causeIn(name string) string {
	for _, why := range causeNames[1:] {
		if strings.Contains(strings.ToLower(name), strings.ToLower(why[:3])) && name != "Demand Fetches" {
			return why
		}
	}
	return ""
}

// columns returns the columns Total, Instrn, Data, Read, Write and Misc of a row.
func columns(n *[labels]uint64) []uint64 {
	data := n[read] + n[write] + n[misc]
	return []uint64{data + n[instruction], n[instruction], data, n[read], n[write], n[misc]}
}

func join(numbers []uint64) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.FormatUint(n, 10))
	}
	return strings.Join(words, " ")
}

// splitRow splits a line into the text before its numbers, and the numbers.
func splitRow(line string) (name string, numbers []uint64) {
	words := strings.Fields(line)
	for len(words) > 0 {
		n, err := strconv.ParseUint(words[len(words)-1], 10, 64)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
		words = words[:len(words)-1]
	}
	slices.Reverse(numbers)
	return strings.Join(words, " "), numbers
}

type pixieReference struct {
	label
	addr, bytes uint64
}

// pixie reads a trace that was recorded by SGI's tool pixie, either of a 32-bit program (mm.32) or
// of a 64-bit program (mm.64). With format d, every reference is an aligned word, as in DineroIV's
// format din.
func pixie(t *testing.T, path, format string) (list []pixieReference) {
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wide := strings.HasSuffix(path, ".64")
	pc, base := uint64(0), uint64(0)
	fetch := func(n int) {
		for range n {
			list = append(list, pixieReference{instruction, pc & (1<<32 - 1), 4})
			pc += 4
		}
	}
	const block = 12
	next := func() (kind byte, count int, addr uint64, ok bool) {
		if !wide {
			word := binary.BigEndian.Uint32(file)
			file = file[4:]
			return byte(word >> 24 & 15), int(word >> 28), uint64(word & (1<<24 - 1)), true
		}
		for len(file) >= 8 {
			record := file[:8]
			file = file[8:]
			const mapLow, kinds = 18, 15 // records of other types do not describe references
			addr := uint64(binary.BigEndian.Uint32(record[4:]))
			if record[1] < kinds {
				return record[1], int(record[0]), addr, true
			} else if record[1] == mapLow {
				base |= addr
			}
		}
		return 0, 0, 0, false
	}
	if wide {
		file = file[8:] // skip the header
	}
	for len(file) >= 4 {
		kind, count, addr, ok := next()
		if !ok {
			break
		}
		if kind == block {
			pc = addr<<2 + base
			fetch(count)
			continue
		}
		fetch(1)
		size, at, what := pixieAccess(kind, addr, wide)
		if what != instruction {
			if format == "d" {
				size, at = 4, at&^3
			}
			list = append(list, pixieReference{what, at, size})
		}
		fetch(count)
	}
	return list
}

// pixieAccess returns the data reference of a record. If the record has no data reference, the
// returned label is "instruction". The first eight kinds of records are load word, load double,
// store word, store double, store byte, store half word, store word right and store word left. The
// next four are the floating-point unit's load word, load double, store word and store double. The
// last three are basic block, annulled instruction and system call.
func pixieAccess(kind byte, addr uint64, wide bool) (bytes, at uint64, what label) {
	what = write
	switch kind {
	case 0, 8:
		return 4, addr &^ 3, read
	case 1, 9:
		return 8, addr &^ 7, read
	case 2, 10:
		return 4, addr &^ 3, what
	case 3, 11:
		return 8, addr &^ 7, what
	case 4:
		return 1, addr, what
	case 5:
		return 2, addr &^ 1, what
	case 6, 7:
		if (kind == 7) != wide { // store word left in mm.32; DineroIV's reader of mm.64 swaps it with store word right
			return addr%4 + 1, addr &^ 3, what
		}
		return 4 - addr%4, addr, what
	case 13:
		return 0, 0, instruction
	}
	return 4, addr &^ 3, misc
}
