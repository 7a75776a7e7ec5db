//go:build !js

// The helpers in these tests are goroutines that wait for each other. In a browser, these tests
// would take minutes, because goroutines are not preempted there. The tests in wasm/host, which run
// helpers in workers, cover the browser.

package workers_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/local"
)

// The function "container" returns a single-threaded container with chunks of random lengths.
func container(t testing.TB, rng *rand.Rand, steps int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := sgt.NewWriter(&out, 64, nil)
	p := tracetest.RandomProgram(rng)
	if err := w.Module(sgt.AppendModule(nil, p)); err != nil {
		t.Fatal(err)
	}
	for i, s := range tracetest.RandomSteps(rng, p, steps) {
		if err := w.Step(1, uint64(i), s.Block, s.Values); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(1+steps/20) == 0 {
			w.Flush()
		}
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var sharedSpec = analysis.Spec{Kinds: trace.AllKinds}

// referencesOf returns the number of references in a profile.
func referencesOf(p *profile.Profile) uint64 { return p.Totals.AllReferences() }

// The type "crew" starts the helpers for a test.
type crew struct {
	t        testing.TB
	wrap     func(workers.Carrier) workers.Carrier // wraps the carrier of each helper; if nil, the carriers are not wrapped
	segments atomic.Int64                          // number of non-empty segments that helpers have sent
	started  atomic.Int64
	running  sync.WaitGroup
}

func openSource(name string, attachment any) (trace.Source, error) {
	file := attachment.(attached)
	b, err := io.ReadAll(file.open())
	if err != nil {
		return nil, err
	}
	return sgt.NewSource(name, bytes.NewReader(b), int64(len(b)), nil)
}

// The method "connect" starts a helper in a goroutine.
func (c *crew) connect() (workers.Carrier, error) {
	run, other := local.Pair()
	c.started.Add(1)
	c.running.Add(1)
	at := &clock{now: time.UnixMilli(1_700_000_000_000), step: 7 * time.Millisecond}
	h := workers.HelperHost{Carrier: counted{other, c}, OpenSource: openSource, Now: at.Now, Yield: runtime.Gosched}
	if c.wrap != nil {
		h.Carrier = c.wrap(h.Carrier)
	}
	go func() {
		defer c.running.Done()
		if err := h.Serve(); err != nil {
			c.t.Errorf("a helper ended with error %v", err)
		}
	}()
	return run, nil
}

// The type "counted" is a carrier that counts the segments that are sent.
type counted struct {
	workers.Carrier
	crew *crew
}

func (c counted) Send(m workers.Message) error {
	if m.Type == workers.TypeSegment {
		if s, err := workers.DecodeSegment(m.Body); err == nil && s.Profile != nil {
			c.crew.segments.Add(1)
		}
	}
	return c.Carrier.Send(m)
}

// newShared returns a fixture in which the host has helpers.
func newShared(t *testing.T) (*fixture, *crew) {
	f, c := newFixture(t), &crew{t: t}
	f.host.Sharing = &workers.Sharing{OpenSource: openSource, Connect: c.connect, Workers: 4}
	f.host.Yield = runtime.Gosched
	f.serve()
	t.Cleanup(func() {
		f.asker.Close()
		c.running.Wait()
	})
	return f, c
}

// TestSharedRunEqualsOneWorker checks that the result is byte-identical for any number of workers
// and segments.
func TestSharedRunEqualsOneWorker(t *testing.T) {
	total := int64(0)
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := container(t, rng, 2000+rng.IntN(20_000))
		want := direct(t, b, sharedSpec)
		n := referencesOf(want)
		for _, count := range []uint32{1, 2, 3, 4, 8} {
			for _, segments := range []uint64{1, 2, 7, 64} {
				f, crew := newShared(t)
				size := uint32((n + segments - 1) / segments)
				f.start(1, workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: count, SegmentReferences: size}, bytesFile(b))
				if d, _ := f.done(); !bytes.Equal(d.Profile, want.Encode()) {
					t.Fatalf("seed %d: with %d workers and segments of %d references, the profile differs from the profile of a run with one worker", seed, count, size)
				}
				if count == 1 && crew.started.Load() > 0 {
					t.Error("a run with one worker started helpers")
				}
				f.asker.Close()
				crew.running.Wait() // all helpers must end with the run
				total += crew.segments.Load()
			}
		}
	}
	if total < 250 {
		t.Errorf("the helpers sent %d segments, want at least 250", total)
	}
}

