package change

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Pad adds bytes after each row of an array. To make room, Pad moves the arrays that follow
// closely.
type Pad struct {
	Array trace.Addr // an address in the array
	Bytes uint64     // number of bytes to add per row
}

// Illegal implements [Change].
func (Pad) Illegal() string {
	return "other code needs the rows without gaps: a single loop over the whole array, a copy of the array, or a file or another program with the same layout"
}

// Words implements [Change].
func (p Pad) Words(names Names) string {
	return "pad each row of " + names.array(p.Array) + " by " + names.bytes(p.Array, p.Bytes)
}

// Apply implements [Change].
func (p Pad) Apply(n *loops.Nest) error {
	refuse := func(why string) error { return &Error{"padding", why} }
	if p.Bytes == 0 || p.Bytes > 1<<32 {
		return refuse(strconv.FormatUint(p.Bytes, 10) + " bytes per row, want 1 to 4294967296")
	}
	if why := wrapAroundError(n); why != "" {
		return refuse(why)
	}
	arrays := Arrays(n)
	at := slices.IndexFunc(arrays, func(a Array) bool { return a.has(p.Array) })
	if at < 0 {
		return refuse("no reference accesses address 0x" + strconv.FormatUint(p.Array, 16))
	}
	a := arrays[at]
	r, why := rowsOf(n, a)
	if why != "" {
		return refuse(why)
	}
	last := (a.Last - r.begin) / r.pitch
	if last+1 > 1<<40 {
		return refuse(strconv.FormatUint(last+1, 10) + " rows, want fewer than 2^40")
	}
	// make room before rows move to their new positions
	moveAll(n, makeRoom(arrays, a, (last+1)*p.Bytes))
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if leaf.Wild || !inArray(leaf, around, a) {
			return
		}
		row, _, _ := r.position(leaf, around)
		leaf.Addr += uint64(row) * p.Bytes
		for d := range leaf.Steps {
			leaf.Steps[d] += r.rowStep(leaf.Steps[d]) * int64(p.Bytes)
		}
	})
	mapWild(n, func(addr trace.Addr) trace.Addr {
		if a.has(addr) {
			addr += (addr - r.begin) / r.pitch * p.Bytes
		}
		return addr
	})
	return nil
}

func inArray(leaf *loops.Item, around []*loops.Item, a Array) bool {
	low, _ := byteRange(leaf, around)
	return a.has(low)
}

// rows describes how an array is divided into rows.
type rows struct {
	begin trace.Addr // address of the first row, at or before the first byte of the array
	pitch uint64
}

// rowStep converts a step in bytes to a number of rows, rounded to the nearest integer.
func (r rows) rowStep(step int64) int64 {
	pitch := int64(r.pitch)
	q := step / pitch
	switch rest := step % pitch; {
	case rest > pitch/2:
		q++
	case -rest > pitch/2:
		q--
	}
	return q
}

// position returns the row in which a leaf begins, and the lowest and the highest position of the
// leaf's bytes relative to the beginning of their row. If the leaf crosses into a neighbouring row,
// one of the two positions is outside the row.
func (r rows) position(leaf *loops.Item, around []*loops.Item) (row, low, high int64) {
	within := make([]int64, len(leaf.Steps))
	for d, s := range leaf.Steps {
		within[d] = s - r.rowStep(s)*int64(r.pitch)
	}
	offset := int64(leaf.Addr - r.begin)
	row = offset / int64(r.pitch)
	if offset%int64(r.pitch) < 0 {
		row--
	}
	lo, hi := valueRange(uint64(offset-row*int64(r.pitch)), within, around)
	low, high = int64(lo), int64(hi)
	// Because of the steps, all accessed bytes may be outside the row of the first address.
	shift := int64(0)
	if high < 0 {
		shift = -1 - (-high-1)/int64(r.pitch)
	} else if low > 0 {
		shift = low / int64(r.pitch)
	}
	low, high = low-shift*int64(r.pitch), high-shift*int64(r.pitch)
	return row + shift, low, high + max(1, int64(leaf.Ref.Bytes)) - 1
}

// Larger steps and lengths are rejected, because their sums could overflow.
const most = 1 << 44

