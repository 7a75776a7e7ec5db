package ui

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/vugu/vjson"
	"pgregory.net/rapid"
)

// anyValue returns a random JSON value of a type that occurs in events.
func anyValue(t *rapid.T, deep int) any {
	most := 5
	if deep == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "type") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "truth")
	case 2:
		return rapid.Float64().Draw(t, "number")
	case 3:
		return rapid.String().Draw(t, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			list = append(list, anyValue(t, deep-1))
		}
		return list
	}
	return anyObject(t, deep-1)
}

func anyObject(t *rapid.T, deep int) map[string]any {
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		object[rapid.String().Draw(t, "name")] = anyValue(t, deep)
	}
	return object
}

// TestEventsAreReadAsJSON checks that two variants of package vjson, with which Vugu reads events
// and writes properties, have the same results. The page is built with a variant that does not use
// encoding/json (see the build tags in tools/sitebuild).
func TestEventsAreReadAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := anyObject(t, 3)
		text, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]any{}
		if err := vjson.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, event) {
			t.Fatalf("vjson.Unmarshal(%s) = %#v, %v, want %#v", text, read, err, event)
		}
		again := map[string]any{}
		if text, err = vjson.Marshal(event); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, event) {
			t.Fatalf("vjson.Marshal(%#v) = %s, which encoding/json reads differently (error %v)", event, text, err)
		}
	})
}
