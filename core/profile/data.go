package profile

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Data describes how a run uses its data structures: the lifetimes of memory blocks, the use of
// structure members, and the accesses by address and time (MODELS §15.3). Package
// analysis/structures computes this description.
type Data struct {
	LineBytes uint32
	// ColumnReferences is the number of references in a column of every map: a power of two.
	ColumnReferences uint64
	Structures       []trace.Structure // the structures to which Uses refer
	Uses             []DataUse         // sorted by Object
}

// DataUse describes the use of one data structure.
type DataUse struct {
	Object   uint32       // index in Sites.Data
	Lives    BlockLives   // only for a data structure that consists of heap blocks; otherwise zero
	Elements []ElementUse // sorted by Structure
	Map      AddressMap   // empty if the run has too many data structures: see MostMaps
}

// BlockLives describes the memory blocks that one site allocated. The lifetime of a block is the
// number of references, by the whole program, between its allocation and its release.
type BlockLives struct {
	Freed     uint64     // number of blocks that were released
	Kept      uint64     // number of blocks that were never released
	KeptBytes uint64     // total size of the blocks that were never released, in bytes
	PeakBytes uint64     // maximum number of bytes that were allocated at the same time
	Lifetimes []BinCount // number of released blocks in each bin of lifetimes: see [SiteBin]
	Longest   uint64     // longest lifetime of a released block

	UnreadBlocks uint64 // number of blocks that were never read
	UnreadFreed  uint64 // number of released blocks that were never read
	Unread       uint64 // number of bytes that were never read, over all blocks
	Unwritten    uint64 // number of bytes that were never written, over all blocks
}

// Median returns the median lifetime of the released blocks, rounded down to the lower bound of the
// bin.
func (l *BlockLives) Median() uint64 {
	n := uint64(0)
	if l.Freed == 1 {
		return l.Longest
	}
	for _, b := range l.Lifetimes {
		if n += b.Count; 2*n >= l.Freed {
			return SiteBinFrom(int(b.Bin))
		}
	}
	return 0
}

// ElementUse describes the use of the elements of one structure type within a data structure. A
// visit is a sequence of accesses to one element; each access follows the previous access within
// [VisitReferences] references of the run.
type ElementUse struct {
	Structure uint32   // index in Data.Structures
	Visits    uint64   // number of visits to elements
	Starts    []uint64 // number of visits for each start of an element: the offset of the element's first byte in the cache line, divided by StartBytes
	// Members counts the accesses to each member. The last element counts references to padding or
	// to several elements.
	Members []MemberUse
	// Together counts, for each pair of the first [MostPaired] members, the visits that access both
	// members. The pairs are in the order (0, 1), (0, 2), (1, 2), (0, 3), and so on; see
	// [ElementUse.Both].
	Together []uint64
}

const (
	VisitReferences    = 64
	StartBytes         = 4
	MostPaired         = 64
	MostStructureBytes = 1 << 16 // maximum size of a structure whose members are counted
)

// MemberUse counts the accesses to one member, over all elements.
type MemberUse struct {
	// number of references; a modify counts as both a load and a store, and a reference to several
	// members counts once for each of them
	Loads, Stores uint64
	Visits        uint64 // number of visits that access the member
	Reuse         Reuse  // line accesses that begin in the member, by stack distance; only Cold and Bins are set
}

// References returns the number of loads and stores.
func (m *MemberUse) References() uint64 { return m.Loads + m.Stores }

// Pairs returns the number of pairs of n members.
func Pairs(n int) int { return n * (n - 1) / 2 }

// Both returns the number of visits that access both of two different members, or 0 if visits to
// this pair are not counted.
func (e *ElementUse) Both(i, j int) uint64 {
	if i > j {
		i, j = j, i
	}
	if at := Pairs(j) + i; i < j && at < len(e.Together) {
		return e.Together[at]
	}
	return 0
}

