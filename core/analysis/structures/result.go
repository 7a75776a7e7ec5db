package structures

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// The state of a saved run (section segd) consists of
//
//	uv number of references
//	list of memory blocks, ascending, each
//	  uv index of the data structure · 8 bytes address · uv bytes · for heap blocks, uv number of
//	  references before the allocation
//	list of pages with bytes of blocks, ascending, each
//	  uv number − previous number · mask of the bytes read · mask of the bytes written
//	list of unfinished visits, each
//	  uv index of the data structure · uv index of the structure type · 8 bytes address of the
//	  element · mask of the members used · uv references since the last access
//	list of maps, in the order of their creation, each
//	  uv index of the data structure · 8 bytes number of the first row
//	list of the lines on the stack, most recently used first, each: zigzag varint line − previous line
//
// where uv is an unsigned LEB128 varint and masks are little-endian words. The counts are in the
// profile.

// Result writes the use of data structures. Result treats unfinished visits as ended, and includes
// blocks that have not been released.
func (a *Analysis) Result(p *profile.Profile, state bool) {
	if a.absent || a.now == 0 || p.Sites == nil || p.Sites.Data == nil {
		return
	}
	at := a.finder.IndexIn(p.Sites.Data)
	d := &profile.Data{LineBytes: a.lineBytes, ColumnReferences: a.maps.references}
	numbers := a.usedStructures(d)
	order := make([]uint32, 0, len(at))
	for object, i := range at {
		if i != profile.NoSite && object < len(a.uses) && a.uses[object].known {
			order = append(order, uint32(object))
		}
	}
	sort.Slice(order, func(i, j int) bool { return at[order[i]] < at[order[j]] })
	a.addUnfinished(1)
	for _, object := range order {
		d.Uses = append(d.Uses, a.use(object, at[object], numbers))
	}
	if p.Data = d; state {
		c := codec.Writer([]byte{})
		(&stateCoder{Coder: c, a: a, objects: at, structures: numbers}).codeAll()
		p.Segment.Structures = c.Out
	}
	a.addUnfinished(-1)
}

// usedStructures finds all structures that have elements, and adds them to d in sorted order. It
// returns the index of each structure in d.
func (a *Analysis) usedStructures(d *profile.Data) (numbers []uint32) {
	numbers = make([]uint32, len(a.structures))
	var list []uint32
	for i := range a.elements {
		if n := a.elements[i].structure; !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	sort.Slice(list, func(i, j int) bool {
		return compare(&a.structures[list[i]].Structure, &a.structures[list[j]].Structure) < 0
	})
	for i, n := range list {
		numbers[n] = uint32(i)
		d.Structures = append(d.Structures, a.structures[n].Structure)
	}
	return numbers
}

func compare(x, y *trace.Structure) int {
	return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Bytes, y.Bytes), slices.CompareFunc(x.Members, y.Members, func(x, y trace.Member) int {
		return cmp.Or(cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Type, y.Type))
	}))
}

// addUnfinished adds the unfinished visits and the current blocks to the counts. If the parameter
// sign is -1, it subtracts them again.
func (a *Analysis) addUnfinished(sign int64) {
	for i := range a.visits.list {
		if x := &a.visits.list[i]; x.elements != 0 {
			a.endVisit(x, sign)
		}
	}
	a.finder.Each(func(block uint32) {
		from, bytes, object := a.finder.Block(block)
		if u := a.useOf(object); u.heap {
			u.lives.Kept += uint64(sign)
			u.lives.KeptBytes += uint64(sign) * bytes
			a.lives.endBlock(from, bytes, &u.lives, sign)
		}
	})
}

func (a *Analysis) use(object, at uint32, numbers []uint32) profile.DataUse {
	u := &a.uses[object]
	out := profile.DataUse{Object: at, Lives: u.lives}
	for bin, n := range u.ages {
		if n != 0 {
			out.Lives.Lifetimes = append(out.Lives.Lifetimes, profile.BinCount{Bin: uint8(bin), Count: n})
		}
	}
	for _, n := range u.elements {
		e := a.elements[n].result()
		e.Structure = numbers[e.Structure]
		out.Elements = append(out.Elements, e)
	}
	sort.Slice(out.Elements, func(i, j int) bool { return out.Elements[i].Structure < out.Elements[j].Structure })
	if int(object) < len(a.maps.of) && a.maps.of[object] != 0 && a.maps.of[object] != beyondMaps {
		out.Map = a.maps.list[a.maps.of[object]-1].result(a.maps.column)
	}
	return out
}

