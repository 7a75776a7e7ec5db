package records

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// pairs parses a format with two-byte records, each of which contains an address and a number of
// rows. If the number is 0xff, the record is invalid.
type pairs struct{ written byte }

func (p *pairs) Header() trace.Header { return trace.Header{} }

func (p *pairs) Begin(*trace.Batch) {}

func (p *pairs) Parse(window []byte, b *trace.Batch, row int) (taken, rows int, err error) {
	for len(window)-taken >= 2 && row < b.Len() {
		addr, count := window[taken], window[taken+1]
		if count == 0xff {
			return taken + 2, row, &trace.SyntaxError{Offset: int64(taken)}
		}
		for ; p.written < count && row < b.Len(); p.written++ {
			b.Addr[row] = trace.Addr(addr)
			row++
		}
		if p.written < count {
			return taken, row, nil
		}
		p.written, taken = 0, taken+2
	}
	return taken, row, nil
}

func TestReadRandomRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 3, 7, 0xff}), 0, 40).Draw(t, "text")
		wrap := rapid.SampledFrom([]func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader}).Draw(t, "reader")
		var want, got []int64 // one value per row: its address; one value per invalid record: ^offset
		for i := 0; i+1 < len(text); i += 2 {
			if text[i+1] == 0xff {
				want = append(want, ^int64(i))
				continue
			}
			for range text[i+1] {
				want = append(want, int64(text[i]))
			}
		}
		f, b := NewReader("t", "pairs", wrap(bytes.NewReader(text)), &pairs{}), trace.NewBatch(rapid.IntRange(1, 9).Draw(t, "rows"))
		err := f.Next(b)
		for ; err == nil || trace.IsSyntax(err); err = f.Next(b) {
			var wrong *trace.SyntaxError
			if errors.As(err, &wrong) {
				got = append(got, ^wrong.Offset)
			}
			if err == nil && b.Len() == 0 || err != nil && b.Len() > 0 {
				t.Fatalf("Next returned %d rows and the error %v, want rows or an error", b.Len(), err)
			}
			for _, addr := range b.Addr {
				got = append(got, int64(addr))
			}
		}
		if !equal(got, want) {
			t.Fatalf("records %x: got %d, want %d", text, got, want)
		}
		var damage *trace.DamageError
		if cut := len(text)%2 == 1; errors.As(err, &damage) != cut || !cut && err != io.EOF {
			t.Fatalf("reading %d bytes ended with the error %v", len(text), err)
		}
		if again := f.Next(b); again != err && again.Error() != err.Error() {
			t.Fatalf("Next returned %v, and then %v, want the same error", err, again)
		}
	})
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestStreamErrors(t *testing.T) {
	gone := errors.New("the disk is gone")
	for _, c := range []struct {
		r    io.Reader
		want error
	}{
		{io.MultiReader(bytes.NewReader([]byte{1, 1, 2}), iotest.ErrReader(gone)), gone},
		{silent{}, io.ErrNoProgress},
	} {
		f, b := NewReader("t", "pairs", c.r, &pairs{}), trace.NewBatch(4)
		err := f.Next(b)
		if err == nil {
			err = f.Next(b)
		}
		if err != c.want {
			t.Errorf("reading ended with %v, want %v", err, c.want)
		}
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }
