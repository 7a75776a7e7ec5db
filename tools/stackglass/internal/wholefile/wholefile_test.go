package wholefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func content(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func onlyFile(t *testing.T, dir, name, text string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Fatalf("folder contains %v, want only %s", entries, name)
	}
	got, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || string(got) != text {
		t.Fatalf("%s contains %q (%v), want %q", name, got, err, text)
	}
}

func TestSaveReplacesFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, text := range []string{"first", "second, longer"} {
		if err := Save(path, content(text)); err != nil {
			t.Fatal(err)
		}
		onlyFile(t, dir, "a", text)
	}
}

func TestFailureKeepsOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Save(path, content("before")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Save(path, func(w io.Writer) error {
		if err := content("half")(w); err != nil {
			t.Fatal(err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	onlyFile(t, dir, "a", "before")
}

func TestDeviceIsWrittenNotReplaced(t *testing.T) {
	st, err := os.Stat("/dev/full")
	if err != nil {
		t.Skip("this system has no /dev/full, which behaves like a full disk")
	}
	if err := Save("/dev/full", content("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Save = %v, want ENOSPC", err)
	}
	after, err := os.Stat("/dev/full")
	if err != nil || after.Mode() != st.Mode() {
		t.Errorf("the mode of /dev/full was %v, and is now %v (%v)", st.Mode(), after.Mode(), err)
	}
}

func TestFolderIsRejected(t *testing.T) {
	if _, err := Create(t.TempDir()); err == nil {
		t.Error("Create accepts a folder, want an error")
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "such", "folder")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
