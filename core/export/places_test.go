package export

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// difficultSheet returns a sheet with special cases: locations without names, lines that occur
// twice, modules, and names with characters that have a special meaning in some format.
func difficultSheet() *Sheet {
	return &Sheet{
		Command: "solve -n\n7",
		Notes:   []string{"one doubt", "another\none"},
		Events: []Event{
			{Key: "accesses", Unit: "count", Text: "line accesses"},
			{Key: "L1_misses", Unit: "count", Text: "misses of L1"},
			{Key: "distance_sum", Unit: "lines", Text: "sum of stack distances"},
		},
		Main: 1,
		Entries: []Entry{
			{Function: "solve", File: "a.c", Line: 12, Column: 5, Kind: "load", Type: "double", Variable: "x", Counts: []uint64{100, 40, 1234}},
			{Function: "solve", File: "a.c", Line: 12, Column: 9, Kind: "store", Counts: []uint64{50, 10, 99}},
			{Function: "operator()(int, char; double)", File: "b b.cc", Line: 3, PC: 0x401136, Module: "solve", Offset: 0x1136, Kind: "load", Counts: []uint64{7, 7, 0}},
			{PC: 0x7f0000001000, Module: "libc.so.6", Offset: 0x1000, Kind: "load", Counts: []uint64{5, 1, 3}},
			{PC: 0x1234, Kind: "load", Counts: []uint64{3, 0, 0}},
			{Counts: []uint64{2, 1, 0}},
		},
	}
}

// runTool runs a program on a file with the given content, or skips the test if the program is not
// installed.
func runTool(t *testing.T, content []byte, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s, with which the test reads the file, is not installed", name)
	}
	path := filepath.Join(t.TempDir(), "exported")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, append(args, path)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, said.Bytes(), out)
	}
	return string(out)
}

// TestPprofReadsExport checks that pprof computes the correct sum for every event and function.
func TestPprofReadsExport(t *testing.T) {
	s := difficultSheet()
	want := []map[string]string{
		{"solve": "150", "operator()(int, char; double)": "7", "libc.so.6+0x1000": "5", "0x1234": "3", "(unknown)": "2"},
		{"solve": "50", "operator()(int, char; double)": "7", "libc.so.6+0x1000": "1", "0x1234": "0", "(unknown)": "1"},
		{"solve": "1333", "operator()(int, char; double)": "0", "libc.so.6+0x1000": "3", "0x1234": "0", "(unknown)": "0"},
	}
	for event, wanted := range want {
		text := runTool(t, s.Pprof(), "go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=count", "-sample_index="+s.Events[event].Key)
		_, rows, _ := strings.Cut(text, "cum%\n")
		got := map[string]string{}
		for line := range strings.Lines(rows) {
			fields := strings.Fields(line)
			got[strings.Join(fields[5:], " ")] = strings.TrimSuffix(fields[0], "lines")
		}
		for name, n := range wanted {
			if strings.TrimSuffix(got[name], "lines") != n && !(n == "0" && got[name] == "") {
				t.Errorf("event %s: the count of %s is %q, want %s in\n%s", s.Events[event].Key, name, got[name], n, text)
			}
		}
	}
	raw := runTool(t, s.Pprof(), "go", "tool", "pprof", "-raw")
	for _, want := range []string{
		"Comment: one doubt", "L1_misses/count[dflt]", "kind:[load] type:[double] variable:[x]", "solve a.c:12:5",
		"M=1 operator()(int, char; double) b b.cc:3:0", "0x400000/0x401137/0x0 solve  [FN][FL][LN]", "0x7f0000000000/0x7f0000001001/0x0 libc.so.6",
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("no %q in\n%s", want, raw)
		}
	}
}

// TestPprofNamesTheProgram checks that pprof shows the program's name, even if locations have no
// modules.
func TestPprofNamesTheProgram(t *testing.T) {
	s := difficultSheet()
	s.Entries = s.Entries[:2]
	if text := runTool(t, s.Pprof(), "go", "tool", "pprof", "-top"); !strings.HasPrefix(text, "File: solve -n") {
		t.Error(text)
	}
}

