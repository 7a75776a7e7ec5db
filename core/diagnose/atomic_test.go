package diagnose

import (
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// TestAdviceForAtomicOperations checks that a finding proposes private copies only if the program
// does not use the results of the atomic operations.
func TestAdviceForAtomicOperations(t *testing.T) {
	add := trace.Instr{Opcode: "atomicrmw", Type: "i64", Site: 1}
	compare := trace.Instr{Opcode: "icmp", Type: "i64", Uses: []int32{-1}}
	decide := trace.Instr{Opcode: "br", Type: "i1", Uses: []int32{0}}
	count := []trace.Instr{{Opcode: "add", Type: "i64", Uses: []int32{-1}}, {Opcode: "icmp", Type: "i64", Uses: []int32{0, -1}}, {Opcode: "br", Type: "i1", Uses: []int32{1}}}
	narrow := []trace.Instr{{Opcode: "add", Type: "i32", Uses: []int32{-1}}, {Opcode: "icmp", Type: "i32", Uses: []int32{0, -1}}, {Opcode: "br", Type: "i1", Uses: []int32{1}}}
	for name, c := range map[string]struct {
		atomic, next []trace.Instr
		want         string
	}{
		"a ticket that the same block compares":                        {[]trace.Instr{add, {Opcode: "icmp", Type: "i64", Uses: []int32{0}}}, nil, takeMore},
		"a ticket that the next block compares":                        {[]trace.Instr{add}, []trace.Instr{compare, decide}, takeMore},
		"a sum next to a counter of the same type":                     {[]trace.Instr{add}, count, takeOrKeep},
		"a sum next to a counter of another type":                      {[]trace.Instr{add}, narrow, keepCopies},
		"a sum whose result is not used":                               {[]trace.Instr{add}, []trace.Instr{{Opcode: "br"}}, keepCopies},
		"a result that code at -O0 stores":                             {[]trace.Instr{add, {Opcode: "store", Type: "i64", Uses: []int32{0, -1}}}, nil, takeOrKeep},
		"an address that may use the result":                           {[]trace.Instr{add}, []trace.Instr{{Opcode: "getelementptr", Type: "ptr", Uses: []int32{-1, -1}}}, takeOrKeep},
		"a loop that repeats a compare-and-exchange until it succeeds": {[]trace.Instr{{Opcode: "cmpxchg", Type: "i64", Site: 1}}, nil, takeOrKeep},
		"an atomic store, which returns no result":                     {[]trace.Instr{{Opcode: "store", Type: "i64", Uses: []int32{-1, -1}, Site: 1}}, nil, keepCopies},
		"a result that only another function reads":                    {[]trace.Instr{add}, []trace.Instr{{Opcode: "ret", Type: "i64", Uses: []int32{-1}}}, takeMore},
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
			t.Errorf("%s: atomicFix = %q, want %q", name, got, c.want)
		}
	}
}

// TestAdviceForUpdateUnderLock checks the advice about a number that threads update while they hold
// a lock.
func TestAdviceForUpdateUnderLock(t *testing.T) {
	read, add := trace.Instr{Opcode: "load", Type: "i32", Site: 1, Uses: []int32{-1}}, trace.Instr{Opcode: "add", Type: "i32", Uses: []int32{0}}
	store := trace.Instr{Opcode: "store", Type: "i32", Site: 2, Uses: []int32{1, -1}}
	sum := []trace.Instr{{Opcode: "load", Type: "double", Site: 1, Uses: []int32{-1}}, {Opcode: "fadd", Type: "double", Uses: []int32{0, -1}}, {Opcode: "store", Type: "double", Site: 2, Uses: []int32{1, -1}}}
	compare := []trace.Instr{{Opcode: "icmp", Type: "i32", Uses: []int32{-1}}}
	for name, c := range map[string]struct {
		instrs, next []trace.Instr
		callee, want string
	}{
		"a ticket that the same block compares":   {[]trace.Instr{read, add, store, {Opcode: "icmp", Type: "i32", Uses: []int32{0}}}, nil, "pthread_mutex_lock", takeMoreLocked},
		"a count that the next block may compare": {[]trace.Instr{read, add, store}, compare, "__kmpc_critical", takeOrKeepLocked},
		"a count that no instruction uses":        {[]trace.Instr{read, add, store}, nil, "pthread_mutex_lock", keepCopies},
		"a sum":                                   {sum, compare, "pthread_mutex_lock", keepCopies},
		"a count without a lock":                  {[]trace.Instr{read, add, store}, compare, "puts", keepCopies},
	} {
		program := &trace.Program{
			Functions: []trace.Function{{}},
			Blocks:    []trace.Block{{Callee: c.callee, Successors: []uint32{1}}, {Instrs: c.instrs, Successors: []uint32{2}, Sites: 2}, {Instrs: c.next, FirstSite: 2}},
			Sites:     []trace.Site{{Kind: trace.Load, Block: 1, Bytes: 4}, {Kind: trace.Store, Block: 1, Bytes: 4}},
		}
		sites := []profile.Site{{Kind: trace.Load}, {Number: 1, Kind: trace.Store}}
		r := &run{p: &profile.Profile{Sites: &profile.Sites{Code: sites}}, cost: &costs{program: program}}
		if got := r.atomicFix(&place{sites: []int{0, 1}}); got != c.want {
			t.Errorf("%s: atomicFix = %q, want %q", name, got, c.want)
		}
	}
}