func (e *elements) result() profile.ElementUse {
	out := profile.ElementUse{Structure: e.structure, Visits: e.visits, Starts: slices.Clone(e.starts), Together: slices.Clone(e.together)}
	for i := range e.members {
		m := &e.members[i]
		of := profile.MemberUse{Loads: m.loads, Stores: m.stores, Visits: m.visits}
		if m.bins != nil {
			of.Reuse.Cold = m.bins[profile.SiteBins]
			for bin, n := range m.bins[:profile.SiteBins] {
				if n != 0 {
					of.Reuse.Bins = append(of.Reuse.Bins, profile.BinCount{Bin: uint8(bin), Count: n})
				}
			}
		}
		out.Members = append(out.Members, of)
	}
	return out
}

var errState = errors.New("the counts for data structures in the checkpoint are damaged; analyse the trace again from its start")

// Restore continues a saved run.
func (a *Analysis) Restore(p *profile.Profile) error {
	if p.Data == nil {
		return nil
	}
	if p.Sites == nil || p.Data.LineBytes != a.lineBytes || p.Data.ColumnReferences < firstReferences {
		return errState
	}
	for i := range p.Data.Structures {
		if int(a.structure(p.Data.Structures[i])) != i {
			return errState
		}
	}
	f := &stateCoder{Coder: codec.Reader(p.Segment.Structures), a: a}
	for i := range p.Sites.Data {
		f.objects = append(f.objects, a.finder.Object(&p.Sites.Data[i]))
	}
	for i := range p.Data.Uses {
		a.load(&p.Data.Uses[i], f.objects)
	}
	a.maps.references = p.Data.ColumnReferences
	f.maps = p.Data.Uses
	if f.codeAll(); f.Failed() || f.More() {
		return errState
	}
	a.addUnfinished(-1)
	return nil
}

// load adds the use of a data structure from a profile.
func (a *Analysis) load(from *profile.DataUse, objects []uint32) {
	object := objects[from.Object]
	u := a.useOf(object)
	u.lives = from.Lives
	u.lives.Lifetimes = nil
	for _, b := range from.Lives.Lifetimes {
		if u.ages == nil {
			u.ages = make([]uint64, profile.SiteBins)
		}
		u.ages[b.Bin] = b.Count
	}
	for i := range from.Elements {
		of := &from.Elements[i]
		e := &a.elements[a.elementsOf(u, object, of.Structure)]
		e.visits = of.Visits
		copy(e.starts, of.Starts)
		copy(e.together, of.Together)
		for n := range of.Members {
			m, to := &of.Members[n], &e.members[n]
			to.loads, to.stores, to.visits = m.Loads, m.Stores, m.Visits
			if m.Reuse.Accesses() == 0 {
				continue
			}
			to.bins = new(bins)
			to.bins[profile.SiteBins] = m.Reuse.Cold
			for _, b := range m.Reuse.Bins {
				to.bins[b.Bin] = b.Count
			}
		}
	}
}

// stateCoder writes or reads the state of a saved run.
type stateCoder struct {
	*codec.Coder
	a *Analysis
	// When writing, objects maps data structures to their indices in the profile. When reading, it
	// maps indices to data structures.
	objects    []uint32
	structures []uint32          // only for writing: the index of each structure in the profile
	maps       []profile.DataUse // only for reading
}

func (f *stateCoder) codeAll() {
	a := f.a
	f.U64(&a.now)
	a.visits.now = a.now
	if a.maps.column = 0; a.now > 0 {
		a.maps.column = (a.now - 1) / a.maps.references
	}
	if f.Check(a.now < 1<<62 && a.maps.column < profile.MapColumns, "an access map has more columns than the trace has references"); f.Failed() {
		return
	}
	a.finder.Code(f.Coder, f.objects, f.block)
	f.pages()
	f.visits()
	f.codeMaps()
	f.stack()
}

func (f *stateCoder) block(n uint32) {
	_, _, object := f.a.finder.Block(n)
	u := f.a.useOf(object)
	if !u.heap {
		return
	}
	born := &f.a.lives.born[n]
	f.U64(born)
	f.Check(*born <= f.a.now, "an allocation occurs after the end of the trace")
}

func (f *stateCoder) pages() {
	l := &f.a.lives
	var order []uint32
	last := uint64(0)
	if !f.Reads() {
		for i := range l.pages {
			order = append(order, uint32(i))
		}
		sort.Slice(order, func(i, j int) bool { return l.pages[order[i]].number < l.pages[order[j]].number })
	}
	codec.Slice(f.Coder, &order, 1+2*pageBytes/8, func(n *uint32) {
		p := new(page)
		if !f.Reads() {
			p = &l.pages[*n]
		}
		number := p.number
		f.Delta(&number, &last)
		if f.Reads() {
			p.number = number
		}
		f.Words(p.read[:])
		f.Words(p.written[:])
		if f.Reads() && !f.Failed() {
			_, known := l.at.Find(p.number)
			f.Check(!known && p.number < 1<<(64-pageBits), "a page is listed twice")
			if !f.Failed() {
				*l.page(p.number) = *p
			}
		}
	})
}

