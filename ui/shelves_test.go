package ui

import (
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/profile"
)

// TestTraceLargerThanMemory checks that a trace that does not fit in memory is still analysed, and
// that the page explains the consequences.
func TestTraceLargerThanMemory(t *testing.T) {
	d := newDesk(t)
	d.outside, d.settings.Memory = true, "512MiB"
	d.app.Offer(Item{File: fileWith("a.din", []byte(strings.Repeat("0 1000\n1 2000\n", 200_000)))})
	e := d.entries()[0]
	if e.State != profile.EntryComplete || !strings.Contains(e.Reason, "did not fit in memory") {
		t.Errorf("%+v", e)
	}
	if note := d.app.Note; !strings.Contains(note, "a.din has more distinct lines than fit in 512") || !slices.Contains(d.said, note) {
		t.Errorf("note %q, said %q", note, d.said)
	}
	d.app.Navigate("")
	d.wants(`id="storage-total"`, `id="storage-finished"`, "finished analyses", e.Reason)
}

// The type "drawers" is an implementation of Shelves with the given keys.
type drawers struct {
	mu            sync.Mutex
	keys, deleted []string
}

func (s *drawers) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys)
}

func (s *drawers) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, key)
	s.keys = slices.DeleteFunc(s.keys, func(k string) bool { return k == key })
}

// TestSweepDeletesSpilledData checks that the method Sweep deletes spilled data that no analysis
// needs, but not the data of an interrupted analysis or of an analysis in another tab.
func TestSweepDeletesSpilledData(t *testing.T) {
	w := newWindow()
	d := w.open(t, nil)
	other := w.open(t, d)
	shelves := &drawers{keys: []string{"finished", "deleted", "interrupted", "running"}}
	d.app.Shelves = shelves
	for key, is := range map[string]profile.EntryState{"finished": profile.EntryComplete, "interrupted": profile.EntryInterrupted} {
		var err error
		if e := (profile.Entry{Key: key, State: is, Bytes: 1, Outside: 7 << 20}); is == profile.EntryInterrupted {
			err = d.store.Save(e, func(io.Writer) error { return nil })
		} else {
			err = d.store.Put(e, []byte("1"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	release := other.app.Tabs.Own("running")
	d.app.Sweep()
	if !slices.Equal(shelves.deleted, []string{"finished", "deleted"}) {
		t.Errorf("deleted spill stores = %q, want “finished” and “deleted”", shelves.deleted)
	}
	release()
	d.app.Sweep()
	if !slices.Equal(shelves.keys, []string{"interrupted"}) {
		t.Errorf("remaining spill stores = %q, want “interrupted”", shelves.keys)
	}
	d.app.reload()
	d.wants(`id="storage-outside"`, "stacks spilled to disk")
	d.act(func() { d.app.Doom("interrupted"); d.app.Delete() })
	for len(shelves.Keys()) > 0 {
		time.Sleep(time.Millisecond)
	}
	d.app.reload()
	if parts, _ := d.app.storage(); len(parts) != 1 || parts[0].ID != "finished" {
		t.Errorf("%+v", parts)
	}
}
