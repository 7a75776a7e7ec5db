package profile

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// FormatError tells why bytes are not a profile that can be read.
type FormatError struct {
	Offset int    // where in the bytes
	What   string // what is wrong there, what was expected, and what to do
}

func (e *FormatError) Error() string {
	return "profile, byte " + strconv.Itoa(e.Offset) + ": " + e.What
}

// VersionError tells that a profile is newer than the program.
type VersionError struct{ Version uint64 }

func (e *VersionError) Error() string {
	return "the profile has version " + strconv.FormatUint(e.Version, 10) +
		", this program reads versions up to " + strconv.Itoa(Version) + "; use a newer stackglass to open it"
}

// Decode reads a profile's binary form and checks it: every section's checksum,
// the digest, and the invariants of [Profile.Check]. The error is a
// [*FormatError], a [*VersionError] or a [*CheckError].
func Decode(data []byte) (*Profile, error) {
	p, err := decode(data)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p, nil
}

// EncodedDigest reads the digest that stands at the end of a profile's binary
// form, without decoding or checking the rest. ok is false when there is none.
func EncodedDigest(data []byte) (digest [32]byte, ok bool) {
	const end = len(endTag) + 1 + len(digest) + 4 // tag, length, payload, check
	at := len(data) - end
	if !IsProfile(data) || at < 0 || string(data[at:at+5]) != endTag+"\x20" {
		return digest, false
	}
	copy(digest[:], data[at+5:])
	return digest, true
}

// All histograms of a profile together take no more memory than histogramBytes, and
// histogramRatio times the length of the file: three bytes are enough for a distance
// that no other one is near, which takes thousands.
const (
	histogramBytes = 1 << 29
	histogramRatio = 64
)

func decode(data []byte) (*Profile, error) {
	if !IsProfile(data) {
		return nil, &FormatError{0, "it does not begin like a profile; want a .sgp file as written by analyze or the page"}
	}
	room := uint64(histogramBytes + histogramRatio*len(data))
	r := &Decoder{in: data, at: len(magic), room: &room}
	v := r.Uint()
	if r.err == nil && v > Version {
		return nil, &VersionError{v}
	}
	if v == 0 {
		r.fail("version 0, want 1 to " + strconv.Itoa(Version))
	}
	p := new(Profile)
	start, end := r.at, r.at
	optional := false // there was an optional section
	for next := 0; r.err == nil; {
		tag, payload := r.section()
		switch {
		case r.err != nil:
			return nil, r.err
		case tag == endTag:
			return finish(p, r, payload, next, digestSections(data[start:end]))
		case tag[0] >= 'a':
			optional = true
			p.decodeOptional(tag, payload)
		case optional:
			payload.fail("a section of the digest after an optional one")
		default:
			end = r.at
			next = p.decodeSection(tag, payload, next, v)
		}
		payload.end(tag)
		r.err = payload.err
	}
	return nil, r.err
}

// decodeOptional reads an optional section, and skips one that it does not
// know.
func (p *Profile) decodeOptional(tag string, r *Decoder) {
	switch {
	case tag == "smpi" && p.Sampled != nil:
		p.decodeIntervals(r)
	case tag == "coml" && p.Communication != nil && p.Communication.LineSharing == nil:
		p.Communication.decodeLineSharing(r)
	case tag == "comx":
		p.NoCommunication = Absence(r.UintBelow(uint64(numAbsences)))
	case tag == "segm" && p.Segment == nil:
		p.Segment = decodeSegment(r)
	case tag == "segs" && p.Segment != nil && p.Segment.Sites == nil:
		p.Segment.Sites = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segt" && p.Segment != nil && p.Segment.Touched == nil:
		p.Segment.Touched = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segh" && p.Segment != nil && p.Segment.Sharing == nil:
		p.Segment.Sharing = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segc" && p.Segment != nil && p.Segment.Communication == nil:
		p.Segment.Communication = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segb" && p.Segment != nil && p.Segment.Blocks == nil:
		p.Segment.Blocks = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segp" && p.Segment != nil && p.Segment.Sample == nil:
		p.Segment.Sample = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segf" && p.Segment != nil && p.Segment.Shelved == nil:
		p.Segment.Shelved = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segk" && p.Segment != nil && p.Segment.Kept == nil:
		p.Segment.Kept = append([]byte{}, r.in...)
		r.at = len(r.in)
	case tag == "segf" || tag == "segk" || tag == "segm" || tag == "segs" || tag == "segt" || tag == "segh" || tag == "segc" || tag == "segb" || tag == "segp":
		r.fail("section " + tag + " a second time, or without the one before it")
	default:
		r.at = len(r.in)
	}
}

