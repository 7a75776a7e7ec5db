package open

import (
	"bytes"
	"io"
	"strings"

	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/champsim"
	"github.com/stackglass/stackglass/core/trace/csv"
	"github.com/stackglass/stackglass/core/trace/din"
	"github.com/stackglass/stackglass/core/trace/drmemtrace"
	"github.com/stackglass/stackglass/core/trace/execlog"
	"github.com/stackglass/stackglass/core/trace/gem5"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/pinatrace"
	"github.com/stackglass/stackglass/core/trace/ppt"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Format is one format of traces.
type Format struct {
	Name  string // as for --input-format
	Title string // in a few words
	// Recognise tells whether a trace that begins with head, up to 16 KiB of
	// whole lines if it has lines, is of this format; the reason says in a clause
	// why not.
	Recognise func(head []byte) (reason string, ok bool)
	New       func(name string, r io.Reader, o Options) trace.Reader
}

// formats are asked in this order: those with magic numbers, then the texts,
// the stricter ones first, and last what is neither.
var formats = []Format{
	{"sgt", "stackglass' own container", sgt.Recognise,
		func(name string, r io.Reader, o Options) trace.Reader {
			return sgt.NewReader(name, r, sgt.Options{Strict: o.Strict})
		}},
	{"sgl", "stackglass' folded trace", sgl.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return sgl.NewReader(name, r) }},
	{"gem5", "gem5 packet trace", gem5.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return gem5.NewReader(name, r) }},
	{"drmemtrace", "DynamoRIO drmemtrace, offline", drmemtrace.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return drmemtrace.NewReader(name, r) }},
	{"lackey", "Valgrind lackey, --trace-mem=yes", lackey.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return lackey.NewReader(name, r) }},
	{"din", "Dinero din", din.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return din.NewReader(name, r) }},
	{"ppt", "PPT-SASMM, labelled with blocks", ppt.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return ppt.NewReader(name, r) }},
	{"pinatrace", "Intel Pin pinatrace", pinatrace.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return pinatrace.NewReader(name, r) }},
	{"execlog", "QEMU plugin execlog", execlog.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return execlog.NewReader(name, r) }},
	{"csv", "CSV with a header line", csv.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return csv.NewReader(name, r) }},
	{"champsim", "ChampSim instructions", champsim.Recognise,
		func(name string, r io.Reader, _ Options) trace.Reader { return champsim.NewReader(name, r) }},
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
	if end := bytes.LastIndexByte(head, '\n') + 1; len(head) >= beginning-3 && end > 0 {
		head = head[:end] // whole lines
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
