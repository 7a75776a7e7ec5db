package gem5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/records"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"pgregory.net/rapid"
)

type outcome = tracetest.Outcome

func reader(r io.Reader) trace.Reader { return NewReader("t", r) }

// The functions "number" and "text" each encode one field of a message. The function "delimited"
// prepends its length to a message.
func number(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func text(field int, s []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(field)<<3|2), delimited(s)...)
}

func delimited(message ...[]byte) []byte {
	whole := bytes.Join(message, nil)
	return append(binary.AppendUvarint(nil, uint64(len(whole))), whole...)
}

func packetOf(cmd, addr, size uint64, more ...[]byte) []byte {
	return delimited(number(1, 500), number(2, cmd), number(3, addr), number(4, size), bytes.Join(more, nil))
}

func requestor(key uint64, name string) []byte {
	return text(4, append(number(1, key), text(2, []byte(name))...))
}

func file(parts ...[]byte) string { return magic + string(bytes.Join(parts, nil)) }

var (
	plainHeader = delimited(text(1, []byte("system.monitor")), number(3, 1e12))
	namedHeader = delimited(text(1, []byte("system.probe")), number(3, 1e12), requestor(0, "writebacks"), requestor(5, "system.cpu0.data"))
	small       = file(namedHeader,
		packetOf(1, 0x8000, 8, number(5, 0x2), number(6, 5), number(7, 0x401000)),
		packetOf(4, 0x8008, 4, number(6, 5)),
		packetOf(1, 0x401004, 64, number(5, 0x100)),
		packetOf(7, 0x8000, 64, number(6, 0)),
	)
)

// The function "naive" is a reference implementation that decodes the whole file with
// encoding/binary. If the file ends in the middle of a message, that message is dropped.
func naive(file string) (all []outcome) {
	if len(file) < 4 {
		return nil
	}
	if file[:4] != magic {
		all = append(all, outcome{ErrorByte: 1})
	}
	named, headed := false, false
	for at := 4; at < len(file); {
		length, n := naiveVarint([]byte(file[at:]))
		if n == 0 {
			return all
		}
		longest := uint64(1 << 10)
		if !headed {
			longest = 32 << 10
		}
		if n < 0 || length > longest {
			headed = true
			all = append(all, outcome{ErrorByte: int64(at) + 1})
			if n < 0 {
				n, length = -n, 0
			}
			if at += n; uint64(len(file)-at) < length {
				return all
			}
			at += int(length)
			continue
		}
		if uint64(len(file)-at-n) < length {
			return all
		}
		start := at
		at += n + int(length)
		fields, ok := naiveFields([]byte(file[at-int(length) : at]))
		if !headed {
			headed = true
			entries, right := naiveHeader(fields)
			if !ok || !right {
				all = append(all, outcome{ErrorByte: int64(start) + 1})
			} else {
				named = entries
			}
			continue
		}
		o, there, right := naivePacket(fields)
		switch o.HasThread = named; {
		case !ok || !right:
			all = append(all, outcome{ErrorByte: int64(start) + 1})
		case there:
			if !named {
				o.Thread = 0
			}
			all = append(all, o)
		}
	}
	return all
}

// naiveVarint works like binary.Uvarint, but also rejects ten continuation bytes at the end of the
// input.
func naiveVarint(text []byte) (v uint64, n int) {
	if end := slices.IndexFunc(text, func(c byte) bool { return c < 0x80 }); len(text) >= 10 && (end < 0 || end > 9) {
		return 0, -10
	}
	return binary.Uvarint(text)
}

type naiveField struct {
	number, wire, value uint64
	text                []byte
}

func naiveFields(m []byte) (all []naiveField, ok bool) {
	for len(m) > 0 {
		tag, n := naiveVarint(m)
		if n <= 0 {
			return all, false
		}
		f := naiveField{number: tag >> 3, wire: tag & 7}
		m = m[n:]
		fixed := map[uint64]int{1: 8, 5: 4}[f.wire]
		switch f.wire {
		case 0:
			if f.value, n = naiveVarint(m); n <= 0 {
				return all, false
			}
			m = m[n:]
		case 2:
			length, n := naiveVarint(m)
			if n <= 0 || length > uint64(len(m)-n) {
				return all, false
			}
			f.text, m = m[n:n+int(length)], m[n+int(length):]
		case 1, 5:
			if len(m) < fixed {
				return all, false
			}
			m = m[fixed:]
		default:
			return all, false
		}
		all = append(all, f)
	}
	return all, true
}

