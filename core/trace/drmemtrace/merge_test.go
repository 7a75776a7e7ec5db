package drmemtrace

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// drawPart returns the records of a random single-threaded file. The timestamps in the file never
// decrease.
func drawPart(t *rapid.T, thread uint64) (all []entry) {
	all = []entry{{Type: typeHeader, Addr: 2}}
	if rapid.Bool().Draw(t, "has thread") {
		all = append(all, entry{Type: typeThread, Addr: thread})
	}
	at := uint64(0)
	for range rapid.IntRange(0, 12).Draw(t, "records") {
		switch rapid.IntRange(0, 5).Draw(t, "record") {
		case 0:
			at += rapid.Uint64Range(1, 3).Draw(t, "elapsed")
			all = append(all, entry{Type: typeMarker, Size: markerTimestamp, Addr: at})
		case 1:
			all = append(all, entry{Type: typeMarker, Size: markerTimestamp + 1, Addr: at})
		case 2:
			all = append(all, entry{Type: typeMaybeFetch, Size: 2, Addr: rapid.Uint64Range(1, 2).Draw(t, "pc")})
		case 3:
			all = append(all, entry{Type: typeInstr, Size: 2, Addr: rapid.Uint64Range(1, 2).Draw(t, "pc")})
		case 4:
			all = append(all, entry{Type: typeRead, Size: 8, Addr: rapid.Uint64Range(1, 9).Draw(t, "address")})
		case 5: // the thread changes, which is possible in a file that was recorded per core
			all = append(all, entry{Type: typeThread, Addr: thread + 100*rapid.Uint64Range(0, 1).Draw(t, "thread")})
		}
	}
	return all
}

// mergeNaively is a reference implementation that merges the parts of a trace. mergeNaively uses a
// separate reader for each part, and copies one buffer after another. Each buffer begins with a
// timestamp. The next buffer is always the unread buffer with the lowest timestamp.
func mergeNaively(parts [][]entry) (all []outcome) {
	type buffer struct {
		at   uint64
		part int
		rows []outcome
	}
	var buffers []buffer
	for p, records := range parts {
		begins := []int{0}
		times := []uint64{0}
		for i, e := range records {
			if e.Type == typeMarker && e.Size == markerTimestamp && i > 0 {
				begins, times = append(begins, i), append(times, e.Addr)
			}
		}
		if len(times) > 1 {
			times[0] = times[1] // records before the first timestamp belong to the first buffer
		}
		whole := naive(encode(records...))
		read := 0
		for i := range begins {
			end := len(records)
			if i+1 < len(begins) {
				end = begins[i+1]
			}
			upto := len(naive(encode(records[:end]...)))
			buffers = append(buffers, buffer{times[i], p, whole[read:upto]})
			read = upto
		}
	}
	slices.SortStableFunc(buffers, func(a, b buffer) int {
		if a.at != b.at {
			return int(a.at) - int(b.at)
		}
		return a.part - b.part
	})
	for _, b := range buffers {
		all = append(all, b.rows...)
	}
	return all
}

func mergeAll(t interface{ Fatal(...any) }, parts [][]entry, wrap func(io.Reader) io.Reader) *trace.Batch {
	var open []Part
	for i, p := range parts {
		open = append(open, Part{strconv.Itoa(i), wrap(strings.NewReader(encode(p...)))})
	}
	b, err := trace.ReadAll(reader(Merge(open)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMergeEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts [][]entry
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			parts = append(parts, drawPart(t, uint64(i+1)))
		}
		want := mergeNaively(parts)
		wrap := func(r io.Reader) io.Reader { return r }
		if rapid.Bool().Draw(t, "one byte") {
			wrap = iotest.OneByteReader
		}
		got := mergeAll(t, parts, wrap)
		if got.Len() != len(want) {
			t.Fatalf("%d rows, want %d", got.Len(), len(want))
		}
		for i, w := range want {
			if got.Kind[i] != w.Kind || got.Addr[i] != w.Addr || got.Bytes[i] != w.Bytes {
				t.Fatalf("row %d is %v %#x, want %v %#x", i, got.Kind[i], got.Addr[i], w.Kind, w.Addr)
			}
			if got.PC != nil && got.PC[i] != w.PC && w.Kind == trace.Fetch {
				t.Fatalf("row %d has the PC %#x, want %#x", i, got.PC[i], w.PC)
			}
			if w.HasThread && got.Thread[i] != w.Thread {
				t.Fatalf("row %d belongs to thread %d, want %d", i, got.Thread[i], w.Thread)
			}
		}
	})
}

