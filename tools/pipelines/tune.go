package main

import (
	"bytes"
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

// probe times one snippet on this machine: a dependency chain for the latency, and many independent
// copies for the throughput.
type probe struct {
	key string
	// the instructions of one iteration, as a chain and as independent copies; "" if the snippet
	// cannot be timed in this form
	chain, spread string
	mixed         string  // chain with a multiplication after each link
	links, copies float64 // numbers of snippets in one iteration of chain and of spread
	less          float64 // cost of other instructions in the chain, in cycles per link
	float         bool    // whether registers contain floats, not doubles
	latency, rate float64 // measured cycles; 0: not measured
	between       float64 // the measured latency in the mixed chain
}

// One iteration of a probe's loop contains turns × repeats snippets, several for each result
// register. The cost of the loop itself is then negligible.
const (
	turns   = 8
	repeats = 5
)

var register = regexp.MustCompile(`%([xyz]mm)(\d+)|%[er]?[abc][xl]`)

// general returns the name of the k-th general-purpose register for results, with the width that
// the instruction writes.
func general(like string, k int) string {
	suffix := "d"
	switch like[1] {
	case 'r':
		suffix = ""
	case 'a', 'b', 'c':
		suffix = "b"
	}
	return "%r" + strconv.Itoa(8+k) + suffix
}

// probes returns the probes that time snippets. It skips the latency of instructions whose operand
// and result are in different kinds of registers, and instructions that depend on flags or
// addresses.
func probes(snippets []snippet) (list []probe) {
	for _, s := range snippets {
		if len(s.ways) == 0 {
			continue
		}
		class, typ, _ := strings.Cut(s.key, " ")
		p := probe{key: s.key, links: turns * repeats, copies: turns * repeats, float: strings.Contains(typ, "float")}
		code := s.ways[0]
		switch pipeline.Class(class) {
		case pipeline.Gather, pipeline.Scatter:
			if !strings.Contains(code, "{%k1}") {
				continue
			}
			each := strings.Repeat(code+"\n", turns)
			if class == string(pipeline.Gather) {
				each = independent(code)
			}
			p.spread = "vpxor %xmm1, %xmm1, %xmm1\n" // the indices are zero
			for line := range strings.Lines(each) {
				p.spread += "kxnorw %k1, %k1, %k1\n" + line
			}
			list = append(list, p)
			continue
		case pipeline.Branch, pipeline.Call, pipeline.Masked, pipeline.MaskedS, pipeline.Atomic,
			pipeline.ICmp, pipeline.FCmp, pipeline.SetBit, pipeline.IMin:
			if strings.Contains(code, "\n") || class != string(pipeline.IMin) {
				continue
			}
		case pipeline.IDiv:
			a, c := "%eax", "%ecx"
			if typ == "i64" {
				a, c = "%rax", "%rcx"
			}
			mov := map[string]string{"i32": "movl", "i64": "movq"}[typ]
			or := map[string]string{"i32": "orl", "i64": "orq"}[typ]
			p.spread = strings.Repeat(mov+" $1234567, "+a+"\n"+code+"\n", turns)
			p.chain = mov + " $3, " + c + "\n" + strings.Repeat(code+"\n"+or+" $0x40000000, "+a+"\n", turns)
			p.less = 1
			list = append(list, p)
			continue
		case pipeline.Load:
			if typ == "i64" {
				p.chain = strings.Repeat("movq (%rsi), %rsi\n", turns)
			}
			// Load from consecutive addresses, so that the loads use different banks.
			apart := 8
			if kind := register.FindStringSubmatch(code); kind != nil && kind[1] != "" {
				apart = map[string]int{"xmm": 16, "ymm": 32, "zmm": 64}[kind[1]]
			}
			for k, line := range slices.Collect(strings.Lines(independent(code))) {
				p.spread += strings.Replace(line, "(%rsi)", strconv.Itoa(apart*k)+"(%rsi)", 1)
			}
			list = append(list, p)
			continue
		case pipeline.Store:
			p.spread = strings.Repeat(code+"\n", turns)
			list = append(list, p)
			continue
		}
		if strings.Contains(code, "\n") {
			continue
		}
		p.spread = independent(code)
		p.chain = strings.Repeat(chained(code), turns)
		switch pipeline.Class(class) {
		case pipeline.Sqrt:
			p.chain = "" // repeated square roots converge to 1
			fallthrough
		case pipeline.FAdd, pipeline.FDiv:
			// The units of additions and divisions forward results to themselves faster than to others.
			p.mixed = mixed(chained(code), p.float)
		}
		list = append(list, p)
	}
	return list
}

// operands returns the positions of the registers in an instruction.
func operands(code string) [][]int { return register.FindAllStringIndex(code, -1) }

// independent returns copies of an instruction with results in different registers.
func independent(code string) string {
	at := operands(code)
	if len(at) == 0 {
		return ""
	}
	last := at[len(at)-1]
	name := code[last[0]:last[1]]
	text := ""
	for k := range turns {
		result := general(name, k)
		if m := register.FindStringSubmatch(name); m[1] != "" {
			result = "%" + m[1] + strconv.Itoa(8+k)
		}
		text += code[:last[0]] + result + code[last[1]:] + "\n"
	}
	return text
}

// chained returns a copy of an instruction whose result is also its first operand. Repeated copies
// form a dependency chain. It returns "" if the result and the operand are in different kinds of
// registers.
func chained(code string) string {
	at := operands(code)
	if len(at) == 0 {
		return ""
	}
	first, last := at[0], at[len(at)-1]
	from, to := register.FindStringSubmatch(code[first[0]:first[1]]), register.FindStringSubmatch(code[last[0]:last[1]])
	if (from[1] == "") != (to[1] == "") {
		return ""
	}
	if from[1] == "" && from[0][1] != to[0][1] {
		return "" // a sign or zero extension, which accesses parts of registers
	}
	result := from[0]
	if to[1] != "" {
		result = "%" + to[1] + from[2]
	}
	return code[:last[0]] + result + code[last[1]:] + "\n"
}

// multiplication is the latency of a floating-point multiplication, which uses the same registers
// as additions, divisions and square roots.
const multiplication = 4

// mixed returns a chain with a multiplication after each link.
func mixed(link string, float bool) string {
	at := operands(link)
	if len(at) == 0 {
		return ""
	}
	last := at[len(at)-1]
	name := link[last[0]:last[1]]
	kind := register.FindStringSubmatch(name)[1]
	if kind == "" {
		return ""
	}
	multiply := map[bool]string{true: "vmulps", false: "vmulpd"}[float] + " %" + kind + "1, " + name + ", " + name + "\n"
	return strings.Repeat(link+multiply, turns)
}

// inline escapes assembly code for C's inline assembly.
var inline = strings.NewReplacer("%", "%%", "{", "%{", "}", "%}")

// probeSource returns a C program that runs the probes.
func probeSource(list []probe, wide bool) string {
	var text strings.Builder
	text.WriteString("#include \"probes.h\"\n")
	kind := map[bool]string{true: "zmm", false: "ymm"}[wide]
	emit := func(name, code string, float bool) {
		text.WriteString("static void " + name + "(long n) {\n\t__asm__ volatile(\n")
		for r := range 16 {
			broadcast := map[bool]string{true: "vbroadcastss floats+%d(%%%%rip)", false: "vbroadcastsd doubles+%d(%%%%rip)"}[float]
			fmt.Fprintf(&text, "\t\t\""+broadcast+", %%%%%s%d\\n\"\n", r*map[bool]int{true: 4, false: 8}[float], kind, r)
		}
		if wide {
			text.WriteString("\t\t\"kxnorw %%k1, %%k1, %%k1\\n\"\n")
		}
		text.WriteString("\t\t\"leaq self(%%rip), %%rsi\\nmovl $3, %%eax\\nmovl $5, %%ebx\\nmovl $7, %%ecx\\n1:\\n\"\n")
		for line := range strings.Lines(code) {
			text.WriteString("\t\t\"" + inline.Replace(strings.TrimSpace(line)) + "\\n\"\n")
		}
		text.WriteString("\t\t\"decq %0\\njne 1b\\n\" : \"+D\"(n) :: CLOBBERS);\n}\n")
	}
	calls := ""
	for i, p := range list {
		for _, part := range []struct{ kind, code string }{{"chain", p.chain}, {"mixed", p.mixed}, {"spread", p.spread}} {
			if part.code != "" {
				name := part.kind + strconv.Itoa(i)
				emit(name, strings.Repeat(part.code, repeats), p.float)
				calls += "\treport(\"" + part.kind + " " + strconv.Itoa(i) + "\", " + name + ");\n"
			}
		}
	}
	text.WriteString("int main(void) {\n\tfill();\n" + calls + "}\n")
	return text.String()
}

// tune writes a target's description with numbers measured on this machine.
func tune(dir, testdata, machine string) error {
	t, err := targetOf(machine)
	if err != nil {
		return err
	}
	p, err := pipeline.Named(machine)
	if err != nil {
		return err
	}
	snippets, _, err := snippetsOf(t)
	if err != nil {
		return err
	}
	wide := slices.ContainsFunc(snippets, func(s snippet) bool { return len(s.ways) > 0 && strings.Contains(s.ways[0], "zmm") })
	list := probes(snippets)
	work, err := os.MkdirTemp("", "pipelines")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source := filepath.Join(work, "probes.c")
	if err := os.WriteFile(source, []byte(probeSource(list, wide)), 0o644); err != nil {
		return err
	}
	if err := command(clangProgram, "-O1", "-march=native", "-I", testdata, source, "-o", filepath.Join(work, "probes")); err != nil {
		return err
	}
	for range 4 { // take the minimum, because other programs can only make a run slower
		out, err := exec.Command(filepath.Join(work, "probes")).Output()
		if err != nil {
			return err
		}
		if err := note(list, out); err != nil {
			return err
		}
	}
	tuned := adjust(p, list)
	if err := remember(tuned, testdata); err != nil {
		return err
	}
	return writeMeasured(dir, tuned)
}

// note stores the fastest numbers so far.
func note(list []probe, out []byte) error {
	for line := range bytes.Lines(out) {
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			return fmt.Errorf("unexpected output of the probes: %q", line)
		}
		i, err1 := strconv.Atoi(fields[1])
		cycles, err2 := strconv.ParseFloat(fields[2], 64)
		if err1 != nil || err2 != nil || i >= len(list) {
			return fmt.Errorf("unexpected output of the probes: %q", line)
		}
		p := &list[i]
		fastest := func(of *float64, cycles float64) {
			if cycles > 0 && (*of == 0 || cycles < *of) {
				*of = cycles
			}
		}
		switch fields[0] {
		case "chain":
			fastest(&p.latency, cycles/p.links-p.less)
		case "mixed":
			fastest(&p.between, cycles/p.links-multiplication)
		default:
			fastest(&p.rate, cycles/p.copies)
		}
	}
	return nil
}

