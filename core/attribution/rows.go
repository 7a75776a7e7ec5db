package attribution

import (
	"sort"

	"github.com/stackglass/stackglass/core/profile"
)

// By specifies how misses are grouped.
type By string

const (
	Site     By = "site"
	Line     By = "line" // group by source line
	Function By = "function"
	Object   By = "object" // group by data structure
)

// Row is a row of a ranking: a site, all sites of a line or function, or a data object.
type Row struct {
	Function, Module, File string // location of the first site, or of the object
	Line                   uint32 // 0 if the line is unknown or the row is a function
	Sites                  []int  // indices in profile.Sites.Code
	Object                 int    // index in profile.Sites.Data; -1 for code

	Accesses, Cold uint64
	References     uint64                     // 0 for a part of the run, for which Strides and Used are also unknown
	Strides        [profile.NumStrides]uint64 // number of references in each stride class; zero for data
	Used           []profile.Utilisation      // line utilisation for each capacity
	Misses         []float64                  // number of misses in each level
	Coherence      []float64                  // number of coherence misses in each level
}

// rowKey identifies a row of code: a site, a source line or a function.
type rowKey struct {
	function, module, file string
	line                   uint32
	site                   int
}

// rowKeyOf returns the key of the row to which a site belongs. Each site without a source location
// has its own row. The parameter files maps functions to their files, for instructions without a
// source location.
func rowKeyOf(s *profile.Site, i int, by By, files map[rowKey]string) rowKey {
	p := rowKey{function: s.Function, module: s.Module, file: s.File, line: s.Line, site: i + 1}
	switch {
	// a line has only one row, even if it was inlined into several functions
	case by == Line && s.Line != 0:
		return rowKey{file: s.File, line: s.Line}
	case by == Function && s.Function != "":
		p = rowKey{function: s.Function, module: s.Module, file: s.File}
		if s.File == "" {
			p.file = files[p]
		}
	}
	return p
}

// uniqueFiles returns the file of each function that is defined in only one file.
func uniqueFiles(sites []profile.Site) map[rowKey]string {
	files := map[rowKey]string{}
	for i := range sites {
		if s := &sites[i]; s.File != "" {
			at := rowKey{function: s.Function, module: s.Module}
			if file, known := files[at]; known && file != s.File {
				files[at] = "" // several files define a function with this name
			} else {
				files[at] = s.File
			}
		}
	}
	return files
}

// Rows groups the misses of the attributed levels into rows. The rows are in descending order of
// misses in levels[level].
func (r *Ranker) Rows(levels []Attribution, by By, level int) []Row {
	var rows []Row
	if by == Object {
		rows = r.objects(levels)
	} else {
		rows = r.code(levels, by)
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Misses[level] > rows[j].Misses[level] })
	return rows
}

func (r *Ranker) code(levels []Attribution, by By) (rows []Row) {
	at := map[rowKey]int{}
	files := uniqueFiles(r.p.Sites.Code)
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		key := rowKeyOf(s, i, by, files)
		n, known := at[key]
		if !known {
			n = len(rows)
			at[key] = n
			row := Row{Function: s.Function, Module: s.Module, File: s.File, Line: s.Line, Object: -1}
			if by == Function {
				row.File = key.file
			}
			row.addLevels(make([]float64, len(levels)), make([]float64, len(levels)))
			if by == Function && key.site == 0 {
				row.Line = 0
			}
			rows = append(rows, row)
		}
		row := &rows[n]
		row.Sites = append(row.Sites, i)
		if row.add(0, r.sites[i].reuse); r.wholeRun == nil {
			row.References += s.References()
			row.addUsed(r.itemUtilisation(levels, r.sites[i]))
			for c, count := range s.Strides {
				row.Strides[c] += count
			}
		}
		for l := range levels {
			row.Misses[l] += levels[l].Sites[i]
			if of := levels[l].SiteCoherence; of != nil {
				row.Coherence[l] += of[i]
			}
		}
	}
	return rows
}

func (r *Ranker) objects(levels []Attribution) []Row {
	rows := make([]Row, len(r.p.Sites.Data))
	for i := range rows {
		o := &r.p.Sites.Data[i]
		rows[i] = Row{Function: o.Function, File: o.File, Line: o.Line, Object: i}
		if rows[i].add(0, r.data[i].reuse); r.wholeRun == nil {
			rows[i].References = o.References
			rows[i].addUsed(r.itemUtilisation(levels, r.data[i]))
		}
		for l := range levels {
			rows[i].Misses, rows[i].Coherence = append(rows[i].Misses, levels[l].Data[i]), append(rows[i].Coherence, 0)
			if of := levels[l].DataCoherence; of != nil {
				rows[i].Coherence[l] = of[i]
			}
		}
	}
	return rows
}

func (r *Row) add(references uint64, u *profile.Reuse) {
	r.References += references
	r.Accesses += u.Accesses()
	r.Cold += u.Cold
}

// itemUtilisation returns the line utilisation of an item for each capacity, in private caches or
// in a single shared cache.
func (r *Ranker) itemUtilisation(levels []Attribution, p item) []profile.Utilisation {
	whole := p.utilisation(false)
	if !r.measuredPrivate() {
		return whole
	}
	private, used := p.utilisation(true), make([]profile.Utilisation, len(whole))
	for at := range used {
		if used[at] = whole[at]; private[at] != whole[at] {
			if inPrivate, _ := r.UsedIn(levels, at); inPrivate {
				used[at] = private[at]
			}
		}
	}
	return used
}

func (r *Row) addUsed(used []profile.Utilisation) {
	if r.Used == nil {
		r.Used = make([]profile.Utilisation, len(used))
	}
	for c := range used {
		r.Used[c].Fetched += used[c].Fetched
		r.Used[c].BytesUsed += used[c].BytesUsed
	}
}

// Merge adds the numbers of another row to r.
func (r *Row) Merge(other *Row) {
	r.References += other.References
	r.Accesses += other.Accesses
	r.Cold += other.Cold
	r.addUsed(other.Used)
	r.Sites = append(r.Sites, other.Sites...)
	for c, n := range other.Strides {
		r.Strides[c] += n
	}
	r.addLevels(other.Misses, other.Coherence)
}

// Rest returns a row for the misses that are not attributed to any site or object.
func Rest(levels []Attribution) Row {
	r := Row{Object: -1}
	for i := range levels {
		l := &levels[i]
		r.Misses = append(r.Misses, l.Rest)
		coherence := l.Coherence
		for _, n := range l.SiteCoherence {
			coherence -= n
		}
		if nearlyEqual(l.Coherence, l.Coherence-coherence) {
			coherence = 0
		}
		r.Coherence = append(r.Coherence, coherence)
	}
	return r
}

// RestName returns the name of the row that Rest returns.
func RestName(levels []Attribution) string {
	for i := range levels {
		if levels[i].Rest > 0 && levels[i].RestUnknown {
			return "(unknown source location)"
		}
	}
	return "(conflict misses without a source location)"
}

func (r *Row) addLevels(misses, coherence []float64) {
	if r.Misses == nil {
		r.Misses, r.Coherence = make([]float64, len(misses)), make([]float64, len(misses))
	}
	for l, n := range misses {
		r.Misses[l] += n
	}
	for l, n := range coherence {
		r.Coherence[l] += n
	}
}

// Stride returns the most frequent stride class of the row's references.
func (r *Row) Stride() profile.Stride {
	s := profile.Site{Strides: r.Strides}
	return s.Stride()
}