func TestMergeLongParts(t *testing.T) {
	var parts [][]entry
	for p := range 3 {
		all := []entry{{Type: typeHeader, Addr: 2}, {Type: typeThread, Addr: uint64(p)}}
		for i := range 40_000 {
			if i%7_000 == 0 {
				all = append(all, entry{Type: typeMarker, Size: markerTimestamp, Addr: uint64(10*i + 7*p + 1)})
			}
			all = append(all, entry{Type: typeRead, Size: 8, Addr: uint64(p<<32 | i)})
		}
		parts = append(parts, all)
	}
	got, want := mergeAll(t, parts, func(r io.Reader) io.Reader { return r }), mergeNaively(parts)
	if got.Len() != len(want) {
		t.Fatalf("%d rows, want %d", got.Len(), len(want))
	}
	for i, w := range want {
		if got.Addr[i] != w.Addr || got.Thread[i] != w.Thread {
			t.Fatalf("row %d is address %#x of thread %d, want %#x of thread %d", i, got.Addr[i], got.Thread[i], w.Addr, w.Thread)
		}
	}
}

func TestMergeReportsDamage(t *testing.T) {
	whole := encode(entry{Type: typeHeader, Addr: 2}, entry{Type: typeRead, Size: 8, Addr: 64})
	_, err := io.ReadAll(Merge([]Part{{"a", strings.NewReader(whole)}, {"b", strings.NewReader(whole[:17])}}))
	var damage *trace.DamageError
	if !errors.As(err, &damage) || damage.File != "b" || !damage.Cut || damage.Offset != RecordBytes {
		t.Errorf("error %v, want an error that reports the truncation of b", err)
	}
	failed := errors.New("failed")
	_, err = io.ReadAll(Merge([]Part{{"a", iotest.ErrReader(failed)}, {"b", strings.NewReader(whole)}}))
	if !errors.Is(err, failed) {
		t.Errorf("error %v, want %v", err, failed)
	}
	if all, err := io.ReadAll(Merge(nil)); len(all) > 0 || err != nil {
		t.Errorf("Merge without parts returned %d bytes, error %v, want nothing", len(all), err)
	}
}

// FuzzMerge checks that, for any two parts, the merge ends and loses no record.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(encode(entry{Type: typeHeader, Addr: 2}, entry{Type: typeMarker, Size: 2, Addr: 5})), uint16(12))
	f.Fuzz(func(t *testing.T, all []byte, at uint16) {
		cut := min(int(at)/RecordBytes*RecordBytes, len(all)/RecordBytes*RecordBytes)
		merged, _ := io.ReadAll(Merge([]Part{{"a", strings.NewReader(string(all[:cut]))}, {"b", strings.NewReader(string(all[cut:]))}}))
		records := 0
		for ; len(merged) >= RecordBytes; merged = merged[RecordBytes:] {
			if binary.LittleEndian.Uint16(merged) != typeThread {
				records++
			}
		}
		want := 0
		for rest := all; len(rest) >= RecordBytes; rest = rest[RecordBytes:] {
			if binary.LittleEndian.Uint16(rest) != typeThread {
				want++
			}
		}
		if records != want || len(merged) > 0 {
			t.Errorf("the merged trace has %d records other than thread records, want %d", records, want)
		}
	})
}