// rowsOf finds the rows of an array. The pitch is the smallest step of a loop for which no
// reference crosses from one row into the next.
func rowsOf(n *loops.Nest, a Array) (r rows, why string) {
	type use struct {
		leaf   *loops.Item
		around []*loops.Item
	}
	var uses []use
	var pitches []uint64
	if a.Bytes() > most {
		return r, "the array of " + strconv.FormatUint(a.Bytes(), 10) + " bytes is too long to be a single array"
	}
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if leaf.Wild || !inArray(leaf, around, a) {
			return
		}
		uses = append(uses, use{leaf, around})
		for d := range around {
			if s := magnitude(stepAt(leaf, d)); s > uint64(leaf.Ref.Bytes) && s <= a.Bytes() {
				pitches = append(pitches, s)
			}
		}
	})
	if len(uses) == 0 {
		return r, "only irregular references access the array, so the length of the array's rows is unknown"
	}
	slices.Sort(pitches)
	for _, pitch := range slices.Compact(pitches) {
		if pitch > most {
			continue
		}
		// A row can begin at the lowest position of any leaf, unless another leaf covers this
		// position.
		whole, inside := rows{a.First - a.First%pitch, pitch}, false
		var places [][2]int64
		ok := true
		for _, u := range uses {
			_, low, high := whole.position(u.leaf, u.around)
			ok = ok && high-low < int64(pitch)
			places = append(places, [2]int64{low, high})
			inside = inside || high-low >= int64(u.leaf.Ref.Bytes)
		}
		if !ok || !inside && len(pitches) > 1 && pitch != pitches[len(pitches)-1] {
			continue
		}
		if begin, found := rowStart(places, int64(pitch), int64(a.First-whole.begin)); found {
			for begin > int64(a.First-whole.begin) {
				begin -= int64(pitch)
			}
			// If the array is near address 0, the first row may begin at a negative address (modulo
			// 2^64).
			return rows{whole.begin + uint64(begin), pitch}, ""
		}
	}
	return r, "there is no row length that fits all references to the array: some references cross from one row into the next"
}

func magnitude(s int64) uint64 {
	if s < 0 {
		return uint64(-s)
	}
	return uint64(s)
}

// rowStart finds a position, modulo the pitch, at which rows can begin: no range may contain this
// position. It tries the first byte of the array, and then the position after the widest gap.
func rowStart(places [][2]int64, pitch, first int64) (begin int64, ok bool) {
	gap := func(at int64) (free int64, ok bool) {
		free = pitch
		for _, p := range places {
			// d is the distance from the beginning of range p to position "at", modulo the pitch.
			d := ((at-p[0])%pitch + pitch) % pitch
			if d > 0 && d <= p[1]-p[0] {
				return 0, false
			}
			if d > 0 {
				free = min(free, d-(p[1]-p[0]+1))
			} else if p[1]-p[0]+1 < pitch {
				free = min(free, pitch-(p[1]-p[0]+1))
			} else {
				free = 0
			}
		}
		return free, true
	}
	if _, ok := gap(first); ok {
		return first, true
	}
	widest := int64(-1)
	for _, p := range places {
		if free, ok := gap(p[0]); ok && free > widest {
			widest, begin = free, p[0]
		}
	}
	return begin, widest >= 0
}

// Align moves one array, or all arrays, to the next multiple of a number of bytes. If other arrays
// follow a moved array closely, they are moved too.
type Align struct {
	Bytes uint64     // a power of two
	Array trace.Addr // an address in the array; 0 for all arrays
}

// Illegal implements [Change].
func (Align) Illegal() string {
	return "other code relies on the array's current address; the allocation or declaration must request the alignment"
}

// Words implements [Change].
func (c Align) Words(names Names) string {
	what := "all arrays"
	if c.Array != 0 {
		what = names.array(c.Array)
	}
	return "align " + what + " to " + strconv.FormatUint(c.Bytes, 10) + " bytes"
}

