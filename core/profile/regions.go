package profile

import "github.com/stackglass/stackglass/core/codec"

// Regions lists the regions of the run that the program has marked with stackglass_begin and
// stackglass_end, in the order in which they begin.
//
// There are at most [MostRegions] regions. If a run has more regions, successive regions with the
// same name, thread and depth are joined if fewer than Gap references lie between them. Gap is the
// smallest power of two that yields at most [MostRegions] regions. The gap depends only on the
// trace.
type Regions struct {
	Gap uint64 // 0: no regions are joined
	// TooMany is true if there are more than MostRegions combinations of name, thread and depth.
	// The list is then empty.
	TooMany bool
	List    []Region
}

// MostRegions is the maximum number of regions in a profile.
const MostRegions = 4096

// Region is a region of one thread, or several joined regions. A region that has not ended extends to
// the end of the run.
type Region struct {
	Name   string
	Thread uint32
	Depth  uint32 // number of regions of the same thread that contain this region
	// The region extends over the references [From, To) of the run, which are numbered over all
	// threads.
	From, To uint64
	Times    uint64 // number of joined regions
	Between  uint64 // number of references between joined regions
}

// References returns the number of references during the region, by any thread.
func (r *Region) References() uint64 { return r.To - r.From - r.Between }

func (r *Regions) code(c *coder) {
	c.Flag(&r.TooMany)
	c.U64(&r.Gap)
	from := uint64(0)
	c.withStrings(func() {
		codec.Bounded(c.Coder, &r.List, MostRegions, func(of *Region) {
			c.name(&of.Name)
			c.U32s(&of.Thread, &of.Depth)
			c.Delta(&of.From, &from)
			length := of.To - of.From
			c.U64s(&length, &of.Times, &of.Between)
			of.To = of.From + length
		})
	})
}

// check checks that the regions are in order and lie within the run.
func (r *Regions) check(p *Profile) error {
	start := uint64(0)
	if p.Segment != nil {
		start = p.Segment.Start
	}
	end := start + p.Totals.AllReferences()
	for _, of := range r.List {
		if of.From < start || of.To < of.From || of.To > end || of.Between > of.To-of.From || of.Times == 0 || of.Times > 1 && r.Gap == 0 {
			return &CheckError{"a marked region is out of order, lies outside the run, or has invalid counts"}
		}
		start = of.From
	}
	if len(r.List) > MostRegions || r.TooMany && len(r.List) > 0 || r.Gap&(r.Gap-1) != 0 {
		return &CheckError{"there are too many marked regions, or their gap is not a power of two"}
	}
	return nil
}
