package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path"
	"strconv"
	"strings"
)

// The names of its functions tell what a program did when it crashed, and nothing
// else: they are a thirtieth of what a first visit transfers. So a program is served
// with numbers in their place ("go.1234"), which fold leaves out, too, and the names
// lie in a file of their own, a line each, in the order of the functions. unfold.js
// fetches it when a program has died, and writes once more to the console what the
// program had written, with names.
//
// The runtime asks whether a name begins with that of its package, to leave its own
// functions out of traces and out of counts. So theirs begin with it still.

const (
	runtimePrefix = "runtime."
	otherPrefix   = "go."
)

// namesLinkAt is the address, in bytes, at which unfold.js looks for the name of
// the file with the names: behind what fold says.
const (
	namesLinkAt    = 4 * (foldingAt + foldingWords)
	namesLinkBytes = 128
)

// takeNames writes the names of a program's functions to list, a line each, and puts
// numbers in their place.
func takeNames(list *bytes.Buffer) func(memory []byte) error {
	return func(memory []byte) (err error) {
		defer func() {
			if recover() != nil {
				err = errLineTable
			}
		}()
		t := &lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}
		names := memory[t.at+t.word(headNames) : t.at+t.word(headUnits)]
		records := t.at + t.word(headRecords)
		var words []int // addresses of what leads to each
		var ofRuntime []bool
		for i := range t.word(headFunctions) {
			word := records + t.number(records+8*i+4) + 4*wordName
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

// numberNames writes the names that stand for the real ones, each ended by a zero,
// and gives their offsets. There is no name at 0: the runtime takes that for none.
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

// linkNames writes the file with the names of a program, and says in the program
// which it is.
func (b *build) linkNames(memory []byte, program string, list []byte) error {
	file := strings.TrimSuffix(program, ".wasm") + ".names"
	if err := b.write(file, list); err != nil {
		return err
	}
	name, link := path.Base(b.hashed[file]), memory[namesLinkAt:][:namesLinkBytes]
	if len(name) >= len(link) || len(bytes.Trim(link, "\x00")) > 0 {
		return errors.New("the program has no room to say that the names of its functions are in " + name)
	}
	copy(link, name)
	return nil
}
