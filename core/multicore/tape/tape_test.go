package tape

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

const all = trace.AllKinds | trace.EventKinds

// memoryStore is a [Store] in memory.
type memoryStore struct{ data []byte }

func (m *memoryStore) WriteAt(p []byte, off int64) (int, error) {
	if need := int(off) + len(p); need > len(m.data) {
		m.data = append(m.data, make([]byte, need-len(m.data))...)
	}
	return copy(m.data[off:], p), nil
}

func (m *memoryStore) ReadAt(p []byte, off int64) (int, error) {
	if off > int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// someRows returns rows of loops over arrays, with random rows between them.
func someRows(rng *rand.Rand, rows int) *trace.Batch {
	b := trace.NewBatch(rows)
	b.NeedSite()
	b.NeedArg()
	b.NeedPC()
	for b.Len() < rows {
		body, trips := rng.IntN(6)+1, rng.IntN(50)
		wild := rng.IntN(5) == 0
		base, site := rng.Uint64N(1<<40), rng.Uint32N(100)
		for i := range trips {
			for s := range body {
				if b.Len() == rows {
					return b
				}
				b.Append(trace.Kind(s%4), base+uint64(s<<20)+uint64(i*8*s), 8, 0, uint64(s)*4)
				n := b.Len() - 1
				if b.Site[n] = site + uint32(s); wild {
					b.Addr[n], b.Arg[n], b.Bytes[n] = rng.Uint64(), rng.Uint64N(3), rng.Uint32()
				}
				if rng.IntN(20) == 0 {
					b.Kind[n] = trace.BlockEntry
				}
			}
		}
	}
	return b
}

// TestTapeReturnsWrittenRows adds rows to a region buffer, and marks some rows, each with an owner.
// The test then reads the pages repeatedly in random order, both from memory and from a store, and
// compares the results.
func TestTapeReturnsWrittenRows(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := Options{MemoryBytes: 1, Store: &memoryStore{}, Readers: 2, Args: true, PCs: true}
		if seed%2 == 0 {
			o.MemoryBytes, o.Store = 0, nil
		}
		tape := New(o)
		for range 3 {
			tape.Reset()
			checkTape(t, rng, tape)
		}
	}
}

func checkTape(t *testing.T, rng *rand.Rand, tape *Tape) {
	rows := rng.IntN(6 * PageRows)
	b := someRows(rng, rows)
	var marks []int
	var owners []uint8
	for row := 0; row < rows; {
		for range rng.IntN(3) {
			owner := uint8(rng.UintN(7))
			marks, owners = append(marks, row), append(owners, owner)
			tape.Mark(owner)
		}
		to := min(rows, row+1+rng.IntN(100))
		if err := tape.Add(b, row, to, all); err != nil {
			t.Fatal(err)
		}
		row = to
	}
	tape.Mark(1)
	if err := tape.Seal(); err != nil {
		t.Fatal(err)
	}
	if tape.Rows() != uint64(rows) || tape.Followed() != uint64(len(marks)) || tape.Marks() != tape.Followed()+1 {
		t.Fatalf("the tape has %d rows and %d marks, want %d and %d", tape.Rows(), tape.Followed(), rows, len(marks))
	}
	for range 30 {
		if rows == 0 {
			break
		}
		row := rng.IntN(rows)
		p, err := tape.Page(uint64(row))
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Len() {
			j := int(p.Row) + i
			if p.Addr[i] != b.Addr[j] || p.Bytes[i] != b.Bytes[j] || p.Kind[i] != b.Kind[j] || p.Site[i] != b.Site[j] ||
				p.Arg[i] != b.Arg[j] || p.PC[i] != b.PC[j] {
				t.Fatalf("row %d differs", j)
			}
		}
		if int(p.End()) != min(rows, (row/PageRows+1)*PageRows) {
			t.Fatalf("the last page ends at row %d, want the number of rows", p.End())
		}
		for i, m := range p.Marks {
			if n := int(p.Mark) + i; marks[n] != int(p.Row)+int(m) || len(p.Owners) > 0 && owners[n] != p.Owners[i] || len(p.Owners) == 0 && owners[n] != 0 {
				t.Fatalf("mark %d differs", n)
			}
		}
		tape.Release(p)
		if len(marks) > 0 {
			n := rng.IntN(len(marks))
			p, err := tape.PageOfMark(uint64(n))
			if err != nil {
				t.Fatal(err)
			}
			if i := n - int(p.Mark); i < 0 || i >= len(p.Marks) || marks[n] != int(p.Row)+int(p.Marks[i]) {
				t.Fatalf("mark %d is not in the page that PageOfMark returned", n)
			}
			tape.Release(p)
		}
	}
}

func TestMemoryLimitWithoutStore(t *testing.T) {
	tape := New(Options{MemoryBytes: 1})
	b := someRows(rand.New(rand.NewPCG(1, 1)), PageRows)
	for i := range b.Addr {
		b.Addr[i] = rand.Uint64()
	}
	for range 1000 {
		if err := tape.Add(b, 0, b.Len(), all); err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			return
		}
	}
	t.Error("a thousand random pages fit into 1 MiB, want ErrFull")
}

func TestDamagedStoreIsDetected(t *testing.T) {
	store := &memoryStore{}
	tape := New(Options{MemoryBytes: 1, Store: store})
	b := someRows(rand.New(rand.NewPCG(1, 1)), PageRows)
	for i := range b.Addr {
		b.Addr[i] = rand.Uint64()
	}
	for len(store.data) == 0 {
		if err := tape.Add(b, 0, b.Len(), all); err != nil {
			t.Fatal(err)
		}
	}
	store.data[len(store.data)/2] ^= 1
	if _, err := tape.Page(tape.Rows() - 1); err == nil {
		t.Error("the damaged page was read")
	}
	store.data = store.data[:len(store.data)/2]
	if _, err := tape.Page(tape.Rows() - 1); err == nil {
		t.Error("the truncated page was read")
	}
}

// FuzzPage checks that reading a damaged page returns an error and does not panic.
func FuzzPage(f *testing.F) {
	tape := New(Options{Args: true, PCs: true})
	if err := tape.Add(someRows(rand.New(rand.NewPCG(3, 1)), PageRows), 0, PageRows, all); err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte(nil), tape.e.out...), 4096)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 10)
	f.Fuzz(func(t *testing.T, data []byte, rows int) {
		if rows < 0 || rows > PageRows {
			return
		}
		n := len(data)
		_ = tape.d.decodePage(tape.slot(), append(data, make([]byte, mostToken)...)[:n], rows)
	})
}

func BenchmarkTape(b *testing.B) {
	batch := someRows(rand.New(rand.NewPCG(1, 1)), 64*PageRows)
	tape := New(Options{Readers: 1, Args: true})
	for b.Loop() {
		tape.Reset()
		_ = tape.Add(batch, 0, batch.Len(), all)
		_ = tape.Seal()
	}
	b.ReportMetric(float64(tape.Bytes())/float64(tape.Rows()), "B/row")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(batch.Len()), "ns/row")
}

func BenchmarkUntape(b *testing.B) {
	batch := someRows(rand.New(rand.NewPCG(1, 1)), 64*PageRows)
	tape := New(Options{Readers: 1, Args: true})
	_ = tape.Add(batch, 0, batch.Len(), all)
	_ = tape.Seal()
	for b.Loop() {
		for row := uint64(0); row < tape.Rows(); row += PageRows {
			p, err := tape.Page(row)
			if err != nil {
				b.Fatal(err)
			}
			tape.Release(p)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(batch.Len()), "ns/row")
}
