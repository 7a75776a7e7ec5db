package open

import (
	"bytes"
	"io"
	"slices"
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
	// Recognise reports whether a trace that begins with head, up to 16 KiB of whole lines if it
	// has lines, is of this format, and otherwise the reason, in a clause.
	Recognise func(head []byte) (reason string, ok bool)
	New       func(name string, r io.Reader, o Options) trace.Reader
}

// plain adapts the reader of a format without options.
func plain[R trace.Reader](read func(name string, r io.Reader) R) func(string, io.Reader, Options) trace.Reader {
	return func(name string, r io.Reader, _ Options) trace.Reader { return read(name, r) }
}

// formats are tried in this order: formats with magic numbers, then texts, the stricter ones first,
// and last the others.
var formats = []Format{
	{"sgt", "stackglass' own container", sgt.Recognise,
		func(name string, r io.Reader, o Options) trace.Reader {
			return sgt.NewReader(name, r, sgt.Options{Strict: o.Strict})
		}},
	{"sgl", "stackglass' folded trace", sgl.Recognise, plain(sgl.NewReader)},
	{"gem5", "gem5 packet trace", gem5.Recognise, plain(gem5.NewReader)},
	{"drmemtrace", "DynamoRIO drmemtrace, offline", drmemtrace.Recognise, plain(drmemtrace.NewReader)},
	{"lackey", "Valgrind lackey, --trace-mem=yes", lackey.Recognise, plain(lackey.NewReader)},
	{"din", "Dinero din", din.Recognise, plain(din.NewReader)},
	{"ppt", "PPT-SASMM, labelled with blocks", ppt.Recognise, plain(ppt.NewReader)},
	{"pinatrace", "Intel Pin pinatrace", pinatrace.Recognise, plain(pinatrace.NewReader)},
	{"execlog", "QEMU plugin execlog", execlog.Recognise, plain(execlog.NewReader)},
	{"csv", "CSV with a header line", csv.Recognise, plain(csv.NewReader)},
	{"champsim", "ChampSim instructions", champsim.Recognise, plain(champsim.NewReader)},
}

// Formats lists the formats in the order in which they are tried.
func Formats() []Format { return slices.Clone(formats) }

// names lists the formats' names for an error.
func names() string {
	var all []string
	for _, f := range formats {
		all = append(all, f.Name)
	}
	return strings.Join(all, ", ")
}

// find returns the format of that name, nil for "".
func find(name string) (*Format, error) {
	if name == "" {
		return nil, nil
	}
	if i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name }); i >= 0 {
		return &formats[i], nil
	}
	return nil, &trace.OptionError{Option: "input-format", Got: name, Want: names()}
}

// recognise returns the first format that recognises head.
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
