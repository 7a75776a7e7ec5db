package command

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/stackglass/internal/folder"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
	"github.com/stackglass/stackglass/tools/stackglass/internal/shelf"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// create creates a file. The file appears at the given path only when it is committed.
func create(path string) (*wholefile.File, error) {
	out, err := wholefile.Create(path)
	if err != nil {
		return nil, &outputError{path: path, err: err}
	}
	return out, nil
}

// commit writes a profile to out, the file that was created for path.
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

// saveFile writes a file. The file appears at the given path only when it is complete.
func saveFile(path string, write func(io.Writer) error) error {
	if err := wholefile.Save(path, write); err != nil {
		return &outputError{path: path, err: err}
	}
	return nil
}

// contentOf returns a function that writes content.
func contentOf(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// saveProfile writes the profile of a pass to out, the file that was created for path, and returns
// the path of the profile. If a partial profile would replace a complete profile, it is written to
// a path that ends in .partial.sgp instead.
func (a *app) saveProfile(l *loadedFile, out *wholefile.File, path string) (string, error) {
	if l.Stopped != nil && isCompleteProfile(path) {
		out.Discard()
		whole := path
		path = strings.TrimSuffix(path, ".sgp") + ".partial.sgp"
		l.warnings = append(l.warnings, whole+" is a complete profile and was not changed; the new, partial analysis is in "+path)
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
		return false // a read from a device or a pipe may never end
	}
	encoded, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	p, err := profile.Decode(encoded)
	return err == nil && !p.State.Partial
}

// saveContent writes a file. It compresses the file if its name ends in .gz.
func (a *app) saveContent(path string, content []byte) error {
	write := contentOf(content)
	if strings.HasSuffix(path, ".gz") {
		write = func(w io.Writer) error {
			z := gzip.NewWriter(w)
			if _, err := z.Write(content); err != nil {
				return err
			}
			return z.Close()
		}
	}
	if path == "-" {
		return a.write(content)
	}
	return saveFile(path, write)
}

// partialExportPath returns the path for the export of a partial profile. The export must not
// replace a file or a folder of tables that may be complete.
func partialExportPath(path string) string {
	there, err := os.Stat(path)
	if err == nil && there.IsDir() {
		path = filepath.Clean(path)
		there, err = os.Stat(filepath.Join(path, aboutTables+".csv"))
	}
	if err != nil || !there.Mode().IsRegular() {
		return path
	}
	packed := ""
	if plain, ok := strings.CutSuffix(path, ".gz"); ok {
		path, packed = plain, ".gz"
	}
	ending := filepath.Ext(path)
	return strings.TrimSuffix(path, ending) + ".partial" + ending + packed
}

// aboutTables is the name of the table that describes all other tables in the folder.
const aboutTables = "input"

// saveTables writes each table to a separate file in a folder. The table that describes the other
// tables is removed first and written last. Therefore, a folder that contains this table is
// complete.
func (e *exportCommand) saveTables(x *export.Export, folder string) error {
	tables, warnings := x.Tables()
	if !x.Run.Wanted() {
		return nil
	}
	err := os.MkdirAll(folder, 0o777)
	if err == nil {
		err = removeTables(folder)
	}
	if err != nil {
		return &outputError{path: folder, err: err}
	}
	for _, t := range append(tables, aboutDocument(x, tables, warnings)) {
		if err := saveFile(filepath.Join(folder, t.Key+".csv"), contentOf(t.CSV())); err != nil {
			return err
		}
	}
	return nil
}

// aboutDocument returns the table that describes the other tables: facts about the input, warnings,
// and the names of the tables.
func aboutDocument(x *export.Export, tables []report.Table, warnings []string) report.Table {
	t := report.Table{Key: aboutTables, Columns: report.Columns("key=", "value=")}
	for _, f := range x.Facts() {
		t.Add(report.TextOf(f.Key), f.Value)
	}
	for _, doubt := range warnings {
		t.Add(report.TextOf("warning"), report.TextOf(doubt))
	}
	for i := range tables {
		t.Add(report.TextOf("table"), report.TextOf(tables[i].Key))
	}
	return t
}

// removeTables removes the tables of an earlier export from a folder.
func removeTables(folder string) error {
	list := filepath.Join(folder, aboutTables+".csv")
	f, err := os.Open(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 || !slices.Equal(rows[0], []string{"key", "value"}) {
		return errors.New("the file input.csv in the folder was not written by an export and would be overwritten; give another folder")
	}
	for _, row := range rows {
		if row[0] != "table" || row[1] != filepath.Base(row[1]) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, row[1]+".csv")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(list)
}

// checkpoints manages the checkpoints of one analysis in a folder.
type checkpoints struct {
	dir string
	// number of references between checkpoints; 0: the cost of a checkpoint determines this number
	references uint64
	spill      string // the folder of the spill store, or "" if there is no spill store

	folder  *folder.Folder
	key     string
	release func() // releases the folder; nil if this process does not own the folder
}

// passOptions returns the options with which a pass resumes from a checkpoint and saves new checkpoints.
func (c *checkpoints) passOptions(a *app, in *pass.Input, o pass.Options) (*pass.Checkpoints, error) {
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
			fmt.Fprintln(a.stderr, "stackglass:", in.Name+": continuing after", far)
		},
	}, nil
}

// finish releases the folder. If the analysis is complete and its result was written, it also
// removes the checkpoints.
func (c *checkpoints) finish(a *app, l *loadedFile, err error) error {
	if c.release == nil {
		return err
	}
	defer c.release()
	switch {
	case l == nil: // the pass has no result, so its checkpoints are kept
	case err != nil && !readToEnd(err):
		if l.Unsaved != nil {
			a.warn(l.name + ": the last checkpoint could not be saved in " + c.dir + ": " + errorText(l.Unsaved))
		}
		if errors.Is(l.Stopped, pass.ErrInterrupted) {
			a.warn(l.name + ": run the same command again to resume from the checkpoint in " + c.dir)
		}
	default:
		if l.Unsaved != nil {
			a.warn(l.name + ": from this point on, no checkpoints were saved: " + errorText(l.Unsaved))
		}
		if dropped := c.folder.Delete(c.key); dropped != nil {
			a.warn(l.name + ": the checkpoint could not be removed: " + dropped.Error())
		}
		if c.spill != "" {
			if spilled, err := shelf.Open(c.spill, c.key); err == nil {
				_ = spilled.Remove()
			}
		}
	}
	return err
}

// readToEnd reports whether a pass that ended with err has read the whole readable part of its
// trace.
func readToEnd(err error) bool { return isErrorOf[*trace.DamageError](err) || trace.IsSyntax(err) }

// errorText returns the text of an error without the path, and without the full stop at the end of
// Windows' error texts.
func errorText(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return strings.TrimSuffix(err.Error(), ".")
}
