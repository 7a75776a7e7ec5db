package pass

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// Options say what to analyse, and how the work is divided. Workers get them with their
// work, so that they are plain values.
type Options struct {
	Analyses  string   // as of the command's --analyses
	LineBytes []uint32 // nil: 64

	References uint64 // in a stretch, about
	MostLines  uint64 // distinct lines in a segment, about; more make it several
	PatienceMS int64  // how long a stretch may take before others get what is left of it; 0: any time
	FanIn      int    // neighbours that are joined at once
	Lanes      int    // branches of the pipeline, for runners that put a collection into one bundle

	Workspace string // where segments are kept, so that a job can go on; "": nowhere
	Temporary string // where workers copy what is not on their machine
	Output    string // the folder of the profiles
}

// The defaults of options. A stretch is long enough for joining to cost little, and
// short enough for hundreds of them in a trace that is worth dividing.
const (
	DefaultReferences = 1 << 26
	DefaultMostLines  = 1 << 24
	DefaultFanIn      = 8
	MostStretches     = 1 << 15
)

// spec is what the analyses are asked.
func (o *Options) spec() (analysis.Spec, error) {
	set, err := analysis.ParseAnalyses(o.Analyses)
	return analysis.Spec{Analyses: set, LineBytes: o.LineBytes}.WithDefaults(), err
}

// Check tests the options; the error says what is wrong.
func (o *Options) Check() error {
	spec, err := o.spec()
	if err == nil {
		err = spec.Check()
	}
	switch {
	case err != nil:
		return err
	case spec.Analyses&analysis.Loops != 0:
		return fmt.Errorf("analyses: loops are folded from front to back, and cannot be divided; ask the command for them")
	case o.References < 1:
		return fmt.Errorf("references: a stretch has at least one")
	case o.MostLines < 1:
		return fmt.Errorf("lines: a segment has at least one")
	case o.FanIn < 2:
		return fmt.Errorf("fan-in: at least two segments are joined at a time, and %d are asked for", o.FanIn)
	case o.Lanes < 1:
		return fmt.Errorf("lanes: there is at least one, and %d are asked for", o.Lanes)
	case o.Output == "":
		return fmt.Errorf("output: name a folder for the profiles")
	}
	return nil
}

// opened is a trace as a worker knows it.
type opened struct {
	file     *files.File
	source   *sgt.Source // nil: it cannot be read at any place
	plan     *analysis.Plan
	identity string // tells traces and options apart
}

// traces are those that this process has open. A worker has one or a few, for hours.
var traces = struct {
	sync.Mutex
	open map[string]*opening
	used []string // the one used last comes last
}{open: map[string]*opening{}}

type opening struct {
	sync.Once
	done  atomic.Bool // there is a trace
	trace *opened
	err   error
}

// mostOpen traces stay open, each with its index in memory.
const mostOpen = 16

// openTrace gives a trace that is divided as the options say. What could not be opened is
// tried again when it is asked for again, as a runner does that repeats what failed.
func openTrace(ctx context.Context, name string, o *Options) (*opened, error) {
	key := name + "\x00" + o.key()
	traces.Lock()
	of := traces.open[key]
	traces.Unlock()
	if of != nil && of.done.Load() && !of.trace.file.Same(ctx, name) {
		forget(key, of) // an earlier job had another file of this name
	}
	traces.Lock()
	of = traces.open[key]
	if of == nil {
		of = &opening{}
		traces.open[key] = of
	} else {
		traces.used = slices.DeleteFunc(traces.used, func(k string) bool { return k == key })
	}
	traces.used = append(traces.used, key)
	if len(traces.used) > mostOpen {
		// Whoever still reads it has it open; the file goes with the last of them.
		delete(traces.open, traces.used[0])
		traces.used = slices.Delete(traces.used, 0, 1)
	}
	traces.Unlock()
	of.Do(func() {
		of.trace, of.err = load(ctx, name, o)
		of.done.Store(of.err == nil)
	})
	if of.err != nil {
		forget(key, of)
	}
	return of.trace, of.err
}

// forget has a trace be opened again when it is asked for.
func forget(key string, of *opening) {
	traces.Lock()
	defer traces.Unlock()
	if traces.open[key] == of {
		delete(traces.open, key)
		traces.used = slices.DeleteFunc(traces.used, func(k string) bool { return k == key })
	}
}

// key has what decides on the stretches and on what is in their segments.
func (o *Options) key() string {
	return fmt.Sprint(segmentVersion, " ", o.Analyses, " ", o.LineBytes, " ", o.References, " ", o.MostLines)
}

// segmentVersion is of the bytes of segments in workspaces.
const segmentVersion = 1

// endBytes of a file's beginning and of its end, where the index is, tell it from others,
// with its size and when it was written to.
const endBytes = 64 << 10

func load(ctx context.Context, name string, o *Options) (*opened, error) {
	spec, err := o.spec()
	if err != nil {
		return nil, err
	}
	file, err := files.Open(ctx, name, o.Temporary)
	if err != nil {
		return nil, err
	}
	if file.Bytes == 0 {
		return nil, fmt.Errorf("%s: is empty; capture it again", name)
	}
	t := &opened{file: file}
	head := make([]byte, min(endBytes, file.Bytes))
	if _, err := file.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if _, is := sgt.Recognise(head); !is {
		return nil, fmt.Errorf("%s: is no .sgt container; make one of it with: stackglass convert %s -o %s.sgt", name, name, strings.TrimSuffix(files.Base(name), ".lz4"))
	}
	sum := sha256.New()
	sum.Write(binary.LittleEndian.AppendUint64([]byte(o.key()+"\x00"), uint64(file.Bytes)))
	if !file.Changed.IsZero() {
		sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(file.Changed.UnixNano())))
	}
	sum.Write(head)
	tail := make([]byte, len(head))
	if _, err := file.ReadAt(tail, file.Bytes-int64(len(tail))); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	sum.Write(tail)
	t.identity = hex.EncodeToString(sum.Sum(nil)[:16])
	if t.source, err = sgt.NewSource(name, file, file.Bytes, nil); err != nil {
		// Without an index, one worker reads all of it.
		t.source = nil
		t.plan, err = t.undivided(o)
		return t, err
	}
	t.plan, err = analysis.NewPlan(spec, t.source, max(o.References, t.references()/MostStretches))
	return t, err
}

func (t *opened) references() (n uint64) {
	for _, c := range t.source.Chunks() {
		n += c.References
	}
	return n
}

// reader reads the trace from its beginning.
func (t *opened) reader(name string) *sgt.Reader {
	r := sgt.NewReader(name, io.NewSectionReader(t.file, 0, t.file.Bytes), sgt.Options{})
	r.Until(trace.Position{Chunk: trace.AtEnd})
	return r
}