// finish checks what can only be known at the end.
func finish(p *Profile, r, payload *Decoder, next int, digest [32]byte) (*Profile, error) {
	switch {
	case next < onceSections:
		r.fail("the sections INPT, TOTL and STAT are not all there")
	case string(payload.in[payload.at:]) != string(digest[:]):
		r.fail("the digest does not match the content; the file was changed or damaged")
	case r.at != len(r.in):
		r.fail("there are bytes after the end; the file was joined with something else")
	}
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

// sectionOrder is the order of the sections that the digest covers. The first
// three have to be there. A line size has several sections, in turn with the next
// one's; what comes once for each of them, or once, is behind.
var sectionOrder = [][]string{{"INPT"}, {"TOTL"}, {"STAT"}, {"SAMP"}, {"PRED"}, {"LOCA", "WIND", "SETS"}, {"SITE"}, {"CNTR"}, {"SHAR"}, {"SCOH"}, {"COMM"}, {"LOOP"}, {"BLCK"}}

const onceSections = 3

// follow gives the least place in sectionOrder of what may stand behind a section,
// if that may stand at next or behind.
func follow(tag string, next int) (after int, ok bool) {
	place := slices.IndexFunc(sectionOrder, func(tags []string) bool { return slices.Contains(tags, tag) })
	after = place + 1
	if tag == "SHAR" || len(sectionOrder[max(place, 0)]) > 1 {
		after = place
	}
	return after, place < 0 || place == next || place > next && next >= onceSections
}

// decodeSection reads a section that the digest covers, of a profile of the given
// version. next is the least place in sectionOrder that it may have; it gives that
// of the section behind it.
func (p *Profile) decodeSection(tag string, r *Decoder, next int, version uint64) int {
	after, ok := follow(tag, next)
	if !ok {
		r.fail("section " + strconv.Quote(tag) + " out of order")
		return next
	}
	switch tag {
	case "INPT":
		p.Input.decode(r)
	case "TOTL":
		p.Totals.decode(r, kindsOf(version))
	case "STAT":
		p.State.Partial = r.UintBelow(2) == 1
		p.State.Reason = r.String()
	case "SAMP":
		p.Sampled = decodeSampled(r)
	case "PRED":
		p.Predicted = decodePredicted(r)
	case "LOCA":
		p.decodeLocality(r)
	case "WIND":
		p.decodeWindows(r)
	case "SETS":
		p.decodeSets(r)
	case "SITE":
		p.Sites = decodeSites(r)
	case "CNTR":
		p.Counters = decodeCounters(r)
	case "SHAR":
		p.decodeSharing(r)
	case "SCOH":
		p.decodeCoherent(r)
	case "COMM":
		p.Communication = p.decodeCommunication(r)
	case "LOOP":
		p.Loops = append([]byte{}, r.in...)
		r.at = len(r.in)
	case "BLCK":
		p.Blocks = append([]byte{}, r.in...)
		r.at = len(r.in)
	default:
		r.fail("section " + strconv.Quote(tag) + " is not known to this program; use a newer stackglass")
	}
	return after
}

// kindsOf gives the number of kinds of references in a version's totals.
func kindsOf(version uint64) int {
	if version == 1 {
		return 4 // no ranges yet
	}
	return trace.NumKinds
}

func (t *Totals) decode(r *Decoder, kinds int) {
	for i := range kinds {
		t.References[i] = r.Uint()
	}
	for i := range kinds {
		t.Bytes[i] = r.Uint()
	}
	t.Unselected, t.BadRecords = r.Uint(), r.Uint()
	t.Threads = r.threads()
}

// decodeLocality adds the histograms of a line size, larger than those before:
// there are few of these, so that a small file cannot ask for many.
func (p *Profile) decodeLocality(r *Decoder) {
	l := Locality{LineBytes: uint32(r.UintBelow(MaxLineBytes + 1))}
	if n := len(p.Locality); !ValidLineBytes(l.LineBytes) || n > 0 && l.LineBytes <= p.Locality[n-1].LineBytes {
		r.fail("line sizes that cannot be or are not ascending")
		return
	}
	l.decodeKinds(r)
	p.Locality = append(p.Locality, l)
}

func (p *Profile) decodeWindows(r *Decoder) {
	if len(p.Locality) == 0 {
		r.fail("windows before any histogram")
		return
	}
	l := &p.Locality[len(p.Locality)-1]
	if r.Uint() != uint64(l.LineBytes) {
		r.fail("windows of another line size than the histogram before them")
	}
	if l.Windows.References != 0 {
		r.fail("the windows of a line size again")
		return
	}
	l.Windows.decode(r)
}

func (in *Input) decode(r *Decoder) {
	in.Header.Format = r.String()
	flags := r.Uint()
	in.Header.Threads, in.Header.PCs, in.Header.Sizes, in.Header.Sliced = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	kinds := r.Uint()
	if kinds > uint64(trace.AllKinds) || flags > 15 {
		r.fail("unknown kinds or flags")
	}
	in.Kinds = trace.Kinds(kinds)
	in.Skip, in.Limit, in.Threads = r.Uint(), r.Uint(), r.threads()
}

func (l *Locality) decodeKinds(r *Decoder) {
	next := trace.Kind(0)
	for range r.Length(3) {
		l.Kinds = append(l.Kinds, KindLocality{})
		k := &l.Kinds[len(l.Kinds)-1]
		if k.Kind = trace.Kind(r.UintBelow(trace.NumKinds)); k.Kind < next {
			r.fail("kinds that are not ascending")
			return
		}
		next = k.Kind + 1
		k.Cold = r.Uint()
		r.histogram(&k.Distances, MaxDistance)
	}
}

// histogram reads distances, none beyond most, into an empty histogram.
func (r *Decoder) histogram(h *Histogram, most uint64) {
	last := ^uint64(0)
	for range r.Length(2) {
		step, count := r.UintBelow(MaxDistance), r.Uint()
		d := last + step
		if d > most || step == 0 || count == 0 {
			r.fail("a distance out of order or out of range, or a count of zero")
		}
		if r.room != nil && h.bytes > *r.room {
			r.fail("distances so far apart that they take gigabytes; analyze fewer line sizes or threads together")
		}
		if r.err != nil {
			return
		}
		h.AddN(d, count)
		last = d
	}
	if r.room != nil {
		*r.room -= min(*r.room, h.bytes)
	}
}

func (w *Windows) decode(r *Decoder) {
	w.References, w.First = r.Uint(), r.Uint()
	n := r.Length(1)
	if n > MaxWindows {
		r.fail("more than " + strconv.Itoa(MaxWindows) + " windows")
		return
	}
	for range n {
		var row WindowRow
		mask := r.UintBelow(1 << WindowBins)
		for bin := range row {
			if mask>>bin&1 != 0 {
				row[bin] = r.Uint()
			}
		}
		w.Rows = append(w.Rows, row)
	}
	if r.at < len(r.in) { // made where they were counted
		w.Distinct = r.uints(n)
	}
}

func decodeSegment(r *Decoder) *Segment {
	s := &Segment{Start: r.Uint()}
	for range r.Length(2) {
		var l SegmentLines
		var line trace.Line
		reference := s.Start
		for range r.Length(3) {
			reference += r.Uint()
			line += trace.Line(r.zigzag())
			kind := trace.Kind(r.UintBelow(trace.NumKinds))
			l.FirstTouches = append(l.FirstTouches, FirstTouch{line, reference, kind})
		}
		l.Stack = r.Stack()
		s.Lines = append(s.Lines, l)
	}
	if r.at == len(r.in) {
		return s // made where there were no working sets
	}
	for i := range s.Lines {
		for range r.UintBelow(64) {
			s.Lines[i].WorkingSets = append(s.Lines[i].WorkingSets, r.uints(int(r.UintBelow(MaxWindows+1))))
		}
	}
	return s
}

// uints reads n varints.
func (r *Decoder) uints(n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = r.Uint()
	}
	return list
}

