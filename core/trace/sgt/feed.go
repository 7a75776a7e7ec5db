package sgt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
)

// Tags of the frames that this package knows.
const (
	tagFile    = "SGT."
	tagCapture = "CAPT"
	tagModule  = "MODL"
	tagObjects = "OBJS"
	tagThread  = "THRD"
	tagTags    = "TAGS"
	tagChunk   = "CHNK"
	tagDone    = "DONE"
	tagIndex   = "INDX"
	tagFolded  = "SGL."     // first frame of a loop-compressed trace; see core/loops/sgl
	tagTree    = "TREE"     // tree of a loop-compressed trace
	magicFrame = 0x184d2a53 // magic number of this format's frames, which are LZ4 skippable frames
	frameHead  = 8          // number of bytes of the magic number and the length
	frameExtra = 8          // number of bytes of the tag and the checksum
	indexEnd   = "SGTX"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendFrame appends a skippable frame of the container. The frame consists of a tag of four
// letters, a body, and a checksum.
func AppendFrame(dst []byte, tag string, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, magicFrame)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)+frameExtra))
	checked := len(dst)
	dst = append(append(dst, tag...), body...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[checked:], castagnoli))
}

// TableError reports an error in a frame's tables. If the checksum of the frame is correct, the
// program that wrote the frame has a bug.
type TableError struct {
	Offset int    // byte offset in the decompressed tables
	What   string // name of the erroneous number: "successor", "number of sites", ...
	Got    uint64
	Want   string
}

func (e *TableError) Error() string {
	return "tables at byte " + strconv.Itoa(e.Offset) + ": " + e.What + " is " + decimal(e.Got) + ", want " + e.Want
}

func decimal(v uint64) string { return strconv.FormatUint(v, 10) }

// frame is one skippable frame with a correct checksum.
type frame struct {
	at   uint64 // offset in the file
	tag  string // a known tag, or "" if the tag is unknown
	body []byte // valid until the next frame is read
}

var (
	errCheck  = errors.New("the checksum of a frame is wrong")
	errMagic  = errors.New("there is no frame at the expected position")
	errLength = errors.New("a frame is longer than 2^30 bytes")
)

// feed reads frames one after the other.
type feed struct {
	r     io.Reader
	at    uint64 // number of bytes read
	head  [frameHead]byte
	frame []byte
}

// next reads a frame, and skips frames of other programs. It returns io.EOF at the end of the file,
// and io.ErrUnexpectedEOF if the file is truncated. If it returns errCheck, the frame's tag and
// body may be wrong.
func (f *feed) next() (frame, error) {
	for {
		at := f.at
		if err := f.read(f.head[:]); err != nil {
			if f.at == at && err == io.ErrUnexpectedEOF {
				err = io.EOF
			}
			return frame{}, err
		}
		magic, length := binary.LittleEndian.Uint32(f.head[:]), binary.LittleEndian.Uint32(f.head[4:])
		switch {
		case magic&^0xf != magicFrame&^0xf:
			return frame{}, errMagic
		case length > 1<<30:
			return frame{}, errLength
		}
		var err error
		if f.frame, err = f.readLong(f.frame[:0], int(length)); err != nil {
			return frame{}, err
		}
		if magic == magicFrame && length >= frameExtra {
			return checked(at, f.frame)
		}
	}
}

// checked splits a frame of this format into tag and body, and verifies its checksum.
func checked(at uint64, b []byte) (frame, error) {
	end := len(b) - 4
	made := frame{at: at, tag: tagOf(b[:4]), body: b[4:end]}
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return made, errCheck
	}
	return made, nil
}

// tagOf returns the tag in b without allocating memory.
func tagOf(b []byte) string {
	for _, tag := range [...]string{tagChunk, tagFile, tagCapture, tagModule, tagObjects, tagThread, tagTags, tagDone, tagIndex, tagFolded, tagTree} {
		if string(b) == tag {
			return tag
		}
	}
	return ""
}

func (f *feed) read(p []byte) error {
	n, err := io.ReadFull(f.r, p)
	f.at += uint64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// readLong reads n bytes and appends them to dst. The number n may be wrong, so readLong allocates
// memory only when bytes arrive.
func (f *feed) readLong(dst []byte, n int) ([]byte, error) {
	const believed = 1 << 20
	for n > 0 {
		part := min(n, max(believed, len(dst)))
		from := len(dst)
		if cap(dst)-from < part {
			dst = append(dst, make([]byte, part)...)
		} else {
			dst = dst[:from+part]
		}
		if err := f.read(dst[from:]); err != nil {
			return dst[:from], err
		}
		n -= part
	}
	return dst, nil
}
