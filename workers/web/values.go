//go:build js && wasm

package web

import "syscall/js"

// Text returns a field of an object, or "" if the field is not a string.
func Text(object js.Value, field string) string {
	if v := object.Get(field); v.Type() == js.TypeString {
		return v.String()
	}
	return ""
}

// Number returns a field of an object, or 0 if the field is not a number.
func Number(object js.Value, field string) float64 {
	if v := object.Get(field); v.Type() == js.TypeNumber {
		return v.Float()
	}
	return 0
}

// Array copies bytes to a new Uint8Array.
func Array(content []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(content))
	js.CopyBytesToJS(array, content)
	return array
}

// Bytes copies the bytes of a Uint8Array.
func Bytes(array js.Value) []byte {
	content := make([]byte, array.Length())
	js.CopyBytesToGo(content, array)
	return content
}

// Function returns a JavaScript function that calls f, which must not block.
func Function(f func(args []js.Value)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any {
		f(args)
		return nil
	})
}

// EarlyMessages calls the function "take" with each message event that arrived before the program
// was ready. The bootstrap script stores these events.
func EarlyMessages(take func(event js.Value)) {
	self := js.Global()
	early := self.Get("earlyMessages")
	if !early.Truthy() {
		return
	}
	self.Set("onmessage", js.Null())
	for i := range early.Length() {
		take(early.Index(i))
	}
	self.Set("earlyMessages", js.Undefined())
}

// ErrorOf returns the text of a worker's error event. ErrorOf also prevents the event from being
// reported as an error of the worker that started this worker.
func ErrorOf(event js.Value) string {
	event.Call("preventDefault")
	if text := event.Get("message"); text.Type() == js.TypeString {
		return text.String()
	}
	return "the worker's script could not be loaded"
}