// adjust replaces numbers from the tables with measured numbers if the two differ.
func adjust(p *pipeline.Processor, list []probe) *pipeline.Processor {
	q := &pipeline.Processor{
		Name: p.Name + "-measured", Title: p.Title + ", with measured latencies and throughputs", ISA: p.ISA,
		Source:   p.Source + "; latencies of chains and throughputs measured on " + cpuName(),
		Dispatch: p.Dispatch, Window: p.Window, Scheduler: p.Scheduler, Fuses: p.Fuses | pipeline.LoadOperation, Levels: p.Levels,
		Ports: append(append([]string{}, p.Ports...), "DIV"),
		Notes: measuredNotes(p),
	}
	divider := uint64(1) << (len(q.Ports) - 1)
	measured := map[string]probe{}
	for _, m := range list {
		measured[m.key] = m
	}
	for _, k := range p.Keys() {
		c, _ := p.Cost(k)
		c.Uses = append([]pipeline.Use{}, c.Uses...)
		m := measured[k.String()]
		latency := m.latency
		if m.between > 0 {
			latency = m.between
		}
		if latency > 0 && math.Abs(latency-c.Latency) > 0.4 {
			c.Latency = math.Max(1, math.Round(latency))
			c.Addend = 0
		}
		if m.latency > 0 && math.Round(m.latency) < c.Latency && m.between > 0 {
			c.Again = math.Round(m.latency)
		}
		if bitsOf(k.Type) == 512 && m.rate < 0.45 {
			m.rate = 0 // the clock frequency may change with registers of this width; no core starts more than two such instructions per cycle
		}
		alone := pipeline.Processor{Name: "alone", Ports: p.Ports, Dispatch: p.Dispatch}
		alone.Set(k, c)
		bound := alone.Throughput(c)
		switch k.Class {
		case pipeline.FDiv, pipeline.Sqrt, pipeline.IDiv:
			if m.rate > 0 {
				if m.rate < bound {
					scale(c.Uses, m.rate/bound)
				}
				c.Uses = append(c.Uses, pipeline.Use{Ports: divider, Cycles: math.Max(1, math.Round(m.rate*2)/2)})
			}
		case pipeline.Store:
			c.MicroOps = 1
		default:
			if m.rate > 1.2*bound || m.rate > 0.45*bound && m.rate < 0.8*bound {
				scale(c.Uses, m.rate/bound)
			}
		}
		q.Set(k, c)
	}
	return q
}

