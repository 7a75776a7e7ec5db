package pass

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers"
)

// Checkpoints defines where a pass stores its state, so that the pass can resume after an
// interruption.
type Checkpoints struct {
	Store profile.Checkpoints
	Key   string
	Place string // location of the checkpoints, for messages
	// number of references between checkpoints, or 0 to derive the number from the cost of
	// checkpoints
	References uint64
	// Resumed is called when a pass resumes. Its parameters are the number of references before the
	// checkpoint, and the share of the input before the checkpoint (0 if unknown).
	Resumed func(references uint64, done float64)
}

// Key returns a key that identifies a pass over the input with these options.
func (in *Input) Key(o Options) string {
	name, base := in.Name, filepath.Base(in.Name)
	if path, err := filepath.Abs(name); err == nil && in.Bytes > 0 {
		name = path
	}
	spec := o.Spec
	if o.Sample != nil {
		spec.Sample = *o.Sample
	}
	h := xxhash.New()
	_, _ = h.Write(workers.Start{Name: name, Format: o.Format, Spec: spec, Resume: o.Strict}.Encode())
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, strings.TrimLeft(base, "."))
	const most = 100 // file systems limit names to 255 bytes
	return safe[:min(len(safe), most)] + "-" + strconv.FormatUint(binary.BigEndian.Uint64(h.Sum(nil)), 16)
}

// load returns the checkpoint from which the pass resumes, or nil.
func (c *Checkpoints) load(in *Input) (*workers.Checkpoint, error) {
	if c == nil {
		return nil, nil
	}
	stored, err := c.Store.Get(c.Key)
	if errors.Is(err, profile.ErrNotFound) {
		return nil, nil
	}
	var from *workers.Checkpoint
	if err == nil {
		from, err = workers.DecodeCheckpoint(stored)
	}
	if err != nil {
		return nil, c.unusableError(in, err)
	}
	return from, nil
}

// unusableError returns the error for a checkpoint from which a pass cannot resume. It does not
// delete the checkpoint.
func (c *Checkpoints) unusableError(in *Input, err error) error {
	return &CheckpointError{Name: in.Name, Place: c.Place, Err: err}
}

// checkpointError converts an error about a changed file to a [CheckpointError].
func (c *Checkpoints) checkpointError(in *Input, err error) error {
	var other *workers.OtherFileError
	if c == nil || !errors.As(err, &other) {
		return err
	}
	return c.unusableError(in, other)
}

// CheckpointError means that a pass cannot resume from its checkpoint.
type CheckpointError struct {
	Name  string // name of the input
	Place string // location of the checkpoint
	Err   error  // the cause: a *workers.OtherFileError if the input has changed
}

func (e *CheckpointError) Error() string {
	var other *workers.OtherFileError
	if errors.As(e.Err, &other) {
		return e.Name + ": the file was changed since its analysis was interrupted: " + other.Difference() +
			"; restore the file, or delete " + e.Place + " to analyse it from the start"
	}
	return e.Name + ": the analysis cannot resume from " + e.Place + ": " + e.Err.Error() +
		"; delete the checkpoint to analyse the file from the start"
}

func (e *CheckpointError) Unwrap() error { return e.Err }

// saver stores the checkpoints of one pass while it runs.
type saver struct {
	keeper  *workers.Keeper // nil if the pass saves no checkpoints
	memory  uint64          // memory limit of the process, or 0
	unsaved error           // the reason why no more checkpoints are saved
}

// startSaver returns the saver of a pass, and restores the runner from a checkpoint if there is
// one.
func (c *Checkpoints) startSaver(in *Input, content *workers.File, runner analysis.Run, o *Options, from *workers.Checkpoint) (*saver, error) {
	if c == nil {
		return &saver{}, nil
	}
	if from != nil {
		if err := runner.Restore(from.State); err != nil {
			return nil, c.unusableError(in, err)
		}
		if c.Resumed != nil {
			done := 0.0
			if from.Size > 0 {
				done = float64(from.Read.Bytes) / float64(from.Size)
			}
			c.Resumed(runner.Progress().References, done)
		}
	}
	keeper := &workers.Keeper{
		Store: c.Store, Key: c.Key, File: content, Runner: runner, Now: time.Now, References: c.References,
		Checkpoint: workers.Checkpoint{Name: in.Name, Format: o.Format, Spec: o.Spec, Size: uint64(in.Bytes)},
	}
	keeper.Begin()
	s := &saver{keeper: keeper, memory: o.MemoryBytes}
	if o.Spill != "" {
		s.memory = 0 // with a spill store, the state is small
	}
	return s, nil
}

// saveIfDue saves a checkpoint if one is due.
func (s *saver) saveIfDue() {
	if s.keeper != nil && s.unsaved == nil && s.keeper.Due() {
		s.save()
	}
}

var errNoMemory = errors.New("saving a checkpoint needs more memory than --memory allows (default: half of the free memory)")

// save saves a checkpoint. Meanwhile, memory contains a second copy of the state.
func (s *saver) save() {
	held := memoryInUse()
	if s.memory > 0 && held > s.memory/2 {
		s.unsaved = errNoMemory
		return
	}
	s.unsaved = s.keeper.Save()
	if s.memory > 0 && held > s.memory/4 {
		debug.FreeOSMemory() // the freed copy must not count towards the memory limit of the pass
	}
}
