package sgt

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

var (
	someText = rapid.SampledFrom([]string{"", "main", "a.c", "for.body", "double", "<4 x float>", "fadd", "ü\x00\n", strings.Repeat("long ", 60)})
	siteKind = rapid.Custom(func(t *rapid.T) trace.Kind {
		return trace.Kind(rapid.Uint8().Filter(func(k uint8) bool { return isSiteKind(trace.Kind(k)) }).Draw(t, "kind"))
	})
)

func somePlace(t *rapid.T) trace.Place {
	return trace.Place{File: someText.Draw(t, "file"), Line: rapid.Uint32().Draw(t, "line"), Column: rapid.Uint32().Draw(t, "column")}
}

// listOf returns a random list. An empty list is nil, like the empty lists that readers return.
func listOf[T any](t *rapid.T, most int, draw func(*rapid.T) T) []T {
	all := rapid.SliceOfN(rapid.Custom(draw), 0, most).Draw(t, "list")
	if len(all) == 0 {
		return nil
	}
	return all
}

// someModule returns a random program with one module.
func someModule(t *rapid.T) *trace.Program {
	p := &trace.Program{Modules: []trace.Module{{
		Name: someText.Draw(t, "name"), Options: someText.Draw(t, "options"),
		Base: rapid.Uint64().Draw(t, "base"), End: rapid.Uint64().Draw(t, "end"),
		Missed: listOf(t, 2, func(t *rapid.T) trace.Missed {
			return trace.Missed{What: someText.Draw(t, "what"), Why: someText.Draw(t, "why"), Count: rapid.Uint32().Draw(t, "count")}
		}),
		Sources: listOf(t, 2, func(t *rapid.T) trace.SourceFile {
			return trace.SourceFile{Name: someText.Draw(t, "name"), Packed: someText.Draw(t, "packed")}
		}),
	}}}
	blocks := rapid.Uint32Range(0, 8).Draw(t, "blocks")
	p.Functions = listOf(t, 3, func(t *rapid.T) trace.Function {
		first := rapid.Uint32Range(0, blocks).Draw(t, "first")
		return trace.Function{
			Name: someText.Draw(t, "name"), Place: somePlace(t),
			First: first, Blocks: rapid.Uint32Range(0, blocks-first).Draw(t, "blocks"),
			Outline: rapid.Bool().Draw(t, "outline"), Target: trace.Target(rapid.Uint32().Draw(t, "target")).Known(),
		}
	})
	hasInstrs := rapid.Bool().Draw(t, "has instructions")
	for b := range blocks {
		someBlock(t, p, b, blocks, hasInstrs)
	}
	p.Objects = listOf(t, 3, func(t *rapid.T) trace.Object {
		return trace.Object{Name: someText.Draw(t, "name"), Bytes: rapid.Uint64().Draw(t, "bytes"), Type: someText.Draw(t, "type"), Place: somePlace(t)}
	})
	someStructures(t, p)
	return p
}

// someStructures adds structures to a program, and assigns them to some of its sites and objects.
func someStructures(t *rapid.T, p *trace.Program) {
	p.Structures = listOf(t, 3, func(t *rapid.T) trace.Structure {
		s, at := trace.Structure{Name: someText.Draw(t, "name")}, uint32(0)
		s.Members = listOf(t, 3, func(t *rapid.T) trace.Member {
			at += rapid.Uint32Range(0, 9).Draw(t, "skipped")
			m := trace.Member{Name: someText.Draw(t, "name"), Offset: at, Bytes: rapid.Uint32Range(1, 9).Draw(t, "bytes"), Type: someText.Draw(t, "type")}
			s.Bytes = max(s.Bytes, uint64(at+m.Bytes))
			return m
		})
		return s
	})
	all := uint32(len(p.Structures))
	for i := range p.Sites {
		if p.Sites[i].Structure = rapid.Uint32Range(0, all).Draw(t, "structure"); p.Sites[i].Structure > 0 {
			p.Sites[i].Offset = rapid.Uint32().Draw(t, "offset")
		}
	}
	for i := range p.Objects {
		p.Objects[i].Structure = rapid.Uint32Range(0, all).Draw(t, "structure")
	}
}

