package command

import (
	"encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// callPrograms lists the recorded programs: a tree with recursion and a callback, a parser with
// mutual recursion, and a program with two threads.
var callPrograms = []string{"tree", "parse", "pool"}

func callTrace(program string) string { return "testdata/calls/" + program + ".sgt" }

var callCaches = []string{"--cache", "L1=4KiB,4", "--cache", "L2=64KiB,8"}

// callRows returns the rows that the verb "calls" prints, keyed by the values in one column.
func callRows(t *testing.T, program, key string, args ...string) map[string]map[string]string {
	t.Helper()
	got := stackglass(append(append([]string{"calls", callTrace(program), "--format", "csv"}, callCaches...), args...)...)
	rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
	if err != nil || got.code != exitOK || len(rows) < 2 {
		t.Fatalf("%v, %v", got, err)
	}
	all := map[string]map[string]string{}
	for _, cells := range rows[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			row[rows[0][i]] = cell
		}
		all[row[key]] = row
	}
	return all
}

// callCounts returns all nonzero counts in one column.
func callCounts(t *testing.T, rows map[string]map[string]string, column string) map[string]uint64 {
	t.Helper()
	counts := map[string]uint64{}
	for name, row := range rows {
		x, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			t.Fatal(column, err)
		}
		if x > 0 {
			counts[name] = uint64(x)
		}
	}
	return counts
}

func exportedCalls(t *testing.T, program string, args ...string) string {
	t.Helper()
	got := stackglass(append(append([]string{"export", callTrace(program), "-o", "-"}, callCaches...), args...)...)
	if got.code != exitOK {
		t.Fatal(got)
	}
	return got.stdout
}

var callEvents = []string{"references", "instructions", "L1_misses", "L2_misses"}

// TestCallCounts checks that the number of calls to each function equals the number that Callgrind
// counts.
func TestCallCounts(t *testing.T) {
	for _, program := range callPrograms {
		text, err := os.ReadFile("testdata/calls/" + program + ".calls")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]uint64{}
		for line := range strings.Lines(string(text)) {
			function, n, _ := strings.Cut(strings.TrimSpace(line), " ")
			want[function], _ = strconv.ParseUint(n, 10, 64)
		}
		if got := callCounts(t, callRows(t, program, "function", "--by", "function"), "calls"); !maps.Equal(got, want) {
			t.Errorf("calls of %s = %v, want %v", program, got, want)
		}
	}
}

// TestCallExportsAgree checks that all formats and the page's flame graphs contain the same counts
// for every path and function.
func TestCallExportsAgree(t *testing.T) {
	for _, program := range callPrograms {
		t.Run(program, func(t *testing.T) { callExportsAgree(t, program) })
	}
}

