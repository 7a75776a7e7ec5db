package sgt

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// ParseModule reads the body of a MODL frame and appends the module to a
// program: its numbers follow on those of the modules before it. An error
// leaves the program as it was.
func ParseModule(body []byte, into *trace.Program) error {
	tables, err := unpackTables(body)
	if err != nil {
		return err
	}
	t := &tableForm{
		Program:  &trace.Program{Modules: make([]trace.Module, 1)},
		reads:    true,
		cursor:   cursor{bytes: tables},
		module:   uint32(len(into.Modules)),
		function: uint32(len(into.Functions)),
		block:    uint32(len(into.Blocks)),
		site:     uint32(len(into.Sites)),
	}
	t.texts = make([]string, t.count(1, "strings"))
	for i := range t.texts {
		t.texts[i] = t.str()
	}
	t.all()
	t.checkFunctions()
	if err := t.end(); err != nil {
		return err
	}
	into.Modules = append(into.Modules, t.Modules...)
	into.Functions = append(into.Functions, t.Functions...)
	into.Blocks = append(into.Blocks, t.Blocks...)
	into.Sites = append(into.Sites, t.Sites...)
	into.Objects = append(into.Objects, t.Objects...)
	return nil
}

// unpackTables gives the tables of a MODL body.
func unpackTables(body []byte) ([]byte, error) {
	c := cursor{bytes: body}
	if packing := c.below(packedLZ4+1, "packing"); c.wrong != nil {
		return nil, c.wrong
	} else if uint64(body[0]) != packing {
		return nil, &TableError{What: "packing", Got: uint64(body[0]), Want: "one byte, less than " + decimal(packedLZ4+1)}
	}
	if body[0] == packedPlain {
		return body[1:], nil
	}
	r := lz4.NewReader(bytes.NewReader(body[1:]))
	if err := r.Apply(lz4.ConcurrencyOption(1)); err != nil {
		return nil, err
	}
	tables, err := io.ReadAll(io.LimitReader(r, largestTables+1))
	if err != nil {
		return nil, errors.New("tables cannot be unpacked: " + err.Error())
	}
	if len(tables) > largestTables {
		return nil, &TableError{What: "unpacked bytes", Got: uint64(len(tables)), Want: "at most " + decimal(largestTables)}
	}
	return tables, nil
}

// checkFunctions makes sure that functions' blocks are there, and numbers them.
func (t *tableForm) checkFunctions() {
	for i := range t.Functions {
		f := &t.Functions[i]
		if end := uint64(f.First) + uint64(f.Blocks); end > uint64(len(t.Blocks)) {
			t.fail("end of a function's blocks", end, "at most "+strconv.Itoa(len(t.Blocks)))
		}
		f.First += t.block
	}
}
