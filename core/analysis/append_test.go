package analysis_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// readDemo returns all rows of the trace of a demo, and the demo's program.
func readDemo(t *testing.T, name string) (whole *trace.Batch, p *trace.Program) {
	t.Helper()
	file, err := os.Open("../../site/demos/" + name + ".sgt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := open.Open(name, file, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Select(trace.Kinds(^uint32(0)))
	whole = &trace.Batch{Thread: []uint32{}, Site: []uint32{}, Arg: []uint64{}}
	b := trace.NewBatch(0)
	for err = r.Next(b); err == nil; err = r.Next(b) {
		for i := range b.Kind {
			at := whole.Len()
			if whole.Append(b.Kind[i], b.Addr[i], b.Bytes[i], b.Thread[i], 0); b.Site != nil {
				whole.Site[at] = b.Site[i]
			}
			if b.Arg != nil {
				whole.Arg[at] = b.Arg[i]
			}
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	return whole, r.Header().Program
}

// If the trace of a multi-threaded demo is divided into segments, the joined profile is
// byte-identical to the profile of the whole trace.
func TestAppendDemos(t *testing.T) {
	for _, name := range []string{"false-sharing", "ring", "migratory-counter", "openmp-stencil"} {
		t.Run(name, func(t *testing.T) {
			whole, p := readDemo(t, name)
			spec := analysis.Spec{Mergeable: true}
			want := analysis.AsSegment(resultOf(t, spec, tracetest.NewProgramReader(p, whole, 4096)))
			if len(want.Sharing) == 0 {
				t.Fatal("the profile has no counts by thread")
			}
			for _, segments := range []int{2, 7, 64} {
				var parts []*profile.Profile
				for i := range segments {
					lo, hi := whole.Len()*i/segments, whole.Len()*(i+1)/segments
					spec.Start = referencesBefore(whole, lo)
					parts = append(parts, resultOf(t, spec, tracetest.NewProgramReader(p, tracetest.Part(whole, lo, hi), 4096)))
				}
				for len(parts) > 1 { // join neighbouring segments in pairs until one segment is left
					var sums []*profile.Profile
					for i := 0; i < len(parts); i += 2 {
						if i+1 == len(parts) {
							sums = append(sums, parts[i])
							continue
						}
						joined, err := analysis.Append(spec, parts[i], parts[i+1])
						if err != nil {
							t.Fatal(err)
						}
						sums = append(sums, checked(t, joined))
					}
					parts = sums
				}
				if parts[0].Digest() != want.Digest() {
					t.Fatalf("%d segments: the joined result differs from the result of the whole trace", segments)
				}
				if !bytes.Equal(parts[0].Encode(), want.Encode()) {
					t.Fatalf("%d segments: the joined state differs from the state of the whole trace", segments)
				}
			}
		})
	}
}

// FuzzAppend changes the list of threads in one of two segments, and then appends one segment to
// the other. The segment must be either appended or rejected, without a panic.
func FuzzAppend(f *testing.F) {
	p := allocatingProgram()
	rows := tracetest.Rows(p, sharingSteps(rand.New(rand.NewPCG(1, 69)), p, 120, 3)...)
	spec := analysis.Spec{Analyses: analysis.Sites | analysis.Sharing, Mergeable: true, LineBytes: []uint32{128}}
	var parts [2]*profile.Profile
	parts[0] = profileWithCommunication(f, spec, p, tracetest.Part(rows, 0, 60))
	spec.Start = parts[0].Totals.AllReferences()
	parts[1] = profileWithCommunication(f, spec, p, tracetest.Part(rows, 60, rows.Len()))
	for i := range parts {
		f.Add(i == 1, parts[i].Segment.Sharing)
	}
	f.Fuzz(func(t *testing.T, second bool, state []byte) {
		segments := parts
		i := 0
		if second {
			i = 1
		}
		changed, segment := *parts[i], *parts[i].Segment
		changed.Segment, segment.Sharing = &segment, state
		segments[i] = &changed
		if joined, err := analysis.Append(spec, segments[0], segments[1]); err == nil {
			joined.Encode()
		}
	})
}
