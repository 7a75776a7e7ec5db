package profile

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/codec"
)

// FormatError reports why the bytes are not a valid profile.
type FormatError codec.Error

func (e *FormatError) Error() string {
	return "profile, byte " + strconv.Itoa(e.Offset) + ": " + e.What
}

// VersionError reports that a profile has a newer version than the program supports.
type VersionError struct{ Version uint64 }

func (e *VersionError) Error() string {
	return "the profile has version " + strconv.FormatUint(e.Version, 10) +
		", but this program reads versions up to " + strconv.Itoa(Version) + "; use a newer stackglass to open it"
}

// Decode decodes a profile in binary format. Decode checks the checksum of every section, the
// digest, and the invariants of [Profile.Check]. The error is a [*FormatError], a [*VersionError]
// or a [*CheckError].
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

// EncodedDigest returns the digest at the end of an encoded profile, without decoding or checking
// the profile. The result ok is false if there is no digest.
func EncodedDigest(data []byte) (digest [32]byte, ok bool) {
	const end = len(endTag) + 1 + len(digest) + 4 // the tag, the length, the payload and the checksum
	at := len(data) - end
	if !IsProfile(data) || at < 0 || string(data[at:at+5]) != endTag+"\x20" {
		return digest, false
	}
	copy(digest[:], data[at+5:])
	return digest, true
}

// All histograms of a profile together may need at most histogramBytes + histogramRatio × the
// length of the file. Without this limit, decoding a short file could need gigabytes of memory,
// because three bytes of the file can describe a long distance whose counters need thousands of
// bytes.
const (
	histogramBytes = 1 << 29
	histogramRatio = 64
)

func decode(data []byte) (*Profile, error) {
	if !IsProfile(data) {
		return nil, &FormatError{0, "the file does not begin with the header of a profile; want a .sgp file from the analyze command or the page"}
	}
	r := codec.NewDecoder(data)
	p, err := decodeSections(data, r)
	if wrong, ok := r.Err().(*codec.Error); ok {
		return nil, (*FormatError)(wrong)
	}
	return p, err
}

// decodeSections reads the bytes after the magic number. Errors are stored in r, except for a
// [*VersionError].
func decodeSections(data []byte, r *codec.Decoder) (*Profile, error) {
	r.Part(uint64(len(magic)))
	version := r.Uint()
	if r.Err() == nil && version > Version {
		return nil, &VersionError{version}
	}
	if version == 0 {
		r.Fail("the profile has version 0, want a version from 1 to " + strconv.Itoa(Version))
	}
	p := new(Profile)
	room := uint64(histogramBytes + histogramRatio*len(data))
	start, end := r.Offset(), r.Offset()
	optional := false // an optional section has been read
	for next := 0; r.Err() == nil; {
		tag, payload := readSection(data, r)
		c := coder{Coder: &codec.Coder{In: payload}, version: version, of: p, room: &room}
		switch {
		case r.Err() != nil:
			return nil, nil
		case tag == endTag:
			checkEnd(r, payload, next, digestSections(data[start:end]))
			return p, nil
		case tag[0] >= 'a':
			optional = true
			p.decodeOptional(tag, &c)
		case optional:
			payload.Fail("a mandatory section follows an optional section")
		default:
			end = r.Offset()
			next = p.decodeSection(tag, &c, next)
		}
		c.Check(!c.More(), "section "+strconv.Quote(tag)+" has bytes after its content")
		r.Join(payload)
	}
	return nil, nil
}

// decodeOptional reads an optional section, or skips it if it is unknown.
func (p *Profile) decodeOptional(tag string, c *coder) {
	again := false
	state := slices.IndexFunc(states, func(s stateForm) bool { return s.tag == tag })
	switch {
	case tag == "smpi" && p.Sampled != nil:
		p.codeIntervals(c)
	case tag == "coml" && p.Communication != nil && p.Communication.LineSharing == nil:
		p.Communication.LineSharing = []LineSharing{}
		p.Communication.codeLineSharing(c)
	case tag == "comx":
		codec.Below(c.Coder, &p.NoCommunication, uint64(numAbsences))
	case tag == "page":
		again = p.Pages != nil
		p.codePages(c)
	case tag == "pref" && p.Sites != nil:
		again = p.Sites.Covered != nil
		p.Sites.codeCovered(c)
	case tag == "srcs":
		again = p.Sources != nil
		p.codeSources(c)
	case tag == "segm":
		if again = p.Segment != nil; !again {
			p.Segment = new(Segment)
			p.Segment.code(c)
		}
	case state >= 0:
		if again = p.Segment == nil || *states[state].field(p.Segment) != nil; !again {
			*states[state].field(p.Segment) = c.raw()
		}
	default:
		c.raw()
	}
	c.Check(!again, "section "+tag+" is repeated, or the preceding section is missing")
}

func (c *coder) raw() []byte { return append([]byte{}, c.In.Take()...) }

// checkEnd checks that all mandatory sections are present, and that the digest is correct.
func checkEnd(r, payload *codec.Decoder, next int, digest [32]byte) {
	switch {
	case next < onceSections:
		r.Fail("one of the sections INPT, TOTL and STAT is missing")
	case string(payload.Rest()) != string(digest[:]):
		r.Fail("the digest does not match the content of the file, which was changed or damaged")
	case len(r.Rest()) > 0:
		r.Fail("the file contains bytes after the end of the profile; something was appended to the file")
	}
}

// decodeSection reads a section that the digest covers. The parameter "next" is the smallest index
// in the list "forms" that this section may have. decodeSection returns the smallest index that the
// next section may have.
func (p *Profile) decodeSection(tag string, c *coder, next int) int {
	place := slices.IndexFunc(forms, func(f sectionForm) bool { return slices.Contains(f.tags, tag) })
	switch {
	case place < 0:
		c.In.Fail("section " + strconv.Quote(tag) + " is unknown to this program; use a newer stackglass")
		return next
	case place != next && (place < next || next < onceSections):
		c.In.Fail("section " + strconv.Quote(tag) + " is out of order")
		return next
	}
	forms[place].read(p, tag, c)
	if forms[place].repeats {
		return place
	}
	return place + 1
}

// readSection reads one section of the data and verifies its checksum.
func readSection(data []byte, r *codec.Decoder) (tag string, payload *codec.Decoder) {
	start := r.Offset()
	tag = string(r.Part(4).Rest())
	payload = r.Part(r.Uint())
	body := data[start:r.Offset()]
	sum := r.Part(4).Rest()
	if r.Err() == nil && binary.LittleEndian.Uint32(sum) != crc32.Checksum(body, castagnoli) {
		r.FailAt(start, "section "+strconv.Quote(tag)+" is damaged (wrong checksum); copy the file again")
	}
	return tag, payload
}
