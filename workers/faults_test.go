package workers_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore"
	"github.com/stackglass/stackglass/workers"
)

// The type "refusing" is a store that refuses only the n-th write, or the n-th write and all later
// writes.
type refusing struct {
	*memstore.Store
	at, writes int
	once       bool
	err        error
}

func (s *refusing) refuse() error {
	s.writes++
	if s.writes == s.at || s.writes > s.at && !s.once {
		return s.err
	}
	return nil
}

func (s *refusing) Save(e profile.Entry, write func(io.Writer) error) error {
	if err := s.refuse(); err != nil {
		return err
	}
	return s.Store.Save(e, write)
}

func (s *refusing) Put(e profile.Entry, data []byte) error {
	if err := s.refuse(); err != nil {
		return err
	}
	return s.Store.Put(e, data)
}

// TestStoreRefusesAnyWrite checks that, if any write fails, the result is the same as without
// failures, and the store's content is intact.
func TestStoreRefusesAnyWrite(t *testing.T) {
	b := din(120_000)
	want := direct(t, b, spec).Encode()
	for _, once := range []bool{false, true} {
		for _, at := range []int{1, 2, 3, 5, 8} {
			t.Run(strconv.Itoa(at)+" once "+strconv.FormatBool(once), func(t *testing.T) {
				f := newFixture(t)
				store := &refusing{Store: f.store, at: at, once: once, err: profile.ErrFull}
				f.host.Store, f.host.CheckpointBytes, f.host.Yield = store, 60_000, runtime.Gosched
				f.serve()
				f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: spec}, bytesFile(b))
				d, _ := f.done()
				if !bytes.Equal(d.Profile, want) {
					t.Error("the profile differs from the profile of a run without failures")
				}
				entries, err := f.store.List()
				if err != nil || d.Kept && (len(entries) != 1 || entries[0].State != profile.EntryComplete) {
					t.Errorf("kept = %t, entries = %+v, %v", d.Kept, entries, err)
				}
				if d.Kept {
					return
				}
				wantContains(t, d.Problem, "The storage is full", "Export this result now")
				for _, e := range entries {
					stored, err := f.store.Get(e.Key)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := workers.DecodeCheckpoint(stored); err != nil {
						t.Errorf("the data that remains in the store is not a checkpoint: %v", err)
					}
				}
			})
		}
	}
}

// TestResumeFromPreviousGeneration checks that, if the newest generation of a checkpoint is
// damaged, the run resumes from the previous generation, and its result is byte-identical.
func TestResumeFromPreviousGeneration(t *testing.T) {
	b := din(800_000)
	store := interrupt(t, b, len(b), spec)
	newest, err := store.Get("k")
	if err != nil {
		t.Fatal(err)
	}
	later := func(w io.Writer) error { _, err := w.Write(append(bytes.Clone(newest), 0)); return err }
	if err := store.Save(profile.Entry{Key: "k"}, later); err != nil || !store.Damage("k") {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.store, f.host.Store = store, store
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Resume: true}, bytesFile(b))
	if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, b, spec).Encode()) {
		t.Error("the profile differs from the profile of an uninterrupted run")
	}
}

// TestDamagedCheckpoint checks that, if a checkpoint is truncated or has a flipped bit, it is
// either refused or leads to a byte-identical result. Such a checkpoint must never lead to a wrong
// result or a panic.
func TestDamagedCheckpoint(t *testing.T) {
	b := din(800_000)
	whole, err := interrupt(t, b, len(b), spec).Get("k")
	if err != nil {
		t.Fatal(err)
	}
	want := direct(t, b, spec).Encode()
	for i := range 16 {
		poisoned := bytes.Clone(whole)
		if at := i * len(whole) / 16; i%2 == 0 {
			poisoned[at] ^= 0x10
		} else {
			poisoned = poisoned[:at]
		}
		f := newFixture(t)
		save := func(w io.Writer) error { _, err := w.Write(poisoned); return err }
		if err := f.store.Save(profile.Entry{Key: "k"}, save); err != nil {
			t.Fatal(err)
		}
		f.serve()
		f.start(1, workers.Start{Key: "k", Name: "a.din", Resume: true}, bytesFile(b))
		for {
			m, err := f.asker.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if m.Type == workers.TypeFailed {
				break
			}
			if m.Type == workers.TypeDone {
				d, err := workers.DecodeDone(m.Body)
				if err != nil || !bytes.Equal(d.Profile, want) {
					t.Errorf("checkpoint with a wrong byte at %d/16 of its length: the result differs from the result of an uninterrupted run (error %v)", i, err)
				}
				break
			}
		}
	}
}

// The type "leaping" is a clock that jumps back and forth.
type leaping struct {
	*clock
	n int
}

func (c *leaping) Now() time.Time {
	c.n++
	now := c.clock.Now()
	if c.n%7 == 0 {
		return now.Add(-24 * time.Hour)
	}
	if c.n%11 == 0 {
		return now.Add(24 * time.Hour)
	}
	return now
}

