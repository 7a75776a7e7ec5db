package open

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/pierrec/lz4/v4"
)

// lz4Reader decompresses a file of LZ4 frames. The library reads frame by frame, skippable and legacy
// ones too. But a legacy frame has no end: the library takes the magic number of the next frame for
// the size of a block, and fails. It never reads ahead, so a new reader can resume there.
type lz4Reader struct {
	frames *lz4.Reader
	packed *lastWord
}

// newLZ4 decompresses in the caller's goroutine: the browser has no other thread, and natively the
// parser is the slower half.
func newLZ4(r io.Reader) (io.Reader, error) {
	z := &lz4Reader{packed: &lastWord{reader: r}}
	return z, z.begin(z.packed)
}

func (z *lz4Reader) begin(r io.Reader) error {
	z.frames = lz4.NewReader(r)
	return z.frames.Apply(lz4.ConcurrencyOption(1))
}

func (z *lz4Reader) Read(p []byte) (int, error) {
	for {
		n, err := z.frames.Read(p)
		if !errors.Is(err, lz4.ErrOptionInvalidBlockSize) || !z.packed.isMagic() {
			return n, err
		}
		if err := z.begin(io.MultiReader(bytes.NewReader(bytes.Clone(z.packed.word[:])), z.packed)); err != nil || n > 0 {
			return n, err
		}
	}
}

// lastWord remembers the last four bytes that were read through it.
type lastWord struct {
	reader io.Reader
	word   [4]byte
}

func (l *lastWord) Read(p []byte) (int, error) {
	n, err := l.reader.Read(p)
	if n >= len(l.word) {
		copy(l.word[:], p[n-len(l.word):n])
	} else {
		copy(l.word[:], l.word[n:])
		copy(l.word[len(l.word)-n:], p[:n])
	}
	return n, err
}

// isMagic reports whether a frame begins with the word.
func (l *lastWord) isMagic() bool {
	const frame = 0x184d2204
	word := binary.LittleEndian.Uint32(l.word[:])
	return word == frame || isSkippable(word)
}
