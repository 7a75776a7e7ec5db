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

// Format is a trace format.
type Format struct {
	Name  string // name of the format for --input-format
	Title string // a short description of the format
	// Recognise reports whether a trace that begins with head has this format. If the trace does
	// not have this format, Recognise also returns the reason, as a clause. head contains up to 16
	// KiB, and ends with a complete line if the trace consists of lines.
	Recognise func(head []byte) (reason string, ok bool)
	New       func(name string, r io.Reader, o Options) trace.Reader
}

// plain converts a constructor that takes no options to the type of Format.New.
func plain[R trace.Reader](read func(name string, r io.Reader) R) func(string, io.Reader, Options) trace.Reader {
	return func(name string, r io.Reader, _ Options) trace.Reader { return read(name, r) }
}

// formats lists all formats in the order in which they are tried: formats with magic numbers, then
// text formats from the strictest to the most permissive, and then all other formats.
var formats = []Format{
	{"sgt", "stackglass container", sgt.Recognise,
		func(name string, r io.Reader, o Options) trace.Reader {
			return sgt.NewReader(name, r, sgt.Options{Strict: o.Strict})
		}},
	{"sgl", "stackglass loop-compressed trace", sgl.Recognise, plain(sgl.NewReader)},
	{"gem5", "gem5 packet trace", gem5.Recognise, plain(gem5.NewReader)},
	{"drmemtrace", "DynamoRIO drmemtrace, offline", drmemtrace.Recognise, plain(drmemtrace.NewReader)},
	{"lackey", "Valgrind lackey, --trace-mem=yes", lackey.Recognise, plain(lackey.NewReader)},
	{"din", "Dinero din", din.Recognise, plain(din.NewReader)},
	{"ppt", "PPT-SASMM, with block labels", ppt.Recognise, plain(ppt.NewReader)},
	{"pinatrace", "Intel Pin pinatrace", pinatrace.Recognise, plain(pinatrace.NewReader)},
	{"execlog", "QEMU plugin execlog", execlog.Recognise, plain(execlog.NewReader)},
	{"csv", "CSV with a header line", csv.Recognise, plain(csv.NewReader)},
	{"champsim", "ChampSim instructions", champsim.Recognise, plain(champsim.NewReader)},
}

// Formats lists the formats in the order in which they are tried.
func Formats() []Format { return slices.Clone(formats) }

// names returns the formats' names for error messages.
func names() string {
	var all []string
	for _, f := range formats {
		all = append(all, f.Name)
	}
	return strings.Join(all, ", ")
}

// find returns the format with the given name, or nil for the name "".
func find(name string) (*Format, error) {
	if name == "" {
		return nil, nil
	}
	if i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == name }); i >= 0 {
		return &formats[i], nil
	}
	return nil, &trace.OptionError{Option: "input-format", Got: name, Want: names()}
}

// recognise returns the first format whose Recognise accepts head.
func recognise(file string, head []byte, packings []string) (*Format, *UnknownError) {
	unknown := &UnknownError{File: file, Packings: packings, Head: first(head)}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")) // skip a byte order mark
	if end := bytes.LastIndexByte(head, '\n') + 1; len(head) >= beginning-3 && end > 0 {
		head = head[:end] // remove the incomplete last line
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
