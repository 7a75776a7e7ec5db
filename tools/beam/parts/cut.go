package parts

import (
	"bufio"
	"bytes"
	"io"

	"github.com/stackglass/stackglass/core/trace/lines"
)

// Cutter finds positions at which a trace file can be cut into parts. A reader of the format that
// begins at such a position, after the header line, returns the same rows as a reader of the whole
// file.
type Cutter struct {
	Header []byte // the header line, which a reader of a part must read before the part
	record int64  // size of a record, or 0 for text
	begins []func(line []byte) bool
}

// headBytes is the number of bytes at the beginning of a file that determine how it is cut.
const headBytes = 64 << 10

// NewCutter returns a Cutter for a file with the given format and beginning, or nil if files of this
// format cannot be cut.
//
//   - In din, pinatrace and execlog traces, lines do not depend on each other.
//   - In a CSV file, lines depend only on the header line.
//   - In a ChampSim trace, records do not depend on each other.
//   - In a lackey trace, the instruction of a data line is the last I line, and the thread is the
//     last SCHED line. Parts therefore begin with an I line, or with a SCHED line that an I line
//     follows. If such lines do not occur at the beginning of the file, but later, the header of a
//     part differs from the header of the first part, so the parts must not be used.
func NewCutter(format string, head []byte) *Cutter {
	head = bytes.TrimPrefix(head[:min(len(head), headBytes)], []byte("\xef\xbb\xbf"))
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	switch format {
	case "din", "pinatrace", "execlog":
		return &Cutter{}
	case "champsim":
		return &Cutter{record: 64}
	case "csv":
		for _, line := range lines.All(head) {
			if !lines.IsBlank(line) {
				return &Cutter{Header: append(bytes.Clone(line), '\n')}
			}
		}
	case "lackey":
		c := &Cutter{}
		if contains(head, isSwitch) {
			c.begins = append(c.begins, isSwitch)
		}
		if contains(head, isFetch) {
			c.begins = append(c.begins, isFetch)
		}
		return c
	}
	return nil
}

func contains(text []byte, is func([]byte) bool) bool {
	for _, line := range lines.All(text) {
		if is(line) {
			return true
		}
	}
	return false
}

func isFetch(line []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("I ")) }

func isSwitch(line []byte) bool {
	return bytes.HasPrefix(line, []byte("--")) && bytes.Contains(line, []byte("--   SCHED[")) && bytes.Contains(line, []byte("]:  acquired lock"))
}

// Border returns the first position at or after an offset at which the file can be cut, or the size
// of the file.
func (c *Cutter) Border(file io.ReaderAt, size, offset int64) (int64, error) {
	switch {
	case offset <= 0:
		return 0, nil
	case offset >= size:
		return size, nil
	case c.record > 0:
		return min((offset+c.record-1)/c.record*c.record, size), nil
	}
	at := offset - 1 // if the previous byte is a newline, a line begins at the offset
	r := bufio.NewReaderSize(io.NewSectionReader(file, at, size-at), headBytes)
	next := func() (line []byte, err error) { // returns the beginning of a long line
		line, err = r.ReadSlice('\n')
		at += int64(len(line))
		line = bytes.Clone(line[:min(len(line), 256)])
		for err == bufio.ErrBufferFull {
			var rest []byte
			rest, err = r.ReadSlice('\n')
			at += int64(len(rest))
		}
		return line, err
	}
	_, err := next()
	border, found := at, 0 // found is the number of lines that match c.begins, from the border on
	for err == nil && found < len(c.begins) {
		begin := at
		var line []byte
		switch line, err = next(); {
		case c.begins[found](line):
			if found++; found == 1 {
				border = begin
			}
		case c.begins[0](line):
			border, found = begin, 1
		default:
			found = 0
		}
	}
	if err != nil && err != io.EOF {
		return 0, err
	}
	if err == io.EOF && found < len(c.begins) {
		return size, nil
	}
	return border, nil
}
