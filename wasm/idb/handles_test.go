//go:build js && wasm

package idb

import (
	"errors"
	"slices"
	"syscall/js"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers/web"
)

// TestHandles checks that file handles still open the same file after the connection is closed and
// opened again.
func TestHandles(t *testing.T) {
	const name = "test handles"
	h, err := OpenHandles(name)
	if err != nil {
		t.Fatal(err)
	}
	defer js.Global().Get("indexedDB").Call("deleteDatabase", name)
	await := func(promise js.Value) js.Value {
		t.Helper()
		v, err := web.Await(promise)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	root := await(js.Global().Get("navigator").Get("storage").Call("getDirectory"))
	handle := await(root.Call("getFileHandle", "a.din", map[string]any{"create": true}))
	for _, key := range []string{"k", "k", "l"} {
		if err := h.Put(key, handle); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	if h, err = OpenHandles(name); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if keys, err := h.Keys(); err != nil || !slices.Equal(keys, []string{"k", "l"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
	again, err := h.Get("k")
	if err != nil || await(again.Call("getFile")).Get("name").String() != "a.din" {
		t.Errorf("Get: %v", err)
	}
	if err := errors.Join(h.Delete("k"), h.Delete("k")); err != nil {
		t.Error(err)
	}
	if _, err := h.Get("k"); !errors.Is(err, profile.ErrNotFound) {
		t.Errorf("Get of a deleted key: %v, want %v", err, profile.ErrNotFound)
	}
	if err := h.Put("f", js.Global().Get("Function").Get("prototype")); err == nil {
		t.Error("Put accepted a value that cannot be stored")
	}
	if keys, err := h.Keys(); err != nil || !slices.Equal(keys, []string{"l"}) {
		t.Errorf("keys %q, %v", keys, err)
	}
}