// Apply implements [Change].
func (c Align) Apply(n *loops.Nest) error {
	refuse := func(why string) error { return &Error{"alignment", why} }
	if c.Bytes == 0 || c.Bytes&(c.Bytes-1) != 0 || c.Bytes > 1<<30 {
		return refuse(strconv.FormatUint(c.Bytes, 10) + " bytes, want a power of two up to 1073741824")
	}
	if why := wrapAroundError(n); why != "" {
		return refuse(why)
	}
	arrays := Arrays(n)
	var moves []move
	end, by, found := uint64(0), uint64(0), false
	for i, a := range arrays {
		if i > 0 && a.First-end > max(maxNeighbourDistance, by) {
			by = 0 // this array is too far away to move with the previous array
		}
		if c.Array == 0 || a.has(c.Array) {
			found = true
			by += (c.Bytes - (a.First+by)%c.Bytes) % c.Bytes
		}
		if by != 0 {
			moves = append(moves, move{a, by})
		}
		end = a.Last
	}
	if !found {
		return refuse("no reference accesses address 0x" + strconv.FormatUint(c.Array, 16))
	}
	if len(moves) == 0 {
		return refuse("the array is already aligned")
	}
	moveAll(n, moves)
	return nil
}

// Records merges several arrays into one array of structures. Structure i contains element i of
// each array. Elements are counted from the first referenced element. The structures begin at the
// address of the first array.
type Records struct {
	Arrays []trace.Addr // an address in each array, in the order of the fields
}

// Illegal implements [Change].
func (Records) Illegal() string {
	return "other code uses one of the arrays as a whole or traverses an array with a pointer, or the arrays have different lengths"
}

// Words implements [Change].
func (c Records) Words(names Names) string {
	text := "make one array of structures from "
	for i, at := range c.Arrays {
		switch {
		case i > 0 && i == len(c.Arrays)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += names.array(at)
	}
	return text
}

// Apply implements [Change].
func (c Records) Apply(n *loops.Nest) error {
	refuse := func(why string) error { return &Error{"an array of structures", why} }
	if len(c.Arrays) < 2 {
		return refuse("only one array is given, want at least two")
	}
	if why := wrapAroundError(n); why != "" {
		return refuse(why)
	}
	arrays := Arrays(n)
	var from []Array
	for _, addr := range c.Arrays {
		i := slices.IndexFunc(arrays, func(a Array) bool { return a.has(addr) })
		if i < 0 {
			return refuse("no reference accesses address 0x" + strconv.FormatUint(addr, 16))
		}
		if slices.Contains(from, arrays[i]) {
			return refuse("two of the addresses are in the same array")
		}
		from = append(from, arrays[i])
	}
	field := uint64(0) // element size in bytes: the size of the first reference
	why := ""
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		low, _ := byteRange(leaf, around)
		i := slices.IndexFunc(from, func(a Array) bool { return a.has(low) })
		if leaf.Wild || i < 0 || why != "" {
			return
		}
		if field == 0 {
			field = uint64(leaf.Ref.Bytes)
		}
		if field == 0 || uint64(leaf.Ref.Bytes) > field || (leaf.Addr-from[i].First)%field+uint64(leaf.Ref.Bytes) > field {
			why = "the size of a reference, " + strconv.FormatUint(uint64(leaf.Ref.Bytes), 10) + " bytes, does not match the element size " + strconv.FormatUint(field, 10)
			return
		}
		for d := range around {
			if stepAt(leaf, d)%int64(field) != 0 {
				why = "a step of " + strconv.FormatInt(stepAt(leaf, d), 10) + " bytes is not a multiple of the element size " + strconv.FormatUint(field, 10)
			}
		}
	})
	if why == "" && field == 0 {
		why = "only irregular references access the arrays, so their element size is unknown"
	}
	if why != "" {
		return refuse(why)
	}
	count := uint64(len(from))
	base := from[0].First
	others := slices.DeleteFunc(slices.Clone(arrays), func(a Array) bool { return slices.Contains(from, a) })
	longest := slices.MaxFunc(from, func(x, y Array) int { return cmp.Compare(x.Bytes(), y.Bytes()) }).Bytes()
	room := makeRoom(others, from[0], (longest+field)*count-from[0].Bytes())
	to := func(addr trace.Addr) trace.Addr {
		for i, a := range from {
			if a.has(addr) {
				offset := addr - a.First
				return base + offset/field*field*count + uint64(i)*field + offset%field
			}
		}
		return moved(room, addr)
	}
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if leaf.Wild {
			return
		}
		low, _ := byteRange(leaf, around)
		if !slices.ContainsFunc(from, func(a Array) bool { return a.has(low) }) {
			leaf.Addr += moved(room, low) - low
			return
		}
		leaf.Addr = to(low) + (leaf.Addr-low)*count
		for d := range leaf.Steps {
			leaf.Steps[d] *= int64(count)
		}
	})
	mapWild(n, to)
	return nil
}
