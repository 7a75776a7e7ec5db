package blocks

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// sheetHelp is the comment at the top of branch-probability files.
const sheetHelp = `# One line per branch: function, block, source line | successors = frequencies of the successors.
#   0.25, 3/4   probabilities that sum to 1; one may be "rest"
#   99 : 1      weights
#   trip 100    for the branch of a loop: the loop runs 100 iterations
#   ?           unknown
# Numbers may be expressions of parameters, for example "trip n/4" after a line "n = 1000".
`

// AppendSheet appends a branch-probability file (see [Sheet]) with all branches of the system. The
// given header becomes the comment at the top of the file, and should state the source of the
// numbers.
func (s *System) AppendSheet(dst []byte, header string) []byte {
	for line := range strings.Lines(header) {
		dst = append(dst, "# "+strings.TrimRight(line, "\n")+"\n"...)
	}
	dst = append(dst, sheetHelp...)
	names := s.sheetNames()
	any := false
	for n := range s.program.Functions {
		if s.entered[n] > 0 {
			any = true
			dst = append(dst, "enter "+names[n]+" = "+strconv.FormatUint(s.entered[n], 10)+"\n"...)
		}
	}
	if !any {
		dst = append(dst, "# No function is called from outside the program. To add such a call, write: enter NAME = 1\n"...)
	}
	for n := range s.program.Functions {
		f := &s.program.Functions[n]
		for b := int(f.First); b < int(f.First+f.Blocks); b++ {
			dst = s.appendBlock(dst, names[n], b)
		}
	}
	return dst
}

// sheetNames returns the functions' names, with their modules if they are ambiguous.
func (s *System) sheetNames() []string {
	seen := map[string]int{}
	for n := range s.program.Functions {
		seen[s.program.Functions[n].Name]++
	}
	list := make([]string, len(s.program.Functions))
	for n := range list {
		name := s.program.Functions[n].Name
		if seen[name] > 1 {
			name = s.fullName(n)
		}
		list[n] = quoteName(name)
	}
	return list
}

// quoteName returns a name, in quotation marks if it contains special characters.
func quoteName(name string) string {
	plain := name != "" && name != "|" && name != "="
	for i := 0; i < len(name) && plain; i++ {
		b := name[i]
		plain = isNameStart(b) || '0' <= b && b <= '9' || strings.IndexByte("._$-+@/", b) >= 0
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}

func (s *System) appendBlock(dst []byte, function string, b int) []byte {
	k := &s.program.Blocks[b]
	label := quoteName(Label(k))
	if s.resumed[b] > 0 {
		dst = append(dst, "resume "+function+" "+label+" = "+strconv.FormatUint(s.resumed[b], 10)+"\n"...)
	}
	if m := s.made[b]; m.part != m.whole {
		dst = append(dst, "made "+function+" "+label+" = "+strconv.FormatUint(m.part, 10)+"/"+strconv.FormatUint(m.whole, 10)+"\n"...)
	}
	if branch := s.appendBranch(nil, function, b); len(branch) > 0 {
		dst = append(append(dst, branch...), " = "...)
		dst = append(s.appendValues(dst, b), '\n')
	}
	return dst
}

// appendBranch appends the name of the branch at the end of a block, if the block has several
// successors.
func (s *System) appendBranch(dst []byte, function string, b int) []byte {
	k := &s.program.Blocks[b]
	if !s.hasSeveralSuccessors(b) && (s.leaves[b] == 0 || len(k.Successors) == 0) {
		return dst
	}
	label := quoteName(Label(k))
	place := placeText(trace.Place{File: k.File, Line: k.LastLine})
	if place == "" {
		place = "-"
	}
	dst = append(dst, function+" "+label+" "+quotedPlace(place)+" |"...)
	for _, next := range k.Successors {
		dst = append(dst, " "+quoteName(Label(&s.program.Blocks[next]))...)
	}
	if s.leaves[b] > 0 {
		dst = append(dst, " (leaves)"...)
	}
	return dst
}

// BranchLine is the line of a branch in a branch-probability file.
type BranchLine struct {
	Block       int
	Name, Value string // the parts before and after "="
}

// BranchLines returns the lines that [System.AppendSheet] writes for a function.
func (s *System) BranchLines(function int) (list []BranchLine) {
	f := &s.program.Functions[function]
	name := s.sheetNames()[function]
	for b := int(f.First); b < int(f.First+f.Blocks); b++ {
		if text := s.appendBranch(nil, name, b); len(text) > 0 {
			list = append(list, BranchLine{b, string(text), string(s.appendValues(nil, b))})
		}
	}
	return list
}

func quotedPlace(place string) string {
	if strings.ContainsAny(place, " \t\"|=#") {
		return strconv.Quote(place)
	}
	return place
}

func (s *System) appendValues(dst []byte, b int) []byte {
	if s.isUnknown(b) {
		return append(dst, '?')
	}
	if trip, ok := s.tripOf(b); ok {
		return strconv.AppendUint(append(dst, "trip "...), trip, 10)
	}
	list := s.weights[b]
	if s.leaves[b] > 0 {
		list = append(list[:len(list):len(list)], s.leaves[b])
	}
	for i, w := range list {
		if i > 0 {
			dst = append(dst, " : "...)
		}
		dst = strconv.AppendUint(dst, w, 10)
	}
	return dst
}

// tripOf returns a loop branch's trip count, if it is an integer.
func (s *System) tripOf(b int) (uint64, bool) {
	next := s.program.Blocks[b].Successors
	if s.leaves[b] > 0 || len(next) != 2 || s.leavesLoop(b, int(next[0])) == s.leavesLoop(b, int(next[1])) {
		return 0, false
	}
	stays := 0
	if s.leavesLoop(b, int(next[0])) {
		stays = 1
	}
	in, out := s.weights[b][stays], s.weights[b][1-stays]
	if out == 0 || in%out != 0 {
		return 0, false
	}
	trip := in / out
	if s.endsBody(b, int(next[stays])) {
		trip++
	}
	return trip, true
}
