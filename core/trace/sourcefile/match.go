package sourcefile

import (
	"slices"
	"sort"
	"strings"
)

// Kept states whether a line of a file is unchanged, moved, changed or missing in a different
// version of the file.
type Kept uint8

// The possible values of Kept. Changes of white space are ignored.
const (
	Removed Kept = iota // the line does not exist in the other version
	Same                // the line is unchanged and has not moved
	Moved               // the line is unchanged, but has moved
	Changed             // the line has not moved, and at least half of its text is unchanged
)

// String returns the word that tables use for k.
func (k Kept) String() string { return [...]string{"removed", "same", "moved", "changed"}[k] }

// Match locates a line in a different version of a file.
type Match struct {
	Line int // index of the line in the other version, starting at 0; -1 if it does not exist there
	Kept Kept
}

// MatchLines matches the lines of two versions of a file, a and b. MatchLines first finds lines
// that are in both versions in the same order: the lines that occur exactly once in each version
// (as in patience diff) and, between these lines, the longest common subsequence. MatchLines then
// finds lines that moved, and finally lines that changed. No line of b is matched twice.
func MatchLines(a, b []string) []Match {
	m := matcher{a: normal(a), b: normal(b), to: make([]Match, len(a)), taken: make([]Kept, len(b))}
	for i := range m.to {
		m.to[i].Line = -1
	}
	m.onceA, m.onceB = uniqueLines(m.a), uniqueLines(m.b)
	m.matchCommon(0, len(a), 0, len(b))
	m.matchMoved()
	m.matchChanged()
	return m.to
}

type matcher struct {
	a, b []string
	to   []Match
	// how each line of b matches a line of a; Removed if no line matches
	taken []Kept

	onceA, onceB map[string]int // results of uniqueLines for a and b
}

// normal returns the lines with blanks reduced to single spaces between words.
func normal(lines []string) []string {
	list := make([]string, len(lines))
	for i, line := range lines {
		list[i] = strings.Join(strings.Fields(line), " ")
	}
	return list
}

func (m *matcher) take(a, b int, k Kept) { m.to[a], m.taken[b] = Match{b, k}, k }

// mostCells is the maximum size of the table for computing a longest common subsequence.
const mostCells = 1 << 22

// matchCommon matches lines that occur in the same order in a[fromA:toA] and b[fromB:toB].
func (m *matcher) matchCommon(fromA, toA, fromB, toB int) {
	for ; fromA < toA && fromB < toB && m.a[fromA] == m.b[fromB]; fromA, fromB = fromA+1, fromB+1 {
		m.take(fromA, fromB, Same)
	}
	for ; fromA < toA && fromB < toB && m.a[toA-1] == m.b[toB-1]; toA, toB = toA-1, toB-1 {
		m.take(toA-1, toB-1, Same)
	}
	if fromA == toA || fromB == toB {
		return
	}
	anchors := m.anchors(fromA, toA, fromB, toB)
	if len(anchors) == 0 {
		if (toA-fromA)*(toB-fromB) <= mostCells {
			m.matchLongest(fromA, toA, fromB, toB)
		}
		return
	}
	for _, at := range anchors {
		m.take(at[0], at[1], Same)
		m.matchCommon(fromA, at[0], fromB, at[1])
		fromA, fromB = at[0]+1, at[1]+1
	}
	m.matchCommon(fromA, toA, fromB, toB)
}

// uniqueLines maps each line that occurs only once to its index, and all other lines to -1.
func uniqueLines(lines []string) map[string]int {
	at := map[string]int{}
	for i, line := range lines {
		if _, twice := at[line]; twice {
			at[line] = -1
		} else {
			at[line] = i
		}
	}
	return at
}

// anchors pairs equal lines of a[fromA:toA] and b[fromB:toB] that occur exactly once in each
// version. It returns the longest list of pairs that are in the same order in both versions.
func (m *matcher) anchors(fromA, toA, fromB, toB int) (list [][2]int) {
	// ends[n] is the index in "pairs" of the last pair of a list of n+1 pairs: the list that ends
	// earliest in b
	var ends []int
	var pairs [][2]int
	var before []int
	for i := fromA; i < toA; i++ {
		at, is := m.onceB[m.a[i]]
		if !is || at < fromB || at >= toB || m.onceA[m.a[i]] < 0 {
			continue
		}
		n := sort.Search(len(ends), func(n int) bool { return pairs[ends[n]][1] >= at })
		last := -1
		if n > 0 {
			last = ends[n-1]
		}
		ends = append(ends[:n], append([]int{len(pairs)}, ends[min(n+1, len(ends)):]...)...)
		pairs, before = append(pairs, [2]int{i, at}), append(before, last)
	}
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			list = append(list, pairs[i])
		}
	}
	slices.Reverse(list)
	return list
}