// Decoder reads what the encoders of profiles and checkpoints write. After the
// first error it yields zeros; ask Err.
type Decoder struct {
	in   []byte
	at   int
	base int     // offset of in within the file
	room *uint64 // bytes that histograms may still take; nil: any number
	err  error
}

// NewDecoder reads data.
func NewDecoder(data []byte) *Decoder { return &Decoder{in: data} }

// Err is the first error: a [*FormatError].
func (r *Decoder) Err() error { return r.err }

// Rest gives what was not read yet.
func (r *Decoder) Rest() []byte { return r.in[r.at:] }

func (r *Decoder) fail(what string) {
	if r.err == nil {
		r.err = &FormatError{r.base + r.at, what}
	}
}

const cutOff = "the file ends too early; copy it again"

// Uint reads one unsigned varint.
func (r *Decoder) Uint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.in[r.at:])
	if n <= 0 {
		if n == 0 {
			r.fail(cutOff)
		} else {
			r.fail("a number of more than 64 bits")
		}
		return 0
	}
	r.at += n
	return v
}

// UintBelow reads a number that must be below limit.
func (r *Decoder) UintBelow(limit uint64) uint64 {
	v := r.Uint()
	if v >= limit {
		r.fail("the number " + strconv.FormatUint(v, 10) + ", want less than " + strconv.FormatUint(limit, 10))
		return 0
	}
	return v
}

