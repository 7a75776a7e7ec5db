package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy/config"
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/open/xz"
	"github.com/stackglass/stackglass/core/trace/open/zstd"
	"github.com/stackglass/stackglass/wasm/unpack"
)

// packings are those of unpack.Names, and what goes the same way.
var packings = []open.Packing{zstd.Packing, xz.Packing, {Name: unpack.Description, New: describe}, {Name: unpack.Export, New: exported}}

// mostDescribed is beyond any description of a hierarchy; package config refuses
// what is longer.
const mostDescribed = 1<<20 + 1

// describe reads a description of a hierarchy, and gives its lines.
func describe(r io.Reader) (io.Reader, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostDescribed))
	if err != nil {
		return nil, err
	}
	h, notes, err := config.Read(text)
	if err != nil {
		return nil, &describeError{string(config.Recognise(text)), err}
	}
	lines := h.Lines()
	for _, note := range notes {
		lines = append(lines, "# "+note)
	}
	return bytes.NewReader([]byte(strings.Join(lines, "\n") + "\n")), nil
}

// mostExported is more than the page can hold of a profile.
const mostExported = 1 << 30

// exported gives the file that a request asks for.
func exported(r io.Reader) (io.Reader, error) {
	content, err := io.ReadAll(io.LimitReader(r, mostExported))
	if err != nil {
		return nil, err
	}
	request, err := export.ReadRequest(content)
	if err != nil {
		return nil, err
	}
	file, err := request.Answer()
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(file), nil
}

// describeError says what a file was taken for.
type describeError struct {
	form string
	err  error
}

func (e *describeError) Error() string { return "it was read as " + e.form + ": " + e.err.Error() }
