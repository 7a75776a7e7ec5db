package sgt

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// TestTablesRoundTrip checks that the tables that are written for successive headers together
// contain everything in the last header.
func TestTablesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p trace.Program
		var file []byte
		var tables Tables
		h := trace.Header{Program: &p}
		for range rapid.IntRange(1, 3).Draw(t, "headers") {
			for range rapid.IntRange(0, 2).Draw(t, "modules") {
				module := someModule(t)
				numberedOn(&p, module)
			}
			for i := range p.Objects {
				p.Objects[i].Addr = rapid.Uint64Range(0, 3).Draw(t, "address")
			}
			if rapid.Bool().Draw(t, "thread") {
				th := trace.Thread{Number: uint32(rapid.IntRange(0, 1).Draw(t, "number")), ID: rapid.Uint64().Draw(t, "ID"), Name: "a"}
				if i := slices.IndexFunc(p.Threads, func(old trace.Thread) bool { return old.Number == th.Number }); i >= 0 {
					p.Threads[i] = th
				} else {
					p.Threads = append(p.Threads, th)
				}
			}
			for range rapid.IntRange(0, 2).Draw(t, "tags") {
				p.Tags = append(p.Tags, "tag")
				h.Capture = append(h.Capture, trace.Fact{Name: "tool", Value: "test"})
			}
			file = tables.Append(file, h)
		}
		if again := tables.Append(nil, h); len(again) > 0 {
			t.Fatalf("Append wrote %d bytes for a header without new items", len(again))
		}
		r := NewFrames(bytes.NewReader(file))
		if _, err := r.Next(); err != io.EOF {
			t.Fatal(err)
		}
		got := r.Header()
		if got.Program == nil {
			got.Program = &trace.Program{}
		}
		if !reflect.DeepEqual(got.Capture, h.Capture) || !likePrograms(got.Program, &p) {
			t.Fatalf("got  %+v\nwant %+v", got.Program, &p)
		}
	})
}

// likePrograms reports whether two programs are equal, except for two permitted differences between
// their modules. A block without a function may belong to the module of the preceding block, and
// each module contains only the structures that it uses.
func likePrograms(got, want *trace.Program) bool {
	a, b := *got, *want
	a.Functions, b.Functions = slices.Clone(a.Functions), slices.Clone(b.Functions)
	for i := range min(len(a.Functions), len(b.Functions)) {
		a.Functions[i].Module, b.Functions[i].Module = 0, 0
	}
	return reflect.DeepEqual(structuresOf(&a), structuresOf(&b)) && reflect.DeepEqual(a, b)
}

// structuresOf returns the structures of a program's sites and objects, and removes these
// structures from the program.
func structuresOf(p *trace.Program) (list []trace.Structure) {
	all := append([]trace.Structure{{}}, p.Structures...)
	p.Structures, p.Sites, p.Objects = nil, slices.Clone(p.Sites), slices.Clone(p.Objects)
	for i := range p.Sites {
		list = append(list, all[p.Sites[i].Structure])
		p.Sites[i].Structure = 0
	}
	for i := range p.Objects {
		list = append(list, all[p.Objects[i].Structure])
		p.Objects[i].Structure = 0
	}
	return list
}

// TestTablesOmitUnorderedSites checks that a program is omitted if its sites are not in the same
// order as its blocks.
func TestTablesOmitUnorderedSites(t *testing.T) {
	p := &trace.Program{Blocks: make([]trace.Block, 2), Sites: []trace.Site{{Block: 0}, {Block: 1}}}
	var tables Tables
	if got := tables.Append(nil, trace.Header{Program: p}); len(got) > 0 {
		t.Errorf("Append wrote %d bytes for an unordered program, want 0", len(got))
	}
}
