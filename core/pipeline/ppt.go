package pipeline

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace/ppt/hardware"
)

// pptClasses lists the classes of PPT's hardware files.
var pptClasses = []Class{IAdd, FAdd, IDiv, FDiv, IMul, FMul, Load, Store, ALU, Branch, Unknown}

// pptNames lists the names of the dictionaries in a hardware file.
var pptNames = []string{"pipelinecounts", "pipelinelatencies", "pipelinethroughputs"}

// pptClass contains the numbers for one class in a hardware file.
type pptClass struct {
	pipelines           float64
	latency, throughput float64 // in seconds or cycles; negative if the file does not contain the number
	line                int
}

// isPPT reports whether text is a PPT hardware file: Python code with assignments that define the
// pipelines.
func isPPT(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t'\"{")
		line = strings.TrimPrefix(line, "self.")
		if slices.ContainsFunc(pptNames, func(name string) bool { return strings.HasPrefix(line, name) }) {
			return true
		}
	}
	return false
}

// readPPT reads the pipelines from a PPT hardware file (github.com/lanl/PPT). The file contains
// three dictionaries, pipelinecounts, pipelinelatencies and pipelinethroughputs, with a number for
// each of PPT's eleven classes. Each pipeline of a class becomes a separate port, which an
// instruction of the class occupies for the time in pipelinethroughputs. Times in PPT's files are
// in seconds, such as 3.0 / clockspeed. Numbers above 10⁻⁶ are treated as cycles.
func readPPT(text string) (*Processor, error) {
	p := &Processor{Name: "ppt", Title: "a PPT hardware file", Source: "a PPT hardware file"}
	classes := map[Class]*pptClass{}
	for _, class := range pptClasses {
		classes[class] = &pptClass{latency: -1, throughput: -1}
	}
	values := hardware.Read(text)
	for _, name := range []string{"clockspeed", "clock_speed"} {
		if v := values[name]; v.Kind == hardware.Number && v.Numbers[0] > 0 {
			p.ClockGHz = v.Numbers[0] / 1e9
		}
	}
	for _, name := range pptNames {
		v, found := values[name]
		if found && len(v.Members) == 0 {
			return nil, &Error{v.Line, name + " has no numbers, want a dictionary with a number for each class"}
		}
		for _, m := range v.Members {
			c := classes[Class(m.Key)]
			switch {
			case m.Value.Kind != hardware.Number:
				return nil, &Error{m.Value.Line, "the value of " + strconv.Quote(shorten(m.Key)) + " is not a number"}
			case c == nil:
				return nil, &Error{m.Value.Line, "class " + strconv.Quote(shorten(m.Key)) + " is unknown to PPT, want one of iadd, fadd, idiv, fdiv, imul, fmul, load, store, alu, br, unknown"}
			}
			x := m.Value.Numbers[0]
			if x < 0 || x > mostCycles || math.IsNaN(x) {
				return nil, &Error{m.Value.Line, name + " of " + m.Key + " is " + decimal(x) + ", want 0 to 1000000"}
			}
			switch c.line = m.Value.Line; name {
			case "pipelinecounts":
				c.pipelines = x
			case "pipelinelatencies":
				c.latency = x
			default:
				c.throughput = x
			}
		}
	}
	if err := p.takePPT(classes); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Processor) takePPT(classes map[Class]*pptClass) error {
	toCycles := func(x float64) float64 {
		if x > 0 && x < 1e-6 && p.ClockGHz > 0 {
			return math.Round(x*p.ClockGHz*1e9*1000) / 1000
		}
		return x
	}
	for _, class := range pptClasses {
		c := classes[class]
		if c.line == 0 {
			continue
		}
		n := int(c.pipelines)
		if c.pipelines != math.Trunc(c.pipelines) || n < 0 || n+len(p.Ports) > mostPorts {
			return &Error{c.line, "pipelinecounts of " + string(class) + " is " + decimal(c.pipelines) + ", want a whole number, at most 64 for all classes"}
		}
		if c.latency < 0 {
			return &Error{c.line, string(class) + " has pipelines but no latency"}
		}
		cost := Cost{Latency: toCycles(c.latency), MicroOps: 1}
		held := toCycles(max(c.throughput, 0))
		if n > 0 && held > 0 {
			set := uint64(0)
			for i := range n {
				set |= 1 << len(p.Ports)
				p.Ports = append(p.Ports, string(class)+strconv.Itoa(i))
			}
			cost.Uses = []Use{{Ports: set, Cycles: held}}
		}
		p.Set(Key{Class: class}, cost)
		p.Dispatch += n
	}
	if len(p.Ports) == 0 {
		return &Error{0, "no class has pipelines, want pipelinecounts, pipelinelatencies and pipelinethroughputs"}
	}
	p.Dispatch = min(max(p.Dispatch, 1), 64)
	p.Notes = []string{
		"PPT's files do not state how many instructions enter the core per cycle; stackglass assumes one per pipeline",
		"each class has its own pipelines; in real cores, classes share them",
	}
	if missing := slices.DeleteFunc(slices.Clone(pptClasses), func(c Class) bool { return classes[c].line > 0 }); len(missing) > 0 {
		names := ""
		for _, c := range missing {
			names += " " + string(c)
		}
		p.Notes = append(p.Notes, "classes without numbers:"+names)
	}
	return p.checkComplete()
}
