package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/pipeline"
)

func needPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("skipped: missing " + name + ": apt-get install llvm-19 clang-19")
		}
	}
}

// TestDescriptionsAreCurrent checks that the processor descriptions in the repository are up to
// date.
func TestDescriptionsAreCurrent(t *testing.T) {
	needPrograms(t, mcaProgram)
	dir := t.TempDir()
	if err := writeDescriptions(dir); err != nil {
		t.Fatal(err)
	}
	for i := range targets {
		name := targets[i].name
		p, err := pipeline.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		version := strings.Fields(p.Source)[4]
		out, err := exec.Command(mcaProgram, "--version").Output()
		if err != nil || !bytes.Contains(out, []byte(strings.TrimSuffix(version, ","))) {
			t.Skipf("skipped: this is not the version of %s that generated the descriptions, %s", mcaProgram, version)
		}
		again, err := readFile(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, pipeline.Description(name)) {
			t.Errorf("%s is out of date; run make processors", name)
		}
	}
}

// TestModelMatchesLLVMMCA checks that the model, which uses llvm-mca's numbers here, has the same
// results as llvm-mca itself. Only `make pipelines` measures times.
func TestModelMatchesLLVMMCA(t *testing.T) {
	needPrograms(t, mcaProgram, clangProgram)
	rows, _, err := compare("testdata", "sapphirerapids", "", false)
	if err != nil {
		t.Fatal(err)
	}
	f := collectErrors(rows)
	if len(rows) < 40 {
		t.Errorf("%d loops, want at least 40", len(rows))
	}
	if m, half := mean(f.steady), median(f.steady); m > 12 || half > 2 {
		t.Errorf("steady states differ by %.1f %% on average and %.1f %% in the median, want at most 12 and 2", m, half)
	}
	if m := mean(f.pass); m > 5 {
		t.Errorf("the times of one pass differ from the times of llvm-mca by %.1f %% on average, want at most 5", m)
	}
}

// TestModelOfOlderInstructionSets repeats TestModelMatchesLLVMMCA for code that does not use all
// instructions of its processor. Some of the code is compiled for any x86-64 processor, and some
// uses AVX2 and FMA.
func TestModelOfOlderInstructionSets(t *testing.T) {
	needPrograms(t, mcaProgram, clangProgram)
	for _, c := range []struct {
		march     string
		mean, mid float64
		dot       float64 // the predicted cycles per iteration of a dot product
	}{{"x86-64", 14, 1, 3}, {"haswell", 14, 4, 4}} {
		rows, _, err := compare("testdata", "sapphirerapids", c.march, false)
		if err != nil {
			t.Fatal(err)
		}
		if f := collectErrors(rows); len(rows) < 60 || mean(f.steady) > c.mean || median(f.steady) > c.mid {
			t.Errorf("%s: %d loops differ by %.1f %% on average and %.1f %% in the median; want at least 60 loops, and at most %v and %v",
				c.march, len(rows), mean(f.steady), median(f.steady), c.mean, c.mid)
		}
		for _, r := range rows {
			if r.loop.name == "dot_double" && r.steady.Cycles != c.dot {
				t.Errorf("%s: a dot product takes %v cycles per iteration, want %v", c.march, r.steady.Cycles, c.dot)
			}
		}
	}
}

func TestPortPressureIsDivided(t *testing.T) {
	toy := &target{groups: []string{"4|9", "7|8"}}
	p := &pipeline.Processor{}
	ports := []string{"P0", "P1", "P4", "P5", "P7", "P8", "P9", "ALU0", "BRU1"}
	p.Ports = ports
	third := 1.0 / 3
	for _, c := range []struct {
		pressure []float64
		microOps int
		want     string
	}{
		{[]float64{0.5, 0.5, 0, 1}, 2, "0.5 P0|P1 1 P5"},
		{[]float64{0, 0, 0.5, 0, 0.5, 0.5, 0.5}, 2, "0.5 P4|P9 0.5 P7|P8"},
		{[]float64{third, third, 0, 1 + third}, 2, "0.333 P0|P1|P5 1 P5"},
		{[]float64{0, 4}, 1, "4 P1"},
		{[]float64{2, 2}, 1, "2 P0|P1"},
		{[]float64{0, 0, 0, 0, 0, 0, 0, 0.5, 0.5}, 1, "0.5 ALU0|BRU1"},
	} {
		pressure := make([]float64, len(ports))
		copy(pressure, c.pressure)
		var got []string
		load := map[uint64]float64{}
		var order []uint64
		for _, u := range microOpsOf(toy, ports, pressure, c.microOps) {
			if load[u.Ports] == 0 {
				order = append(order, u.Ports)
			}
			load[u.Ports] += u.Cycles
		}
		for _, set := range order {
			names := p.PortNames(set)
			each := load[set] / float64(strings.Count(names, "|")+1)
			got = append(got, strings.TrimRight(strings.TrimRight(format(each), "0"), ".")+" "+names)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("the pressure %v is split into the micro-ops %v, want %s", c.pressure, got, c.want)
		}
	}
}

func format(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }

func readFile(dir, name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name+".yaml")) }

// TestHost checks that a virtual machine that hides the model of its processor does not hide the
// processor.
func TestHost(t *testing.T) {
	const info = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 167\nflags\t\t: fpu avx512f %samx_bf16\n"
	for _, c := range []struct{ llvm, flag, want string }{
		{"rocketlake", "amx_tile ", "sapphirerapids"},
		{"rocketlake", "", "rocketlake"},
		{"sapphirerapids", "amx_tile ", "sapphirerapids"},
		{"emeraldrapids", "amx_tile ", "sapphirerapids"},
		{"graniterapids", "amx_tile ", "graniterapids"},
	} {
		if got := hostOf(c.llvm, fmt.Sprintf(info, c.flag)); got != c.want {
			t.Errorf("%s with flags %q: %s, want %s", c.llvm, c.flag, got, c.want)
		}
	}
	if got := hostOf("znver4", ""); got != "znver4" {
		t.Errorf("without cpuinfo: %s, want znver4", got)
	}
}
