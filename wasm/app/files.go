//go:build js && wasm

package main

import (
	"errors"
	"strings"
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/wasm/idb"
	"github.com/stackglass/stackglass/workers/web"
)

var errNoClipboard = errors.New("this browser allows access to the clipboard only for pages that were opened over https or from localhost")

// itemOf reads an item that boot.js offers.
func itemOf(v js.Value) ui.Item {
	if demo := v.Get("demo"); demo.Truthy() {
		return ui.Item{Demo: demo.String(), URL: v.Get("url").String(), Title: v.Get("title").String()}
	}
	item := ui.Item{File: fileOf(v.Get("file")), More: v.Get("more").Truthy()}
	if handle := v.Get("handle"); handle.Truthy() {
		item.File.Handle = handle
	}
	return item
}

func fileOf(v js.Value) ui.File {
	f := ui.File{
		Name: v.Get("name").String(), Bytes: uint64(v.Get("size").Float()), Ref: v,
		Path: web.Text(v, "webkitRelativePath"), Modified: int64(web.Number(v, "lastModified")),
	}
	f.Read = func(most int) ([]byte, error) {
		part := v
		if most > 0 {
			part = v.Call("slice", 0, most)
		}
		buffer, err := web.Await(part.Call("arrayBuffer"))
		if err != nil {
			return nil, err
		}
		return web.Bytes(js.Global().Get("Uint8Array").New(buffer)), nil
	}
	return f
}

// Fetch fetches a file of this site.
func (b *browser) Fetch(url, name string) (ui.File, error) {
	response, err := web.Await(js.Global().Call("fetch", url))
	if err != nil {
		return ui.File{}, err
	}
	if !response.Get("ok").Bool() {
		return ui.File{}, errors.New("the server answered with status " + response.Get("status").Call("toString").String())
	}
	blob, err := web.Await(response.Call("blob"))
	if err != nil {
		return ui.File{}, err
	}
	// With a fixed date, a demo counts as the same file every time it is fetched.
	file := js.Global().Get("File").New([]any{blob}, name, map[string]any{"lastModified": 0})
	return fileOf(file), nil
}

// handlesName is the name of the database with the handles of dropped files.
const handlesName = "stackglass files"

// handles stores the FileSystemFileHandles of dropped files, which Chromium-based browsers can keep
// in IndexedDB.
type handles struct{ kept *idb.Handles }

// newHandles returns nil if the browser has no handles of dropped files, or cannot store them.
// Firefox and WebKit have file handles only for private files of the page.
func newHandles() ui.Handles {
	if item := js.Global().Get("DataTransferItem"); !item.Truthy() || item.Get("prototype").Get("getAsFileSystemHandle").Type() != js.TypeFunction {
		return nil
	}
	kept, err := idb.OpenHandles(handlesName)
	if err != nil {
		return nil
	}
	return handles{kept}
}

// shelves provides access to the spill stores of analyses. Each spill store is a database.
type shelves struct{}

// Keys implements [ui.Shelves].
func (shelves) Keys() []string { return idb.Shelves(idb.DefaultName) }

// Delete implements [ui.Shelves]. If the deletion fails, the next sweep tries again.
func (shelves) Delete(key string) { _ = idb.DeleteShelf(idb.DefaultName, key) }

var errNotAllowed = errors.New("the browser was not allowed to read the file")

// Keep implements [ui.Handles]. Without a handle, the user has to choose the file again.
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

// sourcesName is the name of the database with the source files that the user dropped.
const sourcesName = "stackglass sources"

// sources stores source files, as an array of objects for each analysis.
type sources struct{ kept *idb.Handles }

// newSources returns nil if the browser has no storage.
func newSources() ui.SourceFiles {
	kept, err := idb.OpenHandles(sourcesName)
	if err != nil {
		return nil
	}
	return sources{kept}
}

// Keep implements [ui.SourceFiles]. If the browser's storage is full, the files are only in memory.
func (s sources) Keep(key string, files []*state.Source) {
	if len(files) == 0 {
		_ = s.kept.Delete(key)
		return
	}
	_ = s.kept.Put(key, js.ValueOf(jsSlice(len(files), func(i int) any {
		return map[string]any{"name": files[i].Name, "path": files[i].Path, "text": strings.Join(files[i].Lines, "\n")}
	})))
}

// Read implements [ui.SourceFiles].
func (s sources) Read(key string) (files []*state.Source) {
	array, err := s.kept.Get(key)
	if err != nil {
		return nil
	}
	for i := range array.Length() {
		text := func(name string) string { return array.Index(i).Get(name).String() }
		if f, problem := state.NewSource(text("name"), text("path"), []byte(text("text"))); problem == "" {
			files = append(files, f)
		}
	}
	return files
}

// Keys implements [ui.SourceFiles].
func (s sources) Keys() []string {
	keys, _ := s.kept.Keys()
	return keys
}
