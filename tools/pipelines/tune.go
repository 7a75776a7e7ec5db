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
	// the instructions of one iteration, as a dependency chain and as independent copies; "" if the
	// snippet cannot be timed in this form
	chain, copies        string
	mixed                string  // a chain with a multiplication after each link
	linkCount, copyCount float64 // number of snippets in one iteration of the dependency chain, and in one iteration of the independent copies
	overhead             float64 // the part of the cycles per link that instructions other than the snippet take
	float                bool    // whether the registers contain floats rather than doubles
	latency, throughput  float64 // in cycles, as measured; 0: not measured
	mixedLatency         float64 // the latency in the mixed chain, in cycles, as measured
}

// One iteration of a probe's loop contains turns × repeats snippets, several for each result
// register. The cost of the loop itself is then negligible.
const (
	turns   = 8
	repeats = 5
)

var register = regexp.MustCompile(`%([xyz]mm)(\d+)|%[er]?[abc][xl]`)

// generalRegister returns the name of the k-th general-purpose register for results. The register
// has the same width as the given register.
func generalRegister(like string, k int) string {
	suffix := "d"
	switch like[1] {
	case 'r':
		suffix = ""
	case 'a', 'b', 'c':
		suffix = "b"
	}
	return "%r" + strconv.Itoa(8+k) + suffix
}

// probes returns the probes that measure the times of snippets. No probe measures the latency of an
// instruction whose operand and result are in different kinds of registers. Some instructions that
// depend on flags or addresses have no probe.
func probes(snippets []snippet) (list []probe) {
	for _, s := range snippets {
		if len(s.forms) == 0 {
			continue
		}
		class, typ, _ := strings.Cut(s.key, " ")
		p := probe{key: s.key, linkCount: turns * repeats, copyCount: turns * repeats, float: strings.Contains(typ, "float")}
		code := s.forms[0]
		switch pipeline.Class(class) {
		case pipeline.Gather, pipeline.Scatter:
			if !strings.Contains(code, "{%k1}") {
				continue
			}
			each := strings.Repeat(code+"\n", turns)
			if class == string(pipeline.Gather) {
				each = independentCopies(code)
			}
			p.copies = "vpxor %xmm1, %xmm1, %xmm1\n" // set all indices to zero
			for line := range strings.Lines(each) {
				p.copies += "kxnorw %k1, %k1, %k1\n" + line
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
			p.copies = strings.Repeat(mov+" $1234567, "+a+"\n"+code+"\n", turns)
			p.chain = mov + " $3, " + c + "\n" + strings.Repeat(code+"\n"+or+" $0x40000000, "+a+"\n", turns)
			p.overhead = 1
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
			for k, line := range slices.Collect(strings.Lines(independentCopies(code))) {
				p.copies += strings.Replace(line, "(%rsi)", strconv.Itoa(apart*k)+"(%rsi)", 1)
			}
			list = append(list, p)
			continue
		case pipeline.Store:
			p.copies = strings.Repeat(code+"\n", turns)
			list = append(list, p)
			continue
		}
		if strings.Contains(code, "\n") {
			continue
		}
		p.copies = independentCopies(code)
		p.chain = strings.Repeat(chainLink(code), turns)
		switch pipeline.Class(class) {
		case pipeline.Sqrt:
			p.chain = "" // a chain of square roots is not possible, because the results converge to 1
			fallthrough
		case pipeline.FAdd, pipeline.FDiv:
			// The units for additions and divisions forward results to themselves faster than to
			// other units.
			p.mixed = mixedChain(chainLink(code), p.float)
		}
		list = append(list, p)
	}
	return list
}

// registersIn returns the positions of the register names in an instruction.
func registersIn(code string) [][]int { return register.FindAllStringIndex(code, -1) }

// independentCopies returns copies of an instruction that write their results to different
// registers.
func independentCopies(code string) string {
	at := registersIn(code)
	if len(at) == 0 {
		return ""
	}
	last := at[len(at)-1]
	name := code[last[0]:last[1]]
	text := ""
	for k := range turns {
		result := generalRegister(name, k)
		if m := register.FindStringSubmatch(name); m[1] != "" {
			result = "%" + m[1] + strconv.Itoa(8+k)
		}
		text += code[:last[0]] + result + code[last[1]:] + "\n"
	}
	return text
}

// chainLink returns a copy of an instruction that writes its result to the register of its first
// operand, so that repeated copies form a dependency chain. It returns "" if the result and the
// operand are in different kinds of registers.
func chainLink(code string) string {
	at := registersIn(code)
	if len(at) == 0 {
		return ""
	}
	first, last := at[0], at[len(at)-1]
	from, to := register.FindStringSubmatch(code[first[0]:first[1]]), register.FindStringSubmatch(code[last[0]:last[1]])
	if (from[1] == "") != (to[1] == "") {
		return ""
	}
	if from[1] == "" && from[0][1] != to[0][1] {
		return "" // not possible for a sign or zero extension, whose operand is a part of a register
	}
	result := from[0]
	if to[1] != "" {
		result = "%" + to[1] + from[2]
	}
	return code[:last[0]] + result + code[last[1]:] + "\n"
}

// multiplicationLatency is the latency, in cycles, of a floating-point multiplication.
// Multiplications use the same registers as additions, divisions and square roots.
const multiplicationLatency = 4

// mixedChain returns a dependency chain with a multiplication after each link.
func mixedChain(link string, float bool) string {
	at := registersIn(link)
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

// escapeInline escapes assembly code for use as inline assembly in C.
var escapeInline = strings.NewReplacer("%", "%%", "{", "%{", "}", "%}")

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
			text.WriteString("\t\t\"" + escapeInline.Replace(strings.TrimSpace(line)) + "\\n\"\n")
		}
		text.WriteString("\t\t\"decq %0\\njne 1b\\n\" : \"+D\"(n) :: CLOBBERS);\n}\n")
	}
	calls := ""
	for i, p := range list {
		for _, part := range []struct{ kind, code string }{{"chain", p.chain}, {"mixed", p.mixed}, {"spread", p.copies}} {
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

// measureProcessor writes a description of a target that contains numbers measured on this machine.
func measureProcessor(dir, testdata, machine string) error {
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
	wide := slices.ContainsFunc(snippets, func(s snippet) bool { return len(s.forms) > 0 && strings.Contains(s.forms[0], "zmm") })
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
	for range 4 { // use the minimum of several runs, because other programs can only make a run slower
		out, err := exec.Command(filepath.Join(work, "probes")).Output()
		if err != nil {
			return err
		}
		if err := keepFastest(list, out); err != nil {
			return err
		}
	}
	tuned := withMeasurements(p, list)
	if err := addMemory(tuned, testdata); err != nil {
		return err
	}
	return writeMeasured(dir, tuned)
}

// keepFastest parses the output of the probes, and stores the fastest time of each probe so far.
func keepFastest(list []probe, out []byte) error {
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
			fastest(&p.latency, cycles/p.linkCount-p.overhead)
		case "mixed":
			fastest(&p.mixedLatency, cycles/p.linkCount-multiplicationLatency)
		default:
			fastest(&p.throughput, cycles/p.copyCount)
		}
	}
	return nil
}

