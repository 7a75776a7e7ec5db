package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/pipeline"
)

// target is a processor that llvm-mca supports.
type target struct {
	name, title, triple, cpu string
	fuses                    pipeline.Fusion
	// groups lists sets of ports that can execute the same micro-ops. A target needs groups if its
	// tables are ambiguous: two micro-ops on four ports may use two separate pairs of ports.
	groups []string
	// scheduler is the number of micro-ops that can wait for operands, or 0 if the core has several
	// schedulers. LLVM's numbers (BufferSize; llvm-mca -scheduler-stats) are not used. LLVM's
	// number is 60 for Haswell, Skylake and Ice Lake, and 112 for Golden Cove. The published number
	// for Skylake is 97, which includes address generation. The published number for Ice Lake is
	// 160, which includes loads and stores (A. Abel and J. Reineke's uiCA, microArchConfigs.py,
	// RSWidth, after WikiChip). All descriptions of the four Intel processors contain 97, which
	// agrees with times measured on Sapphire Rapids. For example, matmul with n = 130 in
	// RUNTIMES.md has a loop that is limited by a chain of additions and is executed many times.
	// With 97, the model is 2.9 % below the measurement for this loop; with 112, the model is 8.9 %
	// below the measurement.
	scheduler   int
	corrections []correction
}

// correction replaces a number in LLVM's tables that disagrees with published measurements.
type correction struct {
	class  pipeline.Class
	typ    string // the type to which the correction applies, or "" for all types
	change func(c *pipeline.Cost)
	note   string // the change and its source, for the description
}

// zenDivision is a correction for 32-bit divisions on AMD Zen 4.
var zenDivision = correction{class: pipeline.IDiv, typ: "i32",
	change: func(c *pipeline.Cost) {
		c.Latency-- // 12 cycles for the division, instead of 13
		for i := range c.Uses {
			c.Uses[i].Cycles = min(c.Uses[i].Cycles, 6)
		}
	},
	note: "a 32-bit division has a latency of 12 cycles and occupies the divider for 6 cycles (uops.info, DIV r32; later versions of LLVM contain this latency)",
}

// isa returns the name of the target's instruction set, as used in descriptions.
func (t *target) isa() string {
	if t.triple == "x86_64" {
		return "x86-64"
	}
	return t.triple
}

// overlap returns which transfers overlap with accesses on the target, unless a measurement says more.
func (t *target) overlap() pipeline.Overlap {
	if strings.HasPrefix(t.cpu, "znver") {
		return pipeline.FullOverlap
	}
	return pipeline.NoOverlap
}

const x86Fuses = pipeline.CompareBranch | pipeline.CompareSelect

var targets = []target{
	{"skylake-avx512", "Intel Skylake-SP (Xeon Scalable, 2017)", "x86_64", "skylake-avx512", x86Fuses, nil, 97, nil},
	{"icelake-server", "Intel Ice Lake-SP (Xeon Scalable, 2021)", "x86_64", "icelake-server", x86Fuses, []string{"4|9", "7|8"}, 97, nil},
	{"alderlake", "Intel Alder Lake, a performance core (Core i9-12900K, 2021)", "x86_64", "alderlake", x86Fuses, []string{"4|9", "7|8"}, 97, nil},
	{"sapphirerapids", "Intel Sapphire Rapids (Xeon Scalable, 2023)", "x86_64", "sapphirerapids", x86Fuses, []string{"4|9", "7|8"}, 97, nil},
	{"znver3", "AMD Zen 3 (EPYC 7003, Ryzen 5000, 2020)", "x86_64", "znver3", x86Fuses, nil, 0, nil},
	{"znver4", "AMD Zen 4 (EPYC 9004, Ryzen 7000, 2022)", "x86_64", "znver4", x86Fuses, nil, 0, []correction{zenDivision}},
	{"neoverse-n1", "Arm Neoverse N1 (Graviton 2, Ampere Altra, 2019)", "aarch64", "neoverse-n1", pipeline.ExtendAddress, nil, 0, nil},
	{"neoverse-v2", "Arm Neoverse V2 (Grace, Graviton 4, 2023)", "aarch64", "neoverse-v2", pipeline.ExtendAddress, nil, 0, nil},
}

