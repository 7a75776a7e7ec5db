package tracetest

import (
	"errors"
	"io"
	"strings"
	"testing/iotest"

	"github.com/stackglass/stackglass/core/trace"
)

// Failer contains the methods of testing.TB and rapid.T that the checks need.
type Failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Outcome is the result of reading one record: a reference or an error.
type Outcome struct {
	Ref
	HasThread bool
	ErrorLine int   // line of a syntax error, or 0
	ErrorByte int64 // in a binary format, the offset of the invalid record plus 1; otherwise 0
}

// Outcomes reads r in batches of the given number of rows, and overwrites the batch before each
// call to Next. Outcomes also checks the contract of readers: each call returns either rows or an
// error, and every call after io.EOF returns io.EOF again.
func Outcomes(t Failer, r trace.Reader, rows int) (all []Outcome) {
	t.Helper()
	r = Spoil(r)
	b := trace.NewBatch(rows)
	for {
		err := r.Next(b)
		var syntax *trace.SyntaxError
		switch {
		case err != nil && b.Len() > 0:
			t.Fatalf("Next returned %d records and the error %v, want either records or an error", b.Len(), err)
		case err == io.EOF:
			if err = r.Next(b); err != io.EOF || b.Len() != 0 {
				t.Fatalf("Next after io.EOF returned %d records and the error %v, want no records and io.EOF", b.Len(), err)
			}
			return all
		case errors.As(err, &syntax):
			o := Outcome{ErrorLine: syntax.Line}
			if o.ErrorLine == 0 {
				o.ErrorByte = syntax.Offset + 1
			}
			all = append(all, o)
		case err != nil:
			t.Fatalf("%v", err)
		case b.Len() == 0:
			t.Fatalf("Next returned neither records nor an error")
		default:
			all = appendRows(all, b)
		}
	}
}

func appendRows(all []Outcome, b *trace.Batch) []Outcome {
	for i := range b.Addr {
		ref := Ref{Kind: b.Kind[i], Addr: b.Addr[i], Bytes: b.Bytes[i], Thread: trace.At(b.Thread, i), PC: trace.At(b.PC, i)}
		all = append(all, Outcome{Ref: ref, HasThread: b.Thread != nil})
	}
	return all
}

// CheckText reads a text with the reader that the function "open" returns, in batches of 1 to 200
// rows. The stream delivers the text as a whole, in halves, byte by byte, or with io.EOF together
// with the last bytes. The outcomes must always equal the parameter "want".
func CheckText(t Failer, text string, open func(io.Reader) trace.Reader, want []Outcome) {
	t.Helper()
	for _, way := range []struct {
		name string
		rows int
		wrap func(io.Reader) io.Reader
	}{
		{"whole", 200, func(r io.Reader) io.Reader { return r }},
		{"three records per batch", 3, func(r io.Reader) io.Reader { return r }},
		{"in halves, one record per batch", 1, iotest.HalfReader},
		{"byte by byte", 64, iotest.OneByteReader},
		{"io.EOF together with the last bytes", 2, iotest.DataErrReader},
	} {
		got := Outcomes(t, open(way.wrap(strings.NewReader(text))), way.rows)
		for i := 0; i < len(got) || i < len(want); i++ {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%s, record %d: got %+v, want %+v; text\n%q", way.name, i, at(got, i), at(want, i), text)
			}
		}
	}
}

// at returns the record with index i, or nil if there are fewer records.
func at(all []Outcome, i int) any {
	if i < len(all) {
		return all[i]
	}
	return nil
}

// Endless returns a reader that repeats text forever.
func Endless(text []byte) io.Reader { return &endless{text: text} }

type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}
