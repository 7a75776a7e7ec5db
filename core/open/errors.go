package open

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// EmptyError reports that a file is empty, either as stored or after decompression.
type EmptyError struct {
	File     string
	Packings []string // compression formats of the decompressed layers, outermost first
}

func (e *EmptyError) Error() string {
	if len(e.Packings) > 0 {
		return e.File + ": the file is empty after decompression (" + chain(e.Packings) + "); check the tool that wrote the file"
	}
	return e.File + ": the file is empty; check the tool that wrote the file"
}

// PackingError reports a compression format that this program does not support.
type PackingError struct {
	File    string
	Packing string
	Unpack  string // the command that decompresses the file
}

func (e *PackingError) Error() string {
	return e.File + " is compressed with " + e.Packing + ", which is not supported here; decompress the file first, with " + e.Unpack
}

// UnpackerError reports that a decompressor is missing or failed. The file itself may be intact. If
// a [Packing] runs another program, it returns an UnpackerError in which only Err is set.
type UnpackerError struct {
	File    string
	Packing string
	Err     error // an error that states what happened and what to do
}

func (e *UnpackerError) Error() string {
	return e.File + " is compressed with " + e.Packing + ", and " + e.Err.Error() +
		"; or decompress the file first, with " + e.Packing + " -d"
}

// Nameless returns the error's message without the trace's name.
func (e *UnpackerError) Nameless() string {
	nameless := *e
	nameless.File = "the trace"
	return nameless.Error()
}

func (e *UnpackerError) Unwrap() error { return e.Err }

// Refusal is the reason why a file does not have a particular format.
type Refusal struct {
	Format string
	Reason string
}

// UnknownError reports that a file is not in any known format.
type UnknownError struct {
	File     string
	Packings []string  // compression formats of the decompressed layers, outermost first
	Tried    []Refusal // why each format was rejected, in the order in which the formats were tried
	Head     []byte    // the first bytes, at most 32
	Content  io.Reader // the decompressed content from its beginning, or nil if it cannot be decompressed
}

// Error returns a message of several lines, with one line for each format that was tried.
func (e *UnknownError) Error() string {
	var s strings.Builder
	s.WriteString(e.File + ": unknown format")
	if len(e.Packings) > 0 {
		s.WriteString(" inside " + chain(e.Packings))
	}
	s.WriteString("; the file begins with " + dump(e.Head))
	for _, t := range e.Tried {
		s.WriteString("\n  not " + t.Format + ": " + t.Reason)
	}
	s.WriteString("\n" + advice(e.File, e.Head))
	return s.String()
}

// DecodeRaw says how to decode the raw files of DynamoRIO.
const DecodeRaw = "run drrun -t drmemtrace -indir FOLDER -tool basic_counts, where FOLDER contains the folder raw, and open FOLDER/trace"

// advice returns advice for a file with a name that begins with head.
func advice(name string, head []byte) string {
	for _, known := range []struct{ magic, what string }{
		{"\xff\xfe", "the file is UTF-16 text, as written by PowerShell; save the file as UTF-8"},
		{"\xfe\xff", "the file is UTF-16 text; save the file as UTF-8"},
		{"BZh", "the file is compressed with bzip2; decompress the file first, with bunzip2"},
		{"\x7fELF", "the file is a program, not a trace; run the program under a tracer"},
		{"7z\xbc\xaf", "the file is a 7z archive; extract the trace from the archive"},
		{"\x89PNG\r\n", "the file is a PNG image, not a trace"},
		{"\xff\xd8\xff", "the file is a JPEG image, not a trace"},
		{"GIF8", "the file is a GIF image, not a trace"},
		{"%PDF", "the file is a PDF document, not a trace"},
		{"<!DOCTYPE", "the file is a web page, not a trace"},
		{"<!doctype", "the file is a web page, not a trace"},
		{"PERFILE", "the file is a perf recording, not a trace; print its samples with perf script, and read them with stackglass measured"},
	} {
		if strings.HasPrefix(string(head), known.magic) {
			return known.what
		}
	}
	for _, packing := range []string{"", ".gz", ".lz4", ".zip", ".sz"} {
		if strings.HasSuffix(name, ".raw"+packing) {
			return "if this is a raw file of DynamoRIO, DynamoRIO must decode it first: " + DecodeRaw
		}
	}
	return "set --input-format to one of " + names() + ", or convert the trace to one of these formats"
}

// chain lists the names of compression formats from the outermost to the innermost.
func chain(packings []string) string { return strings.Join(packings, " in ") }

// first returns a copy of the first bytes of a file.
func first(head []byte) []byte {
	const most = 32
	return bytes.Clone(head[:min(len(head), most)])
}

// dump formats bytes in hexadecimal and as text.
func dump(head []byte) string {
	var hex strings.Builder
	for i, c := range head {
		if i > 0 {
			hex.WriteByte(' ')
		}
		hex.WriteString(strconv.FormatUint(uint64(c>>4), 16) + strconv.FormatUint(uint64(c&15), 16))
	}
	return hex.String() + " " + strconv.Quote(string(head))
}
