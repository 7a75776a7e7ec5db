package structures

import (
	"math"
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// blockTracker tracks memory blocks from their allocation to their release.
type blockTracker struct {
	born  []uint64 // number of references before the allocation of each block
	at    index.Cached
	pages []page
	last  uint32 // index of the page that the last reference accessed
}

// page records which bytes of allocated blocks have been read and written.
type page struct {
	number        uint64
	read, written [pageBytes / 64]uint64
}

const (
	pageBits  = 12
	pageBytes = 1 << pageBits
)

// watcher is an Analysis that implements [sites.Watcher] for its finder.
type watcher Analysis

// block returns the first address and the size of a block, and the use of the data structure that
// contains it.
func (w *watcher) block(block uint32) (a *Analysis, from trace.Addr, bytes uint64, u *dataUse) {
	a = (*Analysis)(w)
	from, bytes, object := a.finder.Block(block)
	return a, from, bytes, a.useOf(object)
}

// Placed implements [sites.Watcher].
func (w *watcher) Placed(block uint32) {
	a, from, bytes, u := w.block(block)
	if !u.heap {
		return
	}
	for uint64(block) >= uint64(len(a.lives.born)) {
		a.lives.born = append(a.lives.born, 0)
	}
	a.lives.born[block] = a.now
	a.lives.clear(from, bytes)
	u.bytes += bytes
	u.lives.PeakBytes = max(u.lives.PeakBytes, u.bytes)
}

// Removed implements [sites.Watcher].
func (w *watcher) Removed(block uint32) {
	a, from, bytes, u := w.block(block)
	if !u.heap {
		return
	}
	u.bytes -= bytes
	age := a.now - a.lives.born[block]
	if u.ages == nil {
		u.ages = make([]uint64, profile.SiteBins)
	}
	u.ages[profile.SiteBin(uint32(min(age, math.MaxUint32)))]++
	u.lives.Freed++
	u.lives.Longest = max(u.lives.Longest, age)
	if a.lives.endBlock(from, bytes, &u.lives, 1) {
		u.lives.UnreadFreed++
	}
}

// endBlock counts the bytes of a block that were never read, and the bytes that were never written.
// If the parameter sign is -1, endBlock subtracts these numbers from the counts. The result unread
// reports whether no byte of the block was read.
func (l *blockTracker) endBlock(from trace.Addr, bytes uint64, to *profile.BlockLives, sign int64) (unread bool) {
	read, written := uint64(0), uint64(0)
	l.eachWord(from, bytes, func(p *page, word int, mask uint64) {
		read += uint64(bits.OnesCount64(p.read[word] & mask))
		written += uint64(bits.OnesCount64(p.written[word] & mask))
	})
	to.Unread += uint64(sign) * (bytes - read)
	to.Unwritten += uint64(sign) * (bytes - written)
	if read == 0 {
		to.UnreadBlocks += uint64(sign)
	}
	return read == 0
}

// clear marks all bytes of a block as not read and not written.
func (l *blockTracker) clear(from trace.Addr, bytes uint64) {
	l.eachWord(from, bytes, func(p *page, word int, mask uint64) {
		p.read[word] &^= mask
		p.written[word] &^= mask
	})
}

// recordReference records a reference to a heap block. recordReference ignores bytes outside the
// block.
func (l *blockTracker) recordReference(f *sites.Finder, block uint32, addr trace.Addr, bytes uint64, kind trace.Kind) {
	from, size, _ := f.Block(block)
	if addr < from || addr-from >= size {
		return
	}
	bytes = min(bytes, size-(addr-from))
	reads := kind != trace.Store && kind != trace.RangeWrite
	writes := kind == trace.Store || kind == trace.RangeWrite || kind == trace.Modify
	if number := addr >> pageBits; (addr+bytes-1)>>6 == addr>>6 { // most references touch only one word of the masks
		p := l.page(number)
		mask := ^uint64(0) >> (64 - bytes) << (addr & 63)
		word := addr >> 6 % uint64(len(p.read))
		if reads {
			p.read[word] |= mask
		}
		if writes {
			p.written[word] |= mask
		}
		return
	}
	for number := addr >> pageBits; number <= (addr+bytes-1)>>pageBits; number++ {
		l.page(number)
	}
	l.eachWord(addr, bytes, func(p *page, word int, mask uint64) {
		if reads {
			p.read[word] |= mask
		}
		if writes {
			p.written[word] |= mask
		}
	})
}

// page returns a page, and creates the page if necessary.
func (l *blockTracker) page(number uint64) *page {
	if uint64(l.last) < uint64(len(l.pages)) && l.pages[l.last].number == number {
		return &l.pages[l.last]
	}
	n, known := l.at.Find(number)
	if !known {
		n = uint32(len(l.pages))
		l.at.Add(number, n)
		l.pages = append(l.pages, page{number: number})
	}
	l.last = n
	return &l.pages[n]
}

// eachWord calls the function visit for each word of the masks that contains bytes of a range, with a
// mask of these bytes. eachWord skips pages that do not exist.
func (l *blockTracker) eachWord(from trace.Addr, bytes uint64, visit func(p *page, word int, mask uint64)) {
	if bytes == 0 {
		return
	}
	last := from + bytes - 1
	in := func(p *page) {
		low, high := p.number<<pageBits, p.number<<pageBits|(pageBytes-1)
		low, high = max(low, from), min(high, last)
		for at := low; ; at = (at | 63) + 1 {
			end := min(high, at|63)
			visit(p, int(at>>6%(pageBytes/64)), ^uint64(0)>>(63-(end-at))<<(at&63))
			if end == high {
				return
			}
		}
	}
	first, final := from>>pageBits, last>>pageBits
	if final-first >= uint64(len(l.pages)) {
		for i := range l.pages {
			if p := &l.pages[i]; p.number >= first && p.number <= final {
				in(p)
			}
		}
		return
	}
	for number := first; number <= final; number++ {
		if n, known := l.at.Find(number); known {
			in(&l.pages[n])
		}
	}
}
