package counters

import (
	"bytes"
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// The counts are correct after a 32-bit counter wraps around, even if the state is saved and
// restored.
func TestByteCountersWrapAround(t *testing.T) {
	for _, size := range []uint64{8, 4, 1} {
		a := newTouched()
		for range 3 {
			a.add(1024, size, 1)
		}
		p := a.pages[2]
		p.words[0], p.words[1] = 0, 1
		switch size {
		case 8:
			p.words[0] = math.MaxUint32
		case 4:
			p.halves[0] = math.MaxUint32
		default:
			p.bytes[0] = math.MaxUint32
		}
		a.add(1024, size, 1)
		a.add(1024, size, 1)
		b := newTouched()
		if err := b.decode(a.encode()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.encode(), b.encode()) {
			t.Errorf("accesses of %d bytes: decoding and encoding changes the state", size)
		}
		var c profile.Counters
		b.result(&c)
		// The bytes of the first granule have 2^32 + 1 accesses each, and the bytes of the second
		// word have one access each.
		if c.UniqueBytes != size+8 || c.Usage[0] != (size+19)/20 || c.Usage[profile.UsageSteps-2] > size {
			t.Errorf("accesses of %d bytes: %d unique bytes, usage %v", size, c.UniqueBytes, c.Usage)
		}
	}
}

func FuzzDecode(f *testing.F) {
	t := newTouched()
	t.add(1000, 30, 2)
	t.add(1<<40+3, 1, 0)
	f.Add(t.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, state []byte) {
		a := newTouched()
		if a.decode(state) != nil {
			return
		}
		b := newTouched()
		if err := b.decode(a.encode()); err != nil || !bytes.Equal(a.encode(), b.encode()) {
			t.Fatalf("a decoded state cannot be encoded and decoded again: %v", err)
		}
		var c profile.Counters
		a.result(&c)
	})
}
