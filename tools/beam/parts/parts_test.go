package parts_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/beam/parts"
)

// rows returns all rows of a text, with zeros for columns that do not occur.
func rows(t *testing.T, format string, text []byte) *trace.Batch {
	t.Helper()
	if len(text) == 0 {
		return &trace.Batch{}
	}
	r, err := open.Open("t", bytes.NewReader(text), open.Options{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func join(a, b *trace.Batch) string {
	var s strings.Builder
	for _, part := range []*trace.Batch{a, b} {
		for i := range part.Addr {
			fmt.Fprintln(&s, part.Kind[i], part.Addr[i], part.Bytes[i], trace.At(part.PC, i), trace.At(part.Thread, i))
		}
	}
	return s.String()
}

// A file that is cut at the border after any offset has the same rows as the whole file.
func TestBorder(t *testing.T) {
	champsim := make([]byte, 10*64)
	for i := range champsim {
		if i%64 == 0 || i%64 == 32 {
			champsim[i] = byte(i/64 + 1)
		}
	}
	for name, text := range map[string]string{
		"din":       "0 10\n1 20 4\n\n2 30\r\n0 40",
		"pinatrace": "#\n0x1: R 0x10\n0x2: W 0x20 8\n#eof\n",
		"execlog":   "0, 0x40174a, 0xfffab1e8, \"callq 0x401200\", store, 0x10\n1, 0x40174b, 0xfffab1e8, \"nop\"\n",
		"csv":       "\naddr,tid\n1,2\n3,4\n5,6\n",
		"lackey":    "==1==\nI  00000001,4\n L 00000010,8\n S 00000018,8\nI  00000002,4\n M 00000020,8\n L 00000028,8\n",
		"lackey ":   " L 00000010,8\n S 00000018,8\n M 00000020,8\n",
		"lackey  ": "--1--   SCHED[1]:  acquired lock (x)\nI  00000001,4\n L 00000010,8\n--1--   SCHED[2]:  acquired lock (x)\nI  00000002,4\n" +
			" L 00000018,8\nI  00000003,4\n--1--   SCHED[2]:  acquired lock (x)\n L 00000020,8\n--1--   SCHED[1]:  acquired lock (x)\n--1--   SCHED[1]:  acquired lock (x)\nI  00000001,4\n S 00000028,8\n",
		"champsim": string(champsim),
	} {
		format := strings.TrimSpace(name)
		whole := join(rows(t, format, []byte(text)), &trace.Batch{})
		c := parts.NewCutter(format, []byte(text + "\n")[:len(text)+1])
		if c == nil {
			t.Fatalf("%s cannot be cut", format)
		}
		borders := map[int64]bool{}
		for offset := range int64(len(text)) + 2 {
			border, err := c.Border(strings.NewReader(text), int64(len(text)), offset)
			if err != nil || border < min(offset, int64(len(text))) {
				t.Fatalf("%s: %d, %v after offset %d", name, border, err, offset)
			}
			if format == "csv" && border <= int64(len("\naddr,tid\n")) && border > 0 {
				continue // the header line is cut off, so the second part has it twice, and is refused
			}
			borders[border] = true
			var second []byte
			if border > 0 {
				second = append(bytes.Clone(c.Header), text[border:]...)
			} else {
				second = []byte(text)
			}
			if got := join(rows(t, format, []byte(text[:border])), rows(t, format, second)); got != whole {
				t.Errorf("%s: cut at %d:\n%s\nwant\n%s", name, border, got, whole)
			}
		}
		if len(borders) < 3 {
			t.Errorf("%s: only cut at %v", name, borders)
		}
	}
	for _, format := range []string{"sgt", "sgl", "ppt", "gem5", "drmemtrace", ""} {
		if parts.NewCutter(format, []byte("x\n")) != nil {
			t.Errorf("%q can be cut", format)
		}
	}
}

// A Source whose rows are stored in several containers returns the same rows and the same chunks,
// from every chunk on and up to every position.
func TestSource(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	header := trace.Header{Format: "lackey", PCs: true, Sizes: true}
	var list []parts.File
	whole := trace.NewBatch(100_000)
	for number := range 4 {
		var out bytes.Buffer
		w := sgt.NewImporter(&out, nil)
		for range []int{3, 0, 1, 2}[number] {
			b := trace.NewBatch(5000)
			b.Resize(1 + rng.IntN(4000))
			b.NeedPC()
			for i := range b.Addr {
				b.Addr[i], b.Bytes[i], b.Kind[i], b.PC[i] = rng.Uint64N(1000), 8, trace.Kind(rng.IntN(3)), rng.Uint64N(50)
			}
			whole.AppendRows(b, 0, b.Len())
			if err := w.Write(b, header); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(sgt.End{How: "converted"}); err != nil {
			t.Fatal(err)
		}
		list = append(list, parts.File{Name: fmt.Sprint(number), Content: bytes.NewReader(out.Bytes()), Bytes: int64(out.Len())})
	}
	s, err := parts.New(list, header, 1)
	if err != nil {
		t.Fatal(err)
	}
	chunks := s.Chunks()
	if len(chunks) != 3 || s.Kinds() != 1<<trace.Load|1<<trace.Store|1<<trace.Modify {
		t.Fatalf("%v, %v", chunks, s.Kinds())
	}
	if p := s.Open(0, 0).Header().Program; p == nil || p.ThreadCount != 1 {
		t.Errorf("%+v", p)
	}
	before := 0
	for from, c := range chunks {
		for to := from; to <= len(chunks); to++ {
			for _, rows := range []uint64{0, 1, 700} {
				m := s.Open(c.At, trace.AllKinds)
				stop, end, want := trace.Position{Chunk: trace.AtEnd}, whole.Len(), io.EOF
				if to < len(chunks) {
					stop, want, end = trace.Position{Chunk: chunks[to].At, Rows: rows}, trace.ErrThere, before+int(rows)
					for _, one := range chunks[from:to] {
						end += int(one.References)
					}
				}
				m.Until(stop)
				got, b := trace.NewBatch(whole.Len()), trace.NewBatch(0)
				for err = m.Next(b); err == nil; err = m.Next(b) {
					if b.Site != nil || b.Thread != nil {
						t.Fatal("a row has a site or a thread")
					}
					got.AppendRows(b, 0, b.Len())
				}
				if err != want || !reflect.DeepEqual(got.Addr, whole.Addr[before:end]) && end > before || !reflect.DeepEqual(m.Header(), header) {
					t.Errorf("from chunk %d to %v: %v, %d rows, want %v, %d", from, stop, err, got.Len(), want, end-before)
				}
				if at := m.Position(); want == trace.ErrThere && rows > 0 && at != stop {
					t.Errorf("at %v, want %v", at, stop)
				}
				if !s.Agrees(m, 0) {
					t.Error("the readers do not agree")
				}
			}
		}
		before += int(c.References)
	}
	m, b := s.Open(0, trace.AllKinds), trace.NewBatch(0)
	if err := m.Pass(chunks[2].At); err != nil {
		t.Fatal(err)
	}
	if err := m.Next(b); err != nil || b.Addr[0] != whole.Addr[whole.Len()-int(chunks[2].References)] {
		t.Errorf("after Pass: %v", err)
	}
	if err := m.Pass(chunks[2].At + 1); err != trace.ErrNotThere {
		t.Errorf("Pass to no chunk: %v", err)
	}
	if err := m.Pass(trace.AtEnd); err != nil {
		t.Fatal(err)
	}
	if err := m.Next(b); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}