// mcaRegion is the part of llvm-mca's report for one snippet.
type mcaRegion struct {
	Name                string
	InstructionInfoView struct {
		InstructionList []struct {
			Latency         float64
			NumMicroOpcodes int
		}
	}
	ResourcePressureView struct {
		ResourcePressureInfo []struct {
			InstructionIndex, ResourceIndex int
			ResourceUsage                   float64
		}
	}
	SummaryView struct {
		DispatchWidth int
		TotalCycles   float64
	}
}

type mcaReport struct {
	CodeRegions []mcaRegion
	TargetInfo  struct {
		Resources []string
	}
}

// runMCA runs llvm-mca on assembly code.
func runMCA(t *target, text string, flags ...string) (report mcaReport, complaints string, err error) {
	cmd := exec.Command(mcaProgram, append([]string{"-mtriple=" + t.triple, "-mcpu=" + t.cpu, "-json"}, flags...)...)
	cmd.Stdin = strings.NewReader(text)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		return report, messages.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, messages.String())
	}
	return report, messages.String(), json.Unmarshal(out.Bytes(), &report)
}

var entries = regexp.MustCompile(`Total ROB Entries: +(\d+)`)

// reorderBuffer returns the size of a target's reorder buffer. llvm-mca prints this size only in
// the statistics for assembly code, so the function gives it some code.
func reorderBuffer(t *target, code string) (int, error) {
	cmd := exec.Command(mcaProgram, "-mtriple="+t.triple, "-mcpu="+t.cpu, "-iterations=1", "-retire-stats")
	cmd.Stdin = strings.NewReader(code)
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	m := entries.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%s: no line \"Total ROB Entries: …\"", strings.Join(cmd.Args, " "))
	}
	return strconv.Atoi(string(m[1]))
}

// markRegion marks code as a named region for llvm-mca.
func markRegion(name, code string) string {
	return "# LLVM-MCA-BEGIN " + name + "\n" + code + "\n# LLVM-MCA-END " + name + "\n"
}

var complaint = regexp.MustCompile(`(?m)^[^:\n]*:(\d+):\d+: error`)

// snippetsOf returns the snippets for a target, and llvm-mca's report on them. The first form of
// each snippet is the best form that the target supports. Each region in the report has the index
// of a snippet as its name.
func snippetsOf(t *target) (list []snippet, report mcaReport, err error) {
	if list, err = readSnippets(t.isa()); err != nil {
		return nil, report, err
	}
	for {
		var text strings.Builder
		var owner []int // the index of the snippet to which each line belongs
		for i, s := range list {
			if len(s.forms) > 0 {
				code := markRegion(strconv.Itoa(i), s.forms[0])
				text.WriteString(code)
				for range strings.Count(code, "\n") {
					owner = append(owner, i)
				}
			}
		}
		var complaints string
		report, complaints, err = runMCA(t, text.String(), "-instruction-tables", "-skip-unsupported-instructions=lack-sched")
		if err != nil && !complaint.MatchString(complaints) {
			return nil, report, err
		}
		refused := map[int]bool{}
		for _, r := range report.CodeRegions { // refuse instructions for which llvm-mca has no tables
			if at, err := strconv.Atoi(r.Name); err == nil && len(r.InstructionInfoView.InstructionList) <= strings.Count(list[at].forms[0], "\n") {
				refused[at] = true
			}
		}
		for _, m := range complaint.FindAllStringSubmatch(complaints, -1) {
			if line, _ := strconv.Atoi(m[1]); line >= 1 && line <= len(owner) {
				refused[owner[line-1]] = true
			}
		}
		if len(refused) == 0 {
			return list, report, err
		}
		for i := range refused {
			list[i].forms = list[i].forms[1:]
		}
	}
}