// matchLongest matches the longest common subsequence of a[fromA:toA] and b[fromB:toB], which the
// textbook dynamic-programming algorithm finds.
func (m *matcher) matchLongest(fromA, toA, fromB, toB int) {
	width := toB - fromB + 1
	cells := make([]int32, (toA-fromA+1)*width)
	for i := toA - 1; i >= fromA; i-- {
		for j := toB - 1; j >= fromB; j-- {
			at := (i-fromA)*width + j - fromB
			if cells[at] = max(cells[at+1], cells[at+width]); m.a[i] == m.b[j] {
				cells[at] = cells[at+width+1] + 1
			}
		}
	}
	for i, j := fromA, fromB; i < toA && j < toB; {
		at := (i-fromA)*width + j - fromB
		switch {
		case m.a[i] == m.b[j]:
			m.take(i, j, Same)
			i, j = i+1, j+1
		case cells[at+width] >= cells[at+1]:
			i++
		default:
			j++
		}
	}
}

// leastMoved is the minimum length of a line that can count as moved. Shorter lines, such as
// braces, occur everywhere.
const leastMoved = 8

// matchMoved matches lines whose text occurs exactly once among the unmatched lines of each
// version.
func (m *matcher) matchMoved() {
	// for each text: the number, starting at 1, of the line of a and of the line of b that consist
	// of this text; 0 if there is no such line, -1 if there are several
	at := map[string][2]int{}
	count := func(text string, side, line int) {
		lines := at[text]
		if lines[side]++; lines[side] == 1 {
			lines[side] = line + 1
		} else {
			lines[side] = -1
		}
		at[text] = lines
	}
	for i, text := range m.a {
		if m.to[i].Line < 0 && len(text) >= leastMoved {
			count(text, 0, i)
		}
	}
	for i, text := range m.b {
		if m.taken[i] == Removed && len(text) >= leastMoved {
			count(text, 1, i)
		}
	}
	for _, lines := range at {
		if lines[0] > 0 && lines[1] > 0 {
			m.take(lines[0]-1, lines[1]-1, Moved)
		}
	}
}

// mostAhead limits the distance from the last match at which matchChanged searches for a changed
// line.
const mostAhead = 32

// matchChanged matches lines that lie between unchanged lines if at least half of their text is the
// same.
func (m *matcher) matchChanged() {
	from := 0 // number of the line of b that follows the last matched line
	for i := 0; i < len(m.a); i++ {
		if m.to[i].Kept == Same {
			from = m.to[i].Line + 1
			continue
		}
		to := from
		for to < min(len(m.b), from+mostAhead) && m.taken[to] != Same {
			to++
		}
		if m.to[i].Line >= 0 || m.a[i] == "" {
			continue
		}
		best, most := -1, 0.5
		for j := from; j < to; j++ {
			if s := alike(m.a[i], m.b[j]); m.taken[j] == Removed && (s > most || s == most && best < 0) {
				best, most = j, s
			}
		}
		if best >= 0 {
			m.take(i, best, Changed)
			from = best + 1
		}
	}
}

// alike returns the similarity of two lines, from 0 to 1: the share of their words and punctuation
// marks that both lines contain.
func alike(a, b string) float64 {
	count := map[string]int{}
	of := words(a)
	for _, w := range of {
		count[w]++
	}
	both, others := 0, words(b)
	for _, w := range others {
		if count[w] > 0 {
			count[w]--
			both++
		}
	}
	return 2 * float64(both) / float64(max(len(of)+len(others), 1))
}

// words splits a line into names, numbers and single punctuation marks.
func words(line string) (list []string) {
	letter := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
	}
	for i := 0; i < len(line); {
		end := i + 1
		for letter(line[i]) && end < len(line) && letter(line[end]) {
			end++
		}
		if line[i] != ' ' {
			list = append(list, line[i:end])
		}
		i = end
	}
	return list
}
