package wasmcode

import "errors"

var errEmpty = errors.New("the program's code section cannot be read")

// emptied is the body of an emptied function. It declares no variables, and stops the program with
// an error if it is called.
var emptied = []byte{0, opUnreachable, opEnd}

// Empty returns a wasm file in which functions that the program never calls have no code. The
// parameter unused reports whether function n in the order of the code is such a function.
func Empty(file []byte, unused func(n int) bool) (out []byte, err error) {
	defer UnknownForm(&err, errEmpty)
	code := readCode(file)
	code.change(func(number int, body []byte) []byte {
		if unused(number - firstFunction) {
			return emptied
		}
		return body
	})
	return code.file(), nil
}