// describe generates the description of a processor from llvm-mca's tables.
func describe(t *target, version string) (*pipeline.Processor, error) {
	snippets, report, err := snippetsOf(t)
	if err != nil {
		return nil, err
	}
	width, _, err := runMCA(t, snippets[0].forms[0])
	if err != nil {
		return nil, err
	}
	window, err := reorderBuffer(t, snippets[0].forms[0])
	if err != nil {
		return nil, err
	}
	p := &pipeline.Processor{
		Name: t.name, Title: t.title, ISA: t.isa(), Fuses: t.fuses, Overlap: t.overlap(),
		Source:   "llvm-mca of LLVM " + version + ", -mcpu=" + t.cpu + ", by tools/pipelines",
		Dispatch: width.CodeRegions[0].SummaryView.DispatchWidth, Window: window, Scheduler: t.scheduler,
		Notes: []string{"window is the size of the reorder buffer in LLVM's model"},
	}
	if t.scheduler > 0 {
		p.Notes = append(p.Notes, "scheduler is the size of the scheduler for micro-ops that compute; this size is not from LLVM's model, and memory operations have separate schedulers")
	}
	for _, o := range t.corrections {
		p.Notes = append(p.Notes, o.note)
	}
	ports := portNames(report.TargetInfo.Resources)
	used := usedPorts(report, len(ports))
	// index of each port in the list of used ports, or -1 if the port is not used
	place := make([]int, len(ports))
	for i := range ports {
		if place[i] = -1; used[i] {
			place[i] = len(p.Ports)
			p.Ports = append(p.Ports, ports[i])
		}
	}
	for _, r := range report.CodeRegions {
		at, err := strconv.Atoi(r.Name)
		if err != nil {
			continue
		}
		c := costOf(t, &r, ports, place)
		class, typ, _ := strings.Cut(snippets[at].key, " ")
		if class == string(pipeline.FMA) {
			if c.Addend, err = addendOf(t, snippets[at].forms[0]); err != nil {
				return nil, err
			}
			if c.Addend >= c.Latency {
				c.Addend = 0
			}
		}
		for _, o := range t.corrections {
			if o.class == pipeline.Class(class) && (o.typ == typ || o.typ == "") {
				o.change(&c)
			}
		}
		p.Set(pipeline.Key{Class: pipeline.Class(class), Type: typ}, c)
	}
	return p, nil
}

// addendOf returns the latency from the addend of a fused multiply-add to its result. llvm-mca
// computes this latency for a chain of fused multiply-adds.
func addendOf(t *target, code string) (float64, error) {
	code = strings.ReplaceAll(strings.ReplaceAll(code, "d3", "d0"), "s3", "s0")
	report, _, err := runMCA(t, code, "-iterations=1000")
	if err != nil {
		return 0, err
	}
	return math.Round(report.CodeRegions[0].SummaryView.TotalCycles / 1000), nil
}

// portNames shortens the names of the resources in the tables. It removes the common prefix of the
// names. Because all units of a resource have the same name, it adds a number to the name of each
// unit.
func portNames(resources []string) []string {
	stem := resources[0]
	for _, r := range resources {
		for !strings.HasPrefix(r, stem) {
			stem = stem[:len(stem)-1]
		}
	}
	names := make([]string, len(resources))
	units := map[string]int{}
	for i, r := range resources {
		name, _, many := strings.Cut(strings.TrimPrefix(r, stem), ".")
		name = strings.TrimPrefix(name, "Port")
		if n, err := strconv.Atoi(name); err == nil {
			name = "P" + strconv.Itoa(n)
		}
		if many {
			units[name]++
			name += "_" + strconv.Itoa(units[name]-1)
		}
		names[i] = name
	}
	return names
}

// kindOf returns the kind of a port, for example ALU for the port ALU0, and L for the ports L2 and
// L01_1.
func kindOf(port string) string {
	port, _, _ = strings.Cut(port, "_")
	return strings.TrimRight(port, "0123456789")
}

func usedPorts(report mcaReport, ports int) []bool {
	used := make([]bool, ports)
	for _, r := range report.CodeRegions {
		for _, u := range r.ResourcePressureView.ResourcePressureInfo {
			used[u.ResourceIndex] = used[u.ResourceIndex] || u.ResourceUsage > 0
		}
	}
	return used
}

// costOf returns the total cost of executing the instructions of a region in sequence.
func costOf(t *target, r *mcaRegion, ports []string, place []int) (c pipeline.Cost) {
	instructions := r.InstructionInfoView.InstructionList
	for i, in := range instructions {
		c.Latency += in.Latency
		c.MicroOps += in.NumMicroOpcodes
		pressure := make([]float64, len(ports))
		for _, u := range r.ResourcePressureView.ResourcePressureInfo {
			if u.InstructionIndex == i {
				pressure[u.ResourceIndex] = u.ResourceUsage
			}
		}
		uses := microOpsOf(t, ports, pressure, in.NumMicroOpcodes)
		for k := range uses {
			set := uint64(0)
			for q := range ports {
				if uses[k].Ports&(1<<q) != 0 {
					set |= 1 << place[q]
				}
			}
			uses[k].Ports = set
		}
		c.Uses = append(c.Uses, uses...)
	}
	return c
}

