//go:build js && wasm

package idb

import (
	"strconv"
	"syscall/js"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers/web"
)

// entryToJS returns the object that is stored for an entry. JavaScript's numbers are exact up to
// 2^53, which exceeds the size of any file.
func entryToJS(e profile.Entry, g generation) js.Value {
	object := g.toJS()
	for name, value := range map[string]any{
		"key": e.Key, "name": e.Name, "created": float64(e.Created),
		"bytes": float64(e.Bytes), "references": float64(e.References),
		"digest": e.Digest, "state": string(e.State), "reason": e.Reason, "done": e.Done, "outside": float64(e.Outside),
	} {
		object.Set(name, value)
	}
	return object
}

func (g generation) toJS() js.Value {
	return js.ValueOf(map[string]any{
		"generation": g.number, "chunks": g.sum.Pieces, "stored": float64(g.sum.Bytes), "sum": sumText(g.sum.XXH64),
	})
}

// generationsFromJS returns the generations of a stored object, newest first. A checksum that
// cannot be parsed matches no data, so the generation counts as damaged.
func generationsFromJS(object js.Value) (list []generation) {
	for ; object.Type() == js.TypeObject && len(list) < 2; object = object.Get("before") {
		g := generation{number: int(number(object, "generation"))}
		g.sum.Pieces, g.sum.Bytes = int(number(object, "chunks")), number(object, "stored")
		g.sum.XXH64, _ = strconv.ParseUint(web.Text(object, "sum"), 16, 64)
		list = append(list, g)
	}
	return list
}

// entryFromJS reads a stored object. If the version that wrote the object did not know a field,
// this field remains zero.
func entryFromJS(object js.Value) profile.Entry {
	return profile.Entry{
		Key: web.Text(object, "key"), Name: web.Text(object, "name"), Created: int64(number(object, "created")),
		Bytes: number(object, "bytes"), References: number(object, "references"),
		Digest: web.Text(object, "digest"), State: profile.EntryState(web.Text(object, "state")),
		Reason: web.Text(object, "reason"), Done: web.Number(object, "done"), Outside: number(object, "outside"),
	}
}

func sumText(sum uint64) string { return strconv.FormatUint(sum, 16) }

func number(object js.Value, field string) uint64 { return uint64(max(0, web.Number(object, field))) }
