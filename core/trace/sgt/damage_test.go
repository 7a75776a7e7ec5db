package sgt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// The function "frames" divides a file into its frames. It returns each LZ4 frame together with the
// CHNK frame before it.
func frames(t failer, file []byte) (all [][]byte) {
	t.Helper()
	f := feed{r: bytes.NewReader(file)}
	for {
		from := f.at
		made, err := f.next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
		if made.tag == tagChunk {
			c, err := parseChunk(made.body)
			if err != nil {
				t.Fatalf("%v", err)
			}
			if err := f.skip(int(c.frameBytes)); err != nil {
				t.Fatalf("%v", err)
			}
		}
		all = append(all, file[from:f.at])
	}
}

// chunky returns a file with four chunks of ten references each.
func chunky(t failer) (file []byte, rows []row) {
	p := blocksOf("ls")
	var steps []step
	for i := range uint64(20) {
		steps = append(steps, step{1, i / 5, 0, []uint64{1<<40 + i*i*8, i}})
	}
	return write(t, p, steps, chunkSize{bytes: 1 << 20, steps: 5}), naiveRows(p, steps, trace.AllKinds)
}

func TestDamagedContainer(t *testing.T) {
	whole, rows := chunky(t)
	parts := frames(t, whole) // frames of the file: "SGT.", MODL, four times CHNK, DONE, INDX
	foreign := append(binary.LittleEndian.AppendUint32(nil, 0x184d2a51), 3, 0, 0, 0, 'a', 'b', 'c')
	unknown := AppendFrame(nil, "NEW!", []byte("of a later version"))
	wrong := func(part []byte, at int) []byte {
		b := bytes.Clone(part)
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	later := AppendFrame(nil, tagFile, []byte{9, 7, 64, 0})
	readable := AppendFrame(nil, tagFile, []byte{9, 1, 64, 0, 'm', 'o', 'r', 'e'})
	for _, c := range []struct {
		name  string
		parts [][]byte
		rows  []row
		want  string // text that the error must contain, or "" if no error is expected
	}{
		{"nothing", parts, rows, ""},
		{"foreign frames", slices.Insert(slices.Clone(parts), 2, foreign, unknown), rows, ""},
		{"a later version that this reader can read", slices.Concat([][]byte{readable}, parts[1:]), rows, ""},
		{"a later version", slices.Concat([][]byte{later}, parts[1:]), nil, "t: container version 9 requires reader version 7 or later, but this reader has version 1; use a newer stackglass"},
		{"no bytes", nil, nil, "truncated after 0"},
		{"another file", [][]byte{foreign, unknown}, nil, "(the file does not begin with the header of a container)"},
		{"two files", slices.Concat(parts, parts), rows, "(a second trace begins here, but traces cannot be concatenated; convert each file separately)"},
		{"a wrong byte in the content of a chunk", slices.Concat(parts[:3], [][]byte{wrong(parts[3], -9)}, parts[4:]), slices.Concat(rows[:10], rows[20:]), "(1 chunk with 10 references cannot be read; the first error: lz4: "},
		{"a wrong byte in the frame of a chunk", slices.Concat(parts[:3], [][]byte{wrong(parts[3], 12)}, parts[4:]), slices.Concat(rows[:10], rows[20:]), "(1 chunk with 0 references cannot be read; the first error: the checksum of a frame is wrong)"},
		{"two chunks", slices.Concat(parts[:3], [][]byte{wrong(parts[3], -9), wrong(parts[4], -9)}, parts[5:]), slices.Concat(rows[:10], rows[30:]), "(2 chunks with 20 references cannot be read; the first error: lz4: "},
		{"the end", slices.Concat(parts[:6], [][]byte{wrong(parts[6], 13)}, parts[7:]), rows, "(1 table cannot be read; the first error: the checksum of a frame is wrong)"},
		{"tables", slices.Concat(parts[:1], [][]byte{wrong(parts[1], 13)}, parts[2:]), nil, "(the checksum of a frame is wrong)"},
		{"tables are missing", slices.Concat(parts[:1], parts[2:]), nil, "(4 chunks with 40 references cannot be read; the first error: the chunk has a step for a block that no table contains)"},
		{"no index", parts[:7], rows, "truncated"},
		{"no end", parts[:6], rows, "t is truncated after "},
		{"half a chunk", slices.Concat(parts[:5], [][]byte{parts[5][:20]}), rows[:30], "t is truncated after "},
		{"a magic number", slices.Concat(parts[:4], [][]byte{{1, 2, 3, 4, 0, 0, 0, 0}}, parts[4:]), rows[:20], "(there is no frame at the expected position)"},
	} {
		file := slices.Concat(c.parts...)
		got, end := rowsOf(t, NewReader("t", bytes.NewReader(file), Options{}), 0)
		if c.want == "" && end != io.EOF || c.want != "" && (end == io.EOF || !strings.Contains(end.Error(), c.want)) {
			t.Errorf("%s: reading ended with\n%v, want\n%s", c.name, end, c.want)
		}
		if !slices.Equal(got, c.rows) {
			t.Errorf("%s: %d rows, want %d", c.name, len(got), len(c.rows))
		}
	}
}

func TestEndingAsText(t *testing.T) {
	for want, e := range map[string]Ending{
		"":          {},
		"exit 3":    {Known: true, End: End{How: "exit", Status: 3}},
		"signal 15": {Known: true, End: End{How: "signal 15", Status: 143}},
		"recording stopped: no space left on device": {Known: true, End: End{How: "error 28"}},
		"recording stopped: error 99":                {Known: true, End: End{How: "error 99"}},
	} {
		if got := e.String(); got != want {
			t.Errorf("%+v is %q, want %q", e.End, got, want)
		}
	}
}

// TestSourceWithWrongIndex checks that NewSource rejects a file if its index is wrong, or if its
// last bytes contain a wrong index position.
func TestSourceWithWrongIndex(t *testing.T) {
	whole, _ := chunky(t)
	for at := range 60 {
		file := bytes.Clone(whole)
		file[len(file)-1-at] ^= 4
		if _, err := NewSource("t", bytes.NewReader(file), int64(len(file)), nil); err == nil {
			t.Fatalf("NewSource returned no error, although byte %d from the end is wrong", at)
		}
	}
}

// TestReaderQueuesFewChunks checks that, if several threads take turns, a reader queues the chunks
// of only one round.
func TestReaderQueuesFewChunks(t *testing.T) {
	p := blocksOf("l")
	var steps []step
	for i := range uint64(30000) {
		steps = append(steps, step{uint32(i%3) + 1, i, 0, []uint64{i * i}})
	}
	r := NewReader("t", bytes.NewReader(write(t, p, steps, chunkSize{bytes: 1 << 20, steps: 100})), Options{})
	b, rows := trace.NewBatch(64), 0
	for {
		err := r.Next(b)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rows += b.Len()
		waiting := 0
		for _, l := range r.lanes {
			waiting += len(l.queue)
		}
		if waiting > 6 {
			t.Fatalf("%d chunks are queued after %d rows, want at most 6, two for each of three threads", waiting, rows)
		}
	}
	if rows != len(steps) {
		t.Errorf("%d rows, want %d", rows, len(steps))
	}
}

// TestFileErrorsAreNotDamage checks that an error while reading the file is not reported as damage
// to the trace.
func TestFileErrorsAreNotDamage(t *testing.T) {
	whole, _ := chunky(t)
	gone := errors.New("the disk is gone")
	got, end := rowsOf(t, NewReader("t", io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), failing{gone}), Options{}), 0)
	if end != gone || len(got) == 0 {
		t.Errorf("%d rows, error %v, want some rows and the error of the file", len(got), end)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