// TestClockJumps checks that, even if the clock jumps, the run ends with the same result.
func TestClockJumps(t *testing.T) {
	b := din(120_000)
	f := newFixture(t)
	f.host.Now = (&leaping{clock: f.clock}).Now
	f.host.CheckpointBytes = 60_000
	f.serve()
	f.start(1, workers.Start{Key: "k", Name: "a.din", Spec: spec}, bytesFile(b))
	if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, b, spec).Encode()) {
		t.Error("the profile differs from the profile of a run without failures")
	}
}

// TestMessagesWithArbitraryBodies checks that the host answers or drops messages of every type with
// arbitrary bodies. After these messages, the host must still serve, and the next analysis must be
// correct.
func TestMessagesWithArbitraryBodies(t *testing.T) {
	b := din(1000)
	f := newFixture(t)
	f.serve()
	for kind := range 256 {
		for _, body := range [][]byte{nil, {}, {0}, {255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, bytes.Repeat([]byte{4}, 100)} {
			f.send(workers.Message{Type: workers.Type(kind), Job: 7, Body: body, Attachment: errors.New("no file")})
		}
	}
	f.send(workers.Message{Type: workers.TypeStart, Job: 8, Body: workers.Start{Key: "k", Name: "a.din", Spec: spec}.Encode(), Attachment: bytesFile(b)})
	for {
		m, err := f.asker.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Type != workers.TypeDone {
			continue
		}
		d, err := workers.DecodeDone(m.Body)
		if err != nil || m.Job != 8 || !bytes.Equal(d.Profile, direct(t, b, spec).Encode()) {
			t.Errorf("job %d, %v", m.Job, err)
		}
		return
	}
}

// TestCancelAtEveryMessage checks that an analysis can be cancelled after any message. The analysis
// must then end with an error or a result that is marked as partial, and the host must still serve
// the next analysis.
func TestCancelAtEveryMessage(t *testing.T) {
	b := din(120_000)
	want := direct(t, b, analysis.Spec{}).Encode()
	for at := range 10 {
		f := newFixture(t)
		f.host.CheckpointBytes = 60_000
		f.serve()
		f.start(1, workers.Start{Key: "k", Name: "a.din"}, bytesFile(b))
		for n := 0; ; n++ {
			if n == at {
				f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
			}
			m, err := f.asker.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if m.Type == workers.TypeFailed {
				break
			}
			if m.Type != workers.TypeDone {
				continue
			}
			d, err := workers.DecodeDone(m.Body)
			if err != nil {
				t.Fatal(err)
			}
			p, err := profile.Decode(d.Profile)
			if err != nil || !p.State.Partial && !bytes.Equal(d.Profile, want) || !d.Kept {
				t.Errorf("cancelled at message %d: error = %v, kept = %t; want a partial result", at, err, d.Kept)
			}
			break
		}
		f.start(2, workers.Start{Key: "k2", Name: "a.din"}, bytesFile(b))
		if d, _ := f.done(); !bytes.Equal(d.Profile, want) {
			t.Error("the result of the next analysis is wrong")
		}
	}
}

// TestCancelWithoutRows checks that a run can be cancelled if its trace is an endless sequence of
// blank lines and never returns a record. A run must end even if it is cancelled while the trace,
// compressed or not, is being opened.
func TestCancelWithoutRows(t *testing.T) {
	if runtime.GOOS == "js" {
		t.Skip("skipped: goroutines do not interrupt each other in a browser; the tests of wasm/host cancel runs there")
	}
	blank := func() io.Reader { return &endless{part: bytes.Repeat([]byte("\n"), 1<<20)} }
	packed := packedTwice(t, append([]byte("0 10\n"), bytes.Repeat([]byte("\n"), 64<<20)...))
	for name, c := range map[string]struct {
		file io.Reader
		rows bool // whether the file contains records before the blank lines
	}{
		"plain":  {io.MultiReader(bytes.NewReader(din(10)), blank()), true},
		"packed": {&endless{part: packed}, true},
		"empty":  {&endless{part: packedTwice(t, nil)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			yields, deep := 0, make(chan struct{})
			f.host.Yield = func() {
				// The first five calls are made between steps, and the sixth call is made within a step.
				if yields++; yields == 6 {
					close(deep)
				}
			}
			f.serve()
			f.start(1, workers.Start{Key: "k", Name: "a.din", Format: "din"}, attached{open: func() io.ReadCloser { return io.NopCloser(c.file) }})
			<-deep
			f.send(workers.Message{Type: workers.TypePause, Job: 2}) // there is no such job
			f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
			m := f.next(workers.TypeDone, workers.TypeFailed)
			if (m.Type == workers.TypeDone) != c.rows {
				t.Errorf("type %d: %q", m.Type, m.Body)
			} else if !c.rows {
				wantContains(t, string(m.Body), "cancelled before any record of the trace was found")
			}
			f.start(1, workers.Start{Key: "k", Name: "a.din"}, bytesFile(din(10)))
			if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, din(10), analysis.Spec{}).Encode()) {
				t.Error("the result of the next analysis is wrong")
			}
		})
	}
}

// packedTwice compresses a text twice with gzip, each time by a factor of about a thousand.
func packedTwice(t *testing.T, text []byte) []byte {
	t.Helper()
	for range 2 {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = packed.Bytes()
	}
	return text
}
