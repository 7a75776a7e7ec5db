package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestFileChangesWhileItIsRead checks that, if a file changes while the page reads it, the page
// does not present the result as complete.
func TestFileChangesWhileItIsRead(t *testing.T) {
	needStage(t)
	p := openPage(t)
	for name, change := range map[string]func(f *os.File, size int64) error{
		"it grows":   func(f *os.File, size int64) error { _, err := f.WriteAt([]byte("\n"), size); return err },
		"it shrinks": func(f *os.File, size int64) error { return f.Truncate(size - size/8) },
		"a byte near its end changes": func(f *os.File, size int64) error {
			at := size - size/8
			b := make([]byte, 1)
			if _, err := f.ReadAt(b, at); err != nil {
				return err
			}
			b[0] ^= 1
			_, err := f.WriteAt(b, at)
			return err
		},
		"a byte near its beginning changes": func(f *os.File, size int64) error { _, err := f.WriteAt([]byte{4}, 100); return err },
	} {
		t.Run(name, func(t *testing.T) {
			p := &tab{t: t, ctx: p.ctx, server: p.server, watch: p.watch}
			trace := ownTrace(t)
			p.startPaused(func() { p.dropFiles(trace) })
			f, err := os.OpenFile(trace, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err == nil {
				err = change(f, info.Size())
			}
			if closed := f.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			p.clickElement("#run-pause")
			p.waitFinished()
			if !p.has(".chip.partial") || p.has(".chip.complete") {
				t.Errorf("the result of a changed file is marked as complete\n%s", p.pageText())
			}
			said := p.waitProblem()
			if near := strings.Contains(name, "near its end"); !near && !strings.Contains(said, "changed") { // if the change is near the end of the file, the page may report a damaged file instead
				t.Errorf("problem = %q, want a message that the file changed", said)
			}
			t.Log(said)
			p.clickElement("#problem-dismiss")
			p.waitGone("#problem")
		})
	}
}
