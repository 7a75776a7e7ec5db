package locality

import "github.com/stackglass/stackglass/core/trace"

// MaxLines is the most line accesses that are settled at a time.
const MaxLines = 4096

// Splitter turns references into accesses to lines of 1 << Shift bytes.
type Splitter struct {
	Shift uint
	Lines [MaxLines]trace.Line

	kinds [MaxLines]trace.Kind
	rows  [MaxLines]uint32
}

// OneLineEach writes the line of each of at most MaxLines references to Lines. It reports
// whether no reference crosses into a second line.
func (s *Splitter) OneLineEach(addrs []trace.Addr, bytes []uint32) bool {
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

// Split writes every line of every reference to Lines, and calls settle whenever Lines is
// full and at the end: with the number of accesses, their kinds, and the references that they
// belong to.
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
