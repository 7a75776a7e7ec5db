package sites

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// memory maps addresses to data objects.
//
// A block is a contiguous range of addresses that belong to one object: a variable, a heap
// allocation, or a gap between other blocks. Each site remembers the block of its last reference. A
// search is necessary only if the next reference is outside this block. A removed block has no
// bytes, so every reference is outside it. The number of a removed block is reused only for a block
// of the same object, so the remembered number remains valid.
type memory struct {
	blocks   []block
	objectOf []uint32  // indexed by block
	placed   blockList // current blocks, excluding gaps
	gaps     blockList
	recent   [recentBlocks]uint32 // recently found blocks, by address
	granules wordCache

	objects []object
	number  map[objectKey]uint32

	globals, threads int      // number of global variables and threads that have been added
	stacks           []extent // stacks of threads

	watcher Watcher // is notified of blocks that are added or removed; may be nil
}

type block struct {
	from  trace.Addr
	bytes uint64
}

type extent struct{ from, end trace.Addr }

type objectKey struct {
	kind           profile.ObjectKind
	number         uint32 // number in the trace's tables, or profile.NoSite
	function, name string
}

type object struct {
	objectKey
	blocks, bytes uint64              // number of allocated blocks, and total number of their bytes
	free          []uint32            // numbers of removed blocks
	before        *profile.DataObject // the object's results from the restored run or from an appended segment; nil: none
	file          string              // the object's file name in the latest result from a restored run or an appended segment
}

const (
	recentBlocks = 4096
	recentShift  = 6 // binary logarithm of the alignment: few blocks are aligned to more than a line

	noBlock    = 0 // a block that contains no address
	everywhere = 1 // a block that contains every address
	noObject   = 0
	rest       = 1 // the object for all other data
)

func (m *memory) init() {
	m.blocks = []block{{}, {0, math.MaxUint64}}
	m.objectOf = []uint32{noObject, noObject}
	m.objects = make([]object, 1)
	m.number = map[objectKey]uint32{}
	m.object(objectKey{kind: profile.OtherObject, number: profile.NoSite})
}

// object returns the number of an object, and creates the object if necessary.
func (m *memory) object(key objectKey) uint32 {
	n, known := m.number[key]
	if !known {
		n = uint32(len(m.objects))
		m.number[key] = n
		m.objects = append(m.objects, object{objectKey: key})
	}
	return n
}

// local returns the number of a local variable.
func (m *memory) local(function, name string) uint32 {
	return m.object(objectKey{profile.StackObject, profile.NoSite, function, name})
}

// addProgram adds the variables and stacks that the trace has declared since the last call.
func (m *memory) addProgram(p *trace.Program) {
	if m.globals == len(p.Objects) && m.threads == len(p.Threads) {
		return
	}
	for n := m.globals; n < len(p.Objects); n++ {
		if o := &p.Objects[n]; o.Addr != 0 && o.Bytes != 0 {
			m.addBlock(m.object(objectKey{kind: profile.GlobalObject, number: uint32(n)}), o.Addr, o.Bytes)
		}
	}
	for _, t := range p.Threads[m.threads:] {
		if t.StackLow < t.StackHigh {
			m.stacks = append(m.stacks, extent{t.StackLow, t.StackHigh})
			m.closeGaps() // gaps may contain addresses of the new stacks
		}
	}
	m.globals, m.threads = len(p.Objects), len(p.Threads)
}

// findObject returns the block and the object of an address. The parameter h is the hint of the
// site that refers to the address.
func (m *memory) findObject(addr trace.Addr, h *hint) (in, of uint32) {
	if h.local {
		return everywhere, m.local(h.function, h.name)
	}
	in = m.blockAt(addr)
	if of = m.objectOf[in]; in == noBlock {
		of = rest
	}
	if k := m.objects[of].kind; h.global && k != profile.HeapObject && k != profile.GlobalObject {
		of = m.object(objectKey{profile.GlobalObject, profile.NoSite, "", h.name})
	}
	return in, of
}

// blockAt returns the block of an address, or noBlock for the last address of the address space.
func (m *memory) blockAt(addr trace.Addr) uint32 {
	seen := &m.recent[index.Hash(addr>>recentShift)%recentBlocks]
	if m.contains(*seen, addr) {
		return *seen
	}
	below, above := m.placed.neighbours(addr)
	if m.contains(below, addr) {
		*seen = below
		m.granules.cacheObject(addr, m.blocks[below], m.objectOf[below])
		return below
	}
	gap, _ := m.gaps.neighbours(addr)
	if !m.contains(gap, addr) {
		if addr == math.MaxUint64 {
			return noBlock
		}
		gap = m.newGap(addr, below, above)
	}
	*seen = gap
	return gap
}

