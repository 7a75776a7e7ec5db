package sgt

import "github.com/stackglass/stackglass/core/trace"

const (
	historyRows = 6
	mostStreams = 4
	// nearBytes is the distance from a stream's last address within which a row without a
	// predicted address continues it.
	nearBytes = 2048
	// mostGroupSites limits the groups by history, which is useless for irregular references.
	mostGroupSites = 1 << 16
)

// siteGroup is what the rows of a synthetic site have in common.
type siteGroup struct {
	kind    trace.Kind
	flags   trace.SiteFlags
	bytes   uint32 // 0 without NoSize: each record says
	pc      trace.Addr
	history uint64 // of the rows before, a byte each
}

// groupOf returns the group of a row without PC.
func groupOf(b *trace.Batch, i int, sizes bool) siteGroup {
	if !sizes {
		return siteGroup{kind: b.Kind[i], flags: trace.NoSize}
	}
	return siteGroup{kind: b.Kind[i], bytes: b.Bytes[i]}
}

// values is the number of values of a row.
func (g *siteGroup) values() int {
	if g.bytes == 0 && g.flags&trace.NoSize == 0 {
		return 2
	}
	return 1
}

// namer assigns rows to synthetic sites as [Importer] describes. Each site has a block of the same number.
type namer struct {
	families
	groups  []siteGroup // of blocks
	threads map[uint32]*importThread
	thread  *importThread // of the last row
	add     func(siteGroup) uint32
}

func newNamer() namer {
	return namer{families: newFamilies(), threads: map[uint32]*importThread{}}
}

// family is the blocks of a group.
type family struct {
	group  siteGroup
	blocks [mostStreams]uint32
	count  int
}

// families is a hash table of families, looked at for every few rows: a map is several times slower.
type families struct {
	all  []family
	slot []uint32 // 1 + the number of a family, by linear probing; 0: none
}

func newFamilies() families { return families{slot: make([]uint32, 1<<8)} }

func (g *siteGroup) hash() uint64 {
	h := g.history ^ g.pc*0x9e3779b97f4a7c15 ^ uint64(g.bytes)<<32 ^ uint64(g.flags)<<16 ^ uint64(g.kind)
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// of returns the family of a group.
func (f *families) of(g *siteGroup) *family {
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

// runs reports whether the last row was of a thread.
func (m *namer) runs(thread uint32) bool { return m.thread != nil && m.thread.number == thread }

func (m *namer) turnTo(thread uint32) {
	if m.thread = m.threads[thread]; m.thread == nil {
		m.thread = &importThread{number: thread}
		m.threads[thread] = m.thread
	}
}

// name returns the block for a row and updates the thread's predictions.
func (m *namer) name(group siteGroup, addr trace.Addr) uint32 {
	t := m.thread
	history := t.history<<8 | uint64(group.bytes*0x9e3779b1>>27)<<3 | uint64(group.kind)
	if group.pc == 0 && len(m.groups) < mostGroupSites {
		group.history = t.history & (1<<(8*historyRows) - 1)
	}
	block := m.choose(&group, addr)
	s := &t.streams[block]
	s.learn(addr, t.previous)
	t.rows++
	s.used = t.rows
	t.streams[t.before].next = block + 1
	t.before, t.previous, t.history = block, addr, history
	return block
}

// choose returns the block for a row.
func (m *namer) choose(group *siteGroup, addr trace.Addr) uint32 {
	t := m.thread
	if more := len(m.groups) - len(t.streams); more > 0 {
		t.streams = append(t.streams, make([]importStream, more)...)
	}
	follower := uint32(0) // 1 + the expected block, if it is one of the group
	if len(t.streams) > 0 {
		if follower = t.streams[t.before].next; follower > 0 && m.groups[follower-1] != *group {
			follower = 0
		}
		if follower > 0 && t.streams[follower-1].expects(addr, t.previous) {
			return follower - 1
		}
	}
	of := m.of(group)
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

// NewNamer returns a namer.
func NewNamer() *Namer {
	n := &Namer{namer: newNamer(), program: trace.Program{Modules: make([]trace.Module, 1)}}
	n.add = n.newSite
	return n
}

// Program contains the sites so far. It grows.
func (n *Namer) Program() *trace.Program { return &n.program }

// Name writes the sites of the rows of a batch of a trace with that header; events have site 0.
func (n *Namer) Name(b *trace.Batch, h trace.Header, sites []uint32) {
	for i, kind := range b.Kind {
		if sites[i] = 0; !kind.IsReference() {
			continue
		}
		if thread := trace.At(b.Thread, i); !n.runs(thread) {
			n.turnTo(thread)
		}
		sites[i] = n.name(groupOf(b, i, h.Sizes), b.Addr[i])
	}
}

func (n *Namer) newSite(g siteGroup) uint32 {
	number := uint32(len(n.groups))
	n.groups = append(n.groups, g)
	n.program.Blocks = append(n.program.Blocks, trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: number, Sites: 1})
	n.program.Sites = append(n.program.Sites, trace.Site{Kind: g.kind, Bytes: g.bytes, Block: number, Flags: g.flags})
	return number
}
