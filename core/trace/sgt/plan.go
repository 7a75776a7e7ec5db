package sgt

import (
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// plan describes the rows of the selected kinds that a step of a block produces.
type plan struct {
	form   form
	lead   uint8   // in a straight plan, the number of rows before the rows with values
	scales []uint8 // the scale of each value; see scaleOf
	rows   []planRow
}

// form classifies plans by the fastest method to write their rows.
type form uint8

const (
	// every value is the address of one row, in order; rows without a value come before or after
	// these rows
	straight form = iota
	fixed         // all steps have the same number of rows
	// the number of rows varies: a range of 2^32 bytes or more becomes several rows, and the end of
	// a worksharing loop that continues produces no row
	varying
)

// planRow describes one row of a plan. Values are identified by their numbers in the step. The
// value with number constantValue is always 0.
type planRow struct {
	kind  trace.Kind
	how   rowForm
	addr  uint8 // number of the value that is stored in Addr
	arg   uint8 // number of the value that is stored in Arg
	bytes uint32
	site  uint32
	more  uint64 // constant that is added to the value in Arg
}

// rowForm specifies whether a value determines the size or the existence of a row.
type rowForm uint8

const (
	onlyRow     rowForm = iota
	sizedRow            // the row's size in bytes is the value with number arg
	unlessGoing         // the row exists only if the value with number addr is 0
)

const constantValue = MaxValues

// mostRows is the maximum number of rows in a straight plan.
const mostRows = MaxValues + 16

// planner creates the plans for a program's blocks.
type planner struct {
	kinds  trace.Kinds
	plans  []plan
	pcs    []trace.Addr // PC of each site
	hasPC  bool         // whether any site has a PC
	hasArg bool         // whether any site produces rows with a second value
}

// extend creates the plans of blocks that do not have a plan yet.
func (p *planner) extend(program *trace.Program) {
	for _, s := range program.Sites[len(p.pcs):] {
		p.pcs = append(p.pcs, s.PC)
		p.hasPC = p.hasPC || s.PC != 0
		p.hasArg = p.hasArg || (s.Kind == trace.Alloc || s.Kind == trace.LoopBegin) && p.kinds.Has(s.Kind)
	}
	for i := len(p.plans); i < len(program.Blocks); i++ {
		b := &program.Blocks[i]
		p.plans = append(p.plans, p.plan(uint32(i), b, program.Sites[b.FirstSite:b.FirstSite+b.Sites]))
	}
}

func (p *planner) plan(number uint32, b *trace.Block, sites []trace.Site) plan {
	made := plan{scales: layoutOf(sites).scales}
	if b.Flags&trace.Synthetic == 0 {
		p.blockRow(&made, trace.BlockEntry, number)
		if !p.kinds.Has(trace.BlockEntry) && !slices.ContainsFunc(sites, impliesEntry) {
			p.blockRow(&made, trace.BareBlock, number)
		}
	}
	if b.Flags&trace.EntryBlock != 0 {
		p.blockRow(&made, trace.Call, number)
	}
	value := 0
	for i := range sites {
		s := &sites[i]
		if p.kinds.Has(s.Kind) {
			made.rows = append(made.rows, rowOf(s, b.FirstSite+uint32(i), value))
		}
		value += s.Values()
	}
	if b.Flags&trace.ReturnBlock != 0 {
		p.blockRow(&made, trace.Return, number)
	}
	made.lead, made.form = formOf(&made)
	return made
}

// impliesEntry reports whether the rows of a site show that the site's block was entered.
func impliesEntry(s trace.Site) bool { return s.Kind <= trace.Modify }

// writePCs fills a PC column. Rows of blocks have no PC.
func (p *planner) writePCs(pc []trace.Addr, kinds []trace.Kind, sites []uint32) {
	kinds, sites = kinds[:len(pc)], sites[:len(pc)]
	for i := range pc {
		if k := kinds[i]; k == trace.BlockEntry || k == trace.BareBlock || k == trace.Call || k == trace.Return {
			continue
		}
		pc[i] = p.pcs[sites[i]]
	}
}

func (p *planner) blockRow(to *plan, kind trace.Kind, number uint32) {
	if p.kinds.Has(kind) {
		to.rows = append(to.rows, planRow{kind: kind, addr: constantValue, arg: constantValue, site: number})
	}
}

// rowOf returns the row for a site. The parameter "value" is the number of the site's first value.
func rowOf(s *trace.Site, number uint32, value int) planRow {
	r := planRow{kind: s.Kind, addr: constantValue, arg: constantValue, site: number}
	values := s.Values()
	if values > 0 {
		r.addr = uint8(value)
	}
	if values > 1 {
		r.arg = uint8(value + 1)
	}
	switch {
	case s.Kind == trace.LoopEnd:
		r.how = unlessGoing
	case s.Kind == trace.Alloc && values == 1:
		r.more = uint64(s.Bytes)
	case s.Kind.IsReference() && values > 1:
		r.how = sizedRow
	case s.Kind.IsReference():
		r.bytes = s.Bytes
	}
	return r
}

// isConstant reports whether the columns of a row never change.
func (r *planRow) isConstant() bool {
	return r.how == onlyRow && r.addr == constantValue && r.arg == constantValue && r.more == 0
}

// formOf returns the form of a plan and, if it is straight, the number of rows before the first row
// with a value.
func formOf(p *plan) (lead uint8, f form) {
	first := slices.IndexFunc(p.rows, func(r planRow) bool { return !r.isConstant() })
	if first < 0 {
		first = len(p.rows)
	}
	if behind := first + len(p.scales); len(p.rows) < behind || len(p.rows) > mostRows {
		f = fixed
	}
	for i := range p.rows {
		r, value := &p.rows[i], i-first
		if r.how != onlyRow {
			return 0, varying
		}
		of := value >= 0 && value < len(p.scales)
		if of && (int(r.addr) != value || r.arg != constantValue || r.more != 0) || !of && !r.isConstant() {
			f = fixed
		}
	}
	if f != straight {
		return 0, f
	}
	return uint8(first), straight
}

// layout describes a block for encoders and decoders.
type layout struct {
	scales     []uint8 // the scale of each value; see scaleOf
	references uint64  // number of rows that are references, if no reference has 2^32 bytes or more
	sizes      []uint8 // numbers of the values that are sizes of references
}

// referencesOf returns the number of references in a step with the given values.
func (l *layout) referencesOf(values []uint64) uint64 {
	n := l.references
	for _, i := range l.sizes {
		n += rangeRows(values[i]) - 1
	}
	return n
}

// layoutOf returns the layout of a block with the given sites.
func layoutOf(sites []trace.Site) layout {
	var l layout
	for i := range sites {
		s := &sites[i]
		for v := range s.Values() {
			if v == 1 && s.Kind.IsReference() {
				l.sizes = append(l.sizes, uint8(len(l.scales)))
			}
			l.scales = append(l.scales, scaleOf(s, v))
		}
		if s.Kind.IsReference() {
			l.references++
		}
	}
	return l
}

// appendLayouts adds the layouts of the program's blocks.
func appendLayouts(layouts []layout, p *trace.Program) []layout {
	for _, b := range p.Blocks {
		layouts = append(layouts, layoutOf(p.Sites[b.FirstSite:b.FirstSite+b.Sites]))
	}
	return layouts
}

// scaleOf returns the number of low bits that are usually 0 in the differences of a value. For
// example, three bits are usually 0 if the value is the address of aligned 8-byte words.
func scaleOf(s *trace.Site, value int) uint8 {
	switch {
	case value > 0 || s.Kind > trace.Fetch || s.Bytes < 2:
		return 0
	case s.Bytes < 4:
		return 1
	case s.Bytes < 8:
		return 2
	}
	return 3
}

// rangeRows returns the number of rows needed for a range of the given number of bytes. A large
// range needs several rows, because the size of a row has only 32 bits.
func rangeRows(bytes uint64) uint64 {
	if bytes == 0 {
		return 1
	}
	return (bytes-1)/mostBytes + 1
}

// mostBytes is the maximum value of Bytes in one row.
const mostBytes = 1<<32 - 1
