package sgt

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// Importer writes a trace that knows no blocks: every row becomes a step of a
// synthetic block with one site. (Of one that does know blocks, but not their
// sites, see [execution].)
//
// Where rows have the address of their instruction, a site is one (kind, bytes,
// instruction). Where they have none, what came before tells instructions apart:
// rows are of one group if kind, bytes, and the kinds and bytes of the
// historyRows rows before them are the same. A group has up to mostStreams
// sites, of which a row takes the one that predicts its address, so that loops
// with several equal references part again. Both together give a trace of
// lackey's a third less bytes than either, and half as many tokens to decode.
type Importer struct {
	w       *Writer
	sites   map[siteGroup][]uint32 // their blocks
	groups  []siteGroup            // of blocks
	fresh   trace.Program          // what no table has yet, as of one module
	running execution              // of a block that the trace tells of
	known   knownBlocks
	threads map[uint32]*importThread
	thread  *importThread // of the last row
	ticket  uint64        // of the last row
	values  [2]uint64     // of the last row
	told    trace.Header  // what the facts in the file tell
}

const (
	historyRows = 6
	mostStreams = 4
	// nearBytes is how far from a stream's last address a row may be that goes on
	// with it, though its address is not the predicted one.
	nearBytes = 2048
	// mostGroupSites ends new groups: references without order have no history
	// worth telling apart.
	mostGroupSites = 1 << 16
)

// siteGroup is what rows of a synthetic site have in common.
type siteGroup struct {
	kind    trace.Kind
	flags   trace.SiteFlags
	bytes   uint32 // 0 without NoSize: each record says
	pc      trace.Addr
	history uint64 // of the rows before, a byte each
}

// values is the number of values of a row.
func (g *siteGroup) values() int {
	if g.bytes == 0 && g.flags&trace.NoSize == 0 {
		return 2
	}
	return 1
}

// importThread predicts a thread's rows as its coder does.
type importThread struct {
	number   uint32
	history  uint64
	before   uint32 // block of the last row
	previous trace.Addr
	rows     uint64
	streams  []importStream // by block
}

// importStream is what a thread knows of a block.
type importStream struct {
	encodedValue
	next uint32 // 1 + the block that followed
	used uint64 // the number of the last row that was of it
}

// NewImporter begins a container for a converted trace.
func NewImporter(w io.Writer, facts []trace.Fact) *Importer {
	facts = append(facts[:len(facts):len(facts)], trace.Fact{Name: "order", Value: "recorded"})
	m := &Importer{w: NewWriter(w, 0, facts), sites: map[siteGroup][]uint32{}, threads: map[uint32]*importThread{}}
	m.told = trace.Header{Threads: true, Sizes: true}
	m.w.beforeFlush = m.declare
	return m
}

// Write adds the references of a batch of a trace that has that header.
func (m *Importer) Write(b *trace.Batch, h trace.Header) error {
	m.tell(h)
	if h.Program != nil && b.Site != nil {
		return m.executions(b, h.Program)
	}
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		thread, group := uint32(0), siteGroup{kind: kind, bytes: b.Bytes[i]}
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		if b.PC != nil {
			group.pc = b.PC[i]
		}
		if !h.Sizes {
			group.bytes, group.flags = 0, trace.NoSize
		}
		if m.thread == nil || m.thread.number != thread {
			m.turnTo(thread)
		}
		if err := m.row(group, b.Addr[i]); err != nil {
			return err
		}
	}
	return nil
}

// tell writes facts that are not, or no longer, as the file tells them.
func (m *Importer) tell(h trace.Header) {
	for _, f := range [...]struct {
		name      string
		told, has bool
	}{{"threads", m.told.Threads, h.Threads}, {"sizes", m.told.Sizes, h.Sizes}} {
		if f.told != f.has {
			m.w.Facts([]trace.Fact{{Name: f.name, Value: yesNo(f.has)}})
		}
	}
	if m.told.Format != h.Format {
		m.w.Facts([]trace.Fact{{Name: "format", Value: h.Format}})
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
	if m.thread = m.threads[thread]; m.thread == nil {
		m.thread = &importThread{number: thread}
		m.threads[thread] = m.thread
	}
	m.ticket++
}

func (m *Importer) row(group siteGroup, addr trace.Addr) error {
	t := m.thread
	history := t.history<<8 | uint64(group.bytes*0x9e3779b1>>27)<<3 | uint64(group.kind)
	if group.pc == 0 && len(m.groups) < mostGroupSites {
		group.history = t.history & (1<<(8*historyRows) - 1)
	}
	block := m.choose(group, addr)
	s := &t.streams[block]
	s.learn(addr, t.previous)
	t.rows++
	s.used = t.rows
	t.streams[t.before].next = block + 1
	t.before, t.previous, t.history = block, addr, history
	m.values[0] = addr
	return m.step(block, m.values[:group.values()])
}

// choose gives the block for a row.
func (m *Importer) choose(group siteGroup, addr trace.Addr) uint32 {
	t := m.thread
	if more := len(m.groups) - len(t.streams); more > 0 {
		t.streams = append(t.streams, make([]importStream, more)...)
	}
	follower := uint32(0) // 1 + the block that should come, if it is one of the group
	if len(t.streams) > 0 {
		if follower = t.streams[t.before].next; follower > 0 && m.groups[follower-1] != group {
			follower = 0
		}
		if follower > 0 && t.streams[follower-1].expects(addr, t.previous) {
			return follower - 1
		}
	}
	blocks := m.sites[group]
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
	return m.newSite(group)
}

// step writes a step of the running thread.
func (m *Importer) step(block uint32, values []uint64) error {
	if len(m.w.open) == 0 {
		m.ticket++ // chunks begin with a new one
	}
	return m.w.Step(m.thread.number, m.ticket, block, values)
}

// newSite gives a group one more site.
func (m *Importer) newSite(g siteGroup) uint32 {
	site := trace.Site{Kind: g.kind, Bytes: g.bytes, PC: g.pc, Flags: g.flags}
	block := m.newBlock(trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic}, g, site)
	m.sites[g] = append(m.sites[g], block)
	m.thread.streams = append(m.thread.streams, importStream{})
	return block
}

// newBlock adds a block with these sites to the tables and gives its number.
func (m *Importer) newBlock(b trace.Block, g siteGroup, sites ...trace.Site) uint32 {
	b.FirstSite, b.Sites = uint32(len(m.fresh.Sites)), uint32(len(sites))
	m.fresh.Blocks, m.fresh.Sites = append(m.fresh.Blocks, b), append(m.fresh.Sites, sites...)
	m.groups = append(m.groups, g)
	m.w.layouts = append(m.w.layouts, layoutOf(sites))
	return uint32(len(m.groups) - 1)
}

// declare writes the tables of what is new.
func (m *Importer) declare() {
	if len(m.fresh.Blocks) == 0 {
		return
	}
	m.fresh.Modules = make([]trace.Module, 1)
	m.w.put(tagModule, AppendModule(nil, &m.fresh))
	m.fresh = trace.Program{Blocks: m.fresh.Blocks[:0], Sites: m.fresh.Sites[:0]}
	clear(m.known.functions)
}

// Close ends the container.
func (m *Importer) Close(e End) error {
	if err := m.endExecution(); err != nil {
		return err
	}
	return m.w.Close(e)
}
