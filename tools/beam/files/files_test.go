package files_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stackglass/stackglass/tools/beam/files"
)

// Copies of files of other systems can be read, and are removed.
func TestCopyIsGone(t *testing.T) {
	ctx, temporary := context.Background(), t.TempDir()
	err := files.Write(ctx, "memfs://x/a.sgt", "1", func(w io.Writer) error {
		_, err := io.WriteString(w, "content")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(ctx, "memfs://x/a.sgt", temporary)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.Bytes)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF || string(b) != "content" {
		t.Errorf("%q, %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(temporary); len(left) > 0 {
		t.Errorf("%v is left over", left)
	}
}

// A name that is also a pattern is a name if such a file exists.
func TestNamesWithBrackets(t *testing.T) {
	ctx, name := context.Background(), filepath.Join(t.TempDir(), "rank[0].sgt")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if list, err := files.Expand(ctx, []string{name}); err != nil || len(list) != 1 || list[0] != name {
		t.Errorf("%v, %v", list, err)
	}
	if b, found, err := files.Read(ctx, name); err != nil || !found || string(b) != "x" {
		t.Errorf("%q, %v, %v", b, found, err)
	}
}
