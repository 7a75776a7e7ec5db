package sites

import (
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// pathCounts counts accesses by call path. Like each pair, each call path has its own list of bins.
type pathCounts struct {
	callers *branches.Analysis

	lists             []uint32 // for each call path: the number of its list of bins
	of                []uint32 // for each list of bins: 1 + its call path; 0: none; the slice may be too short
	references, bytes []uint64 // indexed by path

	rows   []uint32 // list of bins for each reference of the batch
	split  []uint32 // list of bins for each access, if references make several accesses
	latest []uint32 // list of bins for each of the latest accesses that Follow has received
}

// addPathLists creates lists of bins for new call paths. If the analysis of call paths has no result,
// counting by call path stops.
func (a *Analysis) addPathLists() {
	p := a.paths
	if p == nil || p.callers.Paths() == 0 {
		a.paths = nil
		return
	}
	for len(p.lists) < p.callers.Paths() {
		list := a.addPair(pair{})
		p.of = append(p.of, make([]uint32, int(list)+1-len(p.of))...)
		p.lists = append(p.lists, list)
		p.of[list] = uint32(len(p.lists))
	}
	p.references, p.bytes = grown(p.references, len(p.lists)), grown(p.bytes, len(p.lists))
}

// pathOf returns the call path to which a list of bins belongs, or -1.
func (p *pathCounts) pathOf(list uint32) int {
	if p == nil || uint64(list) >= uint64(len(p.of)) {
		return -1
	}
	return int(p.of[list]) - 1
}

func grown(list []uint64, n int) []uint64 {
	return append(list, make([]uint64, n-len(list))...)
}

// countPaths counts the references of a batch by call path, and records the list of bins for each
// reference.
func (a *Analysis) countPaths(b *trace.Batch, references int) {
	a.addPathLists()
	p := a.paths
	if p == nil {
		return
	}
	if len(p.rows) < references {
		p.rows = make([]uint32, len(a.rows))
	}
	changes, row := p.callers.Changes(), 0
	for i := range changes {
		from, to := int(changes[i].From), references
		if i+1 < len(changes) {
			to = int(changes[i+1].From)
		}
		path, bytes := changes[i].Path, uint64(0)
		list := p.lists[path]
		if references == b.Len() {
			for _, n := range b.Bytes[from:to] {
				bytes += uint64(n)
			}
			for at := range p.rows[from:to] {
				p.rows[from+at] = list
			}
		} else {
			for at := from; at < to; row++ {
				if b.Kind[row] < trace.NumKinds {
					p.rows[at] = list
					bytes += uint64(b.Bytes[row])
					at++
				}
			}
		}
		p.references[path] += uint64(to - from)
		p.bytes[path] += bytes
	}
}

// pathsOf returns the list of bins for each access, or nil if call paths are not counted.
func (a *Analysis) pathsOf(x *locality.Accesses) []uint32 {
	p := a.paths
	if p == nil {
		return nil
	}
	p.latest = p.rows[x.First:]
	if x.Rows != nil {
		p.split = slices.Grow(p.split[:0], len(x.Rows))[:len(x.Rows)]
		for i, row := range x.Rows {
			p.split[i] = p.latest[row]
		}
		p.latest = p.split
	}
	if p.latest = p.latest[:len(x.Distances)]; a.options.Mergeable {
		a.joining.firstPaths = appendCold(a.joining.firstPaths, p.latest, x.Distances)
	}
	return p.latest
}

// calls returns the counts by call path. For a trace without calls, it returns nil, unless the
// parameter state is true.
func (a *Analysis) calls(state bool) *profile.Calls {
	a.addPathLists()
	p := a.paths
	if p == nil || !state && p.callers.Paths() == 1 {
		return nil
	}
	list, numbers := p.callers.Describe()
	for i, n := range numbers {
		at := &list[i]
		at.References, at.Bytes, at.File = p.references[n], p.bytes[n], a.code.fileName(at.File)
		var all [coldBin + 1]uint64
		a.bins.addTo(&all, p.lists[n])
		if at.Reuse = reuse(&all); a.OnCores() {
			var found, lost [coldBin + 1]uint64
			a.cores.bins.addTo(&found, p.lists[n])
			a.cores.lost.addTo(&lost, p.lists[n])
			at.OnCores = profile.CoherentReuse{Cold: found[coldBin], Bins: nonzeroBins(&found), Lost: nonzeroBins(&lost)}
		}
	}
	return &profile.Calls{Paths: list, Coherent: a.OnCores()}
}

// fileName returns a short name of a file: the name that nameFiles has chosen, or the last element
// of the path.
func (c *code) fileName(path string) string {
	if name := c.names[path]; name != "" {
		return name
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// pathResults adds a profile's counts by call path to the analysis.
func (f *stateCoder) pathResults() {
	a := f.a
	a.addPathLists()
	if a.paths == nil || f.calls == nil {
		a.paths, f.calls = nil, nil
		return
	}
	adopted := a.paths.callers.Adopted()
	if f.failUnless(len(adopted) == len(f.calls.Paths)); f.Failed() {
		return
	}
	for i := range f.calls.Paths {
		from, n := &f.calls.Paths[i], adopted[i]
		list := a.paths.lists[n]
		f.paths = append(f.paths, list)
		a.bins.addTimes(list, 1, from.Reuse.Cold, from.Reuse.Bins)
		a.paths.references[n] += from.References
		a.paths.bytes[n] += from.Bytes
	}
}

// firstPaths reads or writes the call paths of the given number of first touches.
func (f *stateCoder) firstPaths(list *[]uint32, touches int) {
	if f.calls == nil {
		return
	}
	if f.Reads() {
		*list = make([]uint32, min(touches, len(f.In.Rest())))
	}
	f.failUnless(len(*list) == touches)
	for i := range *list {
		if v := &(*list)[i]; !f.Reads() {
			index := f.s.pathAt[*v]
			f.U32(&index)
		} else if index := f.In.UintBelow(uint64(len(f.paths))); !f.Failed() {
			*v = f.paths[index]
		}
	}
}

// eachPath calls the function add for each call path, with its list of bins and its counts on the
// coherent stacks. If the parameter alone is true, there is only one core, and eachPath uses the
// counts on the stack of the trace.
func (f *stateCoder) eachPath(alone bool, add func(list uint32, counts *profile.CoherentReuse)) {
	for i, list := range f.paths {
		counts := f.calls.Paths[i].OnCores
		if of := &f.calls.Paths[i].Reuse; alone {
			counts = profile.CoherentReuse{Cold: of.Cold, Bins: of.Bins}
		}
		add(list, &counts)
	}
}

// numberPaths maps the list of bins of each call path to the index of the call path in the profile.
func (s *summary) numberPaths() {
	if s.a.paths == nil {
		return
	}
	s.pathAt = map[uint32]uint32{}
	_, numbers := s.a.paths.callers.Describe()
	for i, n := range numbers {
		s.pathAt[s.a.paths.lists[n]] = uint32(i)
	}
}
