package answers

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// MatchLines matches the source lines of two versions of a program by their text. In the rows of A,
// MatchLines replaces the file and the line with the corresponding file and line in B. MatchLines
// adds two columns: the line number in A, and whether the line moved or changed. MatchLines changes
// neither tables without files and lines nor tables whose source files are equal in A and B.
//
// The parameters a and b are the source files stored in the two profiles. If a file has no
// counterpart in the other profile, its lines are still matched by number.
func MatchLines(tables [2][]report.Table, a, b *sourcefile.Files) {
	v := versions{files: [2]*sourcefile.Files{a, b}, of: map[string]*version{}}
	for i := range tables[0] {
		for j := range tables[1] {
			if of := [2]*report.Table{&tables[0][i], &tables[1][j]}; of[0].Key == of[1].Key && byLine(of[0]) && byLine(of[1]) && v.findVersions(of) {
				v.replaceLocations(of[0], 0)
				v.replaceLocations(of[1], 1)
			}
		}
	}
}

// byLine reports whether each row describes a source line, and not data that a source line
// declares.
func byLine(t *report.Table) bool {
	return t.Key == "sites" && t.Index("name") < 0 && t.Index("file") >= 0 && t.Index("line") >= 0
}

// versions pairs the source files of two profiles.
type versions struct {
	files [2]*sourcefile.Files
	of    map[string]*version // file versions, by the file's name in A
	back  map[string]*version // file versions, by the file's name in B
}

// version pairs a source file of A with its counterpart in B.
type version struct {
	names [2]string
	to    []sourcefile.Match // for each line of A: the matching line of B
	from  []int              // for each line of B: the matching line of A, or -1
}

// mostPairs limits the comparison of files with different names. If there are more pairs, only
// files with equal names are matched, because each comparison takes as long as a diff.
const mostPairs = 64

// findVersions pairs the files named in two tables, and reports whether the files of any pair
// differ.
func (v *versions) findVersions(tables [2]*report.Table) (differ bool) {
	var names [2][]string
	for i, t := range tables {
		file := t.Index("file")
		for _, row := range t.Rows {
			if name := row[file].Plain(); name != "" && !slices.Contains(names[i], name) && v.files[i].Lines(name) != nil {
				names[i] = append(names[i], name)
			}
		}
	}
	v.of, v.back = map[string]*version{}, map[string]*version{}
	for _, name := range names[0] {
		if slices.Contains(names[1], name) {
			v.pair(name, name)
		}
	}
	for _, a := range names[0] { // pair each remaining file of A with the file of B that has the most lines in common
		best, most := "", 0.5
		for _, b := range names[1] {
			if v.of[a] == nil && v.back[b] == nil && len(names[0])*len(names[1]) <= mostPairs {
				if s := v.commonShare(a, b); s >= most {
					best, most = b, s
				}
			}
		}
		if best != "" {
			v.pair(a, best)
		}
	}
	for _, f := range v.of {
		differ = differ || f.names[0] != f.names[1] || v.commonShare(f.names[0], f.names[1]) < 1
	}
	return differ
}

// commonShare returns the number of lines that both files contain in the same order, as a share of
// the longer file.
func (v *versions) commonShare(a, b string) float64 {
	same := 0
	for _, m := range v.files[0].Match(a, v.files[1], b) {
		if m.Kept == sourcefile.Same {
			same++
		}
	}
	return float64(same) / float64(max(len(v.files[0].Lines(a)), len(v.files[1].Lines(b)), 1))
}

func (v *versions) pair(a, b string) {
	f := &version{names: [2]string{a, b}, to: v.files[0].Match(a, v.files[1], b), from: make([]int, len(v.files[1].Lines(b)))}
	for i := range f.from {
		f.from[i] = -1
	}
	for i, m := range f.to {
		if m.Line >= 0 {
			f.from[m.Line] = i
		}
	}
	v.of[a], v.back[b] = f, f
}

// replaceLocations replaces the source locations in a table of A (side 0) or B (side 1) by the
// locations in B, and adds the two columns that MatchLines describes.
func (v *versions) replaceLocations(t *report.Table, side int) {
	file, line := t.Index("file"), t.Index("line")
	t.Columns = append(slices.Clone(t.Columns), report.Column{Key: "a_line", Label: "line in A"}, report.Column{Key: "text", Label: "its text"})
	rows := make([][]report.Value, len(t.Rows))
	for i, row := range t.Rows {
		row = append(slices.Clone(row), report.None(), report.TextOf(""))
		rows[i] = row
		f := v.of[row[file].Plain()]
		if side == 1 {
			f = v.back[row[file].Plain()]
		}
		n, ok := row[line].Number()
		if f == nil || !ok || n < 1 {
			continue
		}
		at, kept := int(n)-1, "added"
		if side == 1 {
			if at >= len(f.from) {
				continue
			}
			if at = f.from[at]; at >= 0 {
				kept = f.to[at].Kept.String()
			}
		} else {
			if at >= len(f.to) {
				continue
			}
			m := f.to[at]
			kept, row[file], row[line] = m.Kept.String(), report.TextOf(f.names[1]), report.None()
			if m.Line >= 0 {
				row[line] = report.Count(uint64(m.Line) + 1)
			}
		}
		if at >= 0 {
			if row[len(row)-2] = report.Count(uint64(at) + 1); f.names[0] != f.names[1] {
				row[len(row)-2] = report.TextOf(f.names[0] + ":" + strconv.Itoa(at+1))
			}
		}
		row[len(row)-1] = report.TextOf(kept)
	}
	t.Rows = rows
}
