package sites

// index maps 64-bit keys to 32-bit numbers: open addressing with linear probing.
type index struct {
	slots []indexEntry // a power of two of them
	used  int
}

type indexEntry struct {
	key   uint64
	value uint32 // 1 + the number; 0: empty
}

const firstIndexSlots = 64

// find gives the number of a key.
func (x *index) find(key uint64) (number uint32, known bool) {
	mask := uint64(len(x.slots) - 1)
	if len(x.slots) == 0 {
		return 0, false
	}
	for i := hash(key) & mask; ; i = (i + 1) & mask {
		e := &x.slots[i]
		if e.value == 0 {
			return 0, false
		}
		if e.key == key {
			return e.value - 1, true
		}
	}
}

// add gives a number, below 2^32 - 1, to a key that has none.
func (x *index) add(key uint64, number uint32) {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	x.put(indexEntry{key, number + 1})
	x.used++
}

func (x *index) put(e indexEntry) {
	mask := uint64(len(x.slots) - 1)
	i := hash(e.key) & mask
	for x.slots[i].value != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = e
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]indexEntry, max(firstIndexSlots, 2*len(old)))
	for _, e := range old {
		if e.value != 0 {
			x.put(e)
		}
	}
}

// hash spreads a key's bits over all.
func hash(key uint64) uint64 {
	h := key * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
