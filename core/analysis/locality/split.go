package locality

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// MaxLines is the most line accesses that are settled at a time.
const MaxLines = 4096

// Splitter turns references into accesses to lines of 1 << Shift bytes.
type Splitter struct {
	Shift uint
	Lines [MaxLines]trace.Line

	kinds [MaxLines]trace.Kind
	rows  [MaxLines]uint32
}

// oneLineEach writes the line of each of at most MaxLines references to Lines. It reports
// whether no reference crosses into a second line.
func (s *Splitter) oneLineEach(addrs []trace.Addr, bytes []uint32) bool {
	lineBytes, shift := int64(1)<<(s.Shift&63), s.Shift&63
	lines := s.Lines[:len(addrs)]
	bytes = bytes[:len(addrs)]
	var room int64 // negative as soon as one reference crosses
	for i, addr := range addrs {
		lines[i] = addr >> shift
		room |= lineBytes - int64(addr&uint64(lineBytes-1)) - int64(bytes[i])
	}
	return room >= 0
}

// Split writes every line of every reference to Lines, and calls settle whenever Lines is full and
// at the end: with the number of accesses, their kinds, and the references that they belong to.
func (s *Splitter) Split(addrs []trace.Addr, bytes []uint32, kinds []trace.Kind, settle func(n int, kinds []trace.Kind, rows []uint32)) {
	n := 0
	for i, addr := range addrs {
		line := addr >> s.Shift
		last := (addr + uint64(max(bytes[i], 1)) - 1) >> s.Shift
		for ; ; line++ {
			s.Lines[n], s.kinds[n], s.rows[n] = line, kinds[i], uint32(i)
			if n++; n == MaxLines {
				settle(n, s.kinds[:n], s.rows[:n])
				n = 0
			}
			if line >= last {
				break
			}
		}
	}
	settle(n, s.kinds[:n], s.rows[:n])
}

// Each passes the accesses of the rows of b from lo up to hi to settle, at most MaxLines at a
// time: the first row, the number of accesses, their kinds, and the rows behind the first that
// they belong to; nil if each row makes one access.
func (s *Splitter) Each(b *trace.Batch, lo, hi int, settle func(first, n int, kinds []trace.Kind, rows []uint32)) {
	for ; lo < hi; lo += MaxLines {
		n := min(hi-lo, MaxLines)
		addrs, bytes, kinds := b.Addr[lo:lo+n], b.Bytes[lo:lo+n], b.Kind[lo:lo+n]
		if s.oneLineEach(addrs, bytes) {
			settle(lo, n, kinds, nil)
			continue
		}
		s.Split(addrs, bytes, kinds, func(n int, kinds []trace.Kind, rows []uint32) { settle(lo, n, kinds, rows) })
	}
}

// EachWindow calls each with runs of rows that lie in one window: rows lo up to hi, of which
// the first is reference number reference, in windows of size references.
func EachWindow(rows int, reference uint64, each func(lo, hi int, reference, size uint64)) {
	for lo := 0; lo < rows; {
		size, hi := profile.WindowSize(reference+1), rows
		if room := size - reference%size; uint64(hi-lo) > room {
			hi = lo + int(room)
		}
		each(lo, hi, reference, size)
		reference += uint64(hi - lo)
		lo = hi
	}
}
