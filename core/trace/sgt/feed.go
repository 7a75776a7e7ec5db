package sgt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// frame is one skippable frame with a right checksum.
type frame struct {
	at   uint64 // its offset
	tag  string // one of the tags, or "" for one that is not known
	body []byte // valid until the next frame
}

var (
	errCheck  = errors.New("the checksum of a frame is wrong")
	errMagic  = errors.New("there is no frame where one should begin")
	errLength = errors.New("a frame is longer than 2^30 bytes")
)

// feed reads frames one after the other.
type feed struct {
	r     io.Reader
	at    uint64 // bytes read
	head  [frameHead]byte
	frame []byte
}

// next reads a frame. Frames of other programs are passed over. io.EOF comes
// at the end of the file only; io.ErrUnexpectedEOF tells of a cut.
//
// With errCheck the frame is read, and its tag and body may be wrong.
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

// checked takes a frame of ours apart.
func checked(at uint64, b []byte) (frame, error) {
	end := len(b) - 4
	made := frame{at: at, tag: tagOf(b[:4]), body: b[4:end]}
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return made, errCheck
	}
	return made, nil
}

// tagOf gives the tag that stands in b, without an allocation.
func tagOf(b []byte) string {
	for _, tag := range [...]string{tagChunk, tagFile, tagCapture, tagModule, tagObjects, tagThread, tagTags, tagDone, tagIndex, tagFolded, tagTree} {
		if string(b) == tag {
			return tag
		}
	}
	return ""
}

// read fills p.
func (f *feed) read(p []byte) error {
	n, err := io.ReadFull(f.r, p)
	f.at += uint64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// readLong appends n bytes to dst. It believes n only as far as bytes come.
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
