//go:build js && wasm

package host

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall/js"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/web"
)

// The function "die" makes a helper end soon after it has started. A query parameter in the URL of
// the helper's script determines how the helper ends.
func die() {
	how := queryParameter("dies", "")
	if how == "" || js.Global().Get("name").String() != web.Helper {
		return
	}
	// The helper must announce its lock before it ends. Otherwise, the run would wait for this
	// lock for some time.
	self := js.Global()
	post := self.Get("postMessage").Call("bind", self)
	self.Set("postMessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if args[0].Get("alive").Truthy() {
			time.AfterFunc(time.Duration(rand.IntN(50))*time.Millisecond, func() { end(how) })
		}
		return post.Call("call", append([]any{js.Null()}, values(args)...)...)
	}))
}

func values(args []js.Value) (list []any) {
	for _, a := range args {
		list = append(list, a)
	}
	return list
}

func end(how string) {
	switch how {
	case "silently":
		js.Global().Call("close")
	case "panic":
		panic("on purpose")
	case "exit":
		os.Exit(2)
	case "poison":
		for kind := range 16 {
			poison := js.Global().Get("Uint8Array").New(kind).Get("buffer")
			js.Global().Call("postMessage", map[string]any{"type": kind, "job": 1, "body": poison})
		}
	}
}

// The function "container" returns a container with the given number of steps. Each chunk belongs
// to one thread.
func container(t testing.TB, seed uint64, steps int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
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
		if rng.IntN(1+steps/40) == 0 {
			w.Flush()
		}
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var sharedSpec = analysis.Spec{Kinds: trace.AllKinds}

// The method "alone" analyses a trace with one worker.
func (r *run) alone(b []byte) (encoded []byte, references uint64) {
	r.t.Helper()
	r.start(workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 1}, newFile(b, 1))
	d, p := r.done()
	return d.Profile, p.Totals.AllReferences()
}

// TestSharedRun checks that the result is byte-identical for any number of workers and segments.
func TestSharedRun(t *testing.T) {
	r := newRun(t, "")
	for seed := range uint64(2) {
		b := container(t, seed, 30_000)
		want, n := r.alone(b)
		for _, count := range []uint32{2, 4, 8} {
			most := uint32(0)
			r.start(workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: count, SegmentReferences: uint32(n / 16)}, newFile(b, 1))
			for {
				m, err := r.Receive()
				if err != nil {
					t.Fatal(err)
				}
				if m.Type == workers.TypeProgress {
					p, err := workers.DecodeProgress(m.Body)
					if err != nil {
						t.Fatal(err)
					}
					most = max(most, p.Workers)
				}
				if m.Type == workers.TypeDone {
					if d, err := workers.DecodeDone(m.Body); err != nil || !bytes.Equal(d.Profile, want) {
						t.Errorf("%d workers: the profile differs from the profile of a run with one worker (error %v)", count, err)
					}
					break
				}
			}
			t.Logf("at most %d of %d workers ran at the same time", most, count)
		}
	}
}

// TestHelpersDie checks that helpers that end in any way, or send invalid messages, do not change
// the result.
func TestHelpersDie(t *testing.T) {
	b := container(t, 3, 50_000)
	want, n := newRun(t, "").alone(b)
	for _, how := range []string{"silently", "panic", "exit", "poison"} {
		t.Run(how, func(t *testing.T) {
			r := newRun(t, "&dies="+how)
			r.start(workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 4, SegmentReferences: uint32(n / 20)}, newFile(b, 1))
			if d, _ := r.done(); !bytes.Equal(d.Profile, want) {
				t.Error("the profile differs")
			}
		})
	}
}

// TestSharedPauseAndCancel checks that a shared run can be paused and resumed, and that it has a
// partial result if it is cancelled.
func TestSharedPauseAndCancel(t *testing.T) {
	b := container(t, 4, 100_000)
	want, n := newRun(t, "").alone(b)
	start := workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 8, SegmentReferences: uint32(n / 30)}
	r := newRun(t, "")
	r.start(start, newFile(b, 1))
	r.progress()
	r.send(workers.TypePause)
	for !r.progress().Paused {
	}
	r.send(workers.TypeResume)
	if d, _ := r.done(); !bytes.Equal(d.Profile, want) {
		t.Error("the profile after a pause differs from the profile of a run with one worker")
	}
	r.start(start, newFile(b, 1))
	r.progress()
	asked := time.Now()
	r.send(workers.TypeCancel)
	m := r.next(workers.TypeDone)
	t.Logf("cancelled after %v", time.Since(asked))
	d, err := workers.DecodeDone(m.Body)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := profile.Decode(d.Profile); err != nil || !p.State.Partial && !bytes.Equal(d.Profile, want) {
		t.Errorf("%v, %+v", err, p.State)
	}
}

// TestSharedRunResumes checks that a shared run whose worker is killed can be resumed and shared
// again, and that its result is byte-identical.
func TestSharedRunResumes(t *testing.T) {
	b := container(t, 5, 100_000)
	want, n := newRun(t, "").alone(b)
	r := newRun(t, "&checkpoint="+strconv.Itoa(int(n/50)))
	start := workers.Start{Key: "k", Name: "a.sgt", Spec: sharedSpec, Workers: 3, SegmentReferences: uint32(n / 30)}
	r.start(start, newFile(b, 1))
	for {
		m, err := r.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if list, err := r.store.List(); err != nil {
			t.Fatal(err)
		} else if len(list) > 0 || m.Type == workers.TypeDone {
			break
		}
	}
	r.Close()
	if r.entry().State == profile.EntryInterrupted {
		r.spawn("")
		start.Resume = true
		r.start(start, newFile(b, 1))
		d, _ := r.done()
		if !bytes.Equal(d.Profile, want) {
			t.Error("the profile differs from the profile of an uninterrupted run")
		}
	} else {
		t.Log("the run was complete before it could be killed")
	}
}
