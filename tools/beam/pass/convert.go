package pass

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/open/gzip"
	"github.com/stackglass/stackglass/core/open/snappy"
	"github.com/stackglass/stackglass/core/open/xz"
	"github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/open/zstd"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/beam/files"
	"github.com/stackglass/stackglass/tools/beam/parts"
)

// DefaultPartBytes is the default of the option PartBytes.
const DefaultPartBytes = 256 << 20

// mostParts is the maximum number of parts of a file, because every worker opens all parts.
const mostParts = 1 << 10

var packings = []open.Packing{gzip.Packing, zstd.Packing, xz.Packing, zip.Packing, snappy.Packing}

// input is a trace in its original format.
type input struct {
	file     *files.File // nil: the trace is a folder
	folder   []string    // the files of a folder of DynamoRIO
	cut      *parts.Cutter
	format   string
	packed   bool   // the file is compressed
	identity string // identifies the content
}

// openInput opens a trace in any format, and detects the format.
func openInput(ctx context.Context, name string, o *Options) (*input, error) {
	in := &input{}
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		if in.folder, err = files.Folder(name); err != nil {
			return nil, err
		}
		if in.identity, err = identifyAll(ctx, in.folder, o.Temporary); err != nil {
			return nil, err
		}
	} else {
		if in.file, err = files.Open(ctx, name, o.Temporary); err != nil {
			return nil, err
		}
	}
	t, closer, err := in.read(ctx, name, o)
	if err != nil {
		in.close()
		return nil, err
	}
	closer()
	in.format, in.packed = t.Format(), len(t.Packings()) > 0
	if in.file == nil {
		return in, nil
	}
	var head []byte
	if in.identity, head, err = identify(name, in.file, ""); err != nil {
		in.close()
		return nil, err
	}
	if !in.packed {
		in.cut = parts.NewCutter(in.format, head)
	}
	return in, nil
}

