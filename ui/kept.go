package ui

import (
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
)

// Rows describes the stored analyses.
func (a *App) Rows() []state.KeptRow {
	var shown []profile.Entry
	for _, e := range a.kept {
		if a.run != nil && e.Key == a.run.key && e.State == profile.EntryInterrupted {
			continue // the entry is the checkpoint of the running analysis
		}
		shown = append(shown, e)
	}
	rows := state.KeptRows(shown, a.Port.Now())
	for i := range rows {
		rows[i].Running = rows[i].Interrupted && a.elsewhere[rows[i].Key]
	}
	return rows
}

// Edit starts renaming an entry.
func (a *App) Edit(row state.KeptRow) {
	a.editing, a.newName, a.doomed = row.Key, row.Name, ""
	a.Port.Focus("rename-input")
	a.touch()
}

// Rename ends the editing of a name, and stores the new name unless it is blank.
func (a *App) Rename() {
	key, name := a.editing, strings.TrimSpace(a.newName)
	a.editing = ""
	a.Port.Focus("kept-title")
	a.touch()
	if name == "" || key == "" || a.Store == nil {
		return
	}
	if r := a.result; r != nil && r.Key == key {
		r.Name = name
	}
	go func() {
		err := a.Store.Rename(key, name)
		if err != nil {
			a.update(func() { a.Problem = "The analysis could not be renamed: " + err.Error() + "." })
		}
		a.reload()
		a.tell()
	}()
}

// Doom asks the user to confirm the deletion of an entry.
func (a *App) Doom(key string) {
	a.doomed, a.editing = key, ""
	a.Port.Focus("delete-no")
	a.touch()
}

// Spare cancels renaming and deleting.
func (a *App) Spare() {
	a.doomed, a.editing = "", ""
	a.Port.Focus("kept-title")
	a.touch()
}

// Delete deletes the entry that [App.Doom] asked about.
func (a *App) Delete() {
	key := a.doomed
	a.Spare()
	if a.Store == nil {
		return
	}
	go func() {
		err := a.Store.Delete(key)
		a.update(func() {
			if err != nil {
				a.Problem = "The analysis could not be deleted: " + err.Error() + "."
				return
			}
			if a.result != nil && a.result.Key == key {
				a.result = nil
			}
			delete(a.items, key) // so that the file of the deleted analysis can be freed
			a.Port.Announce("Deleted")
		})
		a.Sweep()
		a.forgetSources()
		a.reload()
		a.tell()
	}()
}

// Export downloads a stored profile.
func (a *App) Export(row state.KeptRow) {
	go func() {
		data, err := a.Store.Get(row.Key)
		if err != nil {
			a.update(func() { a.Problem = row.Name + " could not be exported: " + err.Error() + "." })
			return
		}
		a.Port.Save(FileName(row.Name)+".sgp", "application/octet-stream", data)
	}()
}

// GoOn resumes an interrupted analysis. GoOn reopens the trace file, or asks the user for the file.
func (a *App) GoOn(row state.KeptRow) {
	if a.files[row.Key] {
		a.Note = "The browser may ask whether this page may read " + row.Name + ". Allow this, or drop the file on the page. The analysis resumes where it stopped."
		a.touch()
		go a.reopen(row.Key, row.Name)
		return
	}
	a.wanted = row.Key
	a.Note = "Choose " + row.Name + " again, or drop it on the page. The analysis then resumes where it stopped."
	a.Port.Pick()
	a.touch()
}

// FileName returns a file name for an analysis with the given name.
func FileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, name)
	if name = strings.Trim(name, ". "); name == "" {
		return "analysis"
	}
	return name
}
