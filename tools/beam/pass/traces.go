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
	"github.com/stackglass/stackglass/core/analysis/sample"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // makes samples available
	_ "github.com/stackglass/stackglass/core/analysis/structures"      // makes the analysis available
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/beam/files"
)

// Options contains the analyses, and how the work is divided. It contains only plain values, because
// workers receive it with their tasks.
type Options struct {
	Analyses  string   // as in the command's --analyses
	LineBytes []uint32 // nil: 64
	Sample    string   // as in the command's --sample, or ""
	Seed      uint64   // seed of the sample

	References uint64 // approximate number of references of a stretch
	MostLines  uint64 // approximate maximum of distinct lines of a segment
	PatienceMS int64  // milliseconds after which another worker gets the rest of a stretch; 0: never
	FanIn      int    // number of neighbours that are joined at once
	Lanes      int    // number of branches of the pipeline, for runners that process a collection in one bundle

	MostInline uint64 // maximum number of bytes of a segment in a message; larger segments are stored in files
	Spill      string // the folder of these files: see SpillTo

	Workspace string // the folder that stores segments, so that a job can be resumed, or ""
	Temporary string // the folder to which workers copy files that are not on their machine
	Output    string // the folder of the profiles
}

// These are the default options. A stretch is so long that joining takes little time, and so short
// that a trace that is worth dividing has hundreds of stretches.
const (
	DefaultReferences = 1 << 26
	DefaultMostLines  = 1 << 24
	DefaultFanIn      = 8
	MostStretches     = 1 << 15
)

// spec returns the specification of the analyses.
func (o *Options) spec() (analysis.Spec, error) {
	set, err := analysis.ParseAnalyses(o.Analyses)
	spec := analysis.Spec{Analyses: set, LineBytes: o.LineBytes}.WithDefaults()
	if err == nil && o.Sample != "" {
		var chosen sample.Options
		chosen, err = sample.Parse(o.Sample)
		chosen.Seed = o.Seed
		spec.Sample = chosen
	}
	return spec, err
}

// Check returns an error if an option is invalid.
func (o *Options) Check() error {
	spec, err := o.spec()
	if err == nil {
		err = spec.Check()
	}
	switch {
	case err != nil:
		return err
	case o.References < 1:
		return fmt.Errorf("references: want at least 1")
	case o.MostLines < 1:
		return fmt.Errorf("segment-lines: want at least 1")
	case o.FanIn < 2:
		return fmt.Errorf("fan-in: %d, want at least 2", o.FanIn)
	case o.Lanes < 1:
		return fmt.Errorf("lanes: %d, want at least 1", o.Lanes)
	case o.Output == "":
		return fmt.Errorf("output: give a folder for the profiles")
	}
	return nil
}

// opened is an opened trace.
type opened struct {
	file     *files.File
	source   *sgt.Source // nil if it cannot be read at any position
	plan     *analysis.Plan
	identity string // identifies the trace and the options
}

// traces contains the traces that this process has open. A worker needs one or a few, for hours.
var traces = struct {
	sync.Mutex
	open map[string]*opening
	used []string // ascending by the time of last use
}{open: map[string]*opening{}}

type opening struct {
	sync.Once
	done  atomic.Bool // trace is set
	trace *opened
	err   error
}

// mostOpen is the maximum number of open traces. Each needs memory for its index.
const mostOpen = 16

// openTrace returns a trace that is divided according to the options. A trace that could not be
// opened is tried again at the next call, because runners repeat failed work.
func openTrace(ctx context.Context, name string, o *Options) (*opened, error) {
	key := name + "\x00" + o.key()
	traces.Lock()
	of := traces.open[key]
	traces.Unlock()
	if of != nil && of.done.Load() && !of.trace.file.Same(ctx, name) {
		forget(key, of) // an earlier job read another file with this name
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
		// The file remains open for goroutines that still read it.
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

// forget makes the next call of openTrace open the trace again.
func forget(key string, of *opening) {
	traces.Lock()
	defer traces.Unlock()
	if traces.open[key] == of {
		delete(traces.open, key)
		traces.used = slices.DeleteFunc(traces.used, func(k string) bool { return k == key })
	}
}

// key returns the options that determine the stretches and the contents of their segments.
func (o *Options) key() string {
	return fmt.Sprint(segmentVersion, " ", o.Analyses, " ", o.LineBytes, " ", o.Sample, " ", o.Seed, " ", o.References, " ", o.MostLines)
}

// segmentVersion is the version of the encoding of segments in workspaces.
const segmentVersion = 2

// endBytes is the number of bytes at the beginning and at the end of a file that identify it, with its
// size and the time of its last change. The index is at the end.
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
		return nil, fmt.Errorf("%s: is empty; record the trace again", name)
	}
	t := &opened{file: file}
	head := make([]byte, min(endBytes, file.Bytes))
	if _, err := file.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: cannot be read: %w", name, err)
	}
	if _, is := sgt.Recognise(head); !is {
		return nil, fmt.Errorf("%s: is not an .sgt container; convert it with: stackglass convert %s -o %s.sgt", name, name, strings.TrimSuffix(files.Base(name), ".lz4"))
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
	source, err := sgt.NewSource(name, file, file.Bytes, nil)
	if err != nil {
		// Without an index, one worker reads the whole trace.
		t.plan, err = t.undivided(o)
		return t, err
	}
	t.source = source.Merged()
	references, most := uint64(0), uint64(MostStretches)
	chunks := t.source.Chunks()
	for _, c := range chunks {
		references += c.References
	}
	if len(chunks) == 1 {
		most = mostMerged
	}
	t.plan, err = analysis.NewPlan(spec, t.source, max(o.References, references/most))
	return t, err
}

// mostMerged is the maximum number of stretches of a trace that counts as one chunk. To reach a
// stretch, a worker decodes all earlier rows. Decoding a row takes about 1 % of the time for analysing
// it, so 32 stretches cost at most 16 % more.
const mostMerged = 32

// reader returns a reader of the whole trace. If the trace is not divided, a damaged chunk does not
// end the trace.
func (t *opened) reader(name string) trace.Mover {
	if len(t.plan.Stretches) > 0 {
		return t.source.Open(0, trace.AllKinds)
	}
	r := sgt.NewReader(name, io.NewSectionReader(t.file, 0, t.file.Bytes), sgt.Options{})
	if o, err := sgt.ReadOutline(t.file, t.file.Bytes); err == nil {
		r.Expect(o)
	}
	return r
}