// TestRunsThatAreNotShared checks that there are no helpers if a trace is short or a run cannot be
// shared.
func TestRunsThatAreNotShared(t *testing.T) {
	b := container(t, rand.New(rand.NewPCG(1, 2)), 5000)
	for name, c := range map[string]struct {
		start workers.Start
		file  []byte
	}{
		"short":        {workers.Start{Spec: sharedSpec}, b},
		"some kinds":   {workers.Start{Spec: analysis.Spec{Kinds: 1 << trace.Store}, SegmentReferences: 100}, b},
		"a limit":      {workers.Start{Spec: analysis.Spec{Kinds: trace.AllKinds, Limit: 3000}, SegmentReferences: 100}, b},
		"no container": {workers.Start{Spec: spec, SegmentReferences: 100}, din(5000)},
		"cut off":      {workers.Start{Spec: sharedSpec, SegmentReferences: 100}, b[:len(b)-1]},
		"one worker":   {workers.Start{Spec: sharedSpec, SegmentReferences: 100, Workers: 1}, b},
	} {
		t.Run(name, func(t *testing.T) {
			f, crew := newShared(t)
			c.start.Key, c.start.Name = "k", "a"
			f.start(1, c.start, bytesFile(c.file))
			d, _ := f.done()
			if name != "cut off" && !bytes.Equal(d.Profile, direct(t, c.file, c.start.Spec).Encode()) {
				t.Error("the profile differs from the profile of a run with one worker")
			}
			if n := crew.started.Load(); n > 0 {
				t.Errorf("%d helpers", n)
			}
		})
	}
}

// The type "dying" is a carrier that ends after some messages.
type dying struct {
	workers.Carrier
	left *atomic.Int64
}

func (d dying) Send(m workers.Message) error {
	if d.left.Add(-1) < 0 {
		d.Carrier.Close()
		return workers.ErrClosed
	}
	return d.Carrier.Send(m)
}

// TestSharedRunWithDyingHelpers checks that helpers that die at any message, or cannot be started,
// do not change the result.
func TestSharedRunWithDyingHelpers(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		b := container(t, rng, 2000+rng.IntN(10_000))
		f, crew := newShared(t)
		crew.wrap = func(c workers.Carrier) workers.Carrier {
			left := &atomic.Int64{}
			left.Store(rng.Int64N(6))
			return dying{c, left}
		}
		if seed%5 == 0 {
			f.host.Sharing.Connect = func() (workers.Carrier, error) { return nil, workers.ErrClosed }
		}
		f.start(1, workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 2 + uint32(seed%4), SegmentReferences: 1 + rng.Uint32N(3000)}, bytesFile(b))
		if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, b, sharedSpec).Encode()) {
			t.Fatalf("seed %d: the profile differs from the profile of a run with one worker", seed)
		}
	}
}

// The type "mute" is a carrier that stops sending after some messages, but does not end.
type mute struct {
	workers.Carrier
	left *atomic.Int64
}

func (m mute) Send(message workers.Message) error {
	if m.left.Add(-1) < 0 {
		return nil
	}
	return m.Carrier.Send(message)
}

// TestSharedRunWithSilentHelpers checks that a run no longer uses helpers that have stopped sending
// messages.
func TestSharedRunWithSilentHelpers(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 8))
		b := container(t, rng, 5000)
		f, crew := newShared(t)
		f.host.Sharing.Patience = 20 * time.Millisecond
		crew.wrap = func(c workers.Carrier) workers.Carrier {
			left := &atomic.Int64{}
			left.Store(rng.Int64N(6))
			return mute{c, left}
		}
		f.start(1, workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 3, SegmentReferences: 1 + rng.Uint32N(3000)}, bytesFile(b))
		if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, b, sharedSpec).Encode()) {
			t.Fatalf("seed %d: the profile differs from the profile of a run with one worker", seed)
		}
	}
}

