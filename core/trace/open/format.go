package open

import (
	"bytes"
	"io"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/csv"
	"github.com/stackglass/stackglass/core/trace/din"
	"github.com/stackglass/stackglass/core/trace/lackey"
)

// Format is one format of traces.
type Format struct {
	Name  string // as for --input-format
	Title string // in a few words
	// Recognise tells whether a trace that begins with head, up to 16 KiB of
	// whole lines, is of this format; the reason says in a clause why not.
	Recognise func(head []byte) (reason string, ok bool)
	New       func(name string, r io.Reader) trace.Reader
}

// formats are asked in this order: those with magic numbers, then the texts,
// the stricter ones first.
var formats = []Format{
	{"lackey", "Valgrind lackey, --trace-mem=yes", lackey.Recognise,
		func(name string, r io.Reader) trace.Reader { return lackey.NewReader(name, r) }},
	{"din", "Dinero din", din.Recognise,
		func(name string, r io.Reader) trace.Reader { return din.NewReader(name, r) }},
	{"csv", "CSV with a header line", csv.Recognise,
		func(name string, r io.Reader) trace.Reader { return csv.NewReader(name, r) }},
}

// Formats lists the formats in the order in which they are tried.
func Formats() []Format { return append([]Format(nil), formats...) }

// names lists the formats' names for a message.
func names() string {
	var all []string
	for _, f := range formats {
		all = append(all, f.Name)
	}
	return strings.Join(all, ", ")
}

// find gives the format of that name, nil for "".
func find(name string) (*Format, error) {
	if name == "" {
		return nil, nil
	}
	for i := range formats {
		if formats[i].Name == name {
			return &formats[i], nil
		}
	}
	return nil, &trace.OptionError{Option: "input-format", Got: name, Want: names()}
}

// recognise asks the formats.
func recognise(file string, head []byte, packings []string) (*Format, error) {
	unknown := &UnknownError{File: file, Packings: packings, Head: first(head)}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")) // a byte order mark
	if len(head) >= beginning-3 {
		head = head[:bytes.LastIndexByte(head, '\n')+1] // whole lines, if there are any
	}
	for i := range formats {
		reason, ok := formats[i].Recognise(head)
		if ok {
			return &formats[i], nil
		}
		unknown.Tried = append(unknown.Tried, Refusal{formats[i].Name, reason})
	}
	return nil, unknown
}