// Word reads eight bytes, little-endian.
func (r *Decoder) Word() uint64 {
	if r.err == nil && len(r.in)-r.at < 8 {
		r.fail(cutOff)
	}
	if r.err != nil {
		return 0
	}
	r.at += 8
	return binary.LittleEndian.Uint64(r.in[r.at-8:])
}

// Length reads the length of a list whose members take at least least bytes
// each, so that a damaged length asks for no more memory than the file has.
func (r *Decoder) Length(least int) int {
	return int(r.UintBelow(uint64(len(r.in)-r.at)/uint64(least) + 1))
}

// String reads a length and as many bytes.
func (r *Decoder) String() string {
	n := r.Length(1)
	if r.err != nil {
		return ""
	}
	r.at += n
	if r.at > len(r.in) {
		r.at -= n
		r.fail(cutOff)
		return ""
	}
	return string(r.in[r.at-n : r.at])
}

func (r *Decoder) threads() []uint32 {
	if r.UintBelow(2) == 0 {
		return nil
	}
	threads := []uint32{}
	for range r.Length(1) {
		threads = append(threads, uint32(r.UintBelow(1<<32)))
	}
	return threads
}

func (r *Decoder) zigzag() int64 {
	v := r.Uint()
	return int64(v>>1) ^ -int64(v&1)
}

// Stack reads what [AppendStack] wrote.
func (r *Decoder) Stack() []trace.Line {
	stack := make([]trace.Line, 0, r.Length(1))
	var line trace.Line
	for range cap(stack) {
		line += trace.Line(r.zigzag())
		stack = append(stack, line)
	}
	return stack
}

// section reads one section and checks its checksum.
func (r *Decoder) section() (tag string, payload *Decoder) {
	start := r.at
	if len(r.in)-r.at < 4 {
		r.fail(cutOff)
		return "", nil
	}
	tag = string(r.in[r.at : r.at+4])
	r.at += 4
	length := r.Uint()
	if r.err == nil && uint64(len(r.in)-r.at) < length+4 || length > 1<<62 {
		r.fail(cutOff)
	}
	if r.err != nil {
		return "", nil
	}
	body := r.at
	r.at += int(length)
	sum := binary.LittleEndian.Uint32(r.in[r.at:])
	if sum != crc32.Checksum(r.in[start:r.at], castagnoli) {
		r.at = start
		r.fail("section " + strconv.Quote(tag) + " is damaged (wrong checksum); copy the file again")
		return "", nil
	}
	payload = &Decoder{in: r.in[body:r.at], base: body, room: r.room}
	r.at += 4
	return tag, payload
}

// end checks that a section was read to its last byte.
func (r *Decoder) end(tag string) {
	if r.at != len(r.in) {
		r.fail("section " + strconv.Quote(tag) + " is longer than its content")
	}
}