// microOpsOf returns the micro-ops that cause the given pressure on the ports. In llvm-mca's
// tables, the pressure of a micro-op is spread evenly over its ports. Among the ports of one kind
// (Zn4ALU0, Zn4ALU1), the ports with the lowest pressure form a set if their pressures add up to a
// whole number of cycles. Otherwise, all ports of the kind form a set if the lowest pressure times
// the number of these ports is a whole number of cycles. The remaining ports form sets across
// kinds: the ports with the lowest pressure form a set.
func microOpsOf(t *target, ports []string, pressure []float64, microOps int) (uses []pipeline.Use) {
	var kinds []string
	left := map[string][]int{}
	for q, name := range ports {
		if pressure[q] > negligible {
			kind := kindOf(name)
			if left[kind] == nil {
				kinds = append(kinds, kind)
			}
			left[kind] = append(left[kind], q)
		}
	}
	take := func(set []int, each float64) {
		uses = append(uses, splitPressure(t, ports, set, each, microOps)...)
		for _, q := range set {
			pressure[q] -= each
			if pressure[q] < negligible {
				kind := kindOf(ports[q])
				left[kind] = slices.DeleteFunc(left[kind], func(r int) bool { return r == q })
			}
		}
	}
	for _, kind := range kinds {
		for len(left[kind]) > 0 {
			equal, least := lowestPressure(left[kind], pressure)
			if isWhole(least * float64(len(equal))) {
				take(equal, least)
			} else if isWhole(least * float64(len(left[kind]))) {
				take(slices.Clone(left[kind]), least)
			} else {
				break
			}
		}
	}
	var rest []int
	for _, kind := range kinds {
		rest = append(rest, left[kind]...)
	}
	for len(rest) > 0 {
		equal, least := lowestPressure(rest, pressure)
		take(equal, least)
		rest = slices.DeleteFunc(rest, func(q int) bool { return pressure[q] < negligible })
	}
	return uses
}

// negligible is the pressure below which a port counts as unused.
const negligible = 0.005

// lowestPressure returns those ports of a set that have the lowest pressure. It also returns this
// pressure.
func lowestPressure(set []int, pressure []float64) (equal []int, least float64) {
	least = math.Inf(1)
	for _, q := range set {
		least = min(least, pressure[q])
	}
	for _, q := range set {
		if pressure[q] < least+negligible {
			equal = append(equal, q)
		}
	}
	return equal, least
}

func isWhole(x float64) bool { return math.Abs(x-math.Round(x)) < 0.02 && x > 0.5 }

// splitPressure returns the micro-ops that cause the same pressure on every port of a set.
func splitPressure(t *target, ports []string, set []int, each float64, microOps int) []pipeline.Use {
	mask := uint64(0)
	for _, q := range set {
		mask |= 1 << q
	}
	total := each * float64(len(set))
	for _, group := range t.groups {
		pair := uint64(0)
		for name := range strings.SplitSeq(group, "|") {
			if q := slices.Index(ports, "P"+name); q >= 0 {
				pair |= 1 << q
			}
		}
		if pair != mask && pair&^mask == 0 && pair != 0 {
			var rest, inside []int
			for _, q := range set {
				if pair&(1<<q) != 0 {
					inside = append(inside, q)
				} else {
					rest = append(rest, q)
				}
			}
			return append(splitPressure(t, ports, inside, each, microOps), splitPressure(t, ports, rest, each, microOps)...)
		}
	}
	if n := math.Round(total); isWhole(total) {
		if len(set) == 1 || int(n) > microOps { // there is only one micro-op, which occupies its port for several cycles
			return []pipeline.Use{{Ports: mask, Cycles: n}}
		}
		return slices.Repeat([]pipeline.Use{{Ports: mask, Cycles: 1}}, int(n))
	}
	return []pipeline.Use{{Ports: mask, Cycles: math.Round(total*100) / 100}}
}

// writeDescriptions writes the descriptions of all targets to a folder.
func writeDescriptions(dir string) error {
	out, err := exec.Command(mcaProgram, "--version").Output()
	if err != nil {
		return fmt.Errorf("cannot run %s, which contains the tables: %w; install it with: apt-get install llvm-19", mcaProgram, err)
	}
	version := "?"
	if m := regexp.MustCompile(`version (\S+)`).FindSubmatch(out); m != nil {
		version = string(m[1])
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range targets {
		p, err := describe(&targets[i], version)
		if err != nil {
			return err
		}
		text := append([]byte("# Made by `make processors`. DO NOT EDIT.\n"), p.Write()...)
		if _, err := pipeline.Read(text); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, p.Name+".yaml"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
