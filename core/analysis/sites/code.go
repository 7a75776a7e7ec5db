package sites

import (
	"sort"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// code contains the sites that made references. Each site has a slot. Slots are numbered from 1, in
// the order of first references.
type code struct {
	program *trace.Program
	list    []site            // indexed by slot
	names   map[string]string // short name of each file of the program, by path

	slotOf []uint32                    // slot of each site, by its number in the trace's tables; 0: no slot yet
	byPC   [trace.NumKinds]index.Table // slots of the sites without a number, by kind and PC
	// slotAt contains the slots of all sites, by key. Look-ups in this map are slower.
	slotAt map[siteKey]uint32
}

const noSlot = 0 // no site has this slot

type siteKey struct {
	number uint32 // number in the trace's tables; if it is profile.NoSite, the other fields identify the site
	pc     uint64
	kind   trace.Kind
}

type site struct {
	siteKey
	bytes  uint32        // size of each reference of a site without a number; 0: sizes differ
	hint   hint          // the object to which the site refers, as far as the code shows it
	before *profile.Site // the site's results from the restored run or from an appended segment; nil: none
	file   string        // the site's file name in the latest result from a restored run or an appended segment
	// stride counts of the restored run and of appended segments, excluding the first references in
	// each thread
	base strideCounts
}

// hint describes the object to which a site refers, as far as the code shows it.
type hint struct {
	local    bool // the object is the local variable with this name
	global   bool // the object is the global variable with this name, unless the address lies in another object
	function string
	name     string
}

func (c *code) init() {
	c.list = make([]site, 1)
	c.slotAt = map[siteKey]uint32{}
}

// findSlots determines the slot of the site of each reference in the batch.
func (c *code) findSlots(b *trace.Batch, slots []uint32) error {
	if b.Site == nil {
		c.findSlotsByPC(b, slots)
		return nil
	}
	kinds, slotOf := b.Kind[:len(slots)], c.slotOf
	for i, number := range b.Site[:len(slots)] {
		if kinds[i] >= trace.NumKinds {
			continue
		}
		if uint64(number) < uint64(len(slotOf)) && slotOf[number] != 0 {
			slots[i] = slotOf[number]
			continue
		}
		if err := c.addSite(number); err != nil {
			return err
		}
		slotOf = c.slotOf
		slots[i] = slotOf[number]
	}
	return nil
}

func (c *code) addSite(number uint32) error {
	known := 0
	if c.program != nil {
		known = len(c.program.Sites)
	}
	if uint64(number) >= uint64(known) {
		return &contract.UnknownError{What: "site", Number: number, Known: known, Without: "sites"}
	}
	for len(c.slotOf) < known {
		c.slotOf = append(c.slotOf, 0)
	}
	slot := c.slot(siteKey{number: number})
	c.slotOf[number] = slot
	c.list[slot].hint = c.hintOf(&c.program.Sites[number])
	return nil
}

func (c *code) slot(key siteKey) uint32 {
	if key.number != profile.NoSite {
		key.pc, key.kind = 0, 0
	}
	slot, known := c.slotAt[key]
	if !known {
		slot = uint32(len(c.list))
		c.slotAt[key] = slot
		c.list = append(c.list, site{siteKey: key})
	}
	return slot
}

// findSlotsByPC does the same as findSlots for references without a site number. It finds their
// slots by PC.
func (c *code) findSlotsByPC(b *trace.Batch, slots []uint32) {
	kinds, sizes := b.Kind[:len(slots)], b.Bytes[:len(slots)]
	for i, pc := range b.PC[:len(slots)] {
		kind := kinds[i]
		if kind >= trace.NumKinds {
			continue
		}
		slot, known := c.byPC[kind].Find(pc)
		if !known {
			slot = c.meetPC(siteKey{profile.NoSite, pc, kind}, sizes[i])
		}
		if s := &c.list[slot]; s.bytes != sizes[i] {
			s.bytes = 0
		}
		slots[i] = slot
	}
}

func (c *code) meetPC(key siteKey, bytes uint32) uint32 {
	slot := c.slot(key)
	c.byPC[key.kind].Add(key.pc, slot)
	if s := &c.list[slot]; s.before == nil {
		s.bytes = bytes
	}
	return slot
}

func (c *code) hintOf(s *trace.Site) (h hint) {
	if s.Object == "" {
		return h
	}
	h.local, h.global = s.Flags&trace.StackSite != 0, s.Flags&trace.GlobalSite != 0
	if h.local || h.global {
		h.name = s.Object
	}
	if h.local {
		h.function = c.functionName(s)
	}
	return h
}

// functionName returns the name of the function that contains a site, or "".
func (c *code) functionName(s *trace.Site) string {
	p := c.program
	if uint64(s.Block) >= uint64(len(p.Blocks)) || uint64(p.Blocks[s.Block].Function) >= uint64(len(p.Functions)) {
		return ""
	}
	return p.Functions[p.Blocks[s.Block].Function].Name
}

// nameFiles chooses short names for the program's files. When the program loads a library, which
// adds files, nameFiles chooses all names again.
func (c *code) nameFiles() {
	if c.program == nil {
		return
	}
	var paths []string
	for i := range c.program.Sites {
		if path := c.program.Sites[i].Place.File; i == 0 || path != paths[len(paths)-1] {
			paths = append(paths, path)
		}
	}
	for i := range c.program.Objects {
		paths = append(paths, c.program.Objects[i].Place.File)
	}
	c.names = trace.FileNames(paths)
}

// describe returns the source location and the type of a site.
func (c *code) describe(slot uint32) profile.Site {
	s := &c.list[slot]
	out := profile.Site{Number: s.number, PC: s.pc, Kind: s.kind, Bytes: s.bytes}
	if s.before != nil {
		bytes := out.Bytes
		if out = *s.before; s.number == profile.NoSite {
			out.Bytes = bytes
		}
		out.Strides, out.Reuse, out.File = strideCounts{}, profile.Reuse{}, s.file
		if c.program != nil && uint64(s.number) < uint64(len(c.program.Sites)) {
			out.File = c.names[c.program.Sites[s.number].Place.File]
		}
		return out
	}
	if s.number != profile.NoSite {
		about := &c.program.Sites[s.number]
		out.PC, out.Kind, out.Bytes, out.Type, out.Variable = about.PC, about.Kind, about.Bytes, about.Type, about.Object
		out.Function, out.File, out.Line, out.Column = c.functionName(about), c.names[about.Place.File], about.Place.Line, about.Place.Column
	}
	if m := c.moduleAt(out.PC); m != nil {
		out.Module, out.Offset = trace.BaseName(m.Name), out.PC-m.Base
	}
	return out
}

// moduleAt returns the loaded module that contains an address, or nil.
func (c *code) moduleAt(pc trace.Addr) *trace.Module {
	if c.program == nil || pc == 0 {
		return nil
	}
	for i := range c.program.Modules {
		if m := &c.program.Modules[i]; pc >= m.Base && pc < m.End {
			return m
		}
	}
	return nil
}

type strideCounts = [profile.NumStrides]uint64

// stride is the state for the references of one site in one thread.
type stride struct {
	last trace.Addr // address of the last reference
	// distance from the second-last to the last reference; 0 after the first reference (which
	// causes no confusion, because a stride of 0 is a zero stride and never a constant stride)
	step   uint64
	counts strideCounts
	// number of lines from the previous line to the last line, modulo 2^64; 0 if the site has accessed
	// only one line
	move uint64
}

// isUsed reports whether the site has made a reference. isUsed relies on the fact that the first
// reference counts as irregular.
func (s *stride) isUsed() bool { return s.counts[profile.IrregularStride] != 0 }

// add counts a reference, and reports whether a prefetcher covers the access to its first line.
func (s *stride) add(addr trace.Addr, bytes uint32, lineShift uint) (covered bool) {
	step := addr - s.last
	class := strideClass(step, s.step, bytes)
	if (addr^s.last)>>(lineShift&63) != 0 {
		move := addr>>(lineShift&63) - s.last>>(lineShift&63)
		covered = follows(move, s.move) && samePage(addr, s.last)
		s.move = move
	}
	if s.counts[profile.IrregularStride] == 0 {
		class, step, s.move = profile.IrregularStride, 0, 0
	}
	s.counts[class&3]++
	s.last, s.step = addr, step
	return covered
}

// strideClass returns the stride class of a reference. The parameter step is the difference from
// the address of the previous reference, and the parameter before is the previous reference's step.
func strideClass(step, before uint64, bytes uint32) profile.Stride {
	size := uint64(max(bytes, 1))
	class := profile.IrregularStride
	if step == before {
		class = profile.ConstantStride
	}
	if step == size || step == -size {
		class = profile.UnitStride
	}
	if step == 0 {
		class = profile.ZeroStride
	}
	return class
}

type strides struct {
	list   []walks // ascending by thread
	latest int     // index of the latest thread in the list
}

type walks struct {
	thread uint32
	sites  []stride
	starts []walkStart // used only if the run is mergeable
}

// walksOf returns the walks of a thread, with room for at least the given number of slots. If the
// parameter starts is true, there is also room for the start of each walk.
func (s *strides) walksOf(thread uint32, slots int, starts bool) *walks {
	if s.latest >= len(s.list) || s.list[s.latest].thread != thread {
		s.latest = sort.Search(len(s.list), func(i int) bool { return s.list[i].thread >= thread })
		if s.latest == len(s.list) || s.list[s.latest].thread != thread {
			s.list = append(s.list, walks{})
			copy(s.list[s.latest+1:], s.list[s.latest:])
			s.list[s.latest] = walks{thread: thread}
		}
	}
	w := &s.list[s.latest]
	if missing := slots - len(w.sites); missing > 0 {
		w.sites = append(w.sites, make([]stride, missing)...)
		if starts {
			w.starts = append(w.starts, make([]walkStart, missing)...)
		}
	}
	return w
}

func (s *strides) counts(slot uint32) (sum strideCounts) {
	for i := range s.list {
		if w := s.list[i].sites; int(slot) < len(w) {
			for c, n := range w[slot].counts {
				sum[c] += n
			}
		}
	}
	return sum
}