// TestCallgrindAnnotateReadsExport checks that callgrind_annotate prints the notes and the correct
// numbers.
func TestCallgrindAnnotateReadsExport(t *testing.T) {
	text := strings.Join(strings.Fields(runTool(t, difficultSheet().Callgrind(), "callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no")), " ")
	for _, want := range []string{
		"Profiled target: solve -n 7", "Note: one doubt Note: another one",
		"Accesses L1Misses DistanceSum file:function " + strings.Repeat("-", 80) + " 150 50 1,333 a.c:solve [???] 7 7 0 b b.cc:operator()(int, char; double) [solve] " +
			"5 1 3 ???:libc.so.6+0x1000 [libc.so.6] 3 0 0 ???:0x1234 [???] 2 1 0 ???:(unknown) [???]",
		"167 59 1,336 PROGRAM TOTALS",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestFoldedStacks(t *testing.T) {
	want := "a.c;solve;line 12 load 40\na.c;solve;line 12 store 10\nb b.cc;operator()(int, char, double);line 3 load 7\nlibc.so.6;libc.so.6+0x1000 1\n(no file);(unknown) 1\n"
	if got := string(difficultSheet().Folded(1)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// drawSheet returns a sheet of a few locations that share names, files and lines.
func drawSheet(t *rapid.T) *Sheet {
	s := &Sheet{Events: []Event{{Key: "a", Text: "A"}, {Key: "b_c", Text: "B"}}}
	name := rapid.SampledFrom([]string{"", "main", "f;g", "new\nline", "ünïcode (2) x", "=(1)"})
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		e := Entry{Function: name.Draw(t, "function"), File: name.Draw(t, "file"), Module: name.Draw(t, "module"),
			Line: rapid.Uint32Range(0, 3).Draw(t, "line"), PC: rapid.SampledFrom([]uint64{0, 1, 1 << 63}).Draw(t, "PC"),
			Kind: rapid.SampledFrom([]string{"", "load", "store"}).Draw(t, "kind")}
		e.Counts = []uint64{rapid.Uint64Range(0, 1<<40).Draw(t, "a"), rapid.Uint64Range(0, 1<<40).Draw(t, "b")}
		s.Entries = append(s.Entries, e)
	}
	return s
}

// sumByKey adds up the counts of an event over all entries with the same key.
func (s *Sheet) sumByKey(event int, key func(*Entry) string) map[string]uint64 {
	sums := map[string]uint64{}
	for i := range s.Entries {
		if n := s.Entries[i].Counts[event]; n > 0 {
			sums[key(&s.Entries[i])] += n
		}
	}
	return sums
}

func sameSums(t *rapid.T, what string, got, want map[string]uint64) {
	if !maps.Equal(got, want) {
		t.Fatalf("%s:\n%v\nwant\n%v", what, got, want)
	}
}

func TestFoldedAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSheet(t)
		got := map[string]uint64{}
		for line := range strings.Lines(string(s.Folded(1))) {
			at := strings.LastIndexByte(line, ' ')
			n, err := strconv.ParseUint(strings.TrimSpace(line[at:]), 10, 64)
			if _, twice := got[line[:at]]; err != nil || twice {
				t.Fatalf("the line %q has an error (%v), or its stack occurs twice", line, err)
			}
			got[line[:at]] = n
		}
		sameSums(t, "stacks", got, s.sumByKey(1, func(e *Entry) string { return foldedStack(e.frames()) }))
	})
}

