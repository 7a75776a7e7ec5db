package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestAtomicFix checks that a finding proposes private copies only if the program does not use the
// results of the atomic operations.
func TestAtomicFix(t *testing.T) {
	add := trace.Instr{Opcode: "atomicrmw", Type: "i64", Site: 1}
	compare := trace.Instr{Opcode: "icmp", Type: "i64", Uses: []int32{-1}}
	decide := trace.Instr{Opcode: "br", Type: "i1", Uses: []int32{0}}
	count := []trace.Instr{{Opcode: "add", Type: "i64", Uses: []int32{-1}}, {Opcode: "icmp", Type: "i64", Uses: []int32{0, -1}}, {Opcode: "br", Type: "i1", Uses: []int32{1}}}
	narrow := []trace.Instr{{Opcode: "add", Type: "i32", Uses: []int32{-1}}, {Opcode: "icmp", Type: "i32", Uses: []int32{0, -1}}, {Opcode: "br", Type: "i1", Uses: []int32{1}}}
	for name, c := range map[string]struct {
		atomic, next []trace.Instr
		want         string
	}{
		"a ticket that the same block compares":     {[]trace.Instr{add, {Opcode: "icmp", Type: "i64", Uses: []int32{0}}}, nil, takeMore},
		"a ticket that the next block compares":     {[]trace.Instr{add}, []trace.Instr{compare, decide}, takeMore},
		"a sum next to a counter of the same type":  {[]trace.Instr{add}, count, takeOrKeep},
		"a sum next to a counter of another type":   {[]trace.Instr{add}, narrow, keepCopies},
		"a sum whose result is not used":            {[]trace.Instr{add}, []trace.Instr{{Opcode: "br"}}, keepCopies},
		"a result that code at -O0 stores":          {[]trace.Instr{add, {Opcode: "store", Type: "i64", Uses: []int32{0, -1}}}, nil, takeOrKeep},
		"an address that may use the result":        {[]trace.Instr{add}, []trace.Instr{{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, -1}}}, takeOrKeep},
		"a loop that exchanges until it succeeds":   {[]trace.Instr{{Opcode: "cmpxchg", Type: "i64", Site: 1}}, nil, takeOrKeep},
		"an atomic store, which returns no result":  {[]trace.Instr{{Opcode: "store", Type: "i64", Uses: []int32{-1, -1}, Site: 1}}, nil, keepCopies},
		"a result that only another function reads": {[]trace.Instr{add}, []trace.Instr{{Opcode: "ret", Type: "i64", Uses: []int32{-1}}}, takeMore},
	} {
		program := &trace.Program{
			Functions: []trace.Function{{}},
			Blocks:    []trace.Block{{Instrs: c.atomic, Successors: []uint32{1}, Sites: 1}, {Instrs: c.next, Successors: []uint32{0}, FirstSite: 1}},
			Sites:     []trace.Site{{Kind: trace.Modify, Flags: trace.AtomicSite}},
		}
		if c.next == nil {
			program.Blocks[1].Instrs = []trace.Instr{{Opcode: "br"}}
		}
		r := &run{p: &profile.Profile{Sites: &profile.Sites{Code: make([]profile.Site, 1)}}, cost: &costs{program: program}}
		if got := r.atomicFix(&place{sites: []int{0}}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
