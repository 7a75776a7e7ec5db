package pass

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/klauspost/compress/zstd"

	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Task is a stretch to analyse, or the rest of one.
type Task struct {
	Trace  string // path of the profile's name
	Number int    // number of the stretch; -1 means the references before the first one
	From   trace.Position
	Rest   bool // another worker has analysed the references before From
	Layout []byte
	Laid   bool
}

// Moved contains the allocations of a stretch.
type Moved struct {
	Task
	Moves []byte
}

// Segment is the result of a stretch, or of several consecutive ones.
type Segment struct {
	Trace    string
	Identity string
	Number   int    // number of the stretch in which it begins
	Start    uint64 // number of references before it
	End      uint64 // number of references up to its end
	Profile  []byte // compressed; nil: File contains it, or the segment only represents the trace
	File     string // the file that contains the compressed profile, or ""
	Digest   string // SHA-256 of the file's content
	InOrder  bool   // Profile contains the results of run Number of the analyses that have no segments
	Divided  bool   // Profile contains the whole trace, whose segments were joined
	Alone    string // reason why it cannot be joined, so that one worker must analyse the whole trace, or ""
}

// Result is the result of a trace.
type Result struct {
	Trace   string
	Profile string // path of the profile
	Reason  string // reason why the profile is partial, or ""
	Input   string // format, and how the trace was read
	Divided bool
	Sampled bool // the numbers are estimates
	Facts   []Fact
}

// Fact is a number that the report compares between traces.
type Fact struct {
	Name  string
	Value float64
	Ratio bool
}

func init() {
	beam.RegisterCoder(reflect.TypeFor[Task](), encodeTask, decodeTask)
	beam.RegisterCoder(reflect.TypeFor[Moved](), encodeMoved, decodeMoved)
	beam.RegisterCoder(reflect.TypeFor[Segment](), encodeSegment, decodeSegment)
	beam.RegisterCoder(reflect.TypeFor[Part](), encodePart, decodePart)
	beam.RegisterCoder(reflect.TypeFor[Result](), encodeResult, decodeResult)
}

// Beam identifies coders by the names of their functions, and generic functions have no unique names.

func encodeTask(v Task) ([]byte, error) { return encode(v) }
func decodeTask(b []byte) (Task, error) { return decode[Task](b) }

func encodeMoved(v Moved) ([]byte, error) { return encode(v) }
func decodeMoved(b []byte) (Moved, error) { return decode[Moved](b) }

func encodeSegment(v Segment) ([]byte, error) { return encode(v) }
func decodeSegment(b []byte) (Segment, error) { return decode[Segment](b) }

func encodePart(v Part) ([]byte, error) { return encode(v) }
func decodePart(b []byte) (Part, error) { return decode[Part](b) }

func encodeResult(v Result) ([]byte, error) { return encode(v) }
func decodeResult(b []byte) (Result, error) { return decode[Result](b) }

func encode[T any](v T) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(&v)
	return b.Bytes(), err
}

func decode[T any](b []byte) (v T, err error) {
	err = gob.NewDecoder(bytes.NewReader(b)).Decode(&v)
	return v, err
}

// Messages between workers are compressed, because first accesses and final orders are lists of
// numbers with small differences.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
)

func pack(b []byte) []byte { return packer.EncodeAll(b, nil) }

func unpack(b []byte) ([]byte, error) { return unpacker.DecodeAll(b, nil) }

// packValue and unpackValue compress and decompress values that have no encoding of their own.
func packValue[T any](v T) ([]byte, error) {
	b, err := encode(v)
	return pack(b), err
}

func unpackValue[T any](b []byte) (v T, err error) {
	if b, err = unpack(b); err != nil {
		return v, err
	}
	return decode[T](b)
}

// represents reports whether the segment contains no references, and only represents the trace.
func (s *Segment) represents() bool { return s.Profile == nil && s.File == "" && s.Alone == "" }

// profile decodes the segment's profile.
func (s *Segment) profile(ctx context.Context) (*profile.Profile, error) {
	b, err := s.content(ctx)
	if err != nil {
		return nil, err
	}
	if b, err = unpack(b); err != nil {
		return nil, fmt.Errorf("%s: the segment that begins at reference %d arrived damaged; run the job again: %w", s.Trace, s.Start, err)
	}
	p, err := profile.Decode(b)
	if err == nil && p.Segment == nil {
		err = errors.New("it is not a segment")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the segment that begins at reference %d arrived damaged; run the job again: %w", s.Trace, s.Start, err)
	}
	return p, nil
}

// layoutOf encodes a list of memory blocks for a task.
func layoutOf(l []sites.Block) ([]byte, error) { return packValue(l) }
