package profile

import (
	"github.com/stackglass/stackglass/core/codec"
)

// Calls divides the accesses of a run by call path. A call path contains the functions from the
// first function of a thread to the function that makes the access. Counts are exclusive: the
// counts of a path do not include the counts of its callees. The counts of all paths add up to the
// histogram for the line size of Sites.
//
// Recursion does not lengthen a path. If a function calls itself, the path stays the same. If two
// functions call each other, the calls alternate between two paths. Recursion of any depth
// therefore adds only a few paths.
type Calls struct {
	// Paths contains the path of each caller before the paths of its callees. The first path
	// represents code outside of all functions.
	Paths []Path
	// Coherent reports whether accesses are also counted on the coherent stacks of cores.
	Coherent bool
}

// Path is a call path: a function and the chain of its callers.
type Path struct {
	Parent   uint32 // index in Calls.Paths; 0 for the first function of a thread
	Function string // linker name; "" outside of all functions
	File     string // file that defines the function, named as in Site; "" if unknown
	Line     uint32 // line of the definition; 0 if unknown

	Calls uint64 // number of calls from the parent's function
	Again uint64 // number of recursive calls from the function itself
	Back  uint64 // number of calls from the function itself back to the parent's function

	Instructions uint64 // number of executed instructions, in the compiler's intermediate representation
	References   uint64
	Bytes        uint64 // number of bytes that the references touched
	Reuse        Reuse  // reuse of the accesses on this path; Used, Before and Off are not set
	OnCores      CoherentReuse
}

// FurtherPaths is the function name of the path that combines all paths beyond the maximum number.
const FurtherPaths = "(further call paths)"

func (s *Calls) code(c *coder) {
	c.Flag(&s.Coherent)
	next := uint64(0)
	c.withStrings(func() {
		codec.Slice(c.Coder, &s.Paths, 11, func(p *Path) {
			codec.Below(c.Coder, &p.Parent, max(next, 1))
			next++
			c.name(&p.Function)
			c.name(&p.File)
			c.U32(&p.Line)
			c.U64s(&p.Calls, &p.Again, &p.Back, &p.Instructions, &p.References, &p.Bytes)
			c.U64(&p.Reuse.Cold)
			c.binCounts(&p.Reuse.Bins)
			if s.Coherent {
				c.U64(&p.OnCores.Cold)
				c.binCounts(&p.OnCores.Bins)
				c.binCounts(&p.OnCores.Lost)
			}
		})
	})
}

// check checks that the paths form a tree, and that their counts add up to the whole run.
func (c *Calls) check(p *Profile) error {
	if p.Sites == nil || len(c.Paths) == 0 || c.Coherent && p.Sites.Coherent == nil {
		return &CheckError{"the profile has call paths, but no sites"}
	}
	l := p.LocalityAt(p.Sites.LineBytes)
	if l == nil {
		return &CheckError{"the profile has call paths, but no histogram for the line size at which they were measured"}
	}
	var accesses, references counter
	without := Sites{LineBytes: p.Sites.LineBytes}
	var all, want coherentSums
	for i := range c.Paths {
		at := &c.Paths[i]
		if i > 0 && int(at.Parent) >= i || i == 0 && at.Parent != 0 {
			return &CheckError{"a call path precedes its caller in the list"}
		}
		if err := without.checkReuse(&at.Reuse, []uint64{at.References}); err != nil {
			return &CheckError{"a call path has bins that are out of order, or has fewer accesses than references"}
		}
		accesses.add(at.Reuse.Accesses())
		references.add(at.References)
		if c.Coherent && !all.add(&at.OnCores, &at.Reuse) {
			return &CheckError{"the coherent-stack counts of a call path are out of order, or do not add up to its accesses"}
		}
	}
	if accesses.over || references.over || accesses.n != l.Accesses() || references.n != p.Totals.AllReferences() {
		return &CheckError{"the accesses of the call paths do not add up to the accesses of the whole run"}
	}
	cores := p.SharingAt(p.Sites.LineBytes)
	if !c.Coherent || cores == nil {
		return nil
	}
	for i := range cores.Cores {
		want.addCore(&cores.Cores[i].Coherent)
	}
	if all != want {
		return &CheckError{"the coherent-stack counts of the call paths do not add up to the counts of the cores"}
	}
	return nil
}