// The type "poisoning" is a carrier that sends unexpected messages and damages all other messages.
type poisoning struct {
	workers.Carrier
	rng *rand.Rand
}

func (p poisoning) Send(m workers.Message) error {
	switch p.rng.IntN(4) {
	case 0:
		if n := len(m.Body); n > 0 {
			m.Body = bytes.Clone(m.Body)
			m.Body[p.rng.IntN(n)] ^= 1 << p.rng.IntN(8)
		}
	case 1:
		_ = p.Carrier.Send(workers.Message{Type: workers.Type(p.rng.IntN(256)), Job: m.Job + 1, Body: m.Body})
	case 2:
		_ = p.Carrier.Send(workers.Message{Type: m.Type, Job: m.Job, Body: m.Body[:p.rng.IntN(len(m.Body)+1)]})
	}
	return p.Carrier.Send(m)
}

// TestSharedRunWithInvalidMessages checks that, if a helper sends an invalid message, either the
// message is dropped or the helper is no longer used. The result must not change.
func TestSharedRunWithInvalidMessages(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		b := container(t, rng, 2000+rng.IntN(10_000))
		f, crew := newShared(t)
		crew.wrap = func(c workers.Carrier) workers.Carrier {
			return poisoning{c, rand.New(rand.NewPCG(seed, uint64(crew.started.Load())))}
		}
		f.start(1, workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 3, SegmentReferences: 1 + rng.Uint32N(3000)}, bytesFile(b))
		if d, _ := f.done(); !bytes.Equal(d.Profile, direct(t, b, sharedSpec).Encode()) {
			t.Fatalf("seed %d: the profile differs from the profile of a run with one worker", seed)
		}
	}
}

// TestHelperSurvivesInvalidMessages checks that a helper still serves after messages of any kind.
func TestHelperSurvivesInvalidMessages(t *testing.T) {
	b := container(t, rand.New(rand.NewPCG(1, 5)), 3000)
	crew := &crew{t: t}
	c, err := crew.connect()
	if err != nil {
		t.Fatal(err)
	}
	send := func(m workers.Message) {
		if err := c.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	poison := func() {
		for kind := range 256 {
			for _, body := range [][]byte{nil, {}, {0}, {5}, bytes.Repeat([]byte{5}, 100), workers.EncodeStretch(analysis.Stretch{From: trace.Position{Chunk: 5, Rows: 1 << 40}, First: 1 << 60})} {
				if workers.Type(kind) != workers.TypePause {
					send(workers.Message{Type: workers.Type(kind), Job: 3, Body: body, Attachment: bytesFile(nil)})
				}
			}
		}
	}
	poison()
	send(workers.Message{Type: workers.TypeHelp, Body: workers.Help{Name: "a.sgt", Spec: sharedSpec}.Encode(), Attachment: bytesFile(b)})
	poison()
	whole := analysis.Stretch{To: trace.Position{Chunk: trace.AtEnd}}
	send(workers.Message{Type: workers.TypeStretch, Job: 9, Body: workers.EncodeStretch(whole)})
	for {
		m, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.Type != workers.TypeSegment || m.Job != 9 {
			continue
		}
		s, err := workers.DecodeSegment(m.Body)
		if err != nil || s.Profile == nil || referencesOf(s.Profile) != referencesOf(direct(t, b, sharedSpec)) {
			t.Errorf("segment %+v, %v", s, err)
		}
		break
	}
	c.Close()
	crew.running.Wait()
}

// TestSharedRunPausesAndCancels checks that a run that is paused after any progress message and
// then resumed has the same result. A run that is cancelled after any progress message must have a
// partial result, and its helpers must end.
func TestSharedRunPausesAndCancels(t *testing.T) {
	b := container(t, rand.New(rand.NewPCG(1, 6)), 60_000)
	want := direct(t, b, sharedSpec)
	for at := range 6 {
		for _, cancel := range []bool{false, true} {
			f, crew := newShared(t)
			f.start(1, workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 4, SegmentReferences: 2000}, bytesFile(b))
			for range at {
				f.next(workers.TypeProgress, workers.TypeSnapshot)
			}
			f.send(workers.Message{Type: workers.TypePause, Job: 1})
			if cancel {
				f.send(workers.Message{Type: workers.TypeCancel, Job: 1})
			} else {
				f.send(workers.Message{Type: workers.TypeResume, Job: 1})
			}
			if m := f.next(workers.TypeDone, workers.TypeFailed); m.Type == workers.TypeDone {
				d, err := workers.DecodeDone(m.Body)
				if err != nil {
					t.Fatal(err)
				}
				p, err := profile.Decode(d.Profile)
				if err != nil || !p.State.Partial && !bytes.Equal(d.Profile, want.Encode()) || p.State.Partial && !cancel {
					t.Errorf("after message %d, cancel = %t: error = %v, state = %+v", at, cancel, err, p.State)
				}
			} else if !cancel {
				t.Errorf("at %d: failed", at)
			}
			f.asker.Close()
			crew.running.Wait()
		}
	}
}

