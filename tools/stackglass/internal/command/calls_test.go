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
)

const callTrace = "testdata/calls/tree.sgt"

var callCaches = []string{"--cache", "L1=4KiB,4", "--cache", "L2=64KiB,8"}

// callRows returns the rows that the verb calls prints, keyed by the value of one column.
func callRows(t *testing.T, key string, args ...string) map[string]map[string]string {
	t.Helper()
	got := stackglass(append(append([]string{"calls", callTrace, "--format", "csv"}, callCaches...), args...)...)
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

// callCounts returns the counts in one column of rows, without the zeros.
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

func exportedCalls(t *testing.T, args ...string) string {
	t.Helper()
	got := stackglass(append(append([]string{"export", callTrace, "-o", "-"}, callCaches...), args...)...)
	if got.code != exitOK {
		t.Fatal(got)
	}
	return got.stdout
}

var callEvents = []string{"references", "instructions", "L1_misses", "L2_misses"}

// TestCallCounts compares the number of calls of each function with Callgrind's.
func TestCallCounts(t *testing.T) {
	text, err := os.ReadFile("testdata/calls/tree.calls")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		function, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[function], _ = strconv.ParseUint(n, 10, 64)
	}
	if got := callCounts(t, callRows(t, "function", "--by", "function"), "calls"); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCallExportsAgree compares the counts of all paths and functions in every format.
func TestCallExportsAgree(t *testing.T) {
	paths, functions := callRows(t, "path"), callRows(t, "function", "--by", "function")
	var file struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Name    string
			Samples [][]int
			Weights []uint64
		}
	}
	if err := json.Unmarshal([]byte(exportedCalls(t, "--to", "speedscope")), &file); err != nil {
		t.Fatal(err)
	}
	titles := map[string]string{"references": "references", "instructions": "instructions in the compiler's form", "L1_misses": "misses of L1", "L2_misses": "misses of L2"}
	for _, event := range callEvents {
		want, got := callCounts(t, paths, event), map[string]uint64{}
		for line := range strings.Lines(exportedCalls(t, "--to", "folded", "--event", event)) {
			at := strings.LastIndexByte(line, ' ')
			got[line[:at]], _ = strconv.ParseUint(strings.TrimSpace(line[at:]), 10, 64)
		}
		if !maps.Equal(got, want) {
			t.Errorf("folded stacks of %s: %v, want %v", event, got, want)
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
			t.Errorf("speedscope's stacks of %s: %v, want %v", event, got, want)
		}
	}
	self, all, calls := callgrindSums(t, exportedCalls(t, "--to", "callgrind"))
	for column, got := range map[string]map[string]uint64{"L1_misses": self, "L1_misses_inclusive": all, "calls": calls} {
		want := callCounts(t, functions, column)
		if column == "calls" {
			delete(want, "main") // it has no traced caller
			delete(want, "cmp")
			delete(got, "cmp") // its caller is qsort, which main calls
		}
		if !maps.Equal(got, want) {
			t.Errorf("callgrind's %s: %v, want %v", column, got, want)
		}
	}
	out := filepath.Join(t.TempDir(), "tree.pb")
	if err := os.WriteFile(out, []byte(exportedCalls(t, "--to", "pprof")), 0o644); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\s*(\d+)\s+\S+%\s+\S+%\s+(\d+)\s+\S+%\s+(\S+)`)
	for _, event := range callEvents {
		top, err := exec.Command("go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=count", "-sample_index="+event, out).Output()
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
			t.Errorf("pprof's %s: %v, want %v", event, self, want)
		}
		if want := callCounts(t, functions, event+"_inclusive"); !maps.Equal(all, want) {
			t.Errorf("pprof's %s with callees: %v, want %v", event, all, want)
		}
	}
}

// callgrindSums parses a file in Callgrind's format as its specification says. It returns the L1
// misses of each function, without and with its callees, and the number of calls from traced
// functions.
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