// identifyAll identifies the content of several files.
func identifyAll(ctx context.Context, names []string, temporary string) (identity string, err error) {
	sum := sha256.New()
	for _, name := range names {
		f, err := files.Open(ctx, name, temporary)
		if err != nil {
			return "", err
		}
		one, _, err := identify(name, f, "")
		f.Close()
		if err != nil {
			return "", err
		}
		io.WriteString(sum, one)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// same reports whether the trace has not changed since it was opened.
func (in *input) same(ctx context.Context, name string, o *Options) bool {
	if in.file != nil {
		return in.file.Same(ctx, name)
	}
	list, err := files.Folder(name)
	if err != nil {
		return false
	}
	identity, err := identifyAll(ctx, list, o.Temporary)
	return err == nil && identity == in.identity
}

// isContainer reports whether the trace need not be converted.
func (in *input) isContainer() bool { return in.format == "sgt" && in.file != nil && !in.packed }

func (in *input) close() {
	if in.file != nil {
		in.file.Close()
	}
}

// read returns a reader of the whole trace, and a function that closes its files.
func (in *input) read(ctx context.Context, name string, o *Options) (t *open.Trace, closer func(), err error) {
	var content io.Reader
	closer = func() {}
	if in.file != nil {
		content = io.NewSectionReader(in.file, 0, in.file.Bytes)
	} else if content, closer, err = files.OpenFolder(ctx, name, in.folder, o.Temporary, packings); err != nil {
		return nil, nil, err
	}
	if t, err = open.Open(name, content, open.Options{Packings: packings}); err != nil {
		closer()
		return nil, nil, err
	}
	return t, closer, nil
}

// size returns the size of the file, or 0 for a folder.
func (in *input) size() int64 {
	if in.file == nil {
		return 0
	}
	return in.file.Bytes
}

// partBytes returns the size of a part before its borders are moved. A file that cannot be cut has
// one part.
func (in *input) partBytes(o *Options) int64 {
	if in.cut == nil {
		return max(1, in.size())
	}
	return max(int64(o.PartBytes), 1, (in.size()+mostParts-1)/mostParts)
}

// countParts returns the number of parts.
func (in *input) countParts(o *Options) int {
	return max(1, int((in.size()+in.partBytes(o)-1)/in.partBytes(o)))
}

// Part is a converted part of a trace.
type Part struct {
	Number  int
	File    string // the container
	Header  trace.Header
	Left    uint64   // number of references of kinds that are not analysed
	Threads []uint32 // threads with analysed references, at most a few more than can be analysed
	Problem string   // reason why the original file must be analysed instead, or ""
}

// converted describes all parts of a trace.
type converted struct {
	Format  string
	Parts   []string
	Header  trace.Header
	Threads int
	Left    uint64 // number of references of kinds that are not analysed, which the parts do not contain
	Problem string // reason why one worker must analyse the original file, or ""
}

// describe returns how the trace is read, for the report.
func (c *converted) describe() string {
	switch n := len(c.Parts); {
	case c.Problem != "":
		return c.Format + ", original file (" + c.Problem + ")"
	case n > 1:
		return c.Format + ", converted in " + strconv.Itoa(n) + " parts"
	}
	return c.Format + ", converted"
}

// convertedAs returns the name of a converted trace's description.
func (o *Options) convertedAs(identity string) string {
	return files.Join(o.Converted, identity+"-"+o.partKey()+".parts")
}

// partKey identifies the options that determine the parts.
func (o *Options) partKey() string { return strconv.FormatUint(o.PartBytes, 36) }

// conversion returns the description of a converted trace, or nil if it has not been converted.
func (o *Options) conversion(ctx context.Context, identity string) (*converted, error) {
	content, found, err := files.Read(ctx, o.convertedAs(identity))
	if err != nil || !found {
		return nil, err
	}
	c, err := decode[converted](content)
	if err != nil {
		return nil, nil // an incomplete file of another version
	}
	return &c, nil
}

// Conversions checks the options, and returns the tasks that convert traces in other formats to
// containers, and the number of traces that they convert. Traces that an earlier job has converted in the same workspace, and
// containers, need no conversion.
func Conversions(ctx context.Context, traces []string, o *Options) (tasks []Task, converts int, err error) {
	if err := o.checkFolders(ctx, traces); err != nil {
		return nil, 0, err
	}
	for _, name := range traces {
		in, err := openInput(ctx, name, o)
		if err != nil {
			return nil, 0, err
		}
		in.close()
		if in.isContainer() || o.Sample != "" { // a sample is read from the original file
			continue
		}
		known, err := o.conversion(ctx, in.identity)
		if err != nil {
			return nil, 0, err
		}
		if known != nil {
			continue
		}
		converts++
		for i := range in.countParts(o) {
			tasks = append(tasks, Task{Trace: name, Number: i})
		}
	}
	return tasks, converts, nil
}

// checkFolders checks the options, and whether all profiles have different names and can be written.
func (o *Options) checkFolders(ctx context.Context, traces []string) error {
	if err := o.Check(); err != nil {
		return err
	}
	outputs := map[string]string{}
	for _, name := range traces {
		to := o.profileOf(name)
		if other, taken := outputs[to]; taken {
			return fmt.Errorf("%s and %s would both be stored as %s; analyse them in two jobs, with different folders", other, name, to)
		}
		outputs[to] = name
	}
	for _, folder := range []string{o.Output, o.Workspace} {
		if folder == "" {
			continue
		}
		if err := files.Writable(ctx, folder, unique()); err != nil {
			return err
		}
	}
	return nil
}

// BuildConversion adds to a pipeline the steps that convert traces in other formats to containers.
// Each part of a trace is converted by any worker. After the pipeline, Check and Build use the
// containers.
func BuildConversion(s beam.Scope, tasks []Task, o Options) {
	var made []beam.PCollection
	for _, some := range o.lanes(s.Scope("Convert"), beam.CreateList(s, tasks)) {
		made = append(made, beam.ParDo(s, &convert{o}, some))
	}
	beam.ParDo0(s.Scope("Describe"), &describe{o}, beam.GroupByKey(s, beam.Flatten(s, made...)))
}

// convert converts a part of a trace to a container.
type convert struct{ Options Options }

func (f *convert) ProcessElement(ctx context.Context, task Task) (string, Part, error) {
	in, err := openInput(ctx, task.Trace, &f.Options)
	if err != nil {
		return "", Part{}, err
	}
	defer in.close()
	made := Part{Number: task.Number, File: files.Join(f.Options.Converted, in.identity+"-"+f.Options.partKey()+"-"+strconv.Itoa(task.Number)+".sgt")}
	t, from, to, closer, err := in.part(ctx, task.Trace, task.Number, &f.Options)
	if err != nil {
		return "", Part{}, err
	}
	defer closer()
	name := task.Trace + ", conversion of all bytes"
	if in.cut != nil {
		name = fmt.Sprintf("%s, conversion of bytes %s to %s", task.Trace, decimal(uint64(from)), decimal(uint64(to)))
	}
	w := begin(name)
	err = files.Write(ctx, made.File, unique(), func(to io.Writer) error { return made.write(ctx, to, t) })
	w.end(0)
	if err != nil {
		return "", Part{}, fmt.Errorf("%s: %w", name, err)
	}
	conversions.Inc(ctx, 1)
	return task.Trace, made, nil
}

// part returns a reader of a part of the trace, and the range of bytes.
func (in *input) part(ctx context.Context, name string, number int, o *Options) (t *open.Trace, from, to int64, closer func(), err error) {
	if in.cut == nil {
		t, closer, err = in.read(ctx, name, o)
		return t, 0, in.size(), closer, err
	}
	step := in.partBytes(o)
	if from, err = in.cut.Border(in.file, in.file.Bytes, int64(number)*step); err == nil {
		to, err = in.cut.Border(in.file, in.file.Bytes, int64(number+1)*step)
	}
	if err != nil {
		return nil, 0, 0, nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	var content io.Reader = io.NewSectionReader(in.file, from, to-from)
	if from > 0 {
		content = io.MultiReader(bytes.NewReader(in.cut.Header), content)
	}
	if from == to && len(in.cut.Header) == 0 {
		return nil, from, to, func() {}, nil // a neighbour contains all bytes
	}
	t, err = open.Open(name, content, open.Options{Format: in.format, Packings: packings})
	return t, from, to, func() {}, err
}

// write writes the rows of a trace to a container, and describes them. t is nil if there are none.
func (p *Part) write(ctx context.Context, to io.Writer, t *open.Trace) error {
	w := sgt.NewImporter(to, nil)
	kinds := analysis.Spec{}.WithDefaults().Kinds
	var keep []int32
	threads := map[uint32]bool{}
	begun, columns := false, [2]bool{}
	b := trace.NewBatch(0)
	var err error = io.EOF
	if t != nil {
		err = t.Next(b)
	}
	for ; err == nil; err = t.Next(b) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.Len() == 0 {
			continue
		}
		now := [2]bool{b.Thread != nil, b.PC != nil}
		if begun && now != columns {
			p.Problem = "threads or instructions are first recorded after the beginning"
		}
		begun, columns = true, now
		keep = keep[:0]
		for i, kind := range b.Kind {
			if kinds.Has(kind) {
				keep = append(keep, int32(i))
			}
		}
		p.Left += uint64(b.Len() - len(keep))
		b.Select(keep)
		for i, n := range b.Thread {
			if (i == 0 || n != b.Thread[i-1]) && len(threads) <= profile.MaxCores {
				threads[n] = true
			}
		}
		if b.Site != nil {
			p.Problem = "the format describes code"
		}
		if p.Problem != "" {
			break
		}
		if err := w.Write(b, t.Header()); err != nil {
			return err
		}
	}
	if t != nil {
		p.Header = t.Header()
	}
	if h := &p.Header; begun && (h.Threads != columns[0] || h.PCs != columns[1]) {
		p.Problem = "threads or instructions are first recorded after the beginning"
	}
	if h := p.Header.Program; h != nil && len(h.Blocks)+len(h.Sites) > 0 {
		p.Problem, p.Header.Program = "the format describes code", nil
	}
	var damage *trace.DamageError
	switch {
	case trace.IsSyntax(err) || errors.As(err, &damage):
		p.Problem = "a record cannot be read" // the analysis of the original file reports which record
	case err != nil && err != io.EOF && p.Problem == "":
		return err
	}
	for n := range threads {
		p.Threads = append(p.Threads, n)
	}
	slices.Sort(p.Threads)
	return w.Close(sgt.End{How: "converted"})
}

// describe writes the description of a converted trace.
type describe struct{ Options Options }

func (f *describe) ProcessElement(ctx context.Context, name string, made func(*Part) bool) error {
	in, err := openInput(ctx, name, &f.Options)
	if err != nil {
		return err
	}
	defer in.close()
	var list []Part
	for one := (Part{}); made(&one); one = (Part{}) {
		list = append(list, one)
	}
	if len(list) != in.countParts(&f.Options) {
		return fmt.Errorf("%s: %d parts were converted, want %d; the file was changed during the job, so run the job again", name, len(list), in.countParts(&f.Options))
	}
	slices.SortFunc(list, func(a, b Part) int { return a.Number - b.Number })
	content, err := encode(*combine(in.format, list))
	if err != nil {
		return err
	}
	return files.Write(ctx, f.Options.convertedAs(in.identity), unique(), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// combine combines the descriptions of all parts.
func combine(format string, list []Part) *converted {
	c := &converted{Format: format, Header: list[0].Header}
	threads := map[uint32]bool{}
	for i := range list {
		p := &list[i]
		c.Parts = append(c.Parts, p.File)
		for _, n := range p.Threads {
			threads[n] = true
		}
		c.Left += p.Left
		if p.Header.Format == "" { // no bytes
			continue
		}
		if c.Problem == "" {
			c.Problem = p.Problem
		}
		if first := &list[0].Header; p.Header.Threads != first.Threads || p.Header.PCs != first.PCs {
			c.Problem = "threads or instructions are first recorded after the beginning"
		}
		c.Header.Join(p.Header)
	}
	if len(list) > 1 && c.Header.Program != nil && c.Problem == "" {
		c.Problem = "the format describes threads"
	}
	c.Threads = len(threads)
	return c
}

// open opens the containers of a converted trace. After an error, no file remains open.
func (c *converted) open(ctx context.Context, name string, o *Options) (s *parts.Source, err error) {
	var list []parts.File
	var opened []*files.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
		}
	}()
	for _, part := range c.Parts {
		f, err := files.Open(ctx, part, o.Temporary)
		if err != nil {
			return nil, fmt.Errorf("%s: its converted part is missing; run the job again: %w", name, err)
		}
		opened = append(opened, f)
		list = append(list, parts.File{Name: part, Content: f, Bytes: f.Bytes})
	}
	s, err = parts.New(list, c.Header, c.Threads)
	if err != nil {
		return nil, fmt.Errorf("%s: its converted parts in %s are damaged (%w); delete them, and run the job again", name, o.Converted, err)
	}
	return s, nil
}

// plainReader reads a trace in order, and cannot move.
type plainReader struct{ *open.Trace }

func (plainReader) Position() trace.Position { return trace.Position{} }
func (plainReader) Until(trace.Position)     {}
func (plainReader) Narrow(trace.Kinds)       {}
func (plainReader) Pass(uint64) error        { return trace.ErrNotThere }

var _ trace.Mover = plainReader{}

// stem returns the name of a trace without its folders and without the ending .sgt.
func stem(name string) string {
	return strings.TrimSuffix(files.Base(strings.TrimRight(name, "/\\")), ".sgt")
}