func naiveHeader(fields []naiveField) (named, ok bool) {
	frequency := false
	for _, f := range fields {
		want, known := map[uint64]uint64{1: 2, 3: 0, 4: 2}[f.number]
		if known && f.wire != want {
			return false, false
		}
		frequency = frequency || f.number == 3
		if f.number == 4 {
			if _, ok := naiveFields(f.text); !ok {
				return false, false
			}
			named = true
		}
	}
	return named, frequency
}

func naivePacket(fields []naiveField) (o outcome, there, ok bool) {
	have := map[uint64]uint64{}
	for _, f := range fields {
		if f.number >= 1 && f.number <= 7 {
			if f.wire != 0 {
				return o, false, false
			}
			have[f.number] = f.value
		}
	}
	for _, required := range []uint64{2, 3, 4} {
		if _, ok := have[required]; !ok {
			return o, false, false
		}
	}
	if have[4] > math.MaxUint32 {
		return o, false, false
	}
	if have[4] > 0 && have[3]+(have[4]-1) < have[3] {
		return o, false, false
	}
	o.Addr, o.Bytes, o.PC, o.Thread = have[3], uint32(have[4]), have[7], uint32(have[6])
	switch uint32(have[2]) {
	case 1, 24, 25, 26:
		o.Kind = trace.Load
	case 4, 16, 22, 27:
		o.Kind = trace.Store
	default:
		return o, false, true
	}
	if have[5]&0x100 != 0 {
		o.Kind = trace.Fetch
	}
	return o, true, true
}

func TestPackets(t *testing.T) {
	row := func(kind trace.Kind, addr trace.Addr, bytes uint32, thread uint32, pc trace.Addr) outcome {
		return outcome{Ref: tracetest.Ref{Kind: kind, Addr: addr, Bytes: bytes, Thread: thread, PC: pc}, HasThread: true}
	}
	want := []outcome{
		row(trace.Load, 0x8000, 8, 5, 0x401000), row(trace.Store, 0x8008, 4, 5, 0), row(trace.Fetch, 0x401004, 64, 0, 0),
	}
	tracetest.CheckText(t, small, reader, want)
	tracetest.CheckText(t, small, reader, naive(small))
	r := NewReader("t", strings.NewReader(small))
	if _, err := trace.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	if !h.Threads || !h.PCs || !h.Sizes || len(h.Program.Threads) != 2 || h.Program.Threads[1].Number != 5 || h.Program.Threads[1].Name != "system.cpu0.data" {
		t.Errorf("header %+v, program %+v", h, h.Program)
	}
	if len(h.Capture) != 2 || h.Capture[0] != (trace.Fact{Name: "program", Value: "system.probe"}) ||
		h.Capture[1] != (trace.Fact{Name: "left out", Value: "1 packets that are not demand requests: 1 WritebackDirty"}) {
		t.Errorf("unexpected facts %v", h.Capture)
	}
}

// TestCommands checks that demand requests become references even if they were recorded below a
// cache. TestCommands also checks that all other packets are counted by command.
func TestCommands(t *testing.T) {
	messages := [][]byte{plainHeader}
	for _, cmd := range []uint64{1, 2, 4, 7, 10, 11, 22, 23, 24, 25, 26, 27, 16, 17, 7, 36} {
		messages = append(messages, packetOf(cmd, 64*cmd, 8))
	}
	r := NewReader("t", strings.NewReader(file(messages...)))
	b, err := trace.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for i, kind := range b.Kind {
		text += strconv.FormatUint(b.Addr[i]/64, 10) + " " + kind.String() + "; "
	}
	if want := "1 load; 4 store; 22 store; 24 load; 25 load; 26 load; 27 store; 16 store; "; text != want {
		t.Errorf("references %s, want %s", text, want)
	}
	h := r.Header()
	if want := "8 packets that are not demand requests: 1 ReadResp, 2 WritebackDirty, 1 CleanEvict, 1 SoftPFReq, 1 UpgradeReq, 1 ReadExResp, 1 other commands"; h.LeftOut() != want {
		t.Errorf("the omitted packets are %q, want %q", h.LeftOut(), want)
	}
}

