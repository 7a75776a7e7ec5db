package command

import (
	"io"
	"os"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// create creates a file that appears at path when it is committed.
func create(path string) (*wholefile.File, error) {
	out, err := wholefile.Create(path)
	if err != nil {
		return nil, &outputError{path: path, err: err}
	}
	return out, nil
}

// commit writes a profile to out, which was created for path.
func commit(out *wholefile.File, path string, p *profile.Profile) error {
	err := p.EncodeTo(out)
	if err == nil {
		err = out.Commit()
	}
	if err != nil {
		return &outputError{path: path, err: err}
	}
	return nil
}

// saveFile writes a file, which appears when it is complete.
func saveFile(path string, write func(io.Writer) error) error {
	if err := wholefile.Save(path, write); err != nil {
		return &outputError{path: path, err: err}
	}
	return nil
}

// contentOf writes bytes.
func contentOf(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// keep writes the profile of a pass to out, which was created for path, and returns the path
// of the profile. A partial profile does not replace a complete one: its name gets the
// ending .partial.sgp.
func (a *app) keep(l *answerable, out *wholefile.File, path string) (string, error) {
	if l.Stopped != nil && isCompleteProfile(path) {
		out.Discard()
		whole := path
		path = strings.TrimSuffix(path, ".sgp") + ".partial.sgp"
		l.warnings = append(l.warnings, whole+" holds a complete profile, which stays as it is; what was analysed now is in "+path)
		var err error
		if out, err = create(path); err != nil {
			return "", err
		}
		defer out.Discard()
	}
	return path, commit(out, path, l.Profile)
}

// isCompleteProfile reports whether the file is a profile of a whole trace.
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
