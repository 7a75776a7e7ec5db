package sgt

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// metadata contains everything that has been read from frames, except steps.
type metadata struct {
	begun       bool // whether the first frame has been read
	version     uint64
	pointerBits uint64
	facts       []trace.Fact
	program     trace.Program
	firstObject []uint32 // index of the first object of each module
	ending      Ending
	indexed     bool // whether the index at the end of the file has been read
	indexAt     uint64
	indexBody   []byte
	tables      []uint64 // offsets of all frames except chunks and the index
	shared      bool     // whether a clone shares the slices of objects and threads

	noThreads, noSizes bool // whether the facts state that the trace has no threads, or no sizes
}

// Ending is the content of the DONE frame, which is missing if the file was truncated.
type Ending struct {
	Known      bool
	References uint64
	End
}

// String describes how the run ended, or returns "" if the end is unknown.
func (e Ending) String() string {
	switch number, failed := strings.CutPrefix(e.How, "error "); {
	case !e.Known:
		return ""
	case failed:
		return "recording stopped: " + cmp.Or(errnoText[number], e.How)
	case e.How == "exit":
		return "exit " + decimal(e.Status)
	}
	return e.How
}

// errnoText describes the Linux errors that can occur when a file is written.
var errnoText = map[string]string{
	"1":   "operation not permitted",
	"5":   "input/output error",
	"9":   "bad file descriptor",
	"12":  "cannot allocate memory",
	"13":  "permission denied",
	"27":  "file too large",
	"28":  "no space left on device",
	"30":  "read-only file system",
	"32":  "broken pipe",
	"107": "transport endpoint is not connected",
	"116": "stale file handle",
	"122": "disk quota exceeded",
}

// VersionError reports that only a later version of this program can read a file.
type VersionError struct {
	File           string
	Version, Needs uint64 // version of the container, and oldest reader version that can read the container
}

func (e *VersionError) Error() string {
	return e.File + ": container version " + decimal(e.Version) + " requires reader version " + decimal(e.Needs) +
		" or later, but this reader has version " + decimal(Version) + "; use a newer stackglass"
}

var (
	errFirst  = errors.New("the file does not begin with the header of a container")
	errSecond = errors.New("a second trace begins here, but traces cannot be concatenated; convert each file separately")
)

// clone returns a copy that can read further frames independently of t. If t also reads further
// frames, t must be marked as shared.
func (t *metadata) clone() *metadata {
	c := *t
	p := &c.program
	p.Modules, p.Functions, p.Blocks = slices.Clip(p.Modules), slices.Clip(p.Functions), slices.Clip(p.Blocks)
	p.Sites, p.Objects, p.Threads, p.Tags = slices.Clip(p.Sites), slices.Clip(p.Objects), slices.Clip(p.Threads), slices.Clip(p.Tags)
	p.Structures = slices.Clip(p.Structures)
	c.facts, c.firstObject, c.tables, c.shared = slices.Clip(c.facts), slices.Clip(c.firstObject), slices.Clip(c.tables), true
	return &c
}

// unshare replaces the slices of objects and threads by private copies, because later frames
// overwrite their elements.
func (t *metadata) unshare() {
	if p := &t.program; t.shared {
		p.Objects, p.Threads = slices.Clone(p.Objects), slices.Clone(p.Threads)
		t.shared = false
	}
}

// takeFrame processes a frame that does not belong to a chunk.
func (t *metadata) takeFrame(f frame) error {
	r := cursor{bytes: f.body}
	if f.tag != tagIndex {
		t.tables = append(t.tables, f.at)
	}
	switch f.tag {
	case tagFile:
		if t.begun {
			return errSecond
		}
		return t.takeFile(&r)
	case tagCapture:
		t.recordFacts(r.facts())
	case tagModule:
		t.firstObject = append(t.firstObject, uint32(len(t.program.Objects)))
		return ParseModule(f.body, &t.program)
	case tagObjects:
		t.takeObjects(&r)
	case tagThread:
		t.takeThread(&r)
	case tagTags:
		t.takeTags(&r)
	case tagDone:
		e := End{How: r.str(), Status: r.uv()}
		t.ending = Ending{Known: true, References: r.uv()}
		e.Lost = r.uv()
		t.ending.End = e
	case tagIndex:
		t.indexed, t.indexAt, t.indexBody = true, f.at, slices.Clone(f.body)
		return nil
	default:
		return nil
	}
	return r.end()
}

