package command

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/tools/stackglass/internal/wholefile"
)

// save writes a file, packed if its name says so.
func (a *app) save(path string, content []byte) error {
	write := func(w io.Writer) error { _, err := w.Write(content); return err }
	if strings.HasSuffix(path, ".gz") {
		write = func(w io.Writer) error {
			z := gzip.NewWriter(w)
			if _, err := z.Write(content); err != nil {
				return err
			}
			return z.Close()
		}
	}
	var err error
	if path == "-" {
		path, err = "standard output", write(a.stdout)
	} else {
		err = wholefile.Save(path, write)
	}
	if err != nil {
		return &outputError{path: path, err: err}
	}
	return nil
}

// besideWhole is where the export of a pass that ended early goes: not over a file
// or a folder of tables that is there, which may be that of a whole pass.
func besideWhole(path string) string {
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

// aboutTables names the table that says what the others in its folder are of.
const aboutTables = "input"

// saveTables writes every table to a file of its own in a folder. What they are of
// is gone first and written last: where it is, the folder is whole.
func (e *exporting) saveTables(x *export.Export, folder string) error {
	tables, warnings := x.Tables()
	if !x.Run.Wanted() {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return &outputError{path: folder, err: err}
	}
	if err := removeTables(folder); err != nil {
		return &outputError{path: folder, err: err}
	}
	for _, t := range append(tables, about(x, tables, warnings)) {
		path := filepath.Join(folder, t.Key+".csv")
		err := wholefile.Save(path, func(w io.Writer) error { _, err := w.Write(t.CSV()); return err })
		if err != nil {
			return &outputError{path: path, err: err}
		}
	}
	return nil
}

// about is a table of what the others are of, with all that is doubtful, and with
// their names.
func about(x *export.Export, tables []report.Table, warnings []string) report.Table {
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

// removeTables removes what an earlier export wrote to a folder, by its own list.
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
		return errors.New("input.csv in it is not of an export, and would be lost; give another folder")
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