// measuredNotes returns the notes of a measured description that is based on the given description.
func measuredNotes(of *pipeline.Processor) []string {
	return append(slices.Clone(of.Notes),
		"DIV is the divider, which is busy with a division or square root for longer than the port",
		"SPLITLOAD and SPLITSTORE are the units that combine two lines, measured with streams of vectors in which every second vector crosses a line boundary",
		"levels were measured on one core of a virtual machine, with 2 MiB pages; the last cache is shared, and its size is the footprint at which it supplies half of the lines",
		"a store is dispatched as one micro-op, and so is a load with the only operation that uses it (Intel 64 and IA-32 Architectures Optimization Reference Manual, Micro-fusion)",
	)
}

var elementBits = map[string]int{"i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}

// bitsOf returns the width of a vector type in bits, or 0 for other types.
func bitsOf(typ string) int {
	count, element, ok := strings.Cut(strings.Trim(typ, "<>"), " x ")
	n, err := strconv.Atoi(count)
	if !ok || err != nil {
		return 0
	}
	return n * elementBits[element]
}

func scale(uses []pipeline.Use, by float64) {
	for i := range uses {
		uses[i].Cycles = math.Max(0.1, math.Round(uses[i].Cycles*by*10)/10)
	}
}

// cpuName returns the processor name that this machine reports.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "an unknown processor"
	}
	find := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `\s*: (.*)$`).FindSubmatch(text)
		if m == nil {
			return "?"
		}
		return string(m[1])
	}
	return find("model name") + ", family " + find("cpu family") + ", model " + find("model")
}
