package pass

import (
	"bytes"
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

// Task is a stretch to analyse, or what is left of one.
type Task struct {
	Trace  string // the file's name
	Number int    // of the stretch; -1 is what comes before the first one
	From   trace.Position
	Rest   bool // it begins behind what another worker has analysed of it
	Layout []byte
	Laid   bool
}

// Moved is what a stretch tells of where blocks of memory lie.
type Moved struct {
	Task
	Moves []byte
}

// Segment is the result of a stretch, or of several that follow each other.
type Segment struct {
	Trace    string
	Identity string
	Number   int    // of the stretch that it begins in
	Start    uint64 // references before it
	End      uint64 // and up to its end
	Profile  []byte // compressed; none: the segment stands for the trace itself
	Alone    string // why it cannot be joined, so that one worker has to do all; "": it can
}

// Result is what came of a trace.
type Result struct {
	Trace   string
	Profile string // the file
	Reason  string // why it is of a part only; "": it is of all
	Divided bool
	Facts   []Fact
}

// Fact is a number that the report compares among traces.
type Fact struct {
	Name  string
	Value float64
	Ratio bool
}

func init() {
	beam.RegisterCoder(reflect.TypeFor[Task](), encodeTask, decodeTask)
	beam.RegisterCoder(reflect.TypeFor[Moved](), encodeMoved, decodeMoved)
	beam.RegisterCoder(reflect.TypeFor[Segment](), encodeSegment, decodeSegment)
	beam.RegisterCoder(reflect.TypeFor[Result](), encodeResult, decodeResult)
}

// Beam knows coders by the names of their functions, which those of generic ones are not.

func encodeTask(v Task) ([]byte, error) { return encode(v) }
func decodeTask(b []byte) (Task, error) { return decode[Task](b) }

func encodeMoved(v Moved) ([]byte, error) { return encode(v) }
func decodeMoved(b []byte) (Moved, error) { return decode[Moved](b) }

func encodeSegment(v Segment) ([]byte, error) { return encode(v) }
func decodeSegment(b []byte) (Segment, error) { return decode[Segment](b) }

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

// What workers send each other is compressed: first touches and final orders are lists of
// numbers that grow by little.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
)

func pack(b []byte) []byte { return packer.EncodeAll(b, nil) }

func unpack(b []byte) ([]byte, error) { return unpacker.DecodeAll(b, nil) }

// packValue and unpackValue are for what has no form of its own.
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

// profile gives a segment's profile.
func (s *Segment) profile() (*profile.Profile, error) {
	b, err := unpack(s.Profile)
	if err != nil {
		return nil, fmt.Errorf("%s: the segment from reference %d on arrived damaged: %w", s.Trace, s.Start, err)
	}
	p, err := profile.Decode(b)
	if err == nil && p.Segment == nil {
		err = errors.New("it is no segment")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the segment from reference %d on arrived damaged: %w", s.Trace, s.Start, err)
	}
	return p, nil
}

// layoutOf is the form of a layout that tasks carry.
func layoutOf(l []sites.Block) ([]byte, error) { return packValue(l) }
