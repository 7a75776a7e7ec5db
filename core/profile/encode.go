package profile

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/stackglass/stackglass/core/codec"
)

// The binary form, .sgp. Integers are unsigned LEB128 varints ("uv") unless
// said otherwise; a list is its length and then its members.
//
//	magic    8 bytes   89 53 47 50 0d 0a 1a 0a
//	version  uv        5
//	sections           until END.
//	  tag      4 bytes ASCII
//	  length   uv
//	  payload  length bytes
//	  check    4 bytes little-endian CRC-32C of tag, length and payload
//
//	INPT  format (length, bytes); flags: 1 threads, 2 PCs, 4 sizes, 8 threads in
//	      order by slices of time only; kinds; skip; limit; 0, or 1 + list of threads
//	TOTL  references of the 6 kinds (4 in version 1); bytes of the same kinds;
//	      unselected; bad records; 0, or 1 + list of threads
//	STAT  0 complete or 1 partial; reason (length, bytes)
//	SAMP  where counts are estimates: mode; seed; threshold; most lines; gap; on;
//	      period; references read; list of line sizes, each: line bytes; threshold;
//	      accesses analysed; samples; lines; censored; list of (low, high)
//	PRED  where the threads did not run but were mimicked: cores; how (length, bytes)
//	LOCA  line bytes; list of kinds, each: kind; cold; histogram, which is a list
//	      of (distance - previous distance, from -1; count)
//	WIND  line bytes; references a window; first window; list of rows, each a
//	      mask of the bins that are not zero, then those bins; where they were
//	      counted, the distinct lines of each row
//	SETS  line bytes; for 2^0 to 2^16 sets each a mask of the depths from 0 to 31
//	      that occur, then their counts. Behind the windows of its line size
//	SITE  line bytes; flags: 1 data objects, 2 who touched a line before; list of
//	      (capacity in lines, ways or 0); list of strings, which are their index below;
//	      list of sites, each: mask of what differs from the site before, then of
//	      these: number - (previous + 1, or previous if that was 2^32 - 1), as
//	      all differences modulo 2^32; zigzag PC, offset, line and column -
//	      previous; kind and bytes xor previous; module; function; file; type;
//	      variable. (What the first is told from: number 2^32 - 1, all else 0.)
//	      Mask of the strides that occur, then their counts; reuse;
//	      list of objects, each: kind; number + 1 modulo 2^32; name; function;
//	      file; line; blocks; bytes; references; reuse.
//	      Reuse: cold; list of (bin - (previous + 1), count); for each capacity
//	      lines fetched, bytes used; list of (site - (previous + 1), count)
//	CNTR  flags: 1 blocks, 2 instructions, 4 touched bytes; number of counters;
//	      list of strings, which are their index below;
//	      list of functions, each: number - (previous + 1); name; file; line;
//	      invocations; unique bytes; counts;
//	      list of basic blocks, each: number - (previous + 1); function + 1, 0 for
//	      none; label; file; first line; last line; executions; counts;
//	      list of tallies, each: kind; name; lanes; size; count; bytes;
//	      unique bytes; bytes for 5 %, … 100 % of accesses.
//	      Counts are a mask of the counters that are not zero, then those.
//	SHAR  line bytes; list of cores, each: list of thread - (previous + 1); counts
//	      of the private stack; of these, counts of foreign lines; counts of the
//	      coherent stack; histogram of coherence misses; invalidations; and list of
//	      domains, each: list of core - (previous + 1); of each of these cores cold;
//	      histogram; and the five changes; rows as in SETS; counts of foreign lines.
//	      Counts are cold; histogram; rows as in SETS
//	SCOH  flags: 1 utilisation; of each site and object in SITE, its accesses on the
//	      coherent stacks of cores: cold; list of (bin - (previous + 1), count) of
//	      distances; the same list of coherence misses, by the depth at which the line
//	      was lost; with utilisation, for each capacity lines fetched into private
//	      caches, bytes used
//	COMM  threads taken for one with the 64th; list of granularities, each: bytes;
//	      list of flows; of the 5 classes granules, references and events;
//	      list of pairs, each: producer; consumer; object; events; transfers;
//	      references a window; list of windows, each: list of flows;
//	      list of owned objects, each: object; log2 of the bytes of a part; first
//	      part; list of parts, each: references; where there are any, first and most
//	      frequent thread; readers; writers; class; references of the latter;
//	      list of falsely shared lines, each: object; two sites; offset; two
//	      threads; lines; events; misses; bytes apart;
//	      0, or 1 + list of distances between two threads: from; to; histogram of
//	      events; of transfers.
//	      A flow is from; to; events; transfers. Sites and objects are their indices
//	      + 1 in SITE, or 0
//	LOOP  the trace folded into loops, as package loops draws it; empty where that
//	      was given up
//	BLCK  how often blocks ran, with the program, as package blocks draws it; empty
//	      where the trace tells of none
//	FOOT  line bytes; distinct lines; list of times that lines are not used, in ranges
//	      that begin at the windows of package profile: how many; their sum
//	smpi  of a sample, halves of intervals and intervals, each a list of its own
//	      length: of each core in SHAR 0, or 1 + list of (low, high) of its private
//	      misses; of coherent ones; first accesses; coherence misses; invalidations;
//	      of each member of its domains list of (low, high); of each site and object
//	      in SITE, and then in SCOH, list of (bin, half); for COMM 0, or 1 + for each flow events and
//	      transfers, and for each class granules, references and events, granularity
//	      by granularity; events and transfers of each pair; and lines, events and
//	      misses of false sharing
//	segm  start; list of line sizes, each: list of first touches
//	      (reference - previous, zigzag line - previous, kind); list of lines
//	      of the stack (zigzag line - previous); where they were counted, for
//	      each line size the list of lists of distinct lines of larger windows
//	segs  what sites know of lines and strides, as package analysis/sites draws it
//	segt  how often each byte was accessed, as package analysis/counters draws it
//	segh  the stacks of cores and domains, as package analysis/sharing draws them
//	segc  what threads know of words and lines, as package analysis/communication
//	      draws it
//	coml  line sharing: number, then of each object, offset, lines, owners, moves,
//	      ping-pongs, apart, two sites and two threads
//	comx  why there is no COMM: a number of Absence
//	segb  the calls of threads, as package analysis/branches draws them
//	segp  the samplers, as package analysis/sample draws them
//	segk  what is kept of sampled lines, as package analysis/sample draws it
//	segf  where stacks lie that are not in memory, as package stack draws it
//	segl  when lines were last used, as package analysis/footprint draws it
//	END.  32 bytes: the digest
//
// A section whose tag begins in lower case is optional: readers may skip it and
// the digest does not cover it. The digest is the SHA-256 of the other sections
// before END., each as tag, length and payload, in the order above and by line
// size: the order in which they are always written.
//
// A profile of two accesses to one line, read from a din trace, begins
//
//	89 53 47 50 0d 0a 1a 0a  05
//	49 4e 50 54 09           INPT, 9 bytes
//	  03 64 69 6e              format "din"
//	  00 37 00 00 00           no flags; all data references; nothing skipped,
//	                           no limit, all threads
//	xx xx xx xx              check

