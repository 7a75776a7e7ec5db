//go:build js && wasm

package idb

import (
	"errors"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
)

func TestShelf(t *testing.T) {
	defer DeleteShelf("test", "k")
	var open *Shelf
	stacktest.RunShelf(t, func(asItIs bool) (stack.Shelf, error) {
		s, err := OpenShelf("test", "k", asItIs)
		open = s
		return s, err
	})
	open.Remove()
	if keys := Shelves("test"); len(keys) != 0 {
		t.Errorf("shelves %q after the last was removed", keys)
	}
}

// Shelves are listed by the entry that they are of, and deleted by it; what lies on
// them is counted.
func TestShelves(t *testing.T) {
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
		t.Errorf("shelves %q", keys)
	}
	for _, key := range keys {
		if err := DeleteShelf("test shelves", key); err != nil {
			t.Error(err)
		}
	}
	if keys := Shelves("test shelves"); len(keys) != 0 {
		t.Errorf("shelves %q are left", keys)
	}
}
