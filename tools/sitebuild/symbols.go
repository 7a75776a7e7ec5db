package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/tools/internal/wasmcode"
)

// Function names are needed only when a program crashes, but account for 3 % of the bytes of a
// first visit. The names are therefore replaced with numbers ("go.1234"), which fold then removes.
// The names are written to a separate file, one per line, in the order of the functions. When a
// program crashes, unfold.js fetches this file and prints the program's output again with names.
//
// The runtime recognises its functions by the prefix "runtime." and omits them from stack traces,
// so their names keep the prefix.

const (
	runtimePrefix = "runtime."
	otherPrefix   = "go."
)

// namesLinkAt is the byte address of the name of the file with the function names. In memory, this
// name follows the description of the folded table.
const (
	namesLinkAt    = 4 * (foldedTableAt + foldedTableWords)
	namesLinkBytes = 128
)

// takeNames writes the names of a program's functions to a list, one per line, and replaces the
// names in the program with numbers.
func takeNames(list *bytes.Buffer) func(memory []byte) error {
	return func(memory []byte) (err error) {
		defer wasmcode.UnknownForm(&err, errLineTable)
		t := &lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}
		names := memory[t.at+t.word(headNames) : t.at+t.word(headUnits)]
		var words []int // the addresses at which the offsets of names are stored
		var ofRuntime []bool
		for record := range t.records() {
			word := record + 4*wordName
			name, _, _ := bytes.Cut(names[t.number(word):], []byte{0})
			list.Write(name)
			list.WriteByte('\n')
			words, ofRuntime = append(words, word), append(ofRuntime, bytes.HasPrefix(name, []byte(runtimePrefix)))
		}
		clear(names)
		for i, offset := range numberNames(ofRuntime, func(at int, b byte) { names[at] = b }) {
			binary.LittleEndian.PutUint32(memory[words[i]:], uint32(offset))
		}
		return nil
	}
}

// numberNames writes the numbered names, each terminated by a zero byte, and returns their offsets.
// Offset 0 means that there is no name, so numberNames does not use this offset.
func numberNames(ofRuntime []bool, write func(at int, b byte)) (offsets []int) {
	at := 1
	for i, is := range ofRuntime {
		offsets = append(offsets, at)
		prefix := otherPrefix
		if is {
			prefix = runtimePrefix
		}
		for _, b := range []byte(prefix + strconv.Itoa(i)) {
			write(at, b)
			at++
		}
		at++
	}
	return offsets
}

// linkNames writes a program's function names to a file, and stores the name of this file in the
// program.
func (b *build) linkNames(memory []byte, program string, list []byte) error {
	file := strings.TrimSuffix(program, ".wasm") + ".names"
	if err := b.write(file, list); err != nil {
		return err
	}
	name, link := path.Base(b.hashed[file]), memory[namesLinkAt:][:namesLinkBytes]
	if len(name) >= len(link) || len(bytes.Trim(link, "\x00")) > 0 {
		return errors.New("the program has no space for " + name + ", the name of the file that contains its function names")
	}
	copy(link, name)
	return nil
}

// writeSizes writes a file with the code size of each package in a program, the largest first. The
// file shows how much a change adds to the page. Brotli compresses the code to about one seventh of
// its size.
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

// functionLengths returns the length of the code of each function in a wasm file, in order.
func functionLengths(program []byte) (lengths []int) {
	r := &wasmcode.Reader{File: program, At: wasmcode.HeadBytes}
	for id := range r.Sections() {
		if id != wasmcode.CodeSection {
			continue
		}
		for n := r.Unsigned(); n > 0 && !r.Bad; n-- {
			length := r.Unsigned()
			lengths = append(lengths, length)
			r.At += length
		}
	}
	return lengths
}

// packageOf returns the package of a function. Instances of generic functions, and functions
// generated for types, belong to the package in their names.
func packageOf(function string) string {
	name, _, _ := strings.Cut(function, "[")
	name = strings.TrimLeft(strings.TrimPrefix(name, "type:.eq."), "*(")
	slash := strings.LastIndexByte(name, '/') + 1
	if dot := strings.IndexByte(name[slash:], '.'); dot > 0 {
		return name[:slash+dot]
	}
	return name
}