func (m *memory) contains(n uint32, addr trace.Addr) bool {
	return addr-m.blocks[n].from < m.blocks[n].bytes
}

// newGap creates a block for the free addresses around an address, up to the neighbouring blocks.
func (m *memory) newGap(addr trace.Addr, below, above uint32) uint32 {
	free := extent{0, math.MaxUint64}
	if below != noBlock {
		free.from = m.blocks[below].from + m.blocks[below].bytes
	}
	if above != noBlock {
		free.end = m.blocks[above].from
	}
	of := uint32(rest)
	for _, s := range m.stacks {
		switch {
		case addr >= s.end:
			free.from = max(free.from, s.end)
		case addr < s.from:
			free.end = min(free.end, s.from)
		default:
			free.from, free.end = max(free.from, s.from), min(free.end, s.end)
			of = m.local("", "")
		}
	}
	n := m.newBlock(of, free.from, free.end-free.from)
	m.gaps.insert(free.from, n)
	return n
}

// newBlock returns the number of a new block of an object, and reuses the number of a removed block
// if possible.
func (m *memory) newBlock(of uint32, from trace.Addr, bytes uint64) uint32 {
	o := &m.objects[of]
	if last := len(o.free) - 1; last >= 0 {
		n := o.free[last]
		o.free = o.free[:last]
		m.blocks[n] = block{from, bytes}
		return n
	}
	m.blocks = append(m.blocks, block{from, bytes})
	m.objectOf = append(m.objectOf, of)
	return uint32(len(m.blocks) - 1)
}

func (m *memory) drop(n uint32) {
	m.blocks[n].bytes = 0
	o := &m.objects[m.objectOf[n]]
	o.free = append(o.free, n)
}

// alloc adds the block of an allocation. If the parameter counted is true, it also counts the
// allocation.
func (m *memory) alloc(of uint32, addr trace.Addr, bytes uint64, counted bool) {
	if addr == 0 {
		return // the allocation failed
	}
	if counted {
		m.objects[of].blocks++
		m.objects[of].bytes += bytes
	}
	m.addBlock(of, addr, bytes)
}

// addBlock adds a block. It removes earlier blocks that overlap with the new block, because the
// trace does not contain their releases. It never removes declared variables.
func (m *memory) addBlock(of uint32, addr trace.Addr, bytes uint64) {
	if bytes == 0 || addr+bytes < addr {
		return
	}
	for end := addr + bytes; end > addr; {
		n := m.lastIn(addr, end)
		if n == noBlock {
			break
		}
		if m.objects[m.objectOf[n]].kind == profile.GlobalObject {
			return
		}
		end = m.blocks[n].from
	}
	for n := m.lastIn(addr, addr+bytes); n != noBlock; n = m.lastIn(addr, addr+bytes) {
		m.remove(n)
	}
	m.closeGaps()
	n := m.newBlock(of, addr, bytes)
	m.placed.insert(addr, n)
	if m.watcher != nil {
		m.watcher.Placed(n)
	}
}

// lastIn returns the last block that contains an address in [addr, end).
func (m *memory) lastIn(addr, end trace.Addr) uint32 {
	n, _ := m.placed.neighbours(end - 1)
	if n == noBlock || m.blocks[n].from+m.blocks[n].bytes <= addr {
		return noBlock
	}
	return n
}

func (m *memory) closeGaps() {
	for _, chunk := range m.gaps.chunks {
		for _, gap := range chunk {
			m.drop(gap.block)
		}
	}
	m.gaps = blockList{}
}

func (m *memory) free(addr trace.Addr) {
	n, _ := m.placed.neighbours(addr)
	if n != noBlock && m.blocks[n].from == addr && m.objects[m.objectOf[n]].kind == profile.HeapObject {
		m.remove(n)
	}
}

func (m *memory) remove(n uint32) {
	if m.watcher != nil {
		m.watcher.Removed(n)
	}
	m.granules.forget(m.blocks[n])
	m.placed.remove(m.blocks[n].from)
	m.drop(n)
}

// blockList contains blocks sorted by address. blockList is divided into short chunks, so that
// insertions are fast.
type blockList struct {
	chunks [][]place
	firsts []trace.Addr // a lower bound for the addresses of each chunk
}

type place struct {
	from  trace.Addr
	block uint32
}

const longestPiece = 256

