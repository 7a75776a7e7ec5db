package pass

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/byfl"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/site"
)

// demoPrefix is the prefix that selects a demo as the input, for example demo:matmul-naive.
const demoPrefix = "demo:"

// Input is an opened trace or profile.
type Input struct {
	Name      string // the name that the user specified
	Bytes     int64  // stored size, or 0 if unknown
	IsProfile bool
	IsByfl    bool // whether the input is a result of Byfl
	IsFolded  bool // whether the input is a loop-compressed trace
	IsModule  bool // whether the input is LLVM IR in text form

	content      *bufio.Reader
	read         atomic.Int64 // number of stored bytes read
	sourceCounts bool         // whether the source itself counts the stored bytes that are read
	close        func() error
	outline      trace.Outline // the outline of the trace; the zero value if it is unknown
	randomAccess io.ReaderAt   // random access to the input, or nil if it is not supported
	file         *os.File      // the opened file; may be nil
	opened       os.FileInfo   // state of the file when it was opened
}

// Open opens the input with the given name: "-" is stdin, "demo:NAME" is an embedded demo, and any
// other name is a file or the folder of a DynamoRIO trace. If ctx is cancelled, a read that waits
// for stdin fails.
func Open(ctx context.Context, name string, stdin io.Reader) (*Input, error) {
	in := &Input{Name: name, close: func() error { return nil }}
	var source io.Reader
	switch {
	case name == "-":
		in.Name = "standard input"
		source = cancellableReader(ctx, stdin)
	case strings.HasPrefix(name, demoPrefix):
		found, err := FindDemo(strings.TrimPrefix(name, demoPrefix))
		if err != nil {
			return nil, err
		}
		demo, err := site.DemoFile(found.File)
		if err != nil {
			return nil, err
		}
		in.Bytes, source, in.randomAccess = int64(len(demo)), bytes.NewReader(demo), bytes.NewReader(demo)
	case isFolder(name):
		var err error
		if source, err = in.openFolder(ctx, name); err != nil {
			return nil, err
		}
	default:
		f, size, err := openCancellable(ctx, name)
		if err != nil {
			return nil, err
		}
		in.Bytes, in.close, source = size, f.Close, f
		in.file, in.randomAccess = f, f
		if in.opened, err = f.Stat(); err != nil {
			f.Close()
			return nil, err
		}
		if size == 0 { // a pipe or a device, from which a read may wait
			source = cancellableReader(ctx, f)
		}
	}
	in.content = bufio.NewReaderSize(source, 1<<20)
	head, err := in.content.Peek(12) // 12 bytes are enough to recognise every format, including sgl
	if err != nil && err != io.EOF {
		in.Close()
		if ctx.Err() != nil {
			return nil, ErrInterrupted
		}
		return nil, err
	}
	in.IsProfile, in.IsByfl = profile.IsProfile(head), byfl.IsByfl(head)
	_, in.IsFolded = sgl.Recognise(head)
	in.IsModule = isModule(name, head)
	return in, nil
}

// isModule recognises the text of LLVM IR by its beginning or by the file's name.
func isModule(name string, head []byte) bool {
	begins := []string{"; ModuleID =", "source_filen", "target datal", "target tripl"}
	return slices.Contains(begins, string(head)) || strings.HasSuffix(name, ".ll")
}

func isFolder(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.IsDir()
}

// openCancellable opens a file. It returns early if ctx is done, because opening a named pipe waits
// for a writer.
func openCancellable(ctx context.Context, name string) (*os.File, int64, error) {
	type opened struct {
		f    *os.File
		size int64
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, size, err := openFile(name)
		done <- opened{f, size, err}
	}()
	select {
	case o := <-done:
		return o.f, o.size, o.err
	case <-ctx.Done():
		return nil, 0, ErrInterrupted
	}
}

// openFile opens a file and returns its size, or 0 if it is not a regular file.
func openFile(name string) (*os.File, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, errors.New(name + ": " + errorText(err) + "; give the path of a trace or a profile, or - for standard input")
	}
	st, err := f.Stat()
	switch {
	case err != nil:
		f.Close()
		return nil, 0, err
	case !st.Mode().IsRegular():
		return f, 0, nil
	}
	return f, st.Size(), nil
}

