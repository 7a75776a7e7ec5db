package workers

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

// prefixOf is the reference implementation of the checksums in the type File.
func prefixOf(b []byte) Prefix {
	p := Prefix{Bytes: uint64(len(b))}
	for ; len(b) >= BlockBytes; b = b[BlockBytes:] {
		p.Blocks = append(p.Blocks, xxhash.Sum64(b[:BlockBytes]))
	}
	p.Tail = xxhash.Sum64(b)
	return p
}

func noise(n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(b) // a hash never returns an error
	return b
}

// readRandomly reads a whole file, with reads of random lengths.
func readRandomly(t *rapid.T, r io.Reader) (all []byte, err error) {
	buffer := make([]byte, rapid.SampledFrom([]int{1 << 16, 1<<20 + 7, 5 << 20}).Draw(t, "piece"))
	for {
		n, err := r.Read(buffer)
		all = append(all, buffer[:n]...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// The list "lengths" contains lengths near the ends of blocks.
var lengths = []int{0, 1, 1000, BlockBytes - 1, BlockBytes, BlockBytes + 1, 2 * BlockBytes, 2*BlockBytes + 5}

func TestFileChecksum(t *testing.T) {
	whole := noise(2*BlockBytes + 5)
	rapid.Check(t, func(t *rapid.T) {
		content := whole[:rapid.SampledFrom(lengths).Draw(t, "length")]
		f, err := NewFile("f", bytes.NewReader(content), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := readRandomly(t, f); err != nil || !bytes.Equal(all, content) {
			t.Fatalf("read %d bytes, %v", len(all), err)
		}
		got, want := f.Prefix(), prefixOf(content)
		if got.Bytes != want.Bytes || got.Tail != want.Tail || !slices.Equal(got.Blocks, want.Blocks) || f.Position() != want.Bytes {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestFileIsComparedWithCheckpoint checks that an unchanged file is read to its end. If a byte that
// the checkpoint covers has changed, or the file is shorter, neither the first changed block nor
// any later block may be returned.
func TestFileIsComparedWithCheckpoint(t *testing.T) {
	whole := noise(2*BlockBytes + 5)
	rapid.Check(t, func(t *rapid.T) {
		read := rapid.SampledFrom(lengths).Draw(t, "read before")
		content := bytes.Clone(whole)
		from, differs := len(whole), false
		switch change := rapid.SampledFrom([]string{"none", "a byte", "cut"}).Draw(t, "change"); {
		case change == "a byte":
			at := rapid.IntRange(0, len(whole)-1).Draw(t, "at")
			content[at] ^= 1
			from, differs = at/BlockBytes*BlockBytes, at < read
		case change == "cut":
			from = rapid.IntRange(0, len(whole)-1).Draw(t, "cut at")
			content, differs = content[:from], from < read
			from = from / BlockBytes * BlockBytes
		}
		f, err := NewFile("f", bytes.NewReader(content), 0, &Checkpoint{Read: prefixOf(whole[:read])})
		if err != nil {
			t.Fatal(err)
		}
		all, err := readRandomly(t, f)
		var other *OtherFileError
		if !differs {
			if err != nil || !bytes.Equal(all, content) || f.Verifying() {
				t.Errorf("file with the same first bytes: read %d bytes, %v", len(all), err)
			}
			return
		}
		if !errors.As(err, &other) || int(other.From) != from || f.Wrong() != err {
			t.Errorf("error of a different file = %v, want a difference after %d bytes", err, from)
		}
		if len(all) >= from+BlockBytes {
			t.Errorf("returned %d bytes, want fewer than %d, the end of the first different block", len(all), from+BlockBytes)
		}
	})
}

// TestFileIsVerified checks that, if the reader stops early, the method Verify compares the
// remaining blocks with the checkpoint.
func TestFileIsVerified(t *testing.T) {
	content := noise(2 * BlockBytes)
	for _, same := range []bool{true, false} {
		other := bytes.Clone(content)
		if !same {
			other[len(other)-1] ^= 1
		}
		f, err := NewFile("f", bytes.NewReader(other), 0, &Checkpoint{Read: prefixOf(content)})
		if err != nil {
			t.Fatal(err)
		}
		f.Verify()
		if f.Verifying() == same || (f.Wrong() == nil) != same {
			t.Errorf("same file: %t, verifying %t, wrong %v", same, f.Verifying(), f.Wrong())
		}
	}
}

// TestFileReadError checks that a disk error is reported as an error in reading the file, and that
// later reads return the same error.
func TestFileReadError(t *testing.T) {
	gone := errors.New("the disk is gone")
	f, err := NewFile("f", io.MultiReader(bytes.NewReader(noise(100)), iotest.ErrReader(gone)), 0, &Checkpoint{Read: prefixOf(noise(1000))})
	if err != nil {
		t.Fatal(err)
	}
	f.Verify()
	if _, err := f.Read(make([]byte, 1)); f.Wrong() != gone || err != gone || !f.Verifying() {
		t.Errorf("wrong %v, read again %v", f.Wrong(), err)
	}
}
