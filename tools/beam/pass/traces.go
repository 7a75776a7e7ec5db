package pass

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stackglass/stackglass/core/analysis"
	_ "github.com/stackglass/stackglass/core/analysis/prologue" // allows analyses to skip references
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

	References uint64 // approximate number of references of a stretch; 0: Check chooses it from the job and Workers
	Workers    int    // number of workers among which the stretches are distributed; 0: unknown
	MostLines  uint64 // approximate maximum of distinct lines of a segment
	PatienceMS int64  // milliseconds after which another worker gets the rest of a stretch; 0: never
	FanIn      int    // number of neighbours that are joined at once
	Lanes      int    // number of branches of the pipeline, for runners that process a collection in one bundle

	MostInline uint64 // maximum number of bytes of a segment in a message; larger segments are stored in files
	Spill      string // the folder of these files: see Temporarily
	Converted  string // the folder of the containers to which traces in other formats are converted: see Temporarily
	PartBytes  uint64 // approximate number of bytes of a part of a trace that is converted

	Workspace string // the folder that stores segments, so that a job can be resumed, or ""
	Temporary string // the folder to which workers copy files that are not on their machine
	Output    string // the folder of the profiles
}

// These are the default options.
const (
	DefaultMostLines = 1 << 24
	DefaultFanIn     = 8
	MostStretches    = 1 << 15
)

// Limits of the length of stretches that Check chooses. A stretch of MostReferences is so long that
// joining takes little time, and so short that a trace that is worth dividing among many machines has
// hundreds of stretches.
const (
	leastReferences = 1 << 20
	MostReferences  = 1 << 26
)

// Parts is the number of stretches for each worker, and the default number of lanes for each worker.
// With more stretches, workers finish at about the same time, but joining takes longer. On Prism, a
// lane is the unit that an idle worker takes.
const Parts = 4

// lengthFor returns the length of the stretches of a job whose traces have the given number of
// references. If the number of workers is not known, or there is only one worker, stretches are as
// long as possible. If traces are also read in order, there is only one stretch for each worker,
// because joining a line of a trace with threads costs ten times as much, and because the runs in
// order keep other workers busy until the last stretch has been analysed and joined.
func (o *Options) lengthFor(references uint64, inOrder bool) uint64 {
	if o.Workers <= 1 {
		return MostReferences
	}
	parts := uint64(Parts * o.Workers)
	if inOrder {
		parts = uint64(o.Workers)
	}
	return min(max((references+parts-1)/parts, leastReferences), MostReferences)
}

// shares returns the number of parts into which each half of the communication analysis is divided. A
// share takes at least a sixth of the time of the whole analysis, so there are no more than four.
func (o *Options) shares() int { return min(max(o.Workers/Parts, 1), mostShares) }

const mostShares = 4

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
	case o.MostLines < 1:
		return fmt.Errorf("segment-lines: want at least 1")
	case o.FanIn < 2:
		return fmt.Errorf("fan-in: %d, want at least 2", o.FanIn)
	case o.Lanes < 1:
		return fmt.Errorf("lanes: %d, want at least 1", o.Lanes)
	case o.MostInline > mostMessage:
		return fmt.Errorf("message-bytes: %d, want at most %d, because runners accept no larger messages", o.MostInline, mostMessage)
	case o.Output == "":
		return fmt.Errorf("output: give a folder for the profiles")
	}
	return nil
}

// opened is an opened trace.
type opened struct {
	source   trace.Source // nil if it cannot be read at any position
	left     uint64       // number of references of kinds that are not analysed, which the source does not contain
	input    *input
	format   string // how the trace is read, for the report
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
	if of != nil && of.done.Load() && !of.trace.input.same(ctx, name, o) {
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
const segmentVersion = 3

// endBytes is the number of bytes at the beginning and at the end of a file that identify it, with its
// size and the time of its last change. The index is at the end.
const endBytes = 64 << 10

func load(ctx context.Context, name string, o *Options) (t *opened, err error) {
	spec, err := o.spec()
	if err != nil {
		return nil, err
	}
	in, err := openInput(ctx, name, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	t = &opened{input: in, format: in.format}
	if in.isContainer() {
		if t.identity, _, err = identify(name, in.file, o.key()); err != nil {
			return nil, err
		}
		if source, err := sgt.NewSource(name, in.file, in.file.Bytes, nil); err == nil {
			t.source = source.Merged()
		}
	} else {
		sum := sha256.Sum256([]byte(o.key() + "\x00" + o.partKey() + "\x00" + in.identity))
		t.identity = hex.EncodeToString(sum[:16])
		if o.Sample != "" { // samples are not divided
			t.plan, err = t.undivided(o)
			return t, err
		}
		made, err := o.conversion(ctx, in.identity)
		if err != nil {
			return nil, err
		}
		if made == nil {
			return nil, fmt.Errorf("%s: its converted parts are not in %s; the file was changed during the job, or the folder was emptied, so run the job again", name, o.Converted)
		}
		if t.format = made.describe(); made.Problem == "" {
			source, err := made.open(ctx, name, o)
			if err != nil {
				return nil, err
			}
			if len(source.Chunks()) > 0 {
				t.source, t.left = source, made.Left
			}
		}
	}
	if t.source == nil {
		// Without an index, one worker reads the whole trace.
		t.plan, err = t.undivided(o)
		return t, err
	}
	references, most := uint64(0), uint64(MostStretches)
	chunks := t.source.Chunks()
	for _, c := range chunks {
		references += c.References
	}
	if len(chunks) == 1 {
		most = mostMerged
	}
	length := o.References
	if length == 0 {
		length = MostReferences
	}
	if t.plan, err = analysis.NewPlan(spec, t.source, max(length, references/most)); err == nil {
		t.plan.Shares = o.shares()
	}
	return t, err
}

// identify returns a hash of the ends, the size and the time of change of a file, and of a key, and
// returns the beginning of the file.
func identify(name string, file *files.File, key string) (identity string, head []byte, err error) {
	sum := sha256.New()
	sum.Write(binary.LittleEndian.AppendUint64([]byte(key+"\x00"), uint64(file.Bytes)))
	if !file.Changed.IsZero() {
		sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(file.Changed.UnixNano())))
	}
	head, tail := make([]byte, min(endBytes, file.Bytes)), make([]byte, min(endBytes, file.Bytes))
	for _, end := range []struct { // in a small file, both ends begin at byte 0
		at   int64
		part []byte
	}{{0, head}, {file.Bytes - int64(len(tail)), tail}} {
		if _, err := file.ReadAt(end.part, end.at); err != nil && err != io.EOF {
			return "", nil, fmt.Errorf("%s: cannot be read: %w", name, err)
		}
	}
	sum.Write(head)
	sum.Write(tail)
	return hex.EncodeToString(sum.Sum(nil)[:16]), head, nil
}

// mostMerged is the maximum number of stretches of a trace that counts as one chunk. To reach a
// stretch, a worker decodes all earlier rows. Decoding a row takes about 1 % of the time for analysing
// it, so 32 stretches cost at most 16 % more.
const mostMerged = 32

// reader returns a reader of the whole trace, and a function that closes its files. If the trace is
// not divided, the reader reads the original file, and a damaged chunk of a container does not end the
// trace.
func (t *opened) reader(ctx context.Context, name string, o *Options) (r trace.Mover, closer func(), err error) {
	if len(t.plan.Stretches) > 0 {
		return t.source.Open(0, trace.AllKinds), func() {}, nil
	}
	return t.whole(ctx, name, o)
}

// whole returns a reader of the original file.
func (t *opened) whole(ctx context.Context, name string, o *Options) (trace.Mover, func(), error) {
	if !t.input.isContainer() {
		plain, closer, err := t.input.read(ctx, name, o)
		return plainReader{plain}, closer, err
	}
	r := sgt.NewReader(name, io.NewSectionReader(t.input.file, 0, t.input.file.Bytes), sgt.Options{})
	if o, err := sgt.ReadOutline(t.input.file, t.input.file.Bytes); err == nil {
		r.Expect(o)
	}
	return r, func() {}, nil
}
