package workers

import (
	"errors"
	"io"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
)

// checkpoint is a run that can go on: the model, the choices that it was made
// with, and enough about the file to tell another one from it.
type checkpoint struct {
	name   string // of the file, for the sentence that asks for it
	format string
	spec   analysis.Spec
	size   uint64 // of the file; 0: not known
	read   uint64 // bytes of the file read by then
	sum    uint64 // XXH64 of those bytes
	model  []byte // of analysis.Runner.Save
}

// typeCheckpoint names a stored checkpoint in a BodyError; it is never sent.
const typeCheckpoint Type = 255

// encode gives the stored form: like a message's body.
func (c *checkpoint) encode() []byte {
	w := newBody(len(c.model) + len(c.name) + 128)
	w.text("stackglass checkpoint")
	w.text(c.name)
	w.text(c.format)
	w.spec(c.spec)
	w.number(c.size)
	w.number(c.read)
	w.number(c.sum)
	w.bytes = append(w.bytes, c.model...)
	return w.bytes
}

func decodeCheckpoint(stored []byte) (*checkpoint, error) {
	r := openBody(typeCheckpoint, stored)
	if r.text("a checkpoint") != "stackglass checkpoint" {
		r.fail("a checkpoint")
	}
	c := &checkpoint{
		name:   r.text("the file's name"),
		format: r.text("the format"),
		spec:   r.spec(),
		size:   r.number("the file's size"),
		read:   r.number("the bytes read"),
		sum:    r.number("the checksum"),
	}
	c.model = r.rest()
	return c, r.end()
}

// checkpointError tells that a run cannot go on.
type checkpointError struct {
	key string
	err error
}

func (e *checkpointError) Error() string {
	return "The interrupted run cannot go on from its checkpoint (" + e.err.Error() +
		"). The checkpoint is kept. Analyse the file from its start, or delete the entry."
}

func (e *checkpointError) Unwrap() error { return e.err }

// otherFileError tells that a run was to go on with a file that is not the one
// that it began with.
type otherFileError struct {
	name string
	want *checkpoint
}

func (e *otherFileError) Error() string {
	return e.name + " is not the file that the interrupted run began with: that was " + e.want.name + ", " +
		strconv.FormatUint(e.want.size, 10) + " bytes, and unchanged since. The checkpoint is kept. " +
		"Choose that file, or analyse this one from its start."
}

func (h *Host) loadCheckpoint(key string) (*checkpoint, error) {
	if h.Store == nil {
		return nil, &checkpointError{key: key, err: errors.New(h.NoStore)}
	}
	stored, err := h.Store.Get(key)
	if err != nil {
		return nil, &checkpointError{key: key, err: err}
	}
	c, err := decodeCheckpoint(stored)
	if err != nil {
		return nil, &checkpointError{key: key, err: errors.New("what is stored there is not a checkpoint of this version")}
	}
	return c, nil
}

// wantsCheckpoint goes by volume of input, so that the same file has the same
// checkpoints on every machine; time only ever makes them fewer.
func (j *job) wantsCheckpoint() bool {
	h := j.host
	due := j.file.read >= j.marked+h.CheckpointBytes ||
		j.runner.Progress().References >= j.markedAt+h.CheckpointReferences
	if !due || h.Store == nil || j.unsaved != "" {
		return false
	}
	if h.CheckpointMemory > 0 && h.Memory() > h.CheckpointMemory {
		j.unsaved = "the model is too large for one"
	}
	return j.unsaved == ""
}

// saveCheckpoint stores the running model. When the store does not take it the
// run goes on without.
func (j *job) saveCheckpoint() {
	h := j.host
	c := checkpoint{
		name: j.start.Name, format: j.start.Format, spec: j.start.Spec,
		size: j.size, read: j.file.read, sum: j.file.sum64(), model: j.runner.Save(),
	}
	data := c.encode()
	c.model = nil // data has a copy, and the next checkpoint is far
	e := profile.Entry{
		Key: j.start.Key, Name: j.start.Name, Created: h.Now().UnixMilli(), Bytes: uint64(len(data)),
		References: j.runner.Progress().References, State: profile.EntryInterrupted,
	}
	if j.size > 0 {
		e.Done = float64(c.read) / float64(j.size)
	}
	if h.put(e, data) != "" {
		j.unsaved = "the storage did not take one"
		return
	}
	j.marked, j.markedAt = c.read, e.References
}

// hashedFile counts and hashes what is read, and compares it to what a
// checkpoint has seen before anything behind that is analysed.
type hashedFile struct {
	name  string
	file  io.ReadCloser
	read  uint64
	hash  *xxhash.Digest
	want  *checkpoint // what the first bytes have to be; nil: anything, or checked
	wrong error       // final, once set
}

func (f *hashedFile) Read(p []byte) (int, error) {
	if f.wrong != nil {
		return 0, f.wrong
	}
	if f.want != nil {
		p = p[:min(uint64(len(p)), f.want.read-f.read)]
	}
	n, err := f.file.Read(p)
	if f.hash == nil {
		f.hash = xxhash.New()
	}
	f.hash.Write(p[:n])
	f.read += uint64(n)
	if f.want != nil && (f.read == f.want.read && f.hash.Sum64() != f.want.sum || f.read < f.want.read && err == io.EOF) {
		f.wrong = &otherFileError{name: f.name, want: f.want}
		return 0, f.wrong
	}
	if f.want != nil && f.read == f.want.read {
		f.want = nil
	}
	if err != nil && err != io.EOF {
		f.wrong = err
	}
	return n, err
}

// verify reads on to where the checkpoint was, if need be: wrong tells whether
// this is another file.
func (f *hashedFile) verify() {
	for skipped := make([]byte, 64<<10); f.want != nil && f.wrong == nil; {
		_, _ = f.Read(skipped) // its error is in wrong, or that of a later read
	}
}

func (f *hashedFile) sum64() uint64 {
	if f.hash == nil {
		return xxhash.Sum64(nil)
	}
	return f.hash.Sum64()
}
