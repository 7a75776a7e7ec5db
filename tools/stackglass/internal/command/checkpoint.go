package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/folder"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/shelf"
)

// checkpoints are the checkpoints of one analysis, in a folder.
type checkpoints struct {
	dir        string
	references uint64 // between checkpoints; 0: chosen by their cost
	spill      string // the folder of the spill store; "": there is none

	folder  *folder.Folder
	key     string
	release func() // gives up the folder; nil: it is not owned
}

// use returns what a pass needs to resume from its checkpoint and to save others.
func (c *checkpoints) use(a *app, in *pass.Input, o pass.Options) (*pass.Checkpoints, error) {
	var err error
	if c.folder, err = folder.Open(c.dir); err != nil {
		return nil, &outputError{path: c.dir, err: err}
	}
	c.key = in.Key(o)
	if c.release, err = c.folder.Own(c.key); errors.Is(err, folder.ErrOwned) {
		return nil, usagef("--checkpoint ", c.dir, ": ", in.Name, ": ", err.Error())
	} else if err != nil {
		return nil, &outputError{path: c.dir, err: err}
	}
	return &pass.Checkpoints{
		Store: c.folder, Key: c.key, References: c.references,
		Place: filepath.Join(c.dir, c.key) + "-*",
		Resumed: func(references uint64, done float64) {
			far := plural(references, "reference")
			if done > 0 {
				far += ", " + strconv.Itoa(int(100*done)) + " % of the file"
			}
			fmt.Fprintln(a.stderr, "stackglass:", in.Name+": going on behind", far)
		},
	}, nil
}

// end gives up the folder. It removes the checkpoints of a finished analysis, whose result
// was written.
func (c *checkpoints) end(a *app, l *answerable, err error) error {
	if c.release == nil {
		return err
	}
	defer c.release()
	switch {
	case l == nil: // there is no result
	case err != nil && !over(err):
		if l.Unsaved != nil {
			a.warn(l.name + ": no checkpoint of all that was done could be kept in " + c.dir + ": " + reason(l.Unsaved))
		}
		if errors.Is(l.Stopped, pass.ErrInterrupted) {
			a.warn(l.name + ": the same command goes on from the checkpoint in " + c.dir)
		}
	default:
		if l.Unsaved != nil {
			a.warn(l.name + ": checkpoints ended early: " + reason(l.Unsaved))
		}
		if dropped := c.folder.Delete(c.key); dropped != nil {
			a.warn(l.name + ": its checkpoint could not be removed: " + dropped.Error())
		}
		if c.spill != "" {
			if spilled, err := shelf.Open(c.spill, c.key); err == nil {
				_ = spilled.Remove()
			}
		}
	}
	return err
}

// over reports whether a pass that ended with err read all that can be read of its trace.
func over(err error) bool { return is[*trace.DamageError](err) || trace.IsSyntax(err) }

// reason returns the text of an error without its path.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}
