package sites

import (
	"github.com/stackglass/stackglass/core/analysis/index"
	"github.com/stackglass/stackglass/core/trace"
)

// granules are what was found out of the addresses in small blocks: their
// objects, by words of 8 bytes. Walks along lists and trees go to another block
// with every reference, and find its object here with a look at a page and at a
// word, where a search among all blocks would wait for memory a dozen times.
//
// A word is noted when it lies in one block as a whole, and forgotten with it.
type granules struct {
	at    index.Table // pages by number
	pages []granulePage
}

type granulePage [pageGranules]uint16 // objects; 0: not noted

const (
	granuleBits  = 3
	pageBits     = 12
	pageGranules = 1 << (pageBits - granuleBits)
	smallBlock   = 1 << pageBits // blocks of fewer bytes are small
	mostObjects  = 1 << 16       // with higher numbers are not noted
)

// object returns the object of an address, or noObject if none is noted.
func (g *granules) object(addr trace.Addr) uint32 {
	page, known := g.at.Find(addr >> pageBits)
	if !known {
		return noObject
	}
	return uint32(g.pages[page][addr>>granuleBits%pageGranules])
}

// note records the object of an address in a block.
func (g *granules) note(addr trace.Addr, in block, of uint32) {
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

func (g *granules) forget(b block) {
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