// chunkOf returns the index of the last chunk that begins at or before addr, or 0 if there is no such
// chunk.
func (o *blockList) chunkOf(addr trace.Addr) int {
	lo, hi := 0, len(o.firsts)
	for lo+1 < hi {
		if mid := (lo + hi) / 2; o.firsts[mid] <= addr {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// countUpTo returns the number of blocks of a chunk that begin at or before addr.
func countUpTo(chunk []place, addr trace.Addr) int {
	lo, hi := 0, len(chunk)
	for lo < hi {
		if mid := (lo + hi) / 2; chunk[mid].from <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// neighbours returns the last block that begins at or before addr, and the next block.
func (o *blockList) neighbours(addr trace.Addr) (below, above uint32) {
	if len(o.chunks) == 0 {
		return noBlock, noBlock
	}
	p := o.chunkOf(addr)
	i := countUpTo(o.chunks[p], addr)
	if i > 0 {
		below = o.chunks[p][i-1].block
	}
	switch {
	case i < len(o.chunks[p]):
		above = o.chunks[p][i].block
	case p+1 < len(o.chunks):
		above = o.chunks[p+1][0].block
	}
	return below, above
}

func (o *blockList) insert(addr trace.Addr, n uint32) {
	if len(o.chunks) == 0 {
		o.chunks, o.firsts = [][]place{{{addr, n}}}, []trace.Addr{0}
		return
	}
	p := o.chunkOf(addr)
	chunk := slices.Insert(o.chunks[p], countUpTo(o.chunks[p], addr), place{addr, n})
	o.chunks[p] = chunk
	if half := len(chunk) / 2; len(chunk) > longestPiece {
		o.chunks[p] = chunk[:half:half]
		o.chunks = slices.Insert(o.chunks, p+1, slices.Clone(chunk[half:]))
		o.firsts = slices.Insert(o.firsts, p+1, chunk[half].from)
	}
}

func (o *blockList) remove(addr trace.Addr) {
	p := o.chunkOf(addr)
	i := countUpTo(o.chunks[p], addr)
	o.chunks[p] = slices.Delete(o.chunks[p], i-1, i)
	if len(o.chunks[p]) == 0 {
		o.chunks, o.firsts = slices.Delete(o.chunks, p, p+1), slices.Delete(o.firsts, p, p+1)
		if len(o.firsts) > 0 {
			o.firsts[0] = 0
		}
	}
}

// wordCache caches the object of each 8-byte word in small blocks. In a traversal of a linked list
// or a tree, every reference is to a different block, and a search among all blocks would cause a
// dozen cache misses. A word is cached only if it lies entirely within one block. When the block is
// removed, its words are removed from the cache.
type wordCache struct {
	at    index.Table // pages by number
	pages []granulePage
}

type granulePage [pageGranules]uint16 // the object of each word; 0: not cached

const (
	granuleBits  = 3
	pageBits     = 12
	pageGranules = 1 << (pageBits - granuleBits)
	smallBlock   = 1 << pageBits // blocks with fewer bytes are small
	mostObjects  = 1 << 16       // objects with higher numbers are not cached
)

// object returns the object of an address, or noObject if the word is not cached.
func (g *wordCache) object(addr trace.Addr) uint32 {
	page, known := g.at.Find(addr >> pageBits)
	if !known {
		return noObject
	}
	return uint32(g.pages[page][addr>>granuleBits%pageGranules])
}

// cacheObject caches the object of the word at an address. The address must lie in the given block.
func (g *wordCache) cacheObject(addr trace.Addr, in block, of uint32) {
	first := addr &^ (1<<granuleBits - 1)
	if in.bytes >= smallBlock || of >= mostObjects || first < in.from || first+1<<granuleBits > in.from+in.bytes {
		return
	}
	page, known := g.at.Find(addr >> pageBits)
	if !known {
		page = uint32(len(g.pages))
		g.at.Add(addr>>pageBits, page)
		g.pages = append(g.pages, granulePage{})
	}
	g.pages[page][addr>>granuleBits%pageGranules] = uint16(of)
}

func (g *wordCache) forget(b block) {
	if b.bytes >= smallBlock {
		return
	}
	end := b.from + b.bytes
	for from := b.from; from < end; from = (from | (1<<pageBits - 1)) + 1 {
		page, known := g.at.Find(from >> pageBits)
		if !known {
			continue
		}
		last := min(end-1, from|(1<<pageBits-1))
		clear(g.pages[page][from>>granuleBits%pageGranules : last>>granuleBits%pageGranules+1])
	}
}
