package sgt

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// restoredFrom returns a new container that is restored from the rows of another container.
func restoredFrom(t failer, file []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	in, r := NewReader("t", bytes.NewReader(file), Options{}), NewRestorer(&out, nil)
	in.Select(trace.AllKinds | trace.EventKinds)
	b := trace.NewBatch(37)
	var err error
	for err == nil {
		if err = in.Next(b); err == nil {
			err = r.Write(b, in.Header())
		}
	}
	if err != io.EOF {
		t.Fatalf("%v", err)
	}
	if err := r.Close(in.Header(), End{How: "exit"}); err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes()
}

// allRows returns all rows in a container, including all events.
func allRows(t failer, file []byte) (all trace.Batch, h trace.Header) {
	t.Helper()
	r := NewReader("t", bytes.NewReader(file), Options{})
	r.Select(trace.AllKinds | trace.EventKinds)
	b := trace.NewBatch(0)
	for {
		switch err := r.Next(b); err {
		case nil:
			all.Addr, all.Bytes, all.Kind = append(all.Addr, b.Addr...), append(all.Bytes, b.Bytes...), append(all.Kind, b.Kind...)
			all.Thread, all.Site, all.Arg = append(all.Thread, b.Thread...), append(all.Site, b.Site...), append(all.Arg, b.Arg...)
		case io.EOF:
			return all, r.Header()
		default:
			t.Fatalf("%v", err)
		}
	}
}

// TestRestoreIsExact checks that a restored container has the same program and the same rows, in
// the same order.
func TestRestoreIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		file := write(t, p, someSteps(t, p, 8), someChunks(t))
		want, told := allRows(t, file)
		got, again := allRows(t, restoredFrom(t, file))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%v\nwant\n%v", got, want)
		}
		if told.Program != nil && again.Program != nil && !likePrograms(again.Program, told.Program) {
			t.Fatalf("the program is\n%+v\nwant\n%+v", again.Program, told.Program)
		}
	})
}

// TestRestoreInvalidRows checks that rows without a program are imported, and that rows are
// rejected if they do not form complete executions of blocks.
func TestRestoreInvalidRows(t *testing.T) {
	var out bytes.Buffer
	r := NewRestorer(&out, nil)
	b := trace.NewBatch(2)
	b.Append(trace.Load, 64, 8, 0, 0)
	if err := r.Write(b, trace.Header{Format: "din"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(trace.Header{Format: "din"}, End{How: "converted"}); err != nil {
		t.Fatal(err)
	}
	if rows, _ := allRows(t, out.Bytes()); len(rows.Addr) != 1 && rows.Addr[0] != 64 {
		t.Errorf("imported the rows %v, want one row at address 64", rows)
	}

	p := &trace.Program{
		Modules: make([]trace.Module, 1), Blocks: []trace.Block{{Sites: 2, Function: trace.NoFunction}},
		Sites: []trace.Site{{Kind: trace.Load, Bytes: 8}, {Kind: trace.Store, Bytes: 8}},
	}
	entry, load, store := trace.BlockEntry, trace.Load, trace.Store
	for name, c := range map[string]struct {
		kinds []trace.Kind
		sites []uint32
	}{
		"no entry":         {[]trace.Kind{load}, []uint32{0}},
		"a different site": {[]trace.Kind{entry, store}, []uint32{0, 1}},
		"a different kind": {[]trace.Kind{entry, store}, []uint32{0, 0}},
		"cut":              {[]trace.Kind{entry, load}, []uint32{0, 0}},
		"entered again":    {[]trace.Kind{entry, load, entry}, []uint32{0, 0, 0}},
		"no such block":    {[]trace.Kind{entry}, []uint32{7}},
		"no such site":     {[]trace.Kind{load}, []uint32{7}},
	} {
		b := trace.NewBatch(8)
		b.NeedSite()
		for i, kind := range c.kinds {
			b.Append(kind, 64, 8, 0, 0)
			b.Site[i] = c.sites[i]
		}
		r := NewRestorer(io.Discard, nil)
		err := r.Write(b, trace.Header{Program: p})
		if err == nil {
			err = r.Close(trace.Header{Program: p}, End{})
		}
		if refused := new(RestoreError); !errors.As(err, &refused) {
			t.Errorf("%s: error %v, want a RestoreError", name, err)
		}
	}
}
