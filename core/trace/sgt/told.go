package sgt

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
)

// told is what the frames of a file tell besides steps.
type told struct {
	begun       bool // the first frame was there
	version     uint64
	pointerBits uint64
	facts       []trace.Fact
	program     trace.Program
	firstObject []uint32 // by module
	ending      Ending
	indexed     bool // the index was there: the file is whole
	indexAt     uint64
	indexBody   []byte
	tables      []uint64 // offsets of frames that are no chunk's, but the index's
	shared      bool     // somebody looks at the objects and threads that are known now

	noThreads, noSizes bool // of the facts
}

// Ending is what the DONE frame says; a file that was cut has none.
type Ending struct {
	Known      bool
	References uint64
	End
}

// String says how the run ended, "" if the file does not say it.
func (e Ending) String() string {
	switch number, failed := strings.CutPrefix(e.How, "error "); {
	case !e.Known:
		return ""
	case failed:
		return "recording stopped: " + errnoText(number)
	case e.How == "exit":
		return "exit " + decimal(e.Status)
	}
	return e.How
}

// errnoText describes an error number of Linux that writing a file may fail with.
func errnoText(number string) string {
	switch number {
	case "1":
		return "operation not permitted"
	case "5":
		return "input/output error"
	case "9":
		return "bad file descriptor"
	case "12":
		return "cannot allocate memory"
	case "13":
		return "permission denied"
	case "27":
		return "file too large"
	case "28":
		return "no space left on device"
	case "30":
		return "read-only file system"
	case "32":
		return "broken pipe"
	case "107":
		return "transport endpoint is not connected"
	case "116":
		return "stale file handle"
	case "122":
		return "disk quota exceeded"
	}
	return "error " + number
}

// VersionError tells that a file was written for later versions of this program.
type VersionError struct {
	File           string
	Version, Needs uint64 // of the container; the oldest reader that understands it
}

func (e *VersionError) Error() string {
	return e.File + ": version " + decimal(e.Version) + " of the container, which readers from version " + decimal(e.Needs) +
		" on understand; this is " + decimal(Version) + ": take a newer stackglass"
}

var (
	errFirst  = errors.New("it does not begin with what a container begins with")
	errSecond = errors.New("another trace begins here: files cannot be joined, convert each")
)

// clone gives one that can learn on its own, if t has become one that is shared or does
// not learn any more.
func (t *told) clone() *told {
	c := *t
	p := &c.program
	p.Modules, p.Functions, p.Blocks, p.Sites = slices.Clip(p.Modules), slices.Clip(p.Functions), slices.Clip(p.Blocks), slices.Clip(p.Sites)
	p.Objects, p.Threads, c.shared = slices.Clip(p.Objects), slices.Clip(p.Threads), true
	p.Tags, c.facts, c.firstObject, c.tables = slices.Clip(p.Tags), slices.Clip(c.facts), slices.Clip(c.firstObject), slices.Clip(c.tables)
	return &c
}

// own has objects and threads be nobody else's: what is known later is known better.
func (t *told) own() {
	if p := &t.program; t.shared {
		p.Objects, p.Threads = slices.Clone(p.Objects), slices.Clone(p.Threads)
		t.shared = false
	}
}

// take learns from a frame that is not a chunk's.
func (t *told) take(f frame) error {
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
		t.learn(r.facts())
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

func (t *told) takeFile(r *cursor) error {
	version, needs := r.uv(), r.uv()
	if r.wrong == nil && needs > Version {
		return &VersionError{Version: version, Needs: needs}
	}
	t.begun, t.version = true, version
	t.pointerBits = r.uv()
	t.learn(r.facts())
	if version > Version && r.wrong == nil {
		return nil // a later version may say more
	}
	return r.end()
}

// facts takes a list of facts.
func (c *cursor) facts() []trace.Fact {
	all := list[trace.Fact](c.count(2, "facts"))
	for i := range all {
		all[i] = trace.Fact{Name: c.str(), Value: c.str()}
	}
	return all
}

func (t *told) takeObjects(r *cursor) {
	module := r.below(uint64(len(t.firstObject)), "module")
	n := r.count(1, "addresses of objects")
	if r.wrong != nil {
		return
	}
	t.own()
	objects := t.program.Objects[t.firstObject[module]:]
	if module+1 < uint64(len(t.firstObject)) {
		objects = objects[:t.firstObject[module+1]-t.firstObject[module]]
	}
	if n != len(objects) {
		r.fail("addresses of objects", uint64(n), "one for each of the module's "+strconv.Itoa(len(objects)))
	}
	for i := range min(n, len(objects)) {
		objects[i].Addr = r.uv()
	}
}

func (t *told) takeThread(r *cursor) {
	th := trace.Thread{Number: r.u32("thread"), ID: r.uv(), Name: r.str(), StackLow: r.uv(), StackHigh: r.uv()}
	same := func(other trace.Thread) bool { return other.Number == th.Number }
	if i := slices.IndexFunc(t.program.Threads, same); i >= 0 {
		t.own()
		t.program.Threads[i] = th // what is known later is known better
		return
	}
	t.program.Threads = append(t.program.Threads, th)
}

func (t *told) takeTags(r *cursor) {
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

// learn takes note of facts; of two under one name the later one holds.
func (t *told) learn(facts []trace.Fact) {
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