// object writes or reads a data structure.
func (f *stateCoder) object(object *uint32) {
	if !f.Reads() {
		at := f.objects[*object]
		f.U32(&at)
		return
	}
	i := f.In.UintBelow(uint64(len(f.objects)))
	if !f.Failed() {
		*object = f.objects[i]
	}
}

func (f *stateCoder) visits() {
	v := &f.a.visits
	var list []visit
	if !f.Reads() {
		for _, x := range v.list {
			if x.elements != 0 {
				list = append(list, x)
			}
		}
		sort.Slice(list, func(i, j int) bool { return list[i].last < list[j].last })
	}
	codec.Slice(f.Coder, &list, 1+1+8+len(memberSet{})*8+1, func(x *visit) {
		var object, structure uint32
		if !f.Reads() {
			e := &f.a.elements[x.elements-1]
			object, structure = e.object, f.structures[e.structure]
		}
		f.object(&object)
		f.U32(&structure)
		f.Word(&x.base)
		f.Words(x.used[:])
		ago := v.now - x.last
		f.U64(&ago)
		if !f.Reads() {
			return
		}
		f.Check(uint64(structure) < uint64(len(f.a.structures)) && ago < min(window, v.now), "a visit refers to an unknown structure")
		if f.Failed() {
			return
		}
		u := f.a.useOf(object)
		x.elements, x.last = f.a.elementsOf(u, object, structure)+1, v.now-ago
		f.Check(v.resume(x), "a visit is listed twice")
	})
}

// resume continues a visit of a saved run. The result is false if the same visit, or a visit with
// the same last reference, already exists.
func (v *visits) resume(x *visit) bool {
	at := &v.recent[x.last%window]
	if *at != 0 {
		return false
	}
	slot := hash(x.base, x.elements)
	for ; v.table[slot] != 0; slot = (slot + 1) & tableMask {
		if y := &v.list[v.table[slot]-1]; y.base == x.base && y.elements == x.elements {
			return false
		}
	}
	n := v.free[len(v.free)-1] + 1
	v.free = v.free[:len(v.free)-1]
	v.table[slot], v.list[n-1], *at = n, *x, n
	return true
}

// codeMaps writes or reads the data structure and the first row of each map, in the order in which
// the maps were created.
func (f *stateCoder) codeMaps() {
	m := &f.a.maps
	n := f.Length(len(m.list), 1+8)
	for i := 0; i < n && !f.Failed(); i++ {
		var x *addressMap
		object, low := uint32(0), uint64(0)
		if !f.Reads() {
			x = &m.list[i]
			object, low = x.object, x.low
		}
		f.object(&object)
		f.Word(&low)
		if f.Failed() || !f.Reads() {
			continue
		}
		at := slices.IndexFunc(f.maps, func(u profile.DataUse) bool { return f.objects[u.Object] == object })
		f.Check(at >= 0 && i < profile.MostMaps && f.maps[max(at, 0)].Map.Rows > 0, "an access map belongs to unknown data")
		if f.Failed() {
			return
		}
		from := &f.maps[at].Map
		f.Check(low <= ^uint64(0)>>bits.TrailingZeros64(from.RowBytes)-uint64(from.Rows)+1, "an access map has rows beyond the last address")
		f.Check(uint64(object) >= uint64(len(m.of)) || m.of[object] == 0, "an access map is listed twice")
		if f.Failed() {
			return
		}
		m.of = append(m.of, make([]uint32, max(0, f.a.finder.Objects()-len(m.of)))...)
		m.list = append(m.list, addressMap{object: object, low: low})
		m.list[i].restore(from, m.column)
		m.of[object] = uint32(i + 1)
	}
}

func (f *stateCoder) stack() {
	var lines []trace.Line
	if !f.Reads() {
		lines = f.a.model.Stack()
	}
	if f.Stack(&lines); f.Failed() || !f.Reads() {
		return
	}
	slices.Reverse(lines)
	for from := 0; from < len(lines); from += pending {
		some := lines[from:min(from+pending, len(lines))]
		f.a.model.Distances(some, f.a.distances[:len(some)])
	}
	f.Check(f.a.model.Lines() == len(lines), "a line is listed twice")
}
