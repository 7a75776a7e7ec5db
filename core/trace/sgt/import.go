package sgt

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Importer writes a trace without blocks to a container. Every row becomes a step of a synthetic
// block with one site. (For traces with blocks that do not list their sites, see [execution].)
//
// If rows contain the addresses of instructions, each combination of kind, size and instruction is
// a site. If rows do not contain these addresses, the rows are grouped by history: two rows belong
// to the same group if both rows, and the historyRows rows before each of them, agree in kind and
// size. A group has up to mostStreams sites, and a row belongs to the site that predicts its
// address. Similar references of a loop therefore have different sites. This combination of groups
// and predictions makes a lackey trace a third smaller than either method alone, and halves the
// number of tokens.
type Importer struct {
	w *Writer
	namer
	fresh   trace.Program // the tables that have not been written yet, as one module
	running execution     // current execution of a block of the trace
	known   knownBlocks
	ticket  uint64       // ticket of the last row
	values  [2]uint64    // values of the last row
	told    trace.Header // the last header whose facts were written
}

// NewImporter returns an Importer that writes a container for a converted trace.
func NewImporter(w io.Writer, facts []trace.Fact) *Importer {
	facts = append(facts[:len(facts):len(facts)], trace.Fact{Name: "order", Value: "recorded"})
	m := &Importer{w: NewWriter(w, 0, facts), namer: newNamer()}
	m.add = m.newSite
	m.told = trace.Header{Threads: true, Sizes: true}
	m.w.beforeFlush = m.declare
	return m
}

