package blocks

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// twoModules returns a program of two modules, in which a function of the first module calls a
// function of the second module.
func twoModules() *trace.Program {
	return &trace.Program{
		Modules: []trace.Module{{Name: "/home/who/src/a.c", Options: "-I/home/who", Missed: []trace.Missed{{What: "f", Why: "inline assembly", Count: 2}}}, {Name: "/home/who/src/b.c"}},
		Functions: []trace.Function{
			{Name: "main", Place: trace.Place{File: "/home/who/src/a.c", Line: 3}, First: 0, Blocks: 2},
			{Name: "work", Module: 1, Place: trace.Place{File: "/home/who/src/b.c", Line: 9}, First: 2, Blocks: 2, Outline: true},
		},
		Blocks: []trace.Block{
			{Function: 0, Label: "entry", Flags: trace.EntryBlock, Callee: "work", Successors: []uint32{1}, File: "/home/who/src/a.c", FirstLine: 4, LastLine: 5},
			{Function: 0, Label: "entry", Part: 1, Flags: trace.ReturnBlock, Ops: []trace.Op{{Opcode: "ret", Type: "i32", Count: 1}}},
			{Function: 1, Label: "entry", Flags: trace.EntryBlock, Successors: []uint32{3, 3}, Sites: 1},
			{Function: 1, Label: "loop", Flags: trace.HeaderBlock | trace.LatchBlock | trace.ReturnBlock, Loop: 4, Depth: 1, Successors: []uint32{3}, FirstSite: 1, Sites: 1,
				Ops: []trace.Op{{Opcode: "load", Type: "double", Count: 1}}, Instrs: []trace.Instr{{Opcode: "load", Type: "double", Uses: []int32{-1}, Site: 1}}},
		},
		Sites: []trace.Site{
			{Kind: trace.Store, Bytes: 8, Block: 2, Place: trace.Place{File: "/home/who/src/b.c", Line: 10}, Type: "double", Object: "x"},
			{Kind: trace.Load, Bytes: 8, Block: 3, Place: trace.Place{File: "/home/who/src/b.c", Line: 11}, Type: "double"},
		},
	}
}

func ranTwice() *Run {
	p := twoModules()
	e := NewEdges(p)
	e.Visits = []uint64{2, 1, 2, 14}
	e.Taken = [][]uint64{{1}, {}, {2, 0}, {11}}
	e.Entered, e.Left, e.Resumed, e.Unmade = []uint64{2, 0}, []uint64{1, 1, 0, 3}, []uint64{0, 0, 0, 1}, []uint64{0, 0, 0, 0}
	return &Run{Program: p, Edges: e}
}

func TestRunsRoundTrip(t *testing.T) {
	r := ranTwice()
	if err := r.Edges.Check(r.Program); err != nil {
		t.Fatal(err)
	}
	written := r.Append(nil)
	if bytes.Contains(written, []byte("who")) {
		t.Error("the profile contains a path")
	}
	got, err := DecodeRun(written)
	if err != nil {
		t.Fatal(err)
	}
	want := twoModules()
	want.Modules[0].Name, want.Modules[0].Options, want.Modules[1].Name = "a.c", "", "b.c"
	want.Functions[0].Place.File, want.Functions[1].Place.File, want.Blocks[0].File = "a.c", "b.c", "a.c"
	want.Sites[0].Place.File, want.Sites[1].Place.File = "b.c", "b.c"
	if !reflect.DeepEqual(got.Program, want) {
		t.Errorf("DecodeRun: program %+v, want %+v", got.Program, want)
	}
	for _, pair := range [][2]any{{got.Edges.Visits, r.Edges.Visits}, {got.Edges.Left, r.Edges.Left}, {got.Edges.Resumed, r.Edges.Resumed}, {got.Edges.Entered, r.Edges.Entered}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("DecodeRun: counts %v, want %v", pair[0], pair[1])
		}
	}
	if again := got.Append(nil); !bytes.Equal(again, written) {
		t.Error("encoding the decoded run yields different bytes")
	}
}

func TestModuleProfilesRoundTrip(t *testing.T) {
	r := &Run{Program: twoModules()}
	r.Edges = NewEdges(r.Program)
	for _, want := range []*Profile{
		{Weights: [][]uint64{nil, nil, {3, 1 << 40}, {7}}, Entries: []uint64{0, 12}, Flow: []trace.Flow{{Block: 3, Instr: 1, FromBlock: 2, Before: 1}, {Block: 1, FromInstr: 4}}},
		{Weights: make([][]uint64, 4), Entries: make([]uint64, 2)},
	} {
		r.Profile = want
		written := r.Append(nil)
		got, err := DecodeRun(written)
		if err != nil || !reflect.DeepEqual(got.Profile, want) {
			t.Errorf("DecodeRun: profile %+v, error %v, want profile %+v", got, err, want)
		}
		for n := range written {
			if _, err := DecodeRun(written[:n]); err == nil {
				t.Errorf("DecodeRun accepted the first %d of %d bytes", n, len(written))
			}
		}
		if _, err := DecodeRun(append(written, 0)); err == nil {
			t.Error("DecodeRun accepted an extra byte")
		}
	}
}

func TestDecodeRunErrors(t *testing.T) {
	written := ranTwice().Append(nil)
	unbalanced := ranTwice()
	unbalanced.Edges.Left[0] = 7
	for _, test := range []struct {
		data []byte
		want string
	}{
		{nil, "ends too early"},
		{[]byte{9, 0, 0, 0, 0, 0}, "use a newer stackglass"},
		{AppendRun(nil, nil, ranTwice().Edges), "the program is missing"},
		{unbalanced.Append(nil), "block entry of main: ran 8 times, but was entered 2 times"},
		{append(bytes.Clone(written), 0), "unexpected data at the end"},
		{written[:len(written)-2], "want less than"},
	} {
		if _, err := DecodeRun(test.data); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("DecodeRun: error %v, want an error with %q", err, test.want)
		}
	}
}

// FuzzDecodeRun checks that decoding any bytes yields either an error, or a run that can be encoded
// and decoded again.
func FuzzDecodeRun(f *testing.F) {
	written := ranTwice().Append(nil)
	f.Add(written)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		damaged := bytes.Clone(written)
		damaged[rng.IntN(len(damaged))] ^= 1 << rng.IntN(8)
		f.Add(damaged)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRun(data)
		if err != nil {
			return
		}
		again, err := DecodeRun(r.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again.Edges, r.Edges) {
			t.Fatal("the run differs after it was encoded and decoded again")
		}
	})
}
