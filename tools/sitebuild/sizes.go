package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeSizes writes how many bytes of a program's code each package has, the most
// first, to a file beside what is built: what one adds to the page shows there. As
// brotli it is about a seventh of that.
func writeSizes(to string, program, names []byte) error {
	sizes := map[string]int{}
	lengths := functionLengths(program)
	for i, name := range strings.Split(strings.TrimSuffix(string(names), "\n"), "\n") {
		if i < len(lengths) {
			sizes[packageOf(name)] += lengths[i]
		}
	}
	most := func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b)) }
	var out bytes.Buffer
	for _, name := range slices.SortedFunc(maps.Keys(sizes), most) {
		fmt.Fprintf(&out, "%9d %s\n", sizes[name], name)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// functionLengths are those of a wasm file's functions, in order.
func functionLengths(program []byte) (lengths []int) {
	r := &wasmReader{file: program, at: headBytes}
	for r.at < len(program) && !r.bad {
		id := r.next()
		end := r.unsigned() + r.at
		if id == codeSection {
			for range r.unsigned() {
				if r.bad {
					break
				}
				length := r.unsigned()
				lengths = append(lengths, length)
				r.at += length
			}
		}
		r.at = end
	}
	return lengths
}

// packageOf gives the package of a function. Copies of generic ones, and what the
// compiler makes for types, belong to the package that they are named after.
func packageOf(function string) string {
	name, _, _ := strings.Cut(function, "[")
	name = strings.TrimLeft(strings.TrimPrefix(name, "type:.eq."), "*(")
	slash := strings.LastIndexByte(name, '/') + 1
	if dot := strings.IndexByte(name[slash:], '.'); dot > 0 {
		return name[:slash+dot]
	}
	return name
}
