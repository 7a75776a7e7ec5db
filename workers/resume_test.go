package workers_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	_ "github.com/stackglass/stackglass/core/analysis/prologue" // allows analyses to skip references
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore"
	"github.com/stackglass/stackglass/workers"
)

// The type "stuck" is a reader that returns its bytes and then blocks, like a file in a tab that is
// being closed.
type stuck struct {
	io.Reader
	free chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		<-s.free
		err = errors.New("the tab is closed")
	}
	return n, err
}

func (s *stuck) Close() error { return nil }

// The function "interrupt" analyses only the first part of a trace, and returns a store that
// contains the checkpoint.
func interrupt(t *testing.T, b []byte, size int, spec analysis.Spec) *memstore.Store {
	t.Helper()
	f := newFixture(t)
	f.host.CheckpointBytes = 300_000
	f.host.Yield = runtime.Gosched
	f.serve()
	file := &stuck{bytes.NewReader(b[:len(b)*2/3]), make(chan struct{})}
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: spec},
		attached{open: func() io.ReadCloser { return file }, size: uint64(size)})
	left := &memstore.Store{}
	for {
		f.progress()
		entries, err := f.store.List()
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 1 && entries[0].References > 250_000 {
			checkpoint, err := f.store.Get("k")
			if err != nil || left.Save(entries[0], func(w io.Writer) error { _, err := w.Write(checkpoint); return err }) != nil {
				t.Fatal(err)
			}
			break
		}
	}
	f.asker.Close()
	close(file.free)
	return left
}

func TestResume(t *testing.T) {
	specs := map[string]analysis.Spec{
		"two line sizes": spec,
		"mergeable":      {Mergeable: true},
		"a part":         {Skip: 1000, Limit: 700_000},
	}
	b := din(800_000)
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.store = interrupt(t, b, len(b), spec)
			f.host.Store = f.store
			e := f.entry()
			if e.State != profile.EntryInterrupted || e.Done <= 0 || e.Done >= 1 || e.References == 0 || e.Digest != "" || e.Name != "a.din" || e.Bytes == 0 {
				t.Errorf("entry %+v", e)
			}
			f.serve()
			// The run uses the checkpoint's spec, and not the spec in this Start message.
			f.start(1, workers.Start{Key: "k", Name: "renamed.din", Resume: true}, bytesFile(b))
			if p := f.progress(); !p.Resuming || p.References != e.References {
				t.Errorf("first progress of the resumed run = %+v, want %d references", p, e.References)
			}
			d, _ := f.done()
			if !bytes.Equal(d.Profile, direct(t, b, spec).Encode()) {
				t.Error("the profile differs from the profile of an uninterrupted run")
			}
			if e := f.entry(); e.State != profile.EntryComplete || e.Digest != d.Digest || e.Done != 0 {
				t.Errorf("entry %+v", e)
			}
		})
	}
}

func TestResumeWithAnotherFile(t *testing.T) {
	b := din(800_000)
	store := interrupt(t, b, len(b), spec)
	other := bytes.Clone(b)
	other[1000] ^= 1 // the new byte is a different digit
	bad := bytes.Clone(b)
	bad[bytes.IndexByte(b, '\n')+1] = '9' // an invalid access type
	noTrace := bytes.Repeat([]byte("x"), len(b))
	for name, file := range map[string][]byte{"bytes": other, "size": b[:len(b)-10], "a bad record": bad, "no trace": noTrace} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.store, f.host.Store = store, store
			f.serve()
			f.start(1, workers.Start{Key: "k", Name: "b.din", Resume: true}, bytesFile(file))
			wantContains(t, f.failed(), "b.din is not the file", "a.din", "checkpoint is kept")
			if e := f.entry(); e.State != profile.EntryInterrupted {
				t.Errorf("entry %+v", e)
			}
		})
	}
}

// TestCancelWhileResuming checks that nothing is lost if a resumed run is cancelled before it has
// analysed new references.
func TestCancelWhileResuming(t *testing.T) {
	b := din(800_000)
	f := newFixture(t)
	f.store = interrupt(t, b, len(b), spec)
	f.host.Store = f.store
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Resume: true}, bytesFile(b))
	f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
	wantContains(t, f.failed(), "Stopped", "checkpoint is kept")
	if e := f.entry(); e.State != profile.EntryInterrupted {
		t.Errorf("entry %+v", e)
	}
}

// TestReadErrorWhileResuming checks that nothing is lost if the disk fails before a resumed run has
// analysed new references.
func TestReadErrorWhileResuming(t *testing.T) {
	b := din(800_000)
	f := newFixture(t)
	f.store = interrupt(t, b, len(b), spec)
	f.host.Store = f.store
	f.serve()
	file := &failing{bytes.NewReader(b[:200_000]), goneError{}}
	f.start(1, workers.Start{Key: "k", Name: "a.din", Resume: true},
		attached{open: func() io.ReadCloser { return file }, size: uint64(len(b))})
	wantContains(t, f.failed(), goneError{}.Error(), "checkpoint is kept")
	if e := f.entry(); e.State != profile.EntryInterrupted {
		t.Errorf("entry %+v", e)
	}
}

// TestResumeWithShorterFile checks that, if the size of a file is unknown and the file ends too
// early, it is treated as a different file.
func TestResumeWithShorterFile(t *testing.T) {
	b := din(800_000)
	f := newFixture(t)
	f.store = interrupt(t, b, 0, spec)
	f.host.Store = f.store
	f.serve()
	short := attached{open: bytesFile(b[:200_000]).open}
	f.start(1, workers.Start{Key: "k", Name: "b.din", Resume: true}, short)
	wantContains(t, f.failed(), "b.din is not the file")
}

func TestResumeWithoutCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Resume: true}, bytesFile(din(10)))
	wantContains(t, f.failed(), "cannot resume", profile.ErrNotFound.Error())
	if err := f.store.Put(profile.Entry{Key: "k"}, []byte("something else")); err != nil {
		t.Fatal(err)
	}
	f.start(2, workers.Start{Key: "k", Name: "a.din", Resume: true}, bytesFile(din(10)))
	wantContains(t, f.failed(), "not a checkpoint of this version")
}

func TestNoCheckpointIfStateIsTooLarge(t *testing.T) {
	f := newFixture(t)
	f.host.CheckpointBytes, f.host.CheckpointMemory = 100_000, 1000
	f.host.Memory = func() uint64 { return 1001 }
	f.serve()
	file := &endless{part: din(100_000)}
	f.start(1, workers.Start{Key: "k", Name: "a.din"}, attached{open: func() io.ReadCloser { return file }})
	for f.progress().Bytes < 500_000 {
	}
	if entries, err := f.store.List(); err != nil || len(entries) != 0 {
		t.Errorf("entries of the store = %+v, %v", entries, err)
	}
	f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
	f.done()
}