func callExportsAgree(t *testing.T, program string) {
	paths, functions := callRows(t, program, "path"), callRows(t, program, "function", "--by", "function")
	for _, event := range callEvents {
		flamesAgree(t, program, event, paths, functions)
	}
	var file struct {
		Shared struct {
			Frames []struct {
				Name, File string
				Line       int
			}
		}
		Profiles []struct {
			Name    string
			Samples [][]int
			Weights []uint64
		}
	}
	if err := json.Unmarshal([]byte(exportedCalls(t, program, "--to", "speedscope")), &file); err != nil {
		t.Fatal(err)
	}
	for _, frame := range file.Shared.Frames {
		if row := functions[frame.Name]; row == nil || row["file"] != frame.File || row["line"] != strconv.Itoa(frame.Line) {
			t.Errorf("speedscope: frame %+v, want %v", frame, row)
		}
	}
	titles := map[string]string{"references": "references", "instructions": "executed instructions of the compiler's intermediate representation", "L1_misses": "misses of L1", "L2_misses": "misses of L2"}
	for _, event := range callEvents {
		want, got := callCounts(t, paths, event), map[string]uint64{}
		for line := range strings.Lines(exportedCalls(t, program, "--to", "folded", "--event", event)) {
			at := strings.LastIndexByte(line, ' ')
			got[line[:at]], _ = strconv.ParseUint(strings.TrimSpace(line[at:]), 10, 64)
		}
		if !maps.Equal(got, want) {
			t.Errorf("folded stacks of %s = %v, want %v", event, got, want)
		}
		clear(got)
		for _, p := range file.Profiles {
			if p.Name != titles[event] {
				continue
			}
			for i, sample := range p.Samples {
				var names []string
				for _, frame := range sample {
					names = append(names, file.Shared.Frames[frame].Name)
				}
				got[strings.Join(names, ";")] += p.Weights[i]
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("speedscope: stacks of %s = %v, want %v", event, got, want)
		}
	}
	self, all, calls := callgrindSums(t, exportedCalls(t, program, "--to", "callgrind"))
	for column, got := range map[string]map[string]uint64{"L1_misses": self, "L1_misses_inclusive": all, "calls": calls} {
		want := callCounts(t, functions, column)
		if column == "calls" {
			for _, untraced := range []string{"main", "cmp", "less", "run"} { // no traced function calls these functions
				delete(want, untraced)
				delete(got, untraced)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("callgrind: %s = %v, want %v", column, got, want)
		}
	}
	out := filepath.Join(t.TempDir(), "tree.pb")
	if err := os.WriteFile(out, []byte(exportedCalls(t, program, "--to", "pprof")), 0o644); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\s*(\d+)\s+\S+%\s+\S+%\s+(\d+)\s+\S+%\s+(\S+)`)
	for _, event := range callEvents {
		top, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", "-unit=count", "-sample_index="+event, out).Output()
		if err != nil {
			t.Fatal(err)
		}
		self, all := map[string]uint64{}, map[string]uint64{}
		for _, m := range line.FindAllStringSubmatch(string(top), -1) {
			for sums, text := range map[*map[string]uint64]string{&self: m[1], &all: m[2]} {
				if n, _ := strconv.ParseUint(text, 10, 64); n > 0 {
					(*sums)[m[3]] = n
				}
			}
		}
		if want := callCounts(t, functions, event); !maps.Equal(self, want) {
			t.Errorf("pprof: %s = %v, want %v", event, self, want)
		}
		if want := callCounts(t, functions, event+"_inclusive"); !maps.Equal(all, want) {
			t.Errorf("pprof: %s with callees = %v, want %v", event, all, want)
		}
	}
}

// flamesAgree checks that an event's flame graphs equal the rows of the verb "calls". There are
// flame graphs from callers to callees, from callees to callers, and around each function. The
// exclusive count of a frame is the part of its width that is not covered by a frame below.
func flamesAgree(t *testing.T, program, event string, paths, functions map[string]map[string]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run.sgp")
	if got := stackglass("analyze", callTrace(program), "--analyses", "sites,blocks,sets,sharing", "--utilisation", "4KiB,4,64KiB,8", "-o", out); got.code != exitOK {
		t.Fatal(got)
	}
	encoded, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	graphs := func(direction, function string) []*state.Flame {
		t.Helper()
		machine := hierarchy.Hierarchy{}
		for i := 1; i < len(callCaches); i += 2 {
			if err := machine.Add(callCaches[i]); err != nil {
				t.Fatal(err)
			}
		}
		q, err := ask.Parse(state.CallsQuestion(machine, direction, function, event, state.Range{}).Words)
		if err != nil {
			t.Fatal(err)
		}
		d, err := ask.NewRun(program, p).Answer(q)
		if err != nil {
			t.Fatal(err)
		}
		var list []*state.Flame
		for _, tree := range state.NewCalls(p, &answers.Reply{Tables: d.Tables}).Trees {
			list = append(list, tree.Flame("", -1))
		}
		return list
	}
	// frameSums returns the width of each frame, and the share of the width that is not covered by
	// a frame below. The key of a frame lists the names of all frames on its path, from the
	// outermost frame to the frame itself.
	frameSums := func(f *state.Flame) (all, own map[string]uint64) {
		all, own = map[string]uint64{}, map[string]uint64{}
		names := make([]string, len(f.Names))
		for i, parent := range f.Parents {
			if names[i] = f.Names[i]; parent >= 0 {
				names[i] = names[parent] + ";" + names[i]
				own[names[parent]] -= uint64(f.Weights[i])
				if f.Starts[i] < f.Starts[parent] || f.Starts[i]+f.Weights[i] > f.Starts[parent]+f.Weights[parent] {
					t.Fatalf("frame %s is not within its parent", names[i])
				}
			}
			all[names[i]] = uint64(f.Weights[i])
			own[names[i]] += uint64(f.Weights[i])
		}
		for _, list := range []map[string]uint64{all, own} {
			maps.DeleteFunc(list, func(_ string, n uint64) bool { return n == 0 })
		}
		return all, own
	}
	all, own := frameSums(graphs(state.CallsDown, "")[0])
	if want := callCounts(t, paths, event); !maps.Equal(own, want) {
		t.Errorf("flame graph of %s: frames without callees = %v, want %v", event, own, want)
	}
	if want := callCounts(t, paths, event+"_inclusive"); !maps.Equal(all, want) {
		t.Errorf("flame graph of %s: frames with callees = %v, want %v", event, all, want)
	}
	all, _ = frameSums(graphs(state.CallsUp, "")[0])
	maps.DeleteFunc(all, func(names string, _ uint64) bool { return strings.Contains(names, ";") })
	if want := callCounts(t, functions, event); !maps.Equal(all, want) {
		t.Errorf("flame graph of callers: outermost frames of %s = %v, want %v", event, all, want)
	}
	inclusive := callCounts(t, functions, event+"_inclusive")
	for name, row := range functions {
		if row["file"] == "" {
			continue
		}
		for _, f := range graphs(state.CallsFunction, row["file"]+":"+row["line"]+":"+name) {
			if all, _ := frameSums(f); all[name] != inclusive[name] {
				t.Errorf("flame graph %s of function %s: %s = %d, want %d", f.ID, name, event, all[name], inclusive[name])
			}
		}
	}
}

// callgrindSums parses a file in Callgrind's format according to its specification. For each
// function, callgrindSums returns the exclusive and the inclusive L1 misses, and the number of
// calls from traced functions.
func callgrindSums(t *testing.T, text string) (self, all, calls map[string]uint64) {
	t.Helper()
	self, all, calls = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	names, event, in, callee, call := map[string]string{}, 0, "", "", false
	name := func(text string) string {
		number, given, _ := strings.Cut(text, ") ")
		if number = strings.TrimSuffix(number, ")"); given != "" {
			names[number] = given
		}
		return names[number]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, "=")
		switch fields := strings.Fields(line); {
		case strings.HasPrefix(line, "events: "):
			for event = range fields {
				if fields[event] == "L1Misses" {
					break
				}
			}
		case key == "fn":
			in = name(value)
		case key == "cfn":
			callee = name(value)
		case key == "calls":
			n, _ := strconv.ParseUint(strings.Fields(value)[0], 10, 64)
			calls[callee] += n
			call = true
		case len(fields) > 1 && line[0] >= '0' && line[0] <= '9':
			n, err := strconv.ParseUint(fields[event], 10, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			if all[in] += n; !call {
				self[in] += n
			}
			call = false
		}
	}
	for _, sums := range []map[string]uint64{self, all} {
		maps.DeleteFunc(sums, func(_ string, n uint64) bool { return n == 0 })
	}
	return self, all, calls
}