// AddressMap counts the line accesses to a data structure by address and time.
type AddressMap struct {
	RowBytes uint64 // number of bytes that each row of the map represents: a power of two
	Rows     uint32 // number of rows, at most MapRows
	Cells    []MapCell
}

// MapCell is a cell of a map, with at least one access. Cells are sorted by column, and then by
// row.
type MapCell struct {
	Column, Row uint8
	// Counts contains the number of line accesses in each class of stack distances: see [MapClass].
	Counts []BinCount
}

// The limits of access maps.
const (
	MapRows    = 64
	MapColumns = 128
	MostMaps   = 128 // the maximum number of data structures with a map
)

// MapClasses is the number of classes of distances in maps. The last class contains cold accesses.
const MapClasses = 22

// mapFrom is the binary logarithm of the upper limit of class 0.
const mapFrom = 4

// MapClass returns the class of a stack distance in maps. Class 0 contains the distances below 16,
// and each further class contains the distances up to the next power of two. The last class of
// distances also contains all longer distances.
func MapClass(distance uint32) int { return min(bits.Len32(distance>>mapFrom), MapClasses-2) }

// MapClassFrom returns the smallest distance in a class. For the class of cold accesses, the result
// is larger than every distance.
func MapClassFrom(class int) uint64 {
	switch {
	case class == 0:
		return 0
	case class >= MapClasses-1:
		return 1 << 32
	}
	return 1 << (mapFrom + class - 1)
}

// Accesses returns the number of line accesses in the cell.
func (m *MapCell) Accesses() uint64 { return sumCounts(m.Counts) }

// Cold returns the number of first accesses to lines.
func (m *MapCell) Cold() uint64 {
	if last := len(m.Counts) - 1; last >= 0 && m.Counts[last].Bin == MapClasses-1 {
		return m.Counts[last].Count
	}
	return 0
}

// Misses returns the number of accesses in the cell that miss in a fully associative LRU cache. The
// number is exact if the number of lines is a power of two from 16 to 2^23. Otherwise, the number
// is slightly too high.
func (m *MapCell) Misses(lines uint64) (n uint64) {
	for _, c := range m.Counts {
		if MapClassFrom(int(c.Bin)+1) > lines {
			n += c.Count
		}
	}
	return n
}

func (d *Data) code(c *coder) {
	c.U32(&d.LineBytes)
	c.U64(&d.ColumnReferences)
	c.withStrings(func() {
		codec.Slice(c.Coder, &d.Structures, 3, func(s *trace.Structure) {
			c.name(&s.Name)
			c.U64(&s.Bytes)
			codec.Slice(c.Coder, &s.Members, 4, func(m *trace.Member) {
				c.name(&m.Name)
				c.U32(&m.Offset)
				c.U32(&m.Bytes)
				c.name(&m.Type)
			})
		})
		next := uint64(0)
		codec.Slice(c.Coder, &d.Uses, 16, func(u *DataUse) {
			codec.Next(c.Coder, &u.Object, &next, 1<<32)
			u.Lives.code(c)
			next := uint64(0)
			codec.Slice(c.Coder, &u.Elements, 5, func(e *ElementUse) {
				codec.Next(c.Coder, &e.Structure, &next, 1<<32)
				d.codeElements(c, e)
			})
			u.Map.code(c)
		})
	})
}

func (l *BlockLives) code(c *coder) {
	c.U64s(&l.Freed, &l.Kept, &l.KeptBytes, &l.PeakBytes)
	c.binCounts(&l.Lifetimes)
	c.U64s(&l.Longest, &l.UnreadBlocks, &l.UnreadFreed, &l.Unread, &l.Unwritten)
}