func (t *metadata) takeFile(r *cursor) error {
	version, needs := r.uv(), r.uv()
	if r.wrong == nil && needs > Version {
		return &VersionError{Version: version, Needs: needs}
	}
	t.begun, t.version = true, version
	t.pointerBits = r.uv()
	t.recordFacts(r.facts())
	if version > Version && r.wrong == nil {
		return nil // a later version may append further fields
	}
	return r.end()
}

func (c *cursor) facts() []trace.Fact {
	all := list[trace.Fact](c.count(2, "facts"))
	for i := range all {
		all[i] = trace.Fact{Name: c.str(), Value: c.str()}
	}
	return all
}

func (t *metadata) takeObjects(r *cursor) {
	module := r.below(uint64(len(t.firstObject)), "module")
	n := r.count(1, "object addresses")
	if r.wrong != nil {
		return
	}
	t.unshare()
	objects := t.program.Objects[t.firstObject[module]:]
	if module+1 < uint64(len(t.firstObject)) {
		objects = objects[:t.firstObject[module+1]-t.firstObject[module]]
	}
	if n != len(objects) {
		r.fail("number of object addresses", uint64(n), strconv.Itoa(len(objects))+", the number of objects of the module")
	}
	for i := range min(n, len(objects)) {
		objects[i].Addr = r.uv()
	}
}

func (t *metadata) takeThread(r *cursor) {
	th := trace.Thread{Number: r.u32("thread"), ID: r.uv(), Name: r.str(), StackLow: r.uv(), StackHigh: r.uv()}
	same := func(other trace.Thread) bool { return other.Number == th.Number }
	if i := slices.IndexFunc(t.program.Threads, same); i >= 0 {
		t.unshare()
		t.program.Threads[i] = th
		return
	}
	t.program.Threads = append(t.program.Threads, th)
}

func (t *metadata) takeTags(r *cursor) {
	first := r.uv()
	n := r.count(1, "tags")
	if first != uint64(len(t.program.Tags)) {
		r.fail("first tag", first, strconv.Itoa(len(t.program.Tags)))
		return
	}
	for range n {
		t.program.Tags = append(t.program.Tags, r.str())
	}
}

// recordFacts stores facts about the capture. A fact replaces an earlier fact with the same name.
func (t *metadata) recordFacts(facts []trace.Fact) {
	for _, f := range facts {
		switch f.Name {
		case "threads":
			t.noThreads = f.Value == "no"
		case "sizes":
			t.noSizes = f.Value == "no"
		}
	}
	t.facts = append(t.facts, facts...)
}

// chunkTables contains the tables that precede a chunk. Rows of the chunk can refer only to these
// tables. The header that is returned with the rows contains the same tables.
type chunkTables struct {
	metadata
	blocks        int // number of blocks for which plans exist
	hasPC, hasArg bool
}

// recordTables stores the current tables as the tables that precede the following chunks.
func (r *Reader) recordTables() {
	if r.latest == nil || len(r.latest.tables) != len(r.tables) {
		r.shared = true
		r.latest = &chunkTables{*r.metadata, len(r.plans), r.hasPC, r.hasArg}
	}
}

// hasNewItems reports whether a chunk's tables contain items that the current header does not
// contain.
func (r *Reader) hasNewItems(k *chunkTables) bool {
	return r.now == nil || len(k.tables) > len(r.now.tables)
}

// peek reads all frames before the first chunk. It returns an error if there is no chunk.
func (r *Reader) peek() error {
	if !r.begun && r.ended == nil {
		if r.ahead, r.ended = r.source.next(r); r.ended != nil {
			return r.ended
		}
	}
	return nil
}

// read returns the next chunk of the file.
func (r *Reader) read() (*chunk, error) {
	if c := r.ahead; c != nil {
		r.ahead = nil
		return c, nil
	}
	return r.source.next(r)
}
