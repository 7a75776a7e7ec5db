//go:build js && wasm

package idb

import (
	"errors"
	"slices"
	"syscall/js"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
)

func TestSpillStore(t *testing.T) {
	defer DeleteShelf("test", "k")
	var open *Shelf
	stacktest.RunShelf(t, func(keep bool) (stack.Shelf, error) {
		s, err := OpenShelf("test", "k", keep)
		open = s
		return s, err
	})
	open.Remove()
	if keys := Shelves("test"); len(keys) != 0 {
		t.Errorf("spill stores after the last spill store was removed = %q, want none", keys)
	}
}

// TestListAndDeleteSpillStores checks that spill stores are listed and deleted by their entry's
// key, and that the size of their data is counted.
func TestListAndDeleteSpillStores(t *testing.T) {
	for _, key := range []string{"k", "l shelf m"} {
		s, err := OpenShelf("test shelves", key, false)
		if err != nil {
			t.Fatal(err)
		}
		for block := range uint32(3) {
			if err := s.Write(1, block, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.Drop(1, 1), s.Drop(1, 1), s.Write(1, 0, make([]byte, 500)), s.Sync()); err != nil || s.Bytes() != 1500 {
			t.Errorf("%d bytes, %v", s.Bytes(), err)
		}
		s.Close()
	}
	keys := Shelves("test shelves")
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"k", "l shelf m"}) {
		t.Errorf("spill stores %q", keys)
	}
	for _, key := range keys {
		if err := DeleteShelf("test shelves", key); err != nil {
			t.Error(err)
		}
	}
	if keys := Shelves("test shelves"); len(keys) != 0 {
		t.Errorf("remaining spill stores = %q, want none", keys)
	}
}

// TestUnusedBlocksAreFreed checks that, if runs are read in turn, for example in a merge, blocks
// that were read in advance are discarded, and the browser keeps none of them.
func TestUnusedBlocksAreFreed(t *testing.T) {
	s, err := OpenShelf("test", "in vain", false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Remove()
	const blocks, bytes = 8, 1000
	for run := range uint32(2) {
		for block := range uint32(blocks) {
			if err := s.Write(run, block, make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	var read []js.Value // the arrays that were read from the database
	object, requests := js.Global().Get("Object"), js.Global().Get("IDBRequest").Get("prototype")
	whole := object.Call("getOwnPropertyDescriptor", requests, "result")
	get := js.FuncOf(func(request js.Value, _ []js.Value) any {
		result := whole.Get("get").Call("call", request)
		same := func(v js.Value) bool { return v.Equal(result) }
		if result.InstanceOf(js.Global().Get("Uint8Array")) && !slices.ContainsFunc(read, same) {
			read = append(read, result)
		}
		return result
	})
	defer get.Release()
	seen := object.Call("assign", object.New(), whole)
	seen.Set("get", get)
	object.Call("defineProperty", requests, "result", seen)
	defer object.Call("defineProperty", requests, "result", whole)
	for block := range uint32(blocks) {
		for run := range uint32(2) {
			if data, err := s.Read(run, block); err != nil || len(data) != bytes {
				t.Fatalf("block %d of run %d = %d bytes, %v, want the bytes that were written", block, run, len(data), err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		kept = 0
		for _, block := range read {
			kept += block.Get("byteLength").Int()
		}
		if kept == 0 || time.Now().After(end) {
			break
		}
	}
	if kept != 0 || len(read) <= 2*blocks {
		t.Errorf("the browser keeps %d bytes of %d read blocks, want 0 bytes, and more than %d blocks, some of which were read ahead but not used", kept, len(read), 2*blocks)
	}
}
