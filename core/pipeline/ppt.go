package pipeline

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// pptClasses are the classes of PPT's hardware files.
var pptClasses = []Class{IAdd, FAdd, IDiv, FDiv, IMul, FMul, Load, Store, ALU, Branch, Unknown}

// A pptClass is what a hardware file says of a class.
type pptClass struct {
	pipelines           float64
	latency, throughput float64 // seconds or cycles; negative: not said
	line                int
}

// isPPT tells a hardware file of PPT: Python in which names are given values, the
// pipelines among them.
func isPPT(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(line, " \t'\"{")
		line = strings.TrimPrefix(line, "self.")
		if strings.HasPrefix(line, "pipelinecounts") || strings.HasPrefix(line, "pipelinelatencies") || strings.HasPrefix(line, "pipelinethroughputs") {
			return true
		}
	}
	return false
}

// readPPT reads the pipelines of a hardware file of PPT (github.com/lanl/PPT): three
// dictionaries, pipelinecounts, pipelinelatencies and pipelinethroughputs, with a number
// for each of PPT's eleven classes. A class has as many ports of its own as it has
// pipelines, and each is held for the throughput. PPT writes times in seconds, as
// 3.0 / clockspeed; numbers above a millionth are taken as cycles.
func readPPT(text string) (*Processor, error) {
	p := &Processor{Name: "ppt", Title: "a hardware file of PPT", Source: "a hardware file of PPT"}
	classes := map[Class]*pptClass{}
	for _, class := range pptClasses {
		classes[class] = &pptClass{latency: -1, throughput: -1}
	}
	s := pptScanner{text: text, line: 1}
	for s.next() {
		switch s.name {
		case "clockspeed", "clock_speed":
			if hertz, ok := s.number(); ok && hertz > 0 {
				p.ClockGHz, s.clock = hertz/1e9, hertz
			}
		case "pipelinecounts", "pipelinelatencies", "pipelinethroughputs":
			name, first := s.name, s.line
			n, err := s.dictionary(func(key string, x float64, line int) error {
				c := classes[Class(key)]
				if c == nil {
					return &Error{line, "class " + strconv.Quote(clip(key)) + " is not one of PPT's: iadd, fadd, idiv, fdiv, imul, fmul, load, store, alu, br, unknown"}
				}
				if x < 0 || x > mostCycles || math.IsNaN(x) {
					return &Error{line, name + " of " + key + " is " + decimal(x) + ", want 0 to 1000000"}
				}
				switch c.line = line; name {
				case "pipelinecounts":
					c.pipelines = x
				case "pipelinelatencies":
					c.latency = x
				default:
					c.throughput = x
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, &Error{first, name + " has no numbers, want a dictionary of classes"}
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
			return &Error{c.line, string(class) + " has pipelines and no latency"}
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
		"PPT's files do not say how many instructions enter the core a cycle: as many as there are pipelines",
		"each class has pipelines of its own, which real cores share among classes",
	}
	if missing := slices.DeleteFunc(slices.Clone(pptClasses), func(c Class) bool { return classes[c].line > 0 }); len(missing) > 0 {
		names := ""
		for _, c := range missing {
			names += " " + string(c)
		}
		p.Notes = append(p.Notes, "classes without numbers:"+names)
	}
	return p.check()
}

// pptScanner finds what a Python file gives names: `name = value` and `'name': value`.
type pptScanner struct {
	text  string
	at    int
	line  int
	name  string
	clock float64 // in hertz, once it was there
	depth int     // of brackets
}

// next goes to the next value that a name is given.
func (s *pptScanner) next() bool {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		case c == '\n':
			s.line++
			s.at++
		case isNameByte(c):
			from := s.at
			for s.at < len(s.text) && isNameByte(s.text[s.at]) {
				s.at++
			}
			s.name = s.text[from:s.at]
			s.blank(`"']`)
			if s.at < len(s.text) && (s.text[s.at] == '=' || s.text[s.at] == ':') {
				s.at++
				return true
			}
		default:
			s.at++
		}
	}
	return false
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// blank goes over blanks, comments, ends of lines, and some bytes more.
func (s *pptScanner) blank(more string) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.line++
		case c == '#':
			for s.at+1 < len(s.text) && s.text[s.at+1] != '\n' {
				s.at++
			}
		case strings.IndexByte(" \t\r\\"+more, c) >= 0:
		default:
			return
		}
		s.at++
	}
}

// number reads a number, or a product or power of numbers (2.5*10**9).
func (s *pptScanner) number() (float64, bool) {
	x, ok := s.power()
	for ok {
		s.blank("")
		if s.at >= len(s.text) || s.text[s.at] != '*' && s.text[s.at] != '/' {
			break
		}
		by := s.text[s.at]
		s.at++
		if by == '*' && strings.HasPrefix(s.text[s.at:], "*") {
			return x, false
		}
		var y float64
		if y, ok = s.power(); by == '/' {
			y = 1 / y
		}
		x *= y
	}
	return x, ok
}

func (s *pptScanner) power() (float64, bool) {
	s.blank("")
	if s.at < len(s.text) && s.text[s.at] == '(' {
		if s.depth++; s.depth > 32 {
			return 0, false
		}
		s.at++
		x, ok := s.number()
		s.depth--
		s.blank("")
		if ok = ok && s.at < len(s.text) && s.text[s.at] == ')'; ok {
			s.at++
		}
		return x, ok
	}
	if strings.HasPrefix(s.text[s.at:], "clockspeed") && s.clock > 0 {
		s.at += len("clockspeed")
		return s.clock, true
	}
	from := s.at
	for s.at < len(s.text) {
		c := s.text[s.at]
		sign := (c == '-' || c == '+') && (s.at == from || s.text[s.at-1] == 'e' || s.text[s.at-1] == 'E')
		if !sign && c != '.' && c != 'e' && c != 'E' && (c < '0' || c > '9') {
			break
		}
		s.at++
	}
	x, err := strconv.ParseFloat(s.text[from:s.at], 64)
	if err != nil {
		return 0, false
	}
	before, line := s.at, s.line
	if s.blank(""); strings.HasPrefix(s.text[s.at:], "**") {
		s.at += 2
		y, ok := s.power()
		return math.Pow(x, y), ok
	}
	s.at, s.line = before, line
	return x, true
}

// dictionary reads {"iadd": 4, …} and counts its numbers.
func (s *pptScanner) dictionary(each func(key string, x float64, line int) error) (n int, err error) {
	s.blank("")
	if s.at >= len(s.text) || s.text[s.at] != '{' {
		return 0, nil
	}
	s.at++
	for n <= 64 {
		s.blank(`,"'`)
		from := s.at
		for s.at < len(s.text) && isNameByte(s.text[s.at]) {
			s.at++
		}
		key := s.text[from:s.at]
		if key == "" {
			break
		}
		line := s.line
		s.blank(`"':`)
		x, ok := s.number()
		if !ok {
			return n, &Error{line, "the value of " + strconv.Quote(clip(key)) + " is no number"}
		}
		if err := each(key, x, line); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
