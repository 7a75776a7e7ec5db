package pipeline

import (
	"bytes"
	"strings"
	"testing"
)

func TestReadDescriptions(t *testing.T) {
	names := Processors()
	if len(names) < 8 {
		t.Fatalf("Processors() = %v, want at least eight names", names)
	}
	for _, name := range names {
		p, err := Named(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Name != name || p.Title == "" || !strings.Contains(p.Source, "llvm-mca") {
			t.Errorf("%s has the name %q, title %q and source %q", name, p.Name, p.Title, p.Source)
		}
		_, text, _ := bytes.Cut(Description(name), []byte("\n")) // skip the comment in the first line
		if got := p.Write(); !bytes.Equal(got, text) {
			t.Errorf("%s: Write does not return the text of the description", name)
		}
		for _, class := range pptClasses[:10] {
			for _, typ := range []string{"i32", "i64", "float", "double", "<4 x float>", "<4 x double>", "<8 x i32>", "<2 x i64>"} {
				if _, ok := p.cost(class, shapeOf(typ)); !ok && shapeOf(typ).isFloat() == strings.HasPrefix(string(class), "f") {
					t.Errorf("%s has no cost for %s %s", name, class, typ)
				}
			}
		}
	}
	if _, err := Named("abacus"); err == nil || !strings.Contains(err.Error(), "znver4") {
		t.Errorf("%v, want the available names", err)
	}
}

func TestBadDescriptions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `the entry "name:" is missing`},
		{"name: x\n", `the entry "ports:" is missing`},
		{"name: x\nports: P0\n", `the entry "dispatch:" is missing`},
		{"name: x\nports: P0\ndispatch: 4\n", `the entry "classes:" is missing`},
		{"name x\n", `line 1: "name x", want key: value`},
		{"name: x\nname: y\n", `line 2: duplicate key "name"`},
		{"speed: 3\n", `line 1: unknown key "speed", want name, title`},
		{"dispatch: many\n", `line 1: "many", want 1 to 64 micro-ops per cycle`},
		{"ports: P0 P0\n", `line 1: duplicate port "P0"`},
		{"ports:\n", `line 1: 0 ports, want 1 to 64`},
		{"ports: a|b\n", `line 1: a port named "a|b"`},
		{"fuses: all\n", `line 1: fuses "all", want compare-branch`},
		{"clock_ghz: -1\n", `line 1: "-1", want a number above 0`},
		{"classes:\n", `line 1: classes before ports`},
		{"classes: iadd\n", `line 1: "iadd" follows classes:`},
		{"\tname: x\n", "line 1: a tab, want spaces"},
		{"  name: x\n", `line 1: "name" is indented`},
		{"levels:\n  L1: soon\n", `line 2: "soon", want cycles above 0`},
		{"levels:\n  L1: size 4KiB\n", "line 2: L1 has no latency"},
		{"levels:\n  L1: latency 4, size 4 apples\n", `line 2: "4 apples", want a size such as 48KiB`},
		{"levels:\n  L1: latency 4, ways 0\n", `line 2: "0", want 1 to 65536 ways`},
		{"levels:\n  L1: latency 4, read 0\n", `line 2: "0", want cycles above 0`},
		{"levels:\n  L1: latency 4, colour 3\n", `line 2: " colour 3", want latency, size, ways`},
		{"scheduler: 0\n", `line 1: "0", want 1 to 1048576 micro-ops`},
		{"ports: P0\nclasses:\n  add: latency 1\n", `line 3: unknown class "add", want one of alu`},
		{"ports: P0\nclasses:\n  iadd i31: latency 1\n", `line 3: type "i31", want i32`},
		{"ports: P0\nclasses:\n  iadd: uops 1\n", "line 3: iadd has no latency"},
		{"ports: P0\nclasses:\n  iadd: latency 1, ports P1\n", `line 3: port "P1" is not defined, want one or more of P0`},
		{"ports: P0\nclasses:\n  iadd: latency 1, ports 0*P0\n", `line 3: "0", want cycles above 0`},
		{"ports: P0\nclasses:\n  iadd: latency x\n", `line 3: "x", want a latency of 0 to`},
		{"ports: P0\nclasses:\n  iadd: latency 1, speed 3\n", `line 3: " speed 3", want latency, addend`},
		{"ports: P0\nclasses:\n  iadd: latency 1, ports 300x P0\n", `line 3: "300", want 1 to 256`},
		{"ports: P0\nclasses:\n  iadd: latency 1\n  iadd: latency 2\n", "line 4: duplicate class iadd"},
		{"pipelinecounts = 4\n", "line 1: pipelinecounts has no numbers"},
		{"pipelinecounts = {\n 'cache': 4}\n", `line 2: class "cache" is unknown to PPT`},
		{"pipelinecounts = {'iadd': 4}\n", "line 1: iadd has pipelines but no latency"},
		{"pipelinecounts = {'iadd': four}\n", `line 1: the value of "iadd" is not a number`},
		{"pipelinecounts = {'iadd': 400}\npipelinelatencies = {'iadd': 1}\n", "line 2: pipelinecounts of iadd is 400"},
		{"pipelinelatencies = {'iadd': 1}\n", "no class has pipelines"},
		{strings.Repeat("#", mostBytes+1), "larger than 1 MiB"},
	} {
		_, err := Read([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Read(%.60q): error %v, want an error with %q", c.text, err, c.want)
		}
	}
}