// TestCallgrindAddsUp parses files according to Callgrind's specification, and adds up the costs by
// module, file, function and line.
func TestCallgrindAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSheet(t)
		got := map[string]uint64{}
		names, at := map[string]string{}, map[string]string{}
		for line := range strings.Lines(string(s.Callgrind())) {
			line = strings.TrimSuffix(line, "\n")
			fields := strings.Fields(line)
			key, value, isName := strings.Cut(line, "=(")
			switch {
			case line == "" || strings.Contains("# version creator positions event", strings.TrimSuffix(fields[0], ":")):
			case fields[0] == "events:":
				if line != "events: A BC" {
					t.Fatal(line)
				}
			case fields[0] == "summary:" || fields[0] == "totals:":
				totals := s.Totals()
				if line != fmt.Sprint(fields[0], " ", totals[0], " ", totals[1]) {
					t.Fatalf("the line of totals is %s, want %d", line, totals)
				}
			case isName && len(key) == 2:
				number, name, first := strings.Cut(value, ") ")
				number = key + strings.TrimSuffix(number, ")")
				if first {
					names[number] = name
				}
				at[key] = names[number]
			default:
				n, err := strconv.ParseUint(fields[2], 10, 64)
				if err != nil || len(fields) != 3 {
					t.Fatal(line, err)
				}
				if n > 0 {
					got[at["ob"]+"|"+at["fl"]+"|"+at["fn"]+"|"+fields[0]] += n
				}
			}
		}
		sameSums(t, "costs", got, s.sumByKey(1, func(e *Entry) string {
			return oneLine(cmp.Or(e.Module, "???") + "|" + cmp.Or(e.File, "???") + "|" + e.Name() + "|" + strconv.Itoa(int(e.Line)))
		}))
	})
}

// field is a field of a protocol-buffer message: a number or bytes.
type field struct {
	id     int
	number uint64
	bytes  []byte
}

// splitMessage splits an encoded message into its fields.
func splitMessage(t *rapid.T, b []byte) (list []field) {
	next := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			t.Fatal("a number is truncated")
		}
		b = b[size:]
		return n
	}
	for len(b) > 0 {
		key := next()
		f := field{id: int(key >> 3), number: next()}
		if key&7 == 2 {
			f.bytes, b = b[:f.number], b[f.number:]
		}
		list = append(list, f)
	}
	return list
}

// TestPprofAddsUp decodes messages without the pprof library, and adds up the samples by function,
// file, line, address and kind.
func TestPprofAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSheet(t)
		var texts []string
		functions, locations := map[uint64][]field{}, map[uint64][]field{}
		var samples [][]field
		for _, f := range splitMessage(t, s.Pprof()) {
			switch f.id {
			case pprofSample:
				samples = append(samples, splitMessage(t, f.bytes))
			case pprofLocations:
				at := splitMessage(t, f.bytes)
				locations[at[0].number] = at[1:]
			case pprofFunctions:
				at := splitMessage(t, f.bytes)
				functions[at[0].number] = at[1:]
			case pprofString:
				texts = append(texts, string(f.bytes))
			}
		}
		if texts[0] != "" || len(samples) != len(s.Entries) {
			t.Fatalf("unexpected number of samples (%d for %d entries) or first string (%q)", len(samples), len(s.Entries), texts[0])
		}
		got := map[string]uint64{}
		for _, sample := range samples {
			location, _ := binary.Uvarint(sample[0].bytes)
			_, first := binary.Uvarint(sample[1].bytes)
			n, _ := binary.Uvarint(sample[1].bytes[first:])
			kind := ""
			for _, f := range sample[2:] {
				if label := splitMessage(t, f.bytes); texts[label[0].number] == "kind" {
					kind = texts[label[1].number]
				}
			}
			if n > 0 {
				got[locationName(t, locations[location], functions, texts)+"|"+kind] += n
			}
		}
		sameSums(t, "samples", got, s.sumByKey(1, func(e *Entry) string {
			return fmt.Sprint(e.Name(), "|", e.File, "|", e.Line, "|", e.PC, "|", e.Kind)
		}))
	})
}

// locationName returns a string that identifies a location.
func locationName(t *rapid.T, location []field, functions map[uint64][]field, texts []string) string {
	var name, file string
	var line, address uint64
	for _, f := range location {
		switch f.id {
		case 3:
			address = f.number
		case 4:
			for _, at := range splitMessage(t, f.bytes) {
				switch at.id {
				case 1:
					for _, about := range functions[at.number] {
						switch about.id {
						case 2:
							name = texts[about.number]
						case 4:
							file = texts[about.number]
						}
					}
				case 2:
					line = at.number
				}
			}
		}
	}
	return fmt.Sprint(name, "|", file, "|", line, "|", address)
}
