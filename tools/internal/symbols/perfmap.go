package symbols

import (
	"bufio"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// generated is a function that a program generated while it ran.
type generated struct {
	addr, end uint64
	name      string
	line      Line // may have a file without a line
}

// ReadPerfMap reads a perf map, in which a program lists the code that it generated while it ran.
// Each line of a perf map contains an address and a size as hexadecimal numbers, and a name. If
// functions overlap, the last function counts, because it replaced the others.
//
// The symbols have process addresses. Function locations are known only for JavaScript; other
// instructions have a file but no line.
func ReadPerfMap(r io.Reader) *File {
	const longestLine = 1 << 20
	var all []generated
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if g, ok := parseGenerated(lines.Text()); ok {
			all = append(all, g)
		}
	}
	s := &File{files: []string{""}, numbers: map[string]uint32{}}
	s.addGenerated(all)
	s.sortRows()
	return s
}

func parseGenerated(line string) (g generated, ok bool) {
	fields := strings.SplitN(line, " ", 3)
	if len(fields) < 3 {
		return g, false
	}
	addr, err1 := strconv.ParseUint(strings.TrimPrefix(fields[0], "0x"), 16, 64)
	size, err2 := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 64)
	if err1 != nil || err2 != nil || size == 0 || addr+size < addr {
		return g, false
	}
	name, at := parseName(fields[2])
	return generated{addr, addr + size, name, at}, true
}

// V8 writes "JS:*mul /home/me/a.js:2:14"; the character after the colon is the compiler's tier.
// Python writes "py::mul:/home/me/a.py".
var (
	javaScriptName = regexp.MustCompile(`^JS:[~^+*]?(.*?)(?: ((?:file://|node:|/).*))?:(\d+):(\d+)$`)
	pythonName     = regexp.MustCompile(`^py::(.*):(.*)$`)
)

// parseName separates the name of a function from its location.
func parseName(text string) (name string, at Line) {
	if m := javaScriptName.FindStringSubmatch(text); m != nil {
		if name = strings.TrimSpace(m[1]); name == "" {
			name = "(anonymous)"
		}
		line, err1 := strconv.ParseUint(m[3], 10, 31)
		column, err2 := strconv.ParseUint(m[4], 10, 31)
		if m[2] != "" && err1 == nil && err2 == nil {
			at = Line{strings.TrimPrefix(m[2], "file://"), int(line), int(column)}
		}
		return name, at
	}
	if m := pythonName.FindStringSubmatch(text); m != nil {
		return m[1], Line{File: m[2]}
	}
	return text, Line{}
}

// addGenerated adds the parts of functions that no later function overlaps.
func (s *File) addGenerated(all []generated) {
	var borders []uint64
	for _, g := range all {
		borders = append(borders, g.addr, g.end)
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	// The owner of each range between two borders, or -1.
	owner := slices.Repeat([]int{-1}, len(borders))
	// next leads to the first range without an owner, at or after a range.
	next := make([]int, len(borders)+1)
	for i := range next {
		next[i] = i
	}
	free := func(i int) int {
		for next[i] != i {
			next[i] = next[next[i]]
			i = next[i]
		}
		return i
	}
	for n, g := range slices.Backward(all) {
		first, _ := slices.BinarySearch(borders, g.addr)
		for i := free(first); borders[i] < g.end; i = free(i) {
			owner[i], next[i] = n, i+1
		}
	}
	for first := 0; first < len(borders); {
		last := first + 1
		for last < len(borders) && owner[last] == owner[first] {
			last++
		}
		if owner[first] >= 0 {
			s.addGeneratedRange(&all[owner[first]], borders[first], borders[last])
		}
		first = last
	}
}

// addGeneratedRange adds a range of a function.
func (s *File) addGeneratedRange(g *generated, addr, end uint64) {
	s.functions = append(s.functions, Function{Name: g.name, Addr: addr, Size: end - addr, end: end})
	if g.line.File == "" {
		return
	}
	file := s.numberOf(g.line.File)
	if g.line.Line > 0 {
		s.rows = append(s.rows, row{addr, file, uint32(g.line.Line), uint32(g.line.Column)})
	}
	// The last row for an address applies to the instruction, the first to the function.
	s.rows = append(s.rows, row{addr: addr, file: file}, row{addr: end})
}
