//go:build js && wasm

package host

import (
	"io"
	"os"
	"syscall/js"
	"testing"
	"time"
	"unsafe"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/workers"
)

// soakName is the name of a worker that generates its own trace and analyses it.
const soakName = "soak"

// The type "loops" is a trace that repeatedly visits all lines in a scattered order. On each visit
// to a line, the trace makes a few references to the line.
type loops struct {
	lines, rounds, stays uint64
	at                   uint64 // number of references so far
}

const scatter = 0x9e3779b1 // a prime number; if it does not divide the number of lines, each line is visited once in each round

func (l *loops) Next(b *trace.Batch) error {
	b.Reset()
	for b.Len() < b.Cap() && l.at < l.lines*l.rounds*l.stays {
		line := l.at / l.stays % l.lines * scatter % l.lines
		b.Append(trace.Load, line*64, 8, 0, 0)
		l.at++
	}
	if b.Len() == 0 {
		return io.EOF
	}
	return nil
}

func soakLoops() *loops { return &loops{lines: 20_000_000, rounds: 4, stays: 3} }

// soakHost returns a host that analyses a generated trace, and reports how much memory the program
// uses.
func soakHost() *workers.Host {
	h := newHost()
	h.OpenTrace = func(string, io.Reader, string, func() error) (trace.Reader, error) { return soakLoops(), nil }
	program := js.Global() // in wasm_exec.js, the global object is value number 5, and the program itself is value number 6
	*(*uint64)(unsafe.Pointer(&program))++
	memory := program.Get("_inst").Get("exports").Get("mem")
	h.Memory = func() uint64 { return uint64(memory.Get("buffer").Get("byteLength").Float()) }
	return h
}

// TestSoakSpilling checks that a trace with far more lines than fit in memory is analysed exactly,
// and that the program stays within its memory limit. A quarter of the references have the largest
// possible stack distance: all other lines were referenced since the last reference to the same
// line.
func TestSoakSpilling(t *testing.T) {
	if os.Getenv("STACKGLASS_SOAK") == "" {
		t.Skip("skipped: this test takes minutes; set STACKGLASS_SOAK=1 to run it")
	}
	const limit = 512 << 20
	want, r := soakLoops(), newRun(t, "")
	r.Close()
	r.spawnAs(soakName, "")
	begin, told := time.Now(), time.Now()
	r.start(workers.Start{Key: "k", Name: "loops", Memory: limit}, newFile([]byte("x"), 1))
	var p workers.Progress
	var memory, outside uint64
	for !p.Ending {
		p = r.progress()
		memory, outside = max(memory, p.Memory), max(outside, p.Outside)
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			t.Logf("%v: %d references, %d lines, at most %d MB in memory and %d MB spilled", time.Since(begin).Round(time.Second), p.References, p.Lines, memory>>20, outside>>20)
		}
	}
	_, got := r.done()
	t.Logf("%d references in %v: at most %d MB in memory, %d MB spilled", got.Totals.AllReferences(), time.Since(begin).Round(time.Millisecond), memory>>20, outside>>20)
	var cold, near, far, other uint64
	for _, k := range got.Locality[0].Kinds {
		cold += k.Cold
		for d, n := range k.Distances.All() {
			switch d {
			case 0:
				near += n
			case want.lines - 1:
				far += n
			default:
				other += n
			}
		}
	}
	opened := want.lines * want.rounds
	if cold != want.lines || far != opened-want.lines || near != opened*(want.stays-1) || other != 0 || got.State.Partial || !p.Beyond {
		t.Errorf("accesses: cold = %d, at distance 0 = %d, at the largest distance = %d, at other distances = %d; state = %+v, beyond = %t", cold, near, far, other, got.State, p.Beyond)
	}
	if memory > limit {
		t.Errorf("memory of the program = %d bytes, want at most %d", memory, limit)
	}
}