// TestSharedRunResumes checks that an interrupted shared run can be resumed with or without
// helpers, and that its result is byte-identical to the result of an uninterrupted run.
func TestSharedRunResumes(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 7))
		b := container(t, rng, 60_000)
		f, crew := newShared(t)
		f.host.CheckpointReferences = 5000 + rng.Uint64N(10_000)
		start := workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 3, SegmentReferences: 1 + rng.Uint32N(3000)}
		// The helpers can read the whole file, but the run can read only a part.
		whole := bytesFile(b)
		first := &stuck{bytes.NewReader(b[:len(b)*2/3]), make(chan struct{})}
		var opened atomic.Int64
		whole.open = func() io.ReadCloser {
			if opened.Add(1) == 1 {
				return first
			}
			return io.NopCloser(bytes.NewReader(b))
		}
		f.start(1, start, whole)
		for {
			f.progress()
			if entries, err := f.store.List(); err != nil {
				t.Fatal(err)
			} else if len(entries) == 1 && entries[0].References > 10_000 {
				break
			}
		}
		checkpoint, err := f.store.Get("k")
		if err != nil {
			t.Fatal(err)
		}
		f.asker.Close()
		close(first.free)
		crew.running.Wait()
		start.Resume = true
		for _, count := range []uint32{1, 4} {
			g, _ := newShared(t)
			save := func(w io.Writer) error { _, err := w.Write(checkpoint); return err }
			if err := g.store.Save(profile.Entry{Key: "k"}, save); err != nil {
				t.Fatal(err)
			}
			start.Workers = count
			g.start(1, start, bytesFile(b))
			if d, _ := g.done(); !bytes.Equal(d.Profile, direct(t, b, sharedSpec).Encode()) {
				t.Fatalf("seed %d: the profile of a resumed run with %d workers differs from the profile of an uninterrupted run", seed, count)
			}
		}
	}
}

// TestSharedRunSpills checks that, if a shared run exceeds its memory limit, it ends its helpers
// and spills. The result must be byte-identical to the result of a run with one worker.
func TestSharedRunSpills(t *testing.T) {
	for at := range int64(8) {
		b := container(t, rand.New(rand.NewPCG(uint64(at), 9)), 20_000)
		want := direct(t, b, sharedSpec.Beyond(locality.Budget{Shelf: new(stacktest.Shelf)})).Encode()
		f, _ := newOutside(t, 2*at)
		crew := &crew{t: t}
		f.host.Sharing = &workers.Sharing{OpenSource: openSource, Connect: crew.connect, Workers: 4}
		f.host.Yield = runtime.Gosched
		f.serve()
		f.start(1, workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 3, SegmentReferences: 2000, Memory: limit}, bytesFile(b))
		beyond := false
		for {
			m := f.next(workers.TypeProgress, workers.TypeDone)
			if m.Type == workers.TypeProgress {
				p, err := workers.DecodeProgress(m.Body)
				if err != nil {
					t.Fatal(err)
				}
				beyond = p.Beyond
				continue
			}
			d, err := workers.DecodeDone(m.Body)
			if err != nil || !bytes.Equal(d.Profile, want) && beyond {
				t.Errorf("spilled at turn %d: error = %v, or the profile differs from the profile of a run with one worker", at, err)
			}
			break
		}
		f.asker.Close()
		crew.running.Wait()
	}
}
