package drmemtrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type outcome = tracetest.Outcome

func reader(r io.Reader) trace.Reader { return NewReader("t", r) }

// entry has the same layout as DynamoRIO's type trace_entry_t.
type entry struct {
	Type, Size uint16
	Addr       uint64
}

func encode(all ...entry) string {
	var text bytes.Buffer
	for _, e := range all {
		if err := binary.Write(&text, binary.LittleEndian, e); err != nil {
			panic(err)
		}
	}
	return text.String()
}

// The function "naive" is a simple reference implementation that decodes each record with
// encoding/binary.
func naive(text string) (all []outcome) {
	r := strings.NewReader(text)
	var pc, next trace.Addr
	var thread uint32
	var known, threads bool
	for at := int64(0); ; at += 12 {
		var e entry
		if binary.Read(r, binary.LittleEndian, &e) != nil {
			return all
		}
		row := func(kind trace.Kind, addr trace.Addr, bytes uint32) {
			all = append(all, outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, Bytes: bytes, PC: pc, Thread: thread}, HasThread: threads})
		}
		again := known && pc == e.Addr
		switch e.Type {
		case 0:
			row(trace.Load, e.Addr, uint32(e.Size))
		case 1:
			row(trace.Store, e.Addr, uint32(e.Size))
		case 10, 11, 12, 13, 14, 15, 16, 29, 30, 31, 48, 49:
			pc, next, known = e.Addr, e.Addr+uint64(e.Size), true
			if e.Size > 0 && e.Type != 29 && !(e.Type == 30 && again) {
				row(trace.Fetch, pc, uint32(e.Size))
			}
		case 17:
			if !known || e.Size > 8 {
				all = append(all, outcome{ErrorByte: at + 1})
				continue
			}
			for i := range e.Size {
				length := uint8(e.Addr >> (8 * i))
				pc = next
				next += uint64(length)
				row(trace.Fetch, pc, uint32(length))
			}
		case 22:
			thread, threads = uint32(e.Addr), true
		default:
			if e.Type > 49 {
				all = append(all, outcome{ErrorByte: at + 1})
			}
		}
	}
}

var small = []entry{
	{25, 0, 7}, {28, 12, 7}, {22, 4, 4242}, {24, 4, 4240},
	{47, 4, 0xf0e48348}, {10, 4, 0x401000}, {0, 8, 0x7fff0010}, {1, 8, 0x7fff0010},
	{48, 2, 0x401004}, {2, 64, 0x9000},
	{30, 3, 0x401010}, {0, 1, 0x5000}, {30, 3, 0x401010}, {0, 1, 0x5001}, {29, 3, 0x401010}, {0, 1, 0x5002},
	{10, 5, 0x401013}, {17, 3, 0x040302}, {0, 4, 0x6000},
	{10, 0, 0x402000}, {1, 4, 0x6004},
	{22, 4, 4243}, {0, 4, 0x6008}, {23, 4, 4242}, {26, 0, 0},
}

func TestRecords(t *testing.T) {
	row := func(kind trace.Kind, addr trace.Addr, bytes uint32, pc trace.Addr, thread uint32) outcome {
		return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, Bytes: bytes, PC: pc, Thread: thread}, HasThread: true}
	}
	tracetest.CheckText(t, encode(small...), reader, []outcome{
		row(trace.Fetch, 0x401000, 4, 0x401000, 4242), row(trace.Load, 0x7fff0010, 8, 0x401000, 4242), row(trace.Store, 0x7fff0010, 8, 0x401000, 4242),
		row(trace.Fetch, 0x401004, 2, 0x401004, 4242),
		row(trace.Fetch, 0x401010, 3, 0x401010, 4242), row(trace.Load, 0x5000, 1, 0x401010, 4242), row(trace.Load, 0x5001, 1, 0x401010, 4242), row(trace.Load, 0x5002, 1, 0x401010, 4242),
		row(trace.Fetch, 0x401013, 5, 0x401013, 4242), row(trace.Fetch, 0x401018, 2, 0x401018, 4242), row(trace.Fetch, 0x40101a, 3, 0x40101a, 4242), row(trace.Fetch, 0x40101d, 4, 0x40101d, 4242),
		row(trace.Load, 0x6000, 4, 0x40101d, 4242), row(trace.Store, 0x6004, 4, 0x402000, 4242),
		row(trace.Load, 0x6008, 4, 0x402000, 4243),
	})
	r := NewReader("t", strings.NewReader(encode(small...)))
	if _, err := trace.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); !h.Threads || !h.PCs || !h.Sizes || h.Format != "drmemtrace" {
		t.Errorf("header %+v, want threads, PCs and sizes", h)
	}
}

func TestEqualsReference(t *testing.T) {
	kind := rapid.OneOf(rapid.Uint16Max(51), rapid.SampledFrom([]uint16{0, 1, 10, 17, 22, 29, 30}), rapid.Uint16())
	rapid.Check(t, func(t *rapid.T) {
		var all []entry
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			all = append(all, entry{kind.Draw(t, "type"), rapid.Uint16Max(10).Draw(t, "size"), rapid.OneOf(rapid.Uint64Max(3), rapid.Uint64()).Draw(t, "value")})
		}
		text := encode(all...)
		tracetest.CheckText(t, text, reader, naive(text))
	})
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		wrong entry
		want  string
	}{
		{entry{50, 0, 0}, `a at byte 12: type "50", want 0 to 49`},
		{entry{17, 2, 0}, `a at byte 12: type "17", want an instruction record before the first bundle`},
		{entry{17, 9, 0}, `a at byte 12: number of instructions in a bundle "9", want at most 8`},
	} {
		r, b := NewReader("a", strings.NewReader(encode(small[0], c.wrong, entry{0, 4, 8})+"cut")), trace.NewBatch(0)
		if err := r.Next(b); err == nil || err.Error() != c.want {
			t.Errorf("Next: error %v, want %s", err, c.want)
		}
		if err := r.Next(b); err != nil || b.Len() != 1 {
			t.Errorf("after the error, Next returned %d rows, error %v, want 1 row", b.Len(), err)
		}
		var damage *trace.DamageError
		if err := r.Next(b); !errors.As(err, &damage) || !damage.Cut || damage.Offset != 36 {
			t.Errorf("error %v, want a DamageError that reports truncation after 36 bytes", err)
		}
	}
}

func TestRecognise(t *testing.T) {
	tracetest.CheckRecognise(t, Recognise, map[string]string{
		encode(small...):              "",
		encode(small...)[:50]:         "",
		"0 1000\n":                    "shorter than one record, which has 12 bytes",
		encode(small[1:]...):          "the first record is of type 28, want 25",
		encode(entry{25, 0, 1 << 40}): "version",
		encode(small[0], entry{10, 4, 1}, entry{60, 0, 0}): "record 3 is of type 60",
	})
}

func TestNoAllocations(t *testing.T) {
	tracetest.CheckAllocations(t, testing.AllocsPerRun, NewReader("t", tracetest.Endless([]byte(encode(small...)))))
}

func FuzzDrmemtrace(f *testing.F) {
	f.Add([]byte(encode(small...)))
	f.Fuzz(func(t *testing.T, text []byte) {
		Recognise(text)
		whole := string(text[:len(text)/12*12])
		tracetest.CheckText(t, whole, reader, naive(whole))
	})
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, bytes.Repeat([]byte(encode(small...)), 20000))
}