// Write writes the references of a batch. The parameter h is the header of the trace.
func (m *Importer) Write(b *trace.Batch, h trace.Header) error {
	m.writeFacts(h)
	if h.Program != nil && b.Site != nil {
		return m.executions(b, h.Program)
	}
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		group := groupOf(b, i, h.Sizes)
		group.pc = trace.At(b.PC, i)
		if thread := trace.At(b.Thread, i); !m.isRunning(thread) {
			m.turnTo(thread)
		}
		if err := m.row(group, b.Addr[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeFacts writes the facts that have changed since the last call.
func (m *Importer) writeFacts(h trace.Header) {
	change := func(name string, changed bool, value string) {
		if changed {
			m.w.Facts([]trace.Fact{{Name: name, Value: value}})
		}
	}
	change("threads", m.told.Threads != h.Threads, yesNo(h.Threads))
	change("sizes", m.told.Sizes != h.Sizes, yesNo(h.Sizes))
	change("format", m.told.Format != h.Format, h.Format)
	if m.told.Extent != h.Extent {
		m.w.Facts(h.Extent.Facts())
	}
	m.told = h
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (m *Importer) turnTo(thread uint32) {
	m.namer.turnTo(thread)
	m.ticket++
}

func (m *Importer) row(group siteGroup, addr trace.Addr) error {
	block := m.assign(group, addr)
	m.values[0] = addr
	return m.step(block, m.values[:group.values()])
}

// step writes a step of the current thread.
func (m *Importer) step(block uint32, values []uint64) error {
	if len(m.w.open) == 0 {
		m.ticket++ // a chunk begins with a new ticket
	}
	return m.w.Step(m.thread.number, m.ticket, block, values)
}

func (m *Importer) newSite(g siteGroup) uint32 {
	site := trace.Site{Kind: g.kind, Bytes: g.bytes, PC: g.pc, Flags: g.flags}
	return m.newBlock(trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic}, g, site)
}

// newBlock adds a block with the given sites to the tables, and returns the number of the block.
func (m *Importer) newBlock(b trace.Block, g siteGroup, sites ...trace.Site) uint32 {
	b.FirstSite, b.Sites = uint32(len(m.fresh.Sites)), uint32(len(sites))
	m.fresh.Blocks, m.fresh.Sites = append(m.fresh.Blocks, b), append(m.fresh.Sites, sites...)
	m.groups = append(m.groups, g)
	m.w.layouts = append(m.w.layouts, layoutOf(sites))
	return uint32(len(m.groups) - 1)
}

// declare writes the tables of all items that have been added since the last call.
func (m *Importer) declare() {
	if len(m.fresh.Blocks) == 0 {
		return
	}
	m.fresh.Modules = make([]trace.Module, 1)
	m.w.put(tagModule, AppendModule(nil, &m.fresh))
	m.fresh = trace.Program{Blocks: m.fresh.Blocks[:0], Sites: m.fresh.Sites[:0]}
	clear(m.known.functions)
	clear(m.known.structures)
}

// Close writes the end of the container.
func (m *Importer) Close(e End) error {
	if err := m.endExecution(); err != nil {
		return err
	}
	return m.w.Close(e)
}

// execution is the current execution of a block of the trace. In some traces, such as PPT traces, a
// block's references differ between executions. In a container, all executions of a block produce
// the same kinds of rows. A block of the trace therefore becomes several blocks, one for each
// distinct list of sites. Two kinds of references become steps of a synthetic block instead:
// references for which the step would need more than MaxValues values, and references that follow
// references of a different block.
type execution struct {
	begun  bool
	entry  bool   // whether the execution began with a BlockEntry row
	block  uint32 // number of the block in the trace
	sites  []uint32
	values []uint64
}

// knownBlocks contains the blocks of the container that have been created for executions.
type knownBlocks struct {
	number    map[string]uint32 // number of the new block, by the trace's block and the list of sites
	functions map[uint32]uint32 // maps function numbers in the trace to function numbers in the new table
	// structures maps structure numbers in the trace to structure numbers in the new table.
	structures map[uint32]uint32
	name       []byte
	program    *trace.Program
}

// executions writes a batch of a trace with blocks.
func (m *Importer) executions(b *trace.Batch, p *trace.Program) error {
	m.known.program = p
	for i, kind := range b.Kind {
		thread := trace.At(b.Thread, i)
		block, entry := b.Site[i], kind == trace.BlockEntry
		if !entry && !kind.IsReference() {
			continue
		}
		if !entry {
			block = p.Sites[b.Site[i]].Block
		}
		turned := m.thread == nil || m.thread.number != thread
		if turned || entry || !m.running.isContinuedBy(block) {
			if err := m.endExecution(); err != nil {
				return err
			}
			if turned {
				m.turnTo(thread)
			}
			m.running.begun, m.running.entry, m.running.block = true, entry, block
		}
		if !entry {
			m.running.sites = append(m.running.sites, b.Site[i])
			m.running.values = append(m.running.values, b.Addr[i])
			if p.Sites[b.Site[i]].Values() == 2 {
				m.running.values = append(m.running.values, uint64(b.Bytes[i]))
			}
		}
	}
	return nil
}

// isContinuedBy reports whether a reference of the given block belongs to the current execution.
func (e *execution) isContinuedBy(block uint32) bool {
	return e.begun && e.entry && e.block == block && len(e.values) <= MaxValues-2
}

// endExecution writes the step of the current execution.
func (m *Importer) endExecution() error {
	e := &m.running
	if !e.begun {
		return nil
	}
	number := m.blockOf(e)
	err := m.step(number, e.values)
	*e = execution{sites: e.sites[:0], values: e.values[:0]}
	return err
}

// blockOf returns the block of the container for an execution.
func (m *Importer) blockOf(e *execution) uint32 {
	k := &m.known
	k.name = binary.AppendUvarint(k.name[:0], uint64(e.block)<<1)
	if e.entry {
		k.name[0] |= 1
	}
	for _, s := range e.sites {
		k.name = binary.AppendUvarint(k.name, uint64(s))
	}
	if n, ok := k.number[string(k.name)]; ok {
		return n
	}
	if k.number == nil {
		k.number, k.functions, k.structures = map[string]uint32{}, map[uint32]uint32{}, map[uint32]uint32{}
	}
	b := k.program.Blocks[e.block]
	b.Function, b.Successors, b.Loop = m.functionOf(b.Function), nil, 0
	if !e.entry {
		b.Flags |= trace.Synthetic
	}
	b.Instrs = instrsWith(b, e.sites)
	var sites []trace.Site
	for _, s := range e.sites {
		site := k.program.Sites[s]
		site.Structure = m.structureOf(site.Structure)
		sites = append(sites, site)
	}
	n := m.newBlock(b, siteGroup{kind: notAKind}, sites...)
	k.number[string(k.name)] = n
	return n
}

// instrsWith returns a block's instructions, with the block's sites replaced by the given sites.
func instrsWith(b trace.Block, sites []uint32) []trace.Instr {
	instrs := slices.Clone(b.Instrs)
	for i := range instrs {
		if site := &instrs[i].Site; *site > 0 {
			*site = uint32(1 + slices.Index(sites, b.FirstSite+*site-1))
		}
	}
	return instrs
}

// structureOf adds a structure of the trace to the new table. The argument and the result are
// encoded like [trace.Site.Structure].
func (m *Importer) structureOf(s uint32) uint32 {
	if s == 0 {
		return 0
	}
	n, ok := m.known.structures[s]
	if !ok {
		m.fresh.Structures = append(m.fresh.Structures, m.known.program.Structures[s-1])
		n = uint32(len(m.fresh.Structures))
		m.known.structures[s] = n
	}
	return n
}

// a kind that no row has
const notAKind trace.Kind = 0xff

// functionOf adds a function of the trace to the new table.
func (m *Importer) functionOf(f uint32) uint32 {
	if f == trace.NoFunction {
		return f
	}
	n, ok := m.known.functions[f]
	if !ok {
		n = uint32(len(m.fresh.Functions))
		function := m.known.program.Functions[f]
		function.Module, function.First, function.Blocks = 0, 0, 0
		m.fresh.Functions = append(m.fresh.Functions, function)
		m.known.functions[f] = n
	}
	return n
}

const (
	historyRows = 6
	mostStreams = 4
	// nearBytes is the maximum distance from a stream's last address at which an unpredicted address
	// continues the stream.
	nearBytes = 2048
	// If there are mostGroupSites sites, new sites are no longer grouped by history. A program with so
	// many sites has irregular references, for which history is useless.
	mostGroupSites = 1 << 16
)

// siteGroup contains the properties that all rows of a synthetic site have in common.
type siteGroup struct {
	kind    trace.Kind
	flags   trace.SiteFlags
	bytes   uint32 // 0 if each record contains its size, or if the flag NoSize is set
	pc      trace.Addr
	history uint64 // properties of the preceding rows, one byte for each row
}

// groupOf returns the group of a row without PC.
func groupOf(b *trace.Batch, i int, sizes bool) siteGroup {
	if !sizes {
		return siteGroup{kind: b.Kind[i], flags: trace.NoSize}
	}
	return siteGroup{kind: b.Kind[i], bytes: b.Bytes[i]}
}

// values returns the number of values that a row of the group has.
func (g *siteGroup) values() int {
	if g.bytes == 0 && g.flags&trace.NoSize == 0 {
		return 2
	}
	return 1
}

// namer assigns rows to synthetic sites, as [Importer] describes. Each site has a block with the
// same number.
type namer struct {
	families
	groups  []siteGroup // the group of each block
	threads map[uint32]*importThread
	thread  *importThread // thread of the last row
	add     func(siteGroup) uint32
}

func newNamer() namer {
	return namer{families: newFamilies(), threads: map[uint32]*importThread{}}
}

// family contains the blocks of a group.
type family struct {
	group  siteGroup
	blocks [mostStreams]uint32
	count  int
}

// families is a hash table of families. The table is several times as fast as a map, and it is
// searched every few rows.
type families struct {
	all  []family
	slot []uint32 // 1 + the index of a family, or 0 if the slot is free; collisions are resolved by linear probing
}

func newFamilies() families { return families{slot: make([]uint32, 1<<8)} }

func (g *siteGroup) hash() uint64 {
	h := g.history ^ g.pc*0x9e3779b97f4a7c15 ^ uint64(g.bytes)<<32 ^ uint64(g.flags)<<16 ^ uint64(g.kind)
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// get returns the family of a group, and adds the family if necessary.
func (f *families) get(g *siteGroup) *family {
	for at := g.hash(); ; at++ {
		slot := &f.slot[at&uint64(len(f.slot)-1)]
		switch {
		case *slot == 0:
			f.all = append(f.all, family{group: *g})
			*slot = uint32(len(f.all))
			if 2*len(f.all) > len(f.slot) {
				f.grow()
			}
			return &f.all[len(f.all)-1]
		case f.all[*slot-1].group == *g:
			return &f.all[*slot-1]
		}
	}
}

// grow doubles the table.
func (f *families) grow() {
	f.slot = make([]uint32, 2*len(f.slot))
	for i := range f.all {
		at := f.all[i].group.hash()
		for f.slot[at&uint64(len(f.slot)-1)] != 0 {
			at++
		}
		f.slot[at&uint64(len(f.slot)-1)] = 1 + uint32(i)
	}
}

// importThread predicts the rows of a thread in the same way as the encoder.
type importThread struct {
	number   uint32
	history  uint64
	before   uint32 // block of the last row
	previous trace.Addr
	rows     uint64
	streams  []importStream // the stream of each block
}

// importStream is the predictor's state for one block and one thread.
type importStream struct {
	encodedValue
	next uint32 // 1 + the number of the block that most recently followed this block
	used uint64 // sequence number of the block's last row
}

// isRunning reports whether the last row belongs to the given thread.
func (m *namer) isRunning(thread uint32) bool { return m.thread != nil && m.thread.number == thread }

func (m *namer) turnTo(thread uint32) {
	if m.thread = m.threads[thread]; m.thread == nil {
		m.thread = &importThread{number: thread}
		m.threads[thread] = m.thread
	}
}

// assign returns the synthetic block for a row, and updates the thread's predictors.
func (m *namer) assign(group siteGroup, addr trace.Addr) uint32 {
	t := m.thread
	history := t.history<<8 | uint64(group.bytes*0x9e3779b1>>27)<<3 | uint64(group.kind)
	if group.pc == 0 && len(m.groups) < mostGroupSites {
		group.history = t.history & (1<<(8*historyRows) - 1)
	}
	block := m.chooseBlock(&group, addr)
	s := &t.streams[block]
	s.learn(addr, t.previous)
	t.rows++
	s.used = t.rows
	t.streams[t.before].next = block + 1
	t.before, t.previous, t.history = block, addr, history
	return block
}

// chooseBlock selects the block of a group that best predicts the address of a row.
func (m *namer) chooseBlock(group *siteGroup, addr trace.Addr) uint32 {
	t := m.thread
	if more := len(m.groups) - len(t.streams); more > 0 {
		t.streams = append(t.streams, make([]importStream, more)...)
	}
	follower := uint32(0) // 1 + the number of the expected block, if that block belongs to the group
	if len(t.streams) > 0 {
		if follower = t.streams[t.before].next; follower > 0 && m.groups[follower-1] != *group {
			follower = 0
		}
		if follower > 0 && t.streams[follower-1].expects(addr, t.previous) {
			return follower - 1
		}
	}
	of := m.get(group)
	blocks := of.blocks[:of.count]
	nearest, oldest, distance := uint32(0), uint32(0), ^uint64(0)
	for i, b := range blocks {
		s := &t.streams[b]
		if s.expects(addr, t.previous) || group.pc != 0 {
			return b
		}
		if d := zigzag(addr - s.last); d < distance {
			nearest, distance = b, d
		}
		if i == 0 || s.used < t.streams[oldest].used {
			oldest = b
		}
	}
	switch {
	case distance <= 2*nearBytes:
		return nearest
	case follower > 0:
		return follower - 1
	case len(blocks) == mostStreams:
		return oldest
	}
	block := m.add(*group)
	of.blocks[of.count] = block
	of.count++
	t.streams = append(t.streams, importStream{})
	return block
}

// Namer assigns sites to the references of a trace without sites and PCs, as [Importer] does.
type Namer struct {
	namer
	program trace.Program
}

// NewNamer returns a Namer that has not assigned sites yet.
func NewNamer() *Namer {
	n := &Namer{namer: newNamer(), program: trace.Program{Modules: make([]trace.Module, 1)}}
	n.add = n.newSite
	return n
}

// Program returns a program with all sites that have been assigned so far. Further calls to Name
// add sites to this program.
func (n *Namer) Program() *trace.Program { return &n.program }

// Name writes the sites of a batch's rows to the slice "sites". The parameter h is the header of
// the trace. The site of an event is 0.
func (n *Namer) Name(b *trace.Batch, h trace.Header, sites []uint32) {
	for i, kind := range b.Kind {
		if sites[i] = 0; !kind.IsReference() {
			continue
		}
		if thread := trace.At(b.Thread, i); !n.isRunning(thread) {
			n.turnTo(thread)
		}
		sites[i] = n.assign(groupOf(b, i, h.Sizes), b.Addr[i])
	}
}

func (n *Namer) newSite(g siteGroup) uint32 {
	number := uint32(len(n.groups))
	n.groups = append(n.groups, g)
	n.program.Blocks = append(n.program.Blocks, trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: number, Sites: 1})
	n.program.Sites = append(n.program.Sites, trace.Site{Kind: g.kind, Bytes: g.bytes, Block: number, Flags: g.flags})
	return number
}