// ReadFile reads a file whose name is the value of an option. If the file is compressed, ReadFile
// returns the decompressed content.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.New(errorText(err))
	}
	defer f.Close()
	var text []byte
	content, err := open.Unpack("the file", f, open.Options{Packings: packings})
	if err == nil {
		text, err = io.ReadAll(content)
	}
	var empty *open.EmptyError
	switch {
	case errors.As(err, &empty):
		return nil, nil
	case err != nil:
		return nil, errors.New(errorText(err))
	}
	return text, nil
}

// errorText returns the text of an error without the path, and without the full stop at the end of
// Windows' error texts.
func errorText(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return strings.TrimSuffix(err.Error(), ".")
}

// Read reads the stored bytes and counts them.
func (in *Input) Read(p []byte) (int, error) {
	n, err := in.content.Read(p)
	if !in.sourceCounts {
		in.read.Add(int64(n))
	}
	return n, err
}

// Tree reads a loop-compressed trace without expanding it. If an error occurs, the returned tree
// describes the trace before the error, or is nil.
func (in *Input) Tree() (*loops.Tree, trace.Header, error) { return sgl.ReadTree(in.Name, in) }

// Changed reports whether the file has been modified since it was opened. The bytes that were read
// may then be a mix of several versions of the file.
func (in *Input) Changed() bool {
	if in.file == nil || !in.opened.Mode().IsRegular() {
		return false
	}
	now, err := in.file.Stat()
	return err == nil && (now.Size() != in.opened.Size() || !now.ModTime().Equal(in.opened.ModTime()))
}

// Close closes the input.
func (in *Input) Close() error { return in.close() }

// readProfile reads the whole input as a profile.
func (in *Input) readProfile() (*profile.Profile, error) {
	encoded, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	p, err := profile.Decode(encoded)
	if err != nil {
		return nil, errors.New(in.Name + ": " + err.Error())
	}
	return p, nil
}

// cancellableReader returns a reader whose reads fail as soon as ctx is done, even if a read is
// waiting for input. To achieve this, a goroutine copies the input.
func cancellableReader(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		// Hide all methods of r except Read. Otherwise, io.CopyBuffer would copy a file in smaller
		// blocks.
		_, err := io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{r}, make([]byte, 1<<18))
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { out.CloseWithError(ErrInterrupted) })
	return out
}

// FindDemo returns the embedded demo with the given name. If there is none, the error is a
// [*DemoError].
func FindDemo(name string) (site.Demo, error) {
	demos, err := site.Demos()
	if err != nil {
		return site.Demo{}, err
	}
	missing := &DemoError{Name: name}
	for _, d := range demos {
		if d.Name == name {
			return d, nil
		}
		missing.Have = append(missing.Have, d.Name)
	}
	return site.Demo{}, missing
}

// DemoError is the error for an unknown demo.
type DemoError struct {
	Name string
	Have []string // names of the known demos
}

func (e *DemoError) Error() string {
	return "there is no demo " + e.Name + "; the demos are " + strings.Join(e.Have, ", ")
}

// Rows is an open trace that is read in batches of rows.
type Rows struct {
	*open.Trace
	in *Input
}

// ErrNotTrace means that a file is not a trace.
var ErrNotTrace = errors.New("the file is not a trace; give a trace that stackglass cc recorded")

// OpenRows opens the trace with the given name.
func OpenRows(ctx context.Context, name string) (*Rows, error) {
	in, err := Open(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if in.IsProfile || in.IsByfl || in.IsModule {
		in.Close()
		return nil, ErrNotTrace
	}
	t, err := open.Open(in.Name, in, open.Options{Packings: packings})
	if err != nil {
		defer in.Close()
		return nil, in.readError(ctx, err)
	}
	return &Rows{Trace: t, in: in}, nil
}

// Close closes the file.
func (r *Rows) Close() error { return r.in.Close() }
