package analysis

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
)

// ErrStopped is why a run ended when its user stopped it.
var ErrStopped = errors.New("stopped by the user")

// StateAfter returns the state of the profile of a run that err ended; nil ends a whole run.
// The reason becomes part of the digest, so it names no file: errors that do have a method
// Nameless.
func StateAfter(err error, references uint64) profile.State {
	if err == nil {
		return profile.State{}
	}
	after := " after " + strconv.FormatUint(references, 10) + " references"
	var reason string
	var path *fs.PathError
	var nameless interface{ Nameless() string }
	var memory *MemoryError
	switch {
	case errors.Is(err, ErrStopped):
		reason = ErrStopped.Error() + after
	case errors.As(err, &memory):
		reason = "the limit of memory was reached" + after
	case errors.As(err, &nameless):
		reason = "ended" + after + ": " + nameless.Nameless()
	case errors.As(err, &path):
		reason = "ended" + after + ": " + path.Err.Error()
	default:
		reason = "ended" + after + ": " + err.Error()
	}
	return profile.State{Partial: true, Reason: reason}
}

// MemoryError reports that a run was ended because it used too much memory.
type MemoryError struct {
	LimitBytes uint64
	References uint64 // analysed until then
	NeedBytes  uint64 // to begin at all, where that is more
}

func (e *MemoryError) Error() string {
	if e.NeedBytes > 0 {
		return "the limit is " + strconv.FormatUint(e.LimitBytes, 10) + " bytes of memory, and " +
			strconv.FormatUint(e.NeedBytes, 10) + " are needed before the first reference; allow more, or ask for less"
	}
	return "the limit of " + strconv.FormatUint(e.LimitBytes, 10) + " bytes of memory was reached after " +
		strconv.FormatUint(e.References, 10) + " references; allow more, or analyse a part of the trace"
}
