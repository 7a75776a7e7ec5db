package structures

import (
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// accessMaps counts the accesses to data structures by address (row) and time (column). All maps
// have the same columns. If there are too many columns, neighbouring columns are joined in pairs,
// which doubles the number of references in each column. If an address is outside all rows of a
// map, the rows of the map are joined in the same way. Rows begin at multiples of their size, so
// the result depends only on the lowest and the highest address.
type accessMaps struct {
	references uint64 // number of references in each column, a power of two
	column     uint64 // the current column
	list       []addressMap
	of         []uint32 // for each data structure: 1 + the index of its map; 0: no map yet; beyondMaps: no map, because there are too many
}

const (
	firstReferences = 256
	beyondMaps      = ^uint32(0)
)

// cell identifies a cell of a map, by an address instead of a row, because the size of rows may
// grow before the access is counted.
type cell struct {
	of   uint32 // 1 + the index of the map; 0: none
	addr trace.Addr
}

var noCell cell

type addressMap struct {
	object  uint32
	shift   uint   // binary logarithm of the number of bytes in a row
	low     uint64 // number of the first row: the row's address divided by the number of bytes in a row
	rows    uint64
	current [profile.MapRows]*classes // counts of the current column, by row; nil: no access yet
	before  []profile.TimeCount       // counts of the earlier columns, ascending; see keyOf
}

type classes [profile.MapClasses]uint64

// keyOf returns the key of the count for one class of distances in one cell.
func keyOf(column, row, class uint64) profile.TimeKey {
	return profile.TimeKey(column<<16 | row<<8 | class)
}

func placeOf(key profile.TimeKey) (column, row uint64, class uint8) {
	return uint64(key >> 16), uint64(key >> 8 & 0xff), uint8(key)
}

func (m *accessMaps) init() { m.references = firstReferences }

// isColumnFull reports whether the current column ends before the given reference (now). The first
// reference has number 1.
func (m *accessMaps) isColumnFull(now uint64) bool { return now > (m.column+1)*m.references }

func (m *accessMaps) nextColumn() {
	for i := range m.list {
		m.list[i].before = m.list[i].counts(m.column)
		for _, c := range m.list[i].current {
			if c != nil {
				*c = classes{}
			}
		}
	}
	if m.column++; m.column < profile.MapColumns {
		return
	}
	m.column /= 2
	m.references *= 2
	for i := range m.list {
		m.list[i].rewriteCells(func(column, row uint64) (uint64, uint64) { return column / 2, row })
	}
}

// counts returns the counts of all columns, including the current column.
func (x *addressMap) counts(column uint64) []profile.TimeCount {
	list := slices.Clip(x.before)
	for row, c := range x.current {
		if c == nil {
			continue
		}
		for class, n := range c {
			if n != 0 {
				list = append(list, profile.TimeCount{Key: keyOf(column, uint64(row), uint64(class)), Count: n})
			}
		}
	}
	return list
}

// rewriteCells moves the counts of the earlier columns to other cells, and adds up counts in the
// same cell.
func (x *addressMap) rewriteCells(to func(column, row uint64) (uint64, uint64)) {
	for i, c := range x.before {
		column, row, class := placeOf(c.Key)
		column, row = to(column, row)
		x.before[i].Key = keyOf(column, row, uint64(class))
	}
	x.before = profile.SumTimes(x.before)
}

// cellOf returns the cell of an access in the map of a data structure, and extends the map if
// necessary.
func (m *accessMaps) cellOf(a *Analysis, object uint32, addr trace.Addr) cell {
	if uint64(object) >= uint64(len(m.of)) {
		m.of = append(m.of, make([]uint32, a.finder.Objects()-len(m.of))...)
	}
	n := m.of[object]
	if n == 0 {
		n = beyondMaps
		if len(m.list) < profile.MostMaps {
			m.list = append(m.list, addressMap{object: object, shift: a.shift})
			n = uint32(len(m.list))
		}
		m.of[object] = n
	}
	if n == beyondMaps {
		return noCell
	}
	if x := &m.list[n-1]; addr>>x.shift-x.low >= x.rows {
		x.extend(addr)
	}
	return cell{n, addr}
}

// extend extends the map so that its rows include an address.
func (x *addressMap) extend(addr trace.Addr) {
	row := addr >> x.shift
	if x.rows == 0 {
		x.low, x.rows = row, 1
		return
	}
	low, high := min(x.low, row), max(x.low+x.rows-1, row)
	by := uint(0)
	for high>>by-low>>by >= profile.MapRows {
		by++
	}
	first := low >> by
	to := func(row uint64) uint64 { return (x.low+row)>>by - first }
	if by > 0 || first != x.low {
		old := x.current
		x.current = [profile.MapRows]*classes{}
		for row, c := range old {
			if c == nil {
				continue
			}
			at := &x.current[to(uint64(row))]
			if *at == nil {
				*at = c
				continue
			}
			for class, n := range c {
				(*at)[class] += n
			}
		}
		x.rewriteCells(func(column, row uint64) (uint64, uint64) { return column, to(row) })
	}
	x.shift += by
	x.low, x.rows = first, high>>by-first+1
}

// count counts an access with the given stack distance in the current column.
func (m *accessMaps) count(at cell, distance uint32) {
	if at.of == 0 {
		return
	}
	x := &m.list[at.of-1]
	c := &x.current[at.addr>>x.shift-x.low]
	if *c == nil {
		*c = new(classes)
	}
	if distance == ^uint32(0) {
		(*c)[profile.MapClasses-1]++
	} else {
		(*c)[profile.MapClass(distance)]++
	}
}

// result returns the map for a profile.
func (x *addressMap) result(column uint64) profile.AddressMap {
	out := profile.AddressMap{RowBytes: 1 << x.shift, Rows: uint32(x.rows)}
	for _, c := range x.counts(column) {
		column, row, class := placeOf(c.Key)
		last := len(out.Cells) - 1
		if last < 0 || uint64(out.Cells[last].Column) != column || uint64(out.Cells[last].Row) != row {
			out.Cells = append(out.Cells, profile.MapCell{Column: uint8(column), Row: uint8(row)})
			last++
		}
		out.Cells[last].Counts = append(out.Cells[last].Counts, profile.BinCount{Bin: class, Count: c.Count})
	}
	return out
}

// restore restores the map from a profile.
func (x *addressMap) restore(from *profile.AddressMap, column uint64) {
	x.shift, x.rows = uint(bits.TrailingZeros64(from.RowBytes)), uint64(from.Rows)
	for i := range from.Cells {
		cell := &from.Cells[i]
		for _, n := range cell.Counts {
			if uint64(cell.Column) < column {
				x.before = append(x.before, profile.TimeCount{Key: keyOf(uint64(cell.Column), uint64(cell.Row), uint64(n.Bin)), Count: n.Count})
				continue
			}
			c := &x.current[cell.Row]
			if *c == nil {
				*c = new(classes)
			}
			(*c)[n.Bin] = n.Count
		}
	}
}
