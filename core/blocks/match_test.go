package blocks

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

func TestDifferentBuild(t *testing.T) {
	for want, change := range map[string]func(*trace.Program){
		"fib: the trace is from a different build: block more in the LLVM IR is block else in the trace": func(p *trace.Program) { p.Blocks[3].Label = "else" },
		`block more calls "fib" in the LLVM IR, but "fab" in the trace`:                                  func(p *trace.Program) { p.Blocks[3].Callee = "fab" },
		"block done has different instructions in the trace":                                             func(p *trace.Program) { p.Blocks[6].Ops = []trace.Op{{Opcode: "ret", Count: 1}} },
		"block more+2 has different successors in the trace":                                             func(p *trace.Program) { p.Blocks[5].Successors = []uint32{5} },
		"5 blocks in the LLVM IR, but 4 in the trace; trace the program compiled from":                   func(p *trace.Program) { p.Functions[1].Blocks-- },
		"main: the trace contains none of the functions in the LLVM IR":                                  func(p *trace.Program) { p.Functions[0].Name, p.Functions[1].Name = "a", "b" },
	} {
		p := fib()
		change(p)
		if err := NewMatch(fib(), p).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewMatch: error %v, want an error with %s", err, want)
		}
	}
	if m := NewMatch(fib(), fib()); m.Err() != nil || !slices.Equal(m.Blocks, []int32{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("matching a program with itself: error %v, blocks %v, want no error and blocks 0 to 6", m.Err(), m.Blocks)
	}
}

// TestDamagedTables checks that NewSystem returns a system or an error for damaged tables, and does
// not panic.
func TestDamagedTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		small := rapid.Uint32Range(0, 9)
		for range rapid.IntRange(1, 5).Draw(t, "damages") {
			n, b := rapid.IntRange(0, len(p.Functions)-1).Draw(t, "function"), rapid.IntRange(0, len(p.Blocks)-1).Draw(t, "block")
			switch rapid.IntRange(0, 5).Draw(t, "damage") {
			case 0:
				p.Functions[n].First = small.Draw(t, "first")
			case 1:
				p.Functions[n].Blocks = small.Draw(t, "blocks")
			case 2:
				p.Blocks[b].Function = small.Draw(t, "of")
			case 3:
				p.Blocks[b].Successors = append(slices.Clone(p.Blocks[b].Successors), small.Draw(t, "to"))
			case 4:
				p.Blocks[b].Loop, p.Blocks[b].Depth = small.Draw(t, "loop"), small.Draw(t, "depth")
			default:
				p.Blocks[b].FirstSite, p.Blocks[b].Sites = small.Draw(t, "site"), small.Draw(t, "sites")
			}
		}
		s, err := NewSystem(p)
		if err != nil {
			return
		}
		NewMatch(p, p)
		s.Guess()
		s.EnterMain()
		s.AppendSheet(nil, "")
		c, err := s.Solve()
		if err != nil {
			return
		}
		w := NewWork(p)
		w.Program(c)
		w.Opcodes(c, 0, len(p.Functions))
		if _, _, err := s.Sensitivity(c, w.Costs(0)); err != nil {
			t.Fatal(err)
		}
	})
}
