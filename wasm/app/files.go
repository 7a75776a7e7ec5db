//go:build js && wasm

package main

import (
	"errors"
	"syscall/js"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/workers/web"
)

var errNoClipboard = errors.New("this browser has no clipboard for pages that were not opened over https or localhost")

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
		return ui.File{}, errors.New("the host answered with status " + response.Get("status").Call("toString").String())
	}
	blob, err := web.Await(response.Call("blob"))
	if err != nil {
		return ui.File{}, err
	}
	// A demo has no date, so that it is the same file every time.
	file := js.Global().Get("File").New([]any{blob}, name, map[string]any{"lastModified": 0})
	return fileOf(file), nil
}
