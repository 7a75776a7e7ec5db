package workers

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
)

// Checkpoint describes a run that can be resumed: its options, the data that identifies its file,
// and the state of the analyses.
type Checkpoint struct {
	Name   string // the file's name, which the page shows when it asks the user for the file
	Format string
	Spec   analysis.Spec
	Size   uint64 // the file's size in bytes; 0: unknown
	Read   Prefix // describes the part of the file that was read
	State  []byte // the state that analysis.Runner.Save wrote
}

// typeCheckpoint represents a stored checkpoint in a BodyError; it is never sent.
const typeCheckpoint Type = 255

// checkpointTag is the beginning of every stored checkpoint. The number in it changes whenever the
// format changes.
const checkpointTag = "stackglass checkpoint 3"

// encodeTo writes the stored form, which resembles a message's body. The function "state" writes
// the state.
func (c *Checkpoint) encodeTo(w io.Writer, state func(io.Writer) error) error {
	if _, err := w.Write(encode(c.code)); err != nil {
		return err
	}
	return state(w)
}

// errNoCheckpoint reports stored bytes that this version cannot read.
var errNoCheckpoint = errors.New("the stored data is not a checkpoint of this version")

// DecodeCheckpoint decodes a checkpoint that a [Keeper] stored. The field State of the result
// shares memory with the parameter "stored".
func DecodeCheckpoint(stored []byte) (*Checkpoint, error) {
	c := new(Checkpoint)
	err := decode(typeCheckpoint, stored, func(b *body) {
		c.code(b)
		b.rest(&c.State)
	})
	if err != nil {
		return nil, errNoCheckpoint
	}
	return c, nil
}

// code encodes or decodes all fields except the state.
func (c *Checkpoint) code(b *body) {
	tag := checkpointTag
	b.text(&tag, "a checkpoint")
	b.Check(tag == checkpointTag, "another version")
	b.text(&c.Name, "the file's name")
	b.text(&c.Format, "the format")
	b.spec(&c.Spec)
	b.number(&c.Size, "the file's size")
	b.number(&c.Read.Bytes, "the bytes read")
	b.number(&c.Read.Tail, "the checksum")
	b.numbers(&c.Read.Blocks, "the checksums")
	b.Check(uint64(len(c.Read.Blocks)) == c.Read.Bytes/BlockBytes, "the number of checksums differs from the number of blocks")
}

// Keeper saves the checkpoints of one run.
type Keeper struct {
	Store profile.Checkpoints // nil: no checkpoints are saved
	Key   string
	// Checkpoint describes the run; the fields Read and State are not used.
	Checkpoint

	File   *File
	Runner analysis.Run
	Now    func() time.Time
	// Outside returns the number of bytes in the spill store. The field is nil if there is no spill
	// store.
	Outside func() uint64

	// Bytes and References are the distances between checkpoints, in bytes of the (compressed) file
	// and in references. If they are 0, the defaults of 256 MiB and 2^24 references apply. A
	// checkpoint is due when either distance is reached. Checkpoints are therefore due at the same
	// positions on every machine, but slow machines skip some of them unless References is set.
	Bytes, References uint64

	pace       share
	unpaced    bool   // whether checkpoints are saved regardless of their cost
	bytes      uint64 // number of bytes of the file that had been read at the last checkpoint
	references uint64 // number of references that had been analysed at the last checkpoint
}

// defaultBytes and defaultReferences are the default intervals between two checkpoints.
const (
	defaultBytes      = 256 << 20
	defaultReferences = 1 << 24
)

// costPerLine is the time that the first checkpoint is assumed to take for each distinct line. With
// random accesses to between 2^16 and 2^23 lines, the measured time was 50 to 110 ns natively, and
// twice as long in Chromium. Writing to the disk doubles the time.
const costPerLine = 250 * time.Nanosecond

// Begin records where the run begins: at the start of the trace or at a restored checkpoint.
func (k *Keeper) Begin() {
	if k.Bytes == 0 {
		k.Bytes = defaultBytes
	}
	if k.unpaced = k.References != 0; !k.unpaced {
		k.References = defaultReferences
	}
	k.references = k.Runner.Progress().References
	if want := k.File.want; want != nil {
		k.bytes = want.Read.Bytes
	}
	k.pace = share{began: k.Now()}
}

