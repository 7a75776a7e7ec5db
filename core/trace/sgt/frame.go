package sgt

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
)

// Tags of the frames that this package knows.
const (
	tagFile     = "SGT."
	tagCapture  = "CAPT"
	tagModule   = "MODL"
	tagObjects  = "OBJS"
	tagThread   = "THRD"
	tagTags     = "TAGS"
	tagChunk    = "CHNK"
	tagDone     = "DONE"
	tagIndex    = "INDX"
	tagFolded   = "SGL."     // of folded traces, see core/loops/sgl
	tagTree     = "TREE"     // the same
	magicFrame  = 0x184d2a53 // of ours among LZ4's skippable frames
	frameHead   = 8          // magic and length
	frameExtra  = 8          // tag and check
	largestBody = 1<<30 - frameExtra
	indexEnd    = "SGTX"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendFrame appends a skippable frame of the container: its tag of four
// letters, its body, and a checksum.
func AppendFrame(dst []byte, tag string, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, magicFrame)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)+frameExtra))
	checked := len(dst)
	dst = append(append(dst, tag...), body...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[checked:], castagnoli))
}

// TableError tells what in a frame's tables makes no sense. Tables with a right
// checksum have it only if the program that wrote them is wrong.
type TableError struct {
	Offset int    // in the unpacked tables
	What   string // "successor", "length of a text", ...
	Got    uint64
	Want   string
}

func (e *TableError) Error() string {
	return "tables at byte " + strconv.Itoa(e.Offset) + ": " + e.What + " " + decimal(e.Got) + ", want " + e.Want
}

func decimal(v uint64) string { return strconv.FormatUint(v, 10) }