// withMeasurements returns a description in which a measured number replaces the number from the
// tables wherever these two numbers clearly differ.
func withMeasurements(p *pipeline.Processor, list []probe) *pipeline.Processor {
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
		if m.mixedLatency > 0 {
			latency = m.mixedLatency
		}
		if latency > 0 && math.Abs(latency-c.Latency) > 0.4 {
			c.Latency = math.Max(1, math.Round(latency))
			c.Addend = 0
		}
		if m.latency > 0 && math.Round(m.latency) < c.Latency && m.mixedLatency > 0 {
			c.Again = math.Round(m.latency)
		}
		if bitsOf(k.Type) == 512 && m.throughput < 0.45 {
			m.throughput = 0 // the clock frequency may change with registers of this width; no core starts more than two such instructions per cycle
		}
		alone := pipeline.Processor{Name: "alone", Ports: p.Ports, Dispatch: p.Dispatch}
		alone.Set(k, c)
		bound := alone.Throughput(c)
		switch k.Class {
		case pipeline.FDiv, pipeline.Sqrt, pipeline.IDiv:
			if m.throughput > 0 {
				if m.throughput < bound {
					scale(c.Uses, m.throughput/bound)
				}
				c.Uses = append(c.Uses, pipeline.Use{Ports: divider, Cycles: math.Max(1, math.Round(m.throughput*2)/2)})
			}
		case pipeline.Store:
			c.MicroOps = 1
		default:
			if m.throughput > 1.2*bound || m.throughput > 0.45*bound && m.throughput < 0.8*bound {
				scale(c.Uses, m.throughput/bound)
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
		"levels were measured on one core of a virtual machine, with the pages that the system gives to programs; the last cache is shared, and consists of one level for each size of data whose times differ",
		"a store is dispatched as one micro-op; a load and the operation that uses its result are dispatched as one micro-op if no other operation uses the result (Intel 64 and IA-32 Architectures Optimization Reference Manual, Micro-fusion)",
	)
}

var elementBits = map[string]int{"i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}

// bitsOf returns the width in bits of a vector type, or 0 for other types.
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
