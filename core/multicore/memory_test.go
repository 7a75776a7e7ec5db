package multicore

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stackglass/stackglass/core/multicore/tape"
	"github.com/stackglass/stackglass/core/trace"
)

// longPhase is a reader of a region with one loop. All iterations of the loop execute the same
// instructions, but access random addresses.
type longPhase struct {
	whole      *trace.Batch // the rows of the region with a single iteration
	first      int          // first row of the iteration
	length     int
	iterations int // number of remaining iterations
	rng        *rand.Rand
	at         int
}

func newLongPhase(iterations int) (*trace.Program, *longPhase) {
	const length = 20
	program, whole := rowsOf(1, length)
	_, two := rowsOf(2, length)
	p := &longPhase{whole: whole, length: two.Len() - whole.Len(), iterations: iterations, rng: rand.New(rand.NewPCG(1, 1))}
	for whole.Kind[p.first] != trace.BlockEntry || whole.Site[p.first] != testedBody {
		p.first++
	}
	return program, p
}

func (p *longPhase) Next(b *trace.Batch) error {
	b.Reset()
	b.NeedThread()
	b.NeedSite()
	b.NeedArg()
	for b.Len() < b.Cap() {
		if p.at == p.first+p.length && p.iterations > 1 {
			p.iterations--
			p.at = p.first
		}
		if p.at == p.whole.Len() {
			break
		}
		w, n := p.whole, b.Len()
		addr := w.Addr[p.at]
		if w.Kind[p.at].IsReference() && p.at >= p.first && p.at < p.first+p.length {
			addr += p.rng.Uint64N(1<<28) &^ 7
		}
		b.Append(w.Kind[p.at], addr, w.Bytes[p.at], 1, 0)
		b.Site[n], b.Arg[n] = w.Site[p.at], w.Arg[p.at]
		p.at++
	}
	if b.Len() == 0 {
		return io.EOF
	}
	return nil
}

// liveBytes reads a synthesised phase with the given number of iterations. liveBytes returns the
// maximum number of heap bytes in use while the phase is read, and the number of rows. Compressed
// pages beyond tapeBytes are written to a file.
func liveBytes(t *testing.T, iterations, tapeBytes int) (most, rows uint64) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	program, phase := newLongPhase(iterations)
	m, err := Mimic(&runReader{Reader: phase, header: trace.Header{Format: "test", Sites: true, Program: program}}, Options{Cores: 16}, file)
	if err != nil {
		t.Fatal(err)
	}
	m.tape = tape.New(tape.Options{MemoryBytes: tapeBytes, Store: file, Readers: 16, Args: true, Mark: m.private.markPrivate})
	b := trace.NewBatch(0)
	for batches := 0; ; batches++ {
		if err := m.Next(b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rows += uint64(b.Len())
		if batches%128 == 0 {
			runtime.GC()
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}
	runtime.KeepAlive(m)
	return most, rows
}

// TestMemoryOfLongPhase checks that memory use depends on the number of cores and on the region
// buffer's limit, but not on the length of phases.
func TestMemoryOfLongPhase(t *testing.T) {
	const tapeBytes = 2 << 20
	short, fewRows := liveBytes(t, 30_000, tapeBytes)
	long, manyRows := liveBytes(t, 150_000, tapeBytes)
	t.Logf("%d rows need %d bytes of memory, and %d rows need %d bytes", fewRows, short, manyRows, long)
	if manyRows < 4*fewRows {
		t.Fatalf("the short phase has %d rows, and the phase with five times as many iterations has %d rows, want at least four times as many", fewRows, manyRows)
	}
	if long > short+1<<20 {
		t.Errorf("%d rows need %d bytes of memory, and %d rows need %d bytes, want at most 1 MiB more", fewRows, short, manyRows, long)
	}
}
