package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// writeSizes writes the size of the code of each package in a program, the largest first, to a file that
// shows what a change adds to the page. As brotli it is about a seventh.
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
	return writeFile(to, out.Bytes())
}

// functionLengths returns the lengths of a wasm file's functions, in order.
func functionLengths(program []byte) (lengths []int) {
	r := &wasmReader{file: program, at: headBytes}
	for id := range r.sections() {
		if id != codeSection {
			continue
		}
		for n := r.unsigned(); n > 0 && !r.bad; n-- {
			length := r.unsigned()
			lengths = append(lengths, length)
			r.at += length
		}
	}
	return lengths
}

// packageOf returns the package of a function. Instances of generic functions, and functions for types,
// belong to the package in their name.
func packageOf(function string) string {
	name, _, _ := strings.Cut(function, "[")
	name = strings.TrimLeft(strings.TrimPrefix(name, "type:.eq."), "*(")
	slash := strings.LastIndexByte(name, '/') + 1
	if dot := strings.IndexByte(name[slash:], '.'); dot > 0 {
		return name[:slash+dot]
	}
	return name
}
