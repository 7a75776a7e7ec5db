package tracetest

import (
	"bytes"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stackglass/stackglass/core/trace"
)

// The functions in this file check or benchmark the reader of a trace format.

// CheckRecognise calls the Recognise function of a format with each key of the map "reasons". The
// value is a part of the expected reason, or "" if Recognise must accept the text.
func CheckRecognise(t Failer, recognise func(text []byte) (reason string, ok bool), reasons map[string]string) {
	t.Helper()
	for text, want := range reasons {
		if reason, ok := recognise([]byte(text)); ok != (want == "") || !strings.Contains(reason, want) {
			t.Fatalf("%.50q: %v %q, want %q", text, ok, reason, want)
		}
	}
}

// CheckLineErrors reads each key of the map "messages" as a line between two other lines, which
// contain one reference each: the parameters "before" and "after". The error of the line must have
// the given message, and the reader must continue with the next line.
func CheckLineErrors[R interface {
	trace.Reader
	Lines() int
}](t Failer, newReader func(name string, r io.Reader) R, name, before, after string, messages map[string]string) {
	t.Helper()
	for line, want := range messages {
		r, b := newReader(name, strings.NewReader(before+"\n"+line+"\n"+after+"\n")), trace.NewBatch(0)
		if err := r.Next(b); err != nil || b.Len() != 1 {
			t.Fatalf("Next for the line before %q: %d records, error %v, want 1 record and no error", line, b.Len(), err)
		}
		if err := r.Next(b); err == nil || err.Error() != want {
			t.Fatalf("got  %v\nwant %s", err, want)
		}
		if err := r.Next(b); err != nil || b.Len() != 1 || r.Lines() != 3 {
			t.Fatalf("Next for the line after %q: %d records, error %v, and %d lines read; want 1 record, no error and 3 lines", line, b.Len(), err, r.Lines())
		}
	}
}

// CheckWrongBytes replaces each byte of each of the given lines by every value, appends a
// correct line, and compares the outcomes with the results of a reference implementation.
func CheckWrongBytes(t Failer, open func(io.Reader) trace.Reader, naive func(text string) []Outcome, after string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		for at := range line {
			for c := range 256 {
				text := line[:at] + string([]byte{byte(c)}) + line[at+1:] + after
				if got, want := Outcomes(t, open(strings.NewReader(text)), 4), naive(text); !slices.Equal(got, want) {
					t.Fatalf("%q: got %+v, want %+v", text, got, want)
				}
			}
		}
	}
}

// CheckAllocations checks that the reader r allocates nothing after the first batches. The
// parameter allocsPerRun must be [testing.AllocsPerRun]. This function is a parameter so that this
// package need not link package testing.
func CheckAllocations(t Failer, allocsPerRun func(runs int, f func()) float64, r trace.Reader) {
	t.Helper()
	b := trace.NewBatch(1000)
	next := func() {
		if err := r.Next(b); err != nil {
			t.Fatalf("%v", err)
		}
	}
	for range 20 {
		next()
	}
	if n := allocsPerRun(200, next); n != 0 {
		t.Fatalf("%v allocations per batch, want 0", n)
	}
}

// WorkedExample returns the bytes in the section "A worked example" of a format's description.
// Lines that are indented by four blanks contain bytes in hexadecimal, optionally followed by | and
// a comment.
func WorkedExample(t Failer, text string) (file []byte) {
	t.Helper()
	_, section, found := strings.Cut(text, "\n## A worked example\n")
	if !found {
		t.Fatalf("the format's description has no section \"A worked example\"")
	}
	for line := range strings.Lines(section) {
		if indented, is := strings.CutPrefix(line, "    "); is {
			digits, _, _ := strings.Cut(indented, "|")
			b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			file = append(file, b...)
		}
	}
	return file
}

// Benchmark contains the methods of testing.B that [BenchmarkReader] needs.
type Benchmark interface {
	Failer
	SetBytes(n int64)
	Loop() bool
	Elapsed() time.Duration
	ReportMetric(n float64, unit string)
}

// BenchmarkReader measures the time to read text. BenchmarkReader reports ns/line for text formats,
// and ns/row for other formats.
func BenchmarkReader[R trace.Reader](b Benchmark, newReader func(name string, r io.Reader) R, text []byte) {
	batch, records, unit := trace.NewBatch(0), 0, "ns/row"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := newReader("t", bytes.NewReader(text))
		var err error
		before := records
		for err == nil {
			if err = r.Next(batch); err == nil {
				records += batch.Len()
			}
		}
		if err != io.EOF {
			b.Fatalf("%v", err)
		}
		if r, ok := any(r).(interface{ Lines() int }); ok {
			records, unit = before+r.Lines(), "ns/line"
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), unit)
}
