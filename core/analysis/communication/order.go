package communication

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
)

// inOrder sorts pairs by what is written of them.
func (f *form) inOrder(list []sitePair) []sitePair {
	if !f.ordered {
		return list
	}
	list = slices.Clone(list)
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(f.compareSites(x.site, y.site, x.pair, y.pair), cmp.Compare(x.place, y.place)) < 0
	})
	return list
}

func (f *form) compareSites(site, otherSite, pair, otherPair uint32) int {
	slot, object := f.sites.Pair(pair)
	otherSlot, otherObject := f.sites.Pair(otherPair)
	return cmp.Or(cmp.Compare(f.sites.Code(site-1)+1, f.sites.Code(otherSite-1)+1), cmp.Compare(f.sites.Code(slot)+1, f.sites.Code(otherSlot)+1),
		cmp.Compare(f.sites.Data(object)+1, f.sites.Data(otherObject)+1))
}

// talliesInOrder sorts tallies in the same way, without those of no misses.
func (f *form) talliesInOrder(list []tally) []tally {
	list = slices.DeleteFunc(list, func(t tally) bool { return t.misses == 0 })
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(f.compareSites(x.site, y.site, x.pair, y.pair), cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to), cmp.Compare(x.offset, y.offset)) < 0
	})
	return list
}

func (f *form) use(u *useCount) {
	f.U64(&u.granule)
	for _, v := range []*uint16{&u.first, &u.last, &u.closed} {
		codec.Below(f.Coder, v, pageWords+1)
	}
	f.u8((*uint8)(&u.status))
	for _, v := range []*bool{&u.isPage, &u.loads, &u.stores, &u.isFirst, &u.isMiss} {
		f.Flag(v)
	}
	f.thread(&u.thread)
	f.U64(&u.count)
	if u.isPage {
		return
	}
	f.pair(&u.pair)
	f.U64(&u.begin)
	f.U32(&u.window)
	if u.status == closed {
		f.site(&u.site)
		f.thread(&u.from)
	}
}