// Version is the newest version of the binary form that this package writes and
// reads.
const Version = 5

const (
	magic  = "\x89SGP\r\n\x1a\n"
	endTag = "END."
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// IsProfile reports whether a file that begins with head is a profile; eight
// bytes are enough to tell.
func IsProfile(head []byte) bool {
	return len(head) >= len(magic) && string(head[:len(magic)]) == magic
}

// Encode returns the profile's binary form.
func (p *Profile) Encode() []byte {
	w := appender{make([]byte, 0, 1<<12)}
	_ = p.EncodeTo(&w) // an appender takes everything
	return w.out
}

// appender is a writer to memory.
type appender struct{ out []byte }

func (a *appender) Write(b []byte) (int, error) {
	a.out = append(a.out, b...)
	return len(b), nil
}

// EncodeTo writes the profile's binary form. No more of it is put together at a time
// than one section, and of the histograms of locality, which may be larger than all
// else, a piece; the error is that of to.
func (p *Profile) EncodeTo(to io.Writer) error {
	w := newWriter(to)
	w.send(binary.AppendUvarint([]byte(magic), Version))
	p.canonical(w)
	var sum [32]byte
	w.digest.Sum(sum[:0])
	if p.hasIntervals() {
		w.section("smpi", p.codeIntervals)
	}
	if c := p.Communication; c != nil && c.LineSharing != nil {
		w.section("coml", c.codeLineSharing)
	}
	if p.NoCommunication != AbsenceUnknown {
		w.put("comx", []byte{byte(p.NoCommunication)})
	}
	if s := p.Segment; s != nil {
		w.section("segm", s.code)
		w.payload = nil // it may be large, and nothing more is put together
		for i := range states {
			if state := *states[i].field(s); state != nil {
				w.put(states[i].tag, state)
			}
		}
	}
	w.put(endTag, sum[:])
	return w.err
}

// Digest is the SHA-256 of the profile's canonical sections: equal for the same
// trace and options, wherever and however it was analysed.
func (p *Profile) Digest() (sum [32]byte) {
	w := newWriter(io.Discard)
	p.canonical(w)
	w.digest.Sum(sum[:0])
	return sum
}

func (p *Profile) canonical(w *writer) {
	for i := range forms {
		forms[i].writeTo(w, p)
	}
}

// digestSections hashes written sections without their checks.
func digestSections(sections []byte) (sum [32]byte) {
	hash := newHash()
	for len(sections) > 0 {
		length, n := binary.Uvarint(sections[4:])
		end := 4 + n + int(length)
		hash.Write(sections[:end])
		sections = sections[end+4:]
	}
	hash.Sum(sum[:0])
	return sum
}

// writer sends sections.
type writer struct {
	to     io.Writer
	digest interface { // of the sections whose tags begin in upper case
		io.Writer
		Sum(b []byte) []byte
	}
	payload []byte
	err     error // the first one of sending
}

func newWriter(to io.Writer) *writer { return &writer{to: to, digest: newHash()} }

// section puts one together and sends it.
func (w *writer) section(tag string, code func(*coder)) {
	c := coder{Coder: codec.Writer(w.payload[:0])}
	code(&c)
	w.payload = c.Out
	w.put(tag, w.payload)
}

// put sends a section whose payload is there, without a copy of it.
func (w *writer) put(tag string, payload []byte) {
	check := w.head(tag, len(payload))
	w.body(tag, payload, &check)
	w.send(binary.LittleEndian.AppendUint32(nil, check))
}

// pieceBytes is how long pieces of a section are, or a little more.
const pieceBytes = 1 << 16

// inPieces puts a section together twice, to know its length, and sends it in pieces.
func (w *writer) inPieces(tag string, code func(*coder)) {
	length := 0
	count := coder{Coder: codec.Writer(w.payload[:0]), full: func(b []byte) { length += len(b) }}
	code(&count)
	check := w.head(tag, length+len(count.Out))
	send := coder{Coder: codec.Writer(count.Out[:0]), full: func(b []byte) { w.body(tag, b, &check) }}
	code(&send)
	w.payload = send.Out
	w.body(tag, w.payload, &check)
	w.send(binary.LittleEndian.AppendUint32(nil, check))
}

// head sends the beginning of a section, and gives its check so far.
func (w *writer) head(tag string, length int) (check uint32) {
	head := binary.AppendUvarint(append(make([]byte, 0, 16), tag...), uint64(length))
	w.body(tag, head, &check)
	return check
}

// body sends a part of a section.
func (w *writer) body(tag string, part []byte, check *uint32) {
	*check = crc32.Update(*check, castagnoli, part)
	if tag != endTag && tag[0] < 'a' {
		w.digest.Write(part)
	}
	w.send(part)
}

func (w *writer) send(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
}