// Due reports whether a new checkpoint is due because enough was read since the last checkpoint.
// Unless References is set, Due also requires that all checkpoints together take at most a
// twentieth of the run's time.
func (k *Keeper) Due() bool {
	at := k.Runner.Progress()
	if k.Store == nil || at.Resuming || k.File.Position() < k.bytes+k.Bytes && at.References < k.references+k.References {
		return false
	}
	return k.unpaced || k.pace.due(k.Now(), time.Duration(at.Lines)*costPerLine)
}

// Paused excludes a pause from the run's time.
func (k *Keeper) Paused(d time.Duration) { k.pace.began = k.pace.began.Add(d) }

// Save stores the state of the run.
func (k *Keeper) Save() error {
	begin := k.Now()
	c := k.Checkpoint
	state := k.Runner.State()
	// Call Prefix only after State has returned, so that the prefix covers every byte on which the
	// state depends.
	c.Read = k.File.Prefix()
	e := profile.Entry{Key: k.Key, Name: k.Name, Created: begin.UnixMilli(), References: k.Runner.Progress().References}
	if c.Size > 0 {
		e.Done = float64(c.Read.Bytes) / float64(c.Size)
	}
	if k.Outside != nil {
		e.Outside = k.Outside()
	}
	if err := k.Store.Save(e, func(w io.Writer) error { return c.encodeTo(w, state.EncodeTo) }); err != nil {
		return err
	}
	k.bytes, k.references = c.Read.Bytes, e.References
	k.pace.recordRun(k.Now().Sub(begin))
	return nil
}

// checkpointError reports that a run cannot be resumed.
type checkpointError struct{ err error }

func (e *checkpointError) Error() string {
	return "The interrupted run cannot resume from its checkpoint (" + e.err.Error() +
		"). The checkpoint is kept. Analyse the file from its start, or delete the entry."
}

func (e *checkpointError) Unwrap() error { return e.err }

// OtherFileError reports that a run cannot be resumed with a file, because the run began with a
// different file or the file was changed.
type OtherFileError struct {
	Name string
	Size uint64 // size of this file; 0: unknown
	From uint64 // the files are equal before this byte
	Want *Checkpoint
}

func (e *OtherFileError) Error() string {
	size := ""
	if e.Want.Size != 0 {
		size = " (" + strconv.FormatUint(e.Want.Size, 10) + " bytes)"
	}
	return e.Name + " is not the file of the interrupted run, " + e.Want.Name + size + ": " + e.Difference() +
		". The checkpoint is kept. Choose that file, or analyse this file from its start."
}

// Difference returns a clause that describes how the files differ.
func (e *OtherFileError) Difference() string {
	switch {
	case e.Size != e.Want.Size && e.Size != 0 && e.Want.Size != 0:
		return "that file had " + strconv.FormatUint(e.Want.Size, 10) + " bytes, and this file has " + strconv.FormatUint(e.Size, 10)
	case e.From == 0:
		return "this file differs from the first byte"
	}
	return "this file differs after byte " + strconv.FormatUint(e.From, 10)
}

func (h *Host) loadCheckpoint(key string) (*Checkpoint, error) {
	if h.Store == nil {
		return nil, &checkpointError{errors.New(h.NoStore)}
	}
	var c *Checkpoint
	stored, err := h.Store.Get(key)
	if err == nil {
		c, err = DecodeCheckpoint(stored)
	}
	if err != nil {
		return nil, &checkpointError{err}
	}
	return c, nil
}

// wantsCheckpoint reports whether a checkpoint should be saved now.
func (j *job) wantsCheckpoint() bool {
	h := j.host
	if j.unsaved != "" || h.Store == nil || !j.keeper.Due() {
		return false
	}
	// A checkpoint copies the data of all lines.
	if h.CheckpointMemory > 0 && h.Memory() > h.CheckpointMemory && j.shelf == nil {
		j.unsaved = "the state of the analysis is too large for a checkpoint"
	}
	return j.unsaved == ""
}

// saveCheckpoint stores the running model. If that fails, the run continues without checkpoints.
func (j *job) saveCheckpoint() {
	err := j.keeper.Save()
	j.host.askStorage()
	if err != nil {
		j.unsaved = "the storage rejected the last checkpoint"
		return
	}
	j.saved, j.needed = true, j.shelf != nil
}