func (d *Data) codeElements(c *coder, e *ElementUse) {
	if c.Check(uint64(e.Structure) < uint64(len(d.Structures)), "elements belong to an unknown structure"); c.Failed() {
		return
	}
	c.U64(&e.Visits)
	codec.Bounded(c.Coder, &e.Starts, int(MaxLineBytes/StartBytes), c.U64)
	codec.Members(c.Coder, &e.Members, len(d.Structures[e.Structure].Members)+1, func(m *MemberUse) {
		c.U64s(&m.Loads, &m.Stores, &m.Visits, &m.Reuse.Cold)
		c.binCounts(&m.Reuse.Bins)
	})
	codec.Members(c.Coder, &e.Together, Pairs(min(len(d.Structures[e.Structure].Members), MostPaired)), c.U64)
}

func (m *AddressMap) code(c *coder) {
	c.U64(&m.RowBytes)
	c.U32(&m.Rows)
	next := uint64(0)
	codec.Slice(c.Coder, &m.Cells, 3, func(cell *MapCell) {
		at := uint64(cell.Column)*MapRows + uint64(cell.Row)
		codec.Next(c.Coder, &at, &next, MapColumns*MapRows)
		cell.Column, cell.Row = uint8(at/MapRows), uint8(at%MapRows)
		c.binCounts(&cell.Counts)
	})
}

// check checks that the counts belong to data objects of the profile and are consistent with
// each other.
func (d *Data) check(p *Profile) error {
	if p.Sites == nil || d.LineBytes != p.Sites.LineBytes || bits.OnesCount64(d.ColumnReferences) != 1 {
		return &CheckError{"the results for data structures have no sites, an invalid column size, or a line size that differs from the line size of the sites"}
	}
	for i := range d.Structures {
		if s := &d.Structures[i]; s.Bytes > MostStructureBytes || !validMembers(s) {
			return &CheckError{"a structure is too large, or has members outside the structure"}
		}
	}
	for i := range d.Uses {
		u := &d.Uses[i]
		if int64(u.Object) >= int64(len(p.Sites.Data)) || i > 0 && d.Uses[i-1].Object >= u.Object {
			return &CheckError{"the data structures are out of order or unknown"}
		}
		if !u.Lives.fits(&p.Sites.Data[u.Object]) || !u.Map.fits() {
			return &CheckError{"the lifetimes of memory blocks do not match the number of blocks, or an access map is invalid"}
		}
		for k := range u.Elements {
			e := &u.Elements[k]
			if len(e.Starts) != int(d.LineBytes/StartBytes) || sum(e.Starts) != e.Visits || k > 0 && u.Elements[k-1].Structure >= e.Structure || !e.fits() {
				return &CheckError{"the visits to the elements of a structure are inconsistent or out of order"}
			}
		}
	}
	return nil
}

func validMembers(s *trace.Structure) bool {
	for i, m := range s.Members {
		if m.Bytes == 0 || uint64(m.Offset)+uint64(m.Bytes) > s.Bytes || i > 0 && m.Offset < s.Members[i-1].Offset {
			return false
		}
	}
	return true
}

func (l *BlockLives) fits(o *DataObject) bool {
	return sumCounts(l.Lifetimes) == l.Freed && l.Freed <= o.Blocks && l.Kept <= o.Blocks-l.Freed && l.KeptBytes <= o.Bytes &&
		l.PeakBytes <= o.Bytes && l.UnreadFreed <= l.UnreadBlocks && l.UnreadBlocks <= l.Freed+l.Kept && l.Unread <= o.Bytes && l.Unwritten <= o.Bytes
}

func (m *AddressMap) fits() bool {
	if m.Rows > MapRows || m.Rows > 0 && bits.OnesCount64(m.RowBytes) != 1 {
		return false
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		if uint32(c.Row) >= m.Rows || len(c.Counts) == 0 || c.Counts[len(c.Counts)-1].Bin >= MapClasses {
			return false
		}
	}
	return true
}

func (e *ElementUse) fits() bool {
	for i := range e.Members {
		if e.Members[i].Visits > e.Visits {
			return false
		}
	}
	for _, n := range e.Together {
		if n > e.Visits {
			return false
		}
	}
	return true
}
