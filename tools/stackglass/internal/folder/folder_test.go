package folder

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore/storetest"
	"pgregory.net/rapid"
)

func open(t *testing.T) *Folder {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "made", "here"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func data(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

func save(t *testing.T, f *Folder, b []byte) {
	t.Helper()
	if err := f.Save(profile.Entry{Key: "k"}, data(b)); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, f *Folder, b []byte) {
	t.Helper()
	if got, err := f.Get("k"); err != nil || !bytes.Equal(got, b) {
		t.Errorf("Get returns %d bytes (%v), want %d bytes", len(got), err, len(b))
	}
}

func wantFiles(t *testing.T, f *Folder, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(names) {
		t.Fatalf("the folder contains %q, want %q", got, names)
	}
	for i := range got {
		if got[i] != names[i] {
			t.Errorf("the folder contains %q, want %q", got, names)
		}
	}
}

func TestCheckpoints(t *testing.T) {
	storetest.TestCheckpoints(t, func(t *testing.T) (profile.Checkpoints, func(key string)) {
		f := open(t)
		return f, func(key string) { damageNewest(t, f, key) }
	})
}

func damageNewest(t *testing.T, f *Folder, key string) {
	t.Helper()
	numbers, err := f.generations(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		stored, err := os.ReadFile(f.file(key, n))
		if err != nil {
			t.Fatal(err)
		}
		at := len(stored) - trailerBytes
		if string(stored[at:]) != string(trailer(profile.SumOf(stored[:at]))) {
			continue
		}
		stored[at/2] ^= 1
		if err := os.WriteFile(f.file(key, n), stored, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no intact generation to damage")
}

func TestOnlyTwoGenerationsAreKept(t *testing.T) {
	f := open(t)
	for i := range byte(12) {
		save(t, f, []byte{i})
	}
	wantFiles(t, f, "k-11.checkpoint", "k-12.checkpoint")
	want(t, f, []byte{11})
	if err := f.Delete("k"); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, f)
}

// TestPartlyWrittenGenerations checks that Get returns the previous generation if the newest
// generation was only partly written to the disk when the machine stopped.
func TestPartlyWrittenGenerations(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := open(t)
		save(t, f, []byte("first"))
		save(t, f, bytes.Repeat([]byte("second"), 100))
		whole, err := os.ReadFile(f.file("k", 2))
		if err != nil {
			t.Fatal(err)
		}
		torn := whole[:rapid.IntRange(0, len(whole)-1).Draw(r, "bytes that reached the disk")]
		if rapid.Bool().Draw(r, "zeros instead of the remaining bytes") {
			torn = append(bytes.Clone(torn), make([]byte, len(whole)-len(torn))...)
		}
		if bytes.Equal(torn, whole) {
			return // the file is intact, because its last byte was already 0
		}
		path := f.file("k", 3)
		if rapid.Bool().Draw(r, "without its name") {
			path = f.part("k")
		}
		if err := os.WriteFile(path, torn, 0o666); err != nil {
			t.Fatal(err)
		}
		want(t, f, bytes.Repeat([]byte("second"), 100))
		save(t, f, []byte("third"))
		want(t, f, []byte("third"))
	})
}

// TestDiskFullAtAnyByte checks that the previous generation stays intact if the disk becomes full
// at any byte of a new generation.
func TestDiskFullAtAnyByte(t *testing.T) {
	for _, fullAt := range []int{0, 1, 100, profile.PieceBytes - 1, profile.PieceBytes, profile.PieceBytes + 1, 2 * profile.PieceBytes} {
		t.Run(strconv.Itoa(fullAt), func(t *testing.T) {
			f := open(t)
			save(t, f, []byte("first"))
			save(t, f, []byte("second"))
			err := f.Save(profile.Entry{Key: "k"}, func(w io.Writer) error {
				if _, err := w.Write(make([]byte, fullAt)); err != nil {
					return err
				}
				return &os.PathError{Op: "write", Err: syscall.ENOSPC}
			})
			if !errors.Is(err, profile.ErrFull) {
				t.Errorf("Save = %v, want %v", err, profile.ErrFull)
			}
			want(t, f, []byte("second"))
			wantFiles(t, f, "k-2.checkpoint")
		})
	}
}

// TestOldestGenerationIsDeletedIfFull checks that the oldest generation is deleted if three
// generations do not fit.
func TestOldestGenerationIsDeletedIfFull(t *testing.T) {
	f := open(t)
	save(t, f, []byte("first"))
	save(t, f, []byte("second"))
	err := f.Save(profile.Entry{Key: "k"}, func(w io.Writer) error {
		if _, err := os.Stat(f.file("k", 1)); err == nil {
			return &os.PathError{Op: "write", Err: syscall.ENOSPC}
		}
		return data([]byte("third"))(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, f, []byte("third"))
	wantFiles(t, f, "k-2.checkpoint", "k-3.checkpoint")
}

func TestOneOwner(t *testing.T) {
	f := open(t)
	release, err := f.Own("k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Own("k"); !errors.Is(err, ErrOwned) {
		t.Errorf("second call of Own = %v, want %v", err, ErrOwned)
	}
	other, err := f.Own("k2")
	if err != nil {
		t.Fatal(err)
	}
	other()
	if err := os.WriteFile(f.part("k"), []byte("unfinished"), 0o666); err != nil {
		t.Fatal(err)
	}
	release()
	again, err := f.Own("k")
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, f, "k.lock")
	again()
	wantFiles(t, f)
}

func TestKeysAreFileNames(t *testing.T) {
	f := open(t)
	for _, key := range []string{"", "../k", "a/b", ".hidden"} {
		if err := f.Save(profile.Entry{Key: key}, data(nil)); err == nil {
			t.Errorf("Save accepts the key %q", key)
		}
		if _, err := f.Own(key); err == nil {
			t.Errorf("Own accepts the key %q", key)
		}
	}
}
