//go:build js && wasm

package main

import (
	"errors"
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/wasm/idb"
	"github.com/stackglass/stackglass/workers/web"
)

// handlesName is the database of the handles of dropped files.
const handlesName = "stackglass files"

// handles are FileSystemFileHandles of dropped files, which Chromium and its relatives keep in IndexedDB.
type handles struct{ kept *idb.Handles }

// newHandles returns nil if the browser has no handles, or keeps none.
func newHandles() ui.Handles {
	if js.Global().Get("FileSystemFileHandle").Type() != js.TypeFunction {
		return nil
	}
	kept, err := idb.OpenHandles(handlesName)
	if err != nil {
		return nil
	}
	return handles{kept}
}

// shelves are spill stores of analyses: databases.
type shelves struct{}

// Keys implements [ui.Shelves].
func (shelves) Keys() []string { return idb.Shelves(idb.DefaultName) }

// Delete implements [ui.Shelves]. A failure is repeated later.
func (shelves) Delete(key string) { _ = idb.DeleteShelf(idb.DefaultName, key) }

var errNotAllowed = errors.New("the browser was not allowed to read it")

// Keep implements [ui.Handles]. Without a handle the user chooses the file again.
func (h handles) Keep(key string, f ui.File) {
	promise, ok := f.Handle.(js.Value)
	if !ok {
		return
	}
	handle, err := web.Await(js.Global().Get("Promise").Call("resolve", promise))
	if err == nil && handle.InstanceOf(js.Global().Get("FileSystemFileHandle")) {
		_ = h.kept.Put(key, handle)
	}
}

// Keys implements [ui.Handles].
func (h handles) Keys() []string {
	keys, _ := h.kept.Keys()
	return keys
}

// Reopen implements [ui.Handles].
func (h handles) Reopen(key string) (ui.File, error) {
	handle, err := h.kept.Get(key)
	if err != nil {
		return ui.File{}, err
	}
	if handle.Get("requestPermission").Type() == js.TypeFunction {
		state, err := web.Await(handle.Call("requestPermission", map[string]any{"mode": "read"}))
		if err != nil {
			return ui.File{}, err
		}
		if state.String() != "granted" {
			return ui.File{}, errNotAllowed
		}
	}
	file, err := web.Await(handle.Call("getFile"))
	if err != nil {
		return ui.File{}, err
	}
	f := fileOf(file)
	f.Handle = handle
	return f, nil
}

// Forget implements [ui.Handles].
func (h handles) Forget(key string) { _ = h.kept.Delete(key) }
