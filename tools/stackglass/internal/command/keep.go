package command

import (
	"os"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// keep writes the profile of a pass to out, which was begun for path, and gives
// the path where it is kept. The profile of a pass that ended early does not
// replace a complete one: it is kept beside it.
func (a *app) keep(l *answerable, out *wholefile.File, path string) (string, error) {
	if l.Stopped != nil && isCompleteProfile(path) {
		out.Discard()
		whole := path
		path = strings.TrimSuffix(path, ".sgp") + ".partial.sgp"
		l.warnings = append(l.warnings, whole+" holds a complete profile, which stays as it is; what was analysed now is in "+path)
		var err error
		if out, err = wholefile.Create(path); err != nil {
			return "", &outputError{path: path, err: err}
		}
		defer out.Discard()
	}
	if err := l.Profile.EncodeTo(out); err != nil {
		return "", &outputError{path: path, err: err}
	}
	if err := out.Commit(); err != nil {
		return "", &outputError{path: path, err: err}
	}
	return path, nil
}

// isCompleteProfile tells whether the file is a profile of a whole trace.
func isCompleteProfile(path string) bool {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return false // reading a device or a pipe may never end
	}
	encoded, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	p, err := profile.Decode(encoded)
	return err == nil && !p.State.Partial
}
