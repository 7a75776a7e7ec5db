package analysis_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// containerIndex is the content of the index of a container: the offsets of tables, and six numbers
// for each chunk, the first of which is the offset of the chunk (core/trace/sgt/FORMAT.md).
type containerIndex struct {
	chunks [][6]uint64
	tables []uint64
}

// indexOf splits a file into the bytes before the index, and the index.
func indexOf(t *testing.T, file []byte) (x containerIndex, before []byte) {
	t.Helper()
	const end = 8 + 4 + 4
	at := binary.LittleEndian.Uint64(file[len(file)-end:])
	body := file[at+12 : len(file)-end]
	number := func() uint64 {
		v, n := binary.Uvarint(body)
		if n <= 0 {
			t.Fatal("the file has no index")
		}
		body = body[n:]
		return v
	}
	from := uint64(0)
	for range number() {
		c := [6]uint64{number(), number(), number(), number(), number(), number()}
		from += c[0]
		c[0] = from
		x.chunks = append(x.chunks, c)
	}
	from = 0
	for range number() {
		from += number()
		x.tables = append(x.tables, from)
	}
	return x, file[:at]
}

// write returns a file that consists of the given bytes, followed by the index.
func (x containerIndex) write(before []byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(x.chunks)))
	at := uint64(0)
	for _, c := range x.chunks {
		body = binary.AppendUvarint(body, c[0]-at)
		at = c[0]
		for _, v := range c[1:] {
			body = binary.AppendUvarint(body, v)
		}
	}
	body = binary.AppendUvarint(body, uint64(len(x.tables)))
	at = 0
	for _, table := range x.tables {
		body = binary.AppendUvarint(body, table-at)
		at = table
	}
	body = binary.LittleEndian.AppendUint64(body, uint64(len(before)))
	return sgt.AppendFrame(slices.Clip(before), "INDX", append(body, "SGTX"...))
}

// corrupt changes one number in the index, at random.
func (x *containerIndex) corrupt(rng *rand.Rand) {
	if len(x.chunks) == 0 || len(x.tables) == 0 {
		return
	}
	i, j := rng.IntN(len(x.chunks)), rng.IntN(len(x.tables))
	switch c := &x.chunks[i]; rng.IntN(9) {
	case 0:
		x.chunks = slices.Delete(x.chunks, i, i+1)
	case 1:
		x.tables = slices.Delete(x.tables, j, j+1)
	case 2:
		x.chunks = x.chunks[:i]
	case 3:
		x.tables = x.tables[:j]
	case 4:
		c[3] += rng.Uint64N(200)
	case 5:
		c[3] -= rng.Uint64N(1 + c[3])
	case 6:
		c[1+rng.IntN(5)] ^= 1 << rng.IntN(12)
	case 7:
		c[0] = x.tables[j]
	case 8:
		x.tables[j] = c[0]
	}
}

// TestWrongIndex checks that a wrong index does not change the result. Readers that read the file
// sequentially do not use the index.
func TestWrongIndex(t *testing.T) {
	joined, shared := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 25))
		p := allocatingProgram()
		file := container(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(6000)))
		x, before := indexOf(t, file)
		if again := x.write(before); !bytes.Equal(again, file) {
			t.Fatal("decoding and encoding changes the index")
		}
		for range 1 + rng.IntN(2) {
			x.corrupt(rng)
		}
		file = x.write(before)
		source, err := sgt.NewSource("t", bytes.NewReader(file), int64(len(file)), nil)
		if err != nil || source.Chunks() == nil {
			continue
		}
		shared++
		spec := dividedSpecs(rng)
		want, wantErr := analyseSequentially(t, spec, readerOf(file))
		r := readerOf(file)
		d, err := analysis.NewDivided(spec, r, r, source, analysis.DividedOptions{
			Helpers: countingHelpers(&joined)(1+rng.IntN(3), spec, source), SegmentReferences: 1 + rng.IntN(3000),
		})
		if err != nil {
			t.Fatal(err)
		}
		checkEnd(t, seed, d, want, wantErr)
	}
	if joined < 50 || shared < 100 {
		t.Errorf("%d segments were joined, in %d files, want at least 50 and 100", joined, shared)
	}
}

// TestReadAhead checks that the results do not depend on how far the reader has read ahead of a
// row, although reading ahead extends the tables.
func TestReadAhead(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 26))
		p := allocatingProgram()
		file := container(t, rng, p, allocatingSteps(rng, p, 1+rng.IntN(6000)))
		spec := dividedSpecs(rng)
		want, _ := analyseSequentially(t, spec, sgt.NewReader("t", bytes.NewReader(file), sgt.Options{Strict: true})) // this reader does not read ahead
		got, _ := analyseSequentially(t, spec, readerOf(file))
		part, _ := analyseSequentially(t, spec, sourceOf(t, file).Open(0, trace.AllKinds|trace.EventKinds))
		if !bytes.Equal(got.Encode(), want.Encode()) || !bytes.Equal(part.Encode(), want.Encode()) {
			t.Fatalf("seed %d: reading ahead changes the result; spec: %+v", seed, spec)
		}
	}
}