func TestWithoutRequestors(t *testing.T) {
	whole := file(plainHeader, packetOf(1, 64, 8, number(6, 77)))
	tracetest.CheckText(t, whole, reader, []outcome{{Ref: tracetest.Ref{Kind: trace.Load, Addr: 64, Bytes: 8}}})
}

func TestEqualsReference(t *testing.T) {
	value := rapid.OneOf(rapid.Uint64Max(8), rapid.Uint64(), rapid.SampledFrom([]uint64{0x100, math.MaxUint32, math.MaxUint32 + 1}))
	message := rapid.Custom(func(t *rapid.T) []byte {
		if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
			return packetOf(rapid.SampledFrom([]uint64{1, 4, 2, 7, 16, 22, 23, 24, 25, 26, 27, 30, 1 << 33}).Draw(t, "cmd"), value.Draw(t, "addr"), value.Draw(t, "size"), number(7, value.Draw(t, "pc")), number(6, value.Draw(t, "id")))
		}
		var fields [][]byte
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			if f := rapid.IntRange(0, 9).Draw(t, "number"); rapid.Bool().Draw(t, "bytes") {
				fields = append(fields, text(f, rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "text")))
			} else {
				fields = append(fields, number(f, value.Draw(t, "value")))
			}
		}
		return delimited(fields...)
	})
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.SampledFrom([][]byte{plainHeader, namedHeader, delimited(number(3, 1), requestor(1, strings.Repeat("x", 40<<10))), {0}}).Draw(t, "header")
		whole := []byte(file(append([][]byte{header}, rapid.SliceOfN(message, 0, 9).Draw(t, "messages")...)...))
		for range rapid.IntRange(0, 2).Draw(t, "mutations") {
			whole[rapid.IntRange(0, len(whole)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		compare(t, whole)
	})
}

// The function "compare" reads only files that end at the end of a message. TestTruncatedFile
// covers files that end in the middle of a message.
func compare(t tracetest.Failer, whole []byte) {
	t.Helper()
	p := &parser{}
	r := records.NewReader("t", "gem5", bytes.NewReader(whole), p)
	b := trace.NewBatch(0)
	var damage *trace.DamageError
	for {
		err := r.Next(b)
		if err == io.EOF {
			break
		}
		if errors.As(err, &damage) {
			return
		}
	}
	if p.stage == skipping {
		return
	}
	tracetest.CheckText(t, string(whole), reader, naive(string(whole)))
}

func TestTruncatedFile(t *testing.T) {
	for cut := 1; cut < len(small); cut++ {
		r := NewReader("t", strings.NewReader(small[:cut]))
		b, err := trace.ReadAll(r)
		var damage *trace.DamageError
		if want := len(naive(small[:cut])); b.Len() != want {
			t.Errorf("file cut off at byte %d: %d rows, want %d", cut, b.Len(), want)
		}
		if err != nil && !(errors.As(err, &damage) && damage.Cut) {
			t.Errorf("file cut off at byte %d: error %v, want a DamageError that reports truncation", cut, err)
		}
	}
}

func TestRecognise(t *testing.T) {
	tracetest.CheckRecognise(t, Recognise, map[string]string{
		small:                                   "",
		small[:9]:                               "",
		file(plainHeader):                       "",
		"gem4":                                  "does not begin with gem5",
		"ge":                                    "does not begin with gem5",
		magic + string(delimited(number(1, 1))): "the header: field 1",
		file(plainHeader, delimited(number(1, 5), text(2, []byte("x")))): "the first message is not a packet",
	})
}

func TestNoAllocations(t *testing.T) {
	packets := tracetest.Endless(append(packetOf(1, 0x8000, 8, number(6, 5), number(7, 0x401000)), packetOf(4, 0x8008, 4)...))
	tracetest.CheckAllocations(t, testing.AllocsPerRun, NewReader("t", io.MultiReader(strings.NewReader(file(namedHeader)), packets)))
}

func FuzzGem5(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(file(plainHeader, packetOf(1, 64, 8, number(6, 77)))))
	f.Fuzz(func(t *testing.T, whole []byte) {
		Recognise(whole)
		compare(t, whole)
	})
}

func BenchmarkRead(b *testing.B) {
	tracetest.BenchmarkReader(b, NewReader, []byte(file(namedHeader, bytes.Repeat(packetOf(1, 0x8000, 8, number(5, 2), number(6, 5), number(7, 0x401000)), 50000))))
}