func someBlock(t *rapid.T, p *trace.Program, number, blocks uint32, hasInstrs bool) {
	b := trace.Block{
		Function: trace.NoFunction, Label: someText.Draw(t, "label"), Part: rapid.Uint32().Draw(t, "part"),
		Flags: trace.BlockFlags(rapid.Uint32().Draw(t, "flags")), Loop: rapid.Uint32Range(0, blocks).Draw(t, "loop"),
		Depth: rapid.Uint32().Draw(t, "depth"), File: someText.Draw(t, "file"),
		FirstLine: rapid.Uint32().Draw(t, "line"), LastLine: rapid.Uint32().Draw(t, "line"),
		Successors: listOf(t, 3, func(t *rapid.T) uint32 { return rapid.Uint32Range(0, blocks-1).Draw(t, "successor") }),
		Callee:     someText.Draw(t, "callee"), FirstSite: uint32(len(p.Sites)),
		Ops: listOf(t, 3, func(t *rapid.T) trace.Op {
			return trace.Op{Opcode: someText.Draw(t, "opcode"), Type: someText.Draw(t, "type"), Count: rapid.Uint32().Draw(t, "count")}
		}),
	}
	if len(p.Functions) > 0 && rapid.Bool().Draw(t, "in a function") {
		b.Function = rapid.Uint32Range(0, uint32(len(p.Functions)-1)).Draw(t, "function")
	}
	sites := listOf(t, 4, func(t *rapid.T) trace.Site {
		return trace.Site{
			Kind: siteKind.Draw(t, "kind"), Bytes: rapid.Uint32().Draw(t, "bytes"), Block: number, PC: rapid.Uint64().Draw(t, "PC"),
			Place: somePlace(t), Type: someText.Draw(t, "type"), Object: someText.Draw(t, "object"), Flags: trace.SiteFlags(rapid.Uint32().Draw(t, "flags")),
		}
	})
	b.Sites, p.Sites = uint32(len(sites)), append(p.Sites, sites...)
	if hasInstrs {
		n := rapid.Int32Range(1, 4).Draw(t, "instructions")
		for range n {
			b.Instrs = append(b.Instrs, trace.Instr{
				Opcode: someText.Draw(t, "opcode"), Type: someText.Draw(t, "type"), Site: rapid.Uint32Range(0, b.Sites).Draw(t, "site"),
				Uses: listOf(t, 3, func(t *rapid.T) int32 { return rapid.Int32Range(-1-n, n-1).Draw(t, "use") }),
			})
		}
	}
	p.Blocks = append(p.Blocks, b)
}

// numberedOn appends a program with one module to another program. numberedOn is a reference
// implementation of how ParseModule numbers the tables.
func numberedOn(into, module *trace.Program) {
	m, f, b, s := uint32(len(into.Modules)), uint32(len(into.Functions)), uint32(len(into.Blocks)), uint32(len(into.Sites))
	structures := uint32(len(into.Structures))
	into.Modules = append(into.Modules, module.Modules...)
	for _, function := range module.Functions {
		function.Module += m
		function.First += b
		into.Functions = append(into.Functions, function)
	}
	for _, block := range module.Blocks {
		if block.Function != trace.NoFunction {
			block.Function += f
		}
		if block.Loop != 0 {
			block.Loop += b
		}
		block.Successors = append([]uint32(nil), block.Successors...)
		for i := range block.Successors {
			block.Successors[i] += b
		}
		block.FirstSite += s
		into.Blocks = append(into.Blocks, block)
	}
	for _, site := range module.Sites {
		site.Block += b
		if site.Structure > 0 {
			site.Structure += structures
		}
		into.Sites = append(into.Sites, site)
	}
	for _, object := range module.Objects {
		if object.Structure > 0 {
			object.Structure += structures
		}
		into.Objects = append(into.Objects, object)
	}
	into.Structures = append(into.Structures, module.Structures...)
}

func TestModulesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got, want trace.Program
		for range rapid.IntRange(1, 3).Draw(t, "modules") {
			module := someModule(t)
			if err := ParseModule(AppendModule(nil, module), &got); err != nil {
				t.Fatal(err)
			}
			numberedOn(&want, module)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// TestLargeModulesAreCompressed checks that the tables for repetitive code are compressed.
func TestLargeModulesAreCompressed(t *testing.T) {
	p := &trace.Program{Modules: make([]trace.Module, 1)}
	for range 1000 {
		p.Blocks = append(p.Blocks, trace.Block{Function: trace.NoFunction, Label: "for.body", File: "a.c"})
	}
	body := AppendModule([]byte("before"), p)
	if string(body[:6]) != "before" || body[6] != packedLZ4 || len(body) > 500 {
		t.Errorf("AppendModule: %d bytes, compression %d, want compressed tables after the existing bytes", len(body), body[6])
	}
	var got trace.Program
	if err := ParseModule(body[6:], &got); err != nil || !reflect.DeepEqual(got, *p) {
		t.Errorf("ParseModule: error %v, or different blocks", err)
	}
}

// The function "tables" returns the compression byte, followed by the numbers as LEB128.
func tables(numbers ...uint64) []byte {
	body := []byte{packedPlain}
	for _, n := range numbers {
		body = binary.AppendUvarint(body, n)
	}
	return body
}

func TestInvalidTables(t *testing.T) {
	block := func(numbers ...uint64) []byte { // returns an empty module followed by one block
		return tables(append([]uint64{1, 0, 0, 0, 0, 0, 0, 0, 1}, numbers...)...)
	}
	for _, c := range []struct {
		want string
		body []byte
	}{
		{`tables at byte 0: number of remaining bytes is 0, want a complete LEB128 number`, nil},
		{`tables at byte 0: compression is 2, want less than 2`, []byte{2}},
		{`tables at byte 0: compression is 128, want less than 2`, []byte{0x80, 0}},
		{`tables cannot be decompressed: `, []byte{1, 9, 9, 9, 9, 9}},
		{`tables at byte 0: number of strings is 4096, want at most 0 for the remaining bytes`, tables(4096)},
		{`tables at byte 1: number of remaining bytes is 3, want a complete LEB128 number`, tables(1, 1<<40)[:5]},
		{`tables at byte 1: number of bytes of a text is 1099511627776, want at most 0 for the remaining bytes`, tables(1, 1<<40)},
		{`tables at byte 2: string is 1, want less than 1`, tables(1, 0, 1)},
		{`tables at byte 9: function of a block is 1, want less than 1`, block(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{`tables at byte 13: loop is 2, want less than 2`, block(0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{`kind of a site is 6, want a reference or an event`, block(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{`kind of a site is 8, want a reference or an event`, block(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{`number of structures is 7, want at most 0 for the remaining bytes`, tables(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7)},
		{`end of a member is 9, want members in ascending order, within the 8 bytes`, tables(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 1, 0, 4, 5, 0)},
		{`end of a member is 4, want members in ascending order, within the 8 bytes`, tables(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 2, 0, 4, 4, 0, 0, 0, 4, 0)},
		{`structure is 2, want less than 2`, tables(1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 2)},
		{`number of bytes after the end is 1, want 0`, tables(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7)},
		{`end of a function's block range is 5, want at most 0`, tables(1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0)},
		{`number of instruction lists is 1, want 0, or one for each of the 0 blocks`, tables(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)},
	} {
		var p trace.Program
		err := ParseModule(c.body, &p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got\n%v\nwant\n%s", c.body, err, c.want)
		}
		if !reflect.DeepEqual(p, trace.Program{}) {
			t.Errorf("%v: the error changed the program to %+v", c.body, p)
		}
	}
}

func TestTooManyValues(t *testing.T) {
	p := &trace.Program{Modules: make([]trace.Module, 1), Blocks: []trace.Block{{Function: trace.NoFunction, Sites: 25}}}
	for range 25 {
		p.Sites = append(p.Sites, trace.Site{Kind: trace.Load}) // the site has two values: the address and the number of bytes
	}
	err := ParseModule(AppendModule(nil, p), &trace.Program{})
	if err == nil || !strings.Contains(err.Error(), "number of values of a block is 50, want at most 48") {
		t.Errorf("got %v, want an error about too many values", err)
	}
}

func FuzzParseModule(f *testing.F) {
	for seed := range 8 {
		p := rapid.Custom(someModule).Example(seed)
		f.Add(AppendModule(nil, p))
		f.Add(append([]byte{packedPlain}, appendTables(nil, p)...))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p, again trace.Program
		if ParseModule(body, &p) != nil {
			return
		}
		if err := ParseModule(AppendModule(nil, &p), &again); err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%v\nparsed  %+v\nwritten %+v", err, p, again)
		}
	})
}

// prefixValue is a reference implementation that reads a prefix varint bit by bit.
func prefixValue(b []byte) (v uint64, n int) {
	t := 0
	for t < 8 && b[0]>>t&1 == 0 {
		t++
	}
	for bit := 0; bit < 8*(t+1); bit++ {
		if from := bit - t - 1; b[bit/8]>>(bit%8)&1 != 0 && from >= 0 && t < 8 {
			v |= 1 << from
		}
		if from := bit - 8; t == 8 && from >= 0 {
			v |= uint64(b[bit/8]>>(bit%8)&1) << from
		}
	}
	return v, t + 1
}

func TestPrefixEncodedNumbers(t *testing.T) {
	for bits, bytes := range map[int]int{0: 1, 7: 1, 8: 2, 14: 2, 15: 3, 49: 7, 50: 8, 56: 8, 57: 9, 64: 9} {
		v := uint64(math.MaxUint64) >> (64 - bits)
		if got := appendPrefix(nil, v); len(got) != bytes {
			t.Errorf("2^%d - 1 takes %d bytes, want %d", bits, len(got), bytes)
		}
	}
	if got := appendPrefix(nil, 5); !bytes.Equal(got, []byte{11}) {
		t.Errorf("appendPrefix(5) = %v, want 2·5 + 1", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Uint64().Draw(t, "value") >> rapid.IntRange(0, 63).Draw(t, "shift")
		b := appendPrefix(nil, want)
		if got, n := prefixValue(b); got != want || n != len(b) {
			t.Fatalf("%d is written as %v, which is read as %d from %d bytes", want, b, got, n)
		}
		if back := unzigzag(zigzag(want)); back != want {
			t.Fatalf("unzigzag(zigzag(%d)) = %d", want, back)
		}
	})
}

func TestFrames(t *testing.T) {
	// The expected value is the CRC-32C of "123456789", the standard test vector of CRC-32C.
	got := AppendFrame([]byte("x"), "1234", []byte("56789"))
	want := []byte("x\x53\x2a\x4d\x18\x0d\x00\x00\x00123456789\x83\x92\x06\xe3")
	if !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
}