// pptText is a hardware file in the layout of PPT's files.
const pptText = `# toy.py
'''
  A core.
'''
kb = 1024.0
clockspeed = (
        2.00 * 10 ** 9  # Hertz
)
cache_sizes = [32 * kb]
pipelinetypes = ["iadd", "fadd", "load", "br"]
pipelinecounts = {
        "iadd": 2,
        "fadd": 1, # one
        "load": 2,
        "br": 1,
}
pipelinelatencies = {  # in seconds
        "iadd": 1.000 / clockspeed,
        "fadd": 3.000 / clockspeed,
        "load": 4.000 / clockspeed,
        "br": 1.0 / clockspeed,
}
pipelinethroughputs = {
        "iadd": 0.500 / clockspeed,
        "fadd": 1.000 / clockspeed,
        "load": 1.000 / clockspeed,
        "br": 2.000 / clockspeed,
}
`

func TestReadPPT(t *testing.T) {
	p, err := Read([]byte(pptText))
	if err != nil {
		t.Fatal(err)
	}
	want := `name: ppt
title: a PPT hardware file
source: a PPT hardware file
clock_ghz: 2
dispatch: 6
ports: iadd0 iadd1 fadd0 load0 load1 br0
notes:
  - PPT's files do not state how many instructions enter the core per cycle; stackglass assumes one per pipeline
  - each class has its own pipelines; in real cores, classes share them
  - classes without numbers: idiv fdiv imul fmul store alu unknown
classes:
  iadd: latency 1, uops 1, ports 0.5*iadd0|iadd1
  fadd: latency 3, uops 1, ports fadd0
  load: latency 4, uops 1, ports load0|load1
  br: latency 1, uops 1, ports 2*br0
`
	if got := string(p.Write()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	s := p.NewBody(sum, Options{}).Steady()
	if s.Cycles != 3 || s.Recurrence != 3 || s.Ports != 2 {
		t.Errorf("%+v, want 3 cycles for the recurrence and 2 for the branch", s)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(toyText))
	f.Add([]byte(pptText))
	f.Add([]byte("name: x\nports: a b\ndispatch: 1\nclasses:\n  iadd <4 x i32>: latency 1, addend 1, again 1, uops 3, ports 2x a|b + 4*b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Read(text)
		if err != nil {
			return
		}
		for _, instrs := range [][]string{{"fadd", "double"}, {"sdiv", "<7 x i64>"}, {"llvm.fma", "<4 x float>"}} {
			class, _ := kindOf(&axpy[2])
			p.cost(class, shapeOf(instrs[1]))
		}
		b := p.NewBody(axpy, Options{})
		if s := b.Steady(); s.Cycles < 0 || len(s.Load) != len(p.Ports) {
			t.Errorf("%+v", s)
		}
	})
}

// TestLevels checks that the levels of a description are parsed and can be written in the same
// form.
func TestLevels(t *testing.T) {
	const levels = "levels:\n  L1: 4\n  L2: latency 14, size 1MiB, ways 16, read 1.5, written 3, scattered 1.4, stored 2.8\n  L3: latency 40, size 48KiB\n  memory: latency 300, read 6\n"
	p, err := Read([]byte(strings.Replace(toyText, "levels:\n  L1: 4\n", levels, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Levels[1], (Level{"L2", 14, 1 << 20, 16, 1.5, 3, 1.4, 2.8}); len(p.Levels) != 4 || got != want {
		t.Errorf("%d levels, and the second level is %+v; want 4 levels, and %+v", len(p.Levels), got, want)
	}
	if text := p.Write(); !bytes.Contains(text, []byte(levels)) {
		t.Errorf("written again:\n%s", text)
	}
}
