// Package index implements the hash map that the analyses use. The map uses open addressing with
// linear probing. The keys are 64-bit numbers, such as cache lines and addresses of instructions,
// and the values are the numbers that an analysis assigned to the keys.
package index

// Table maps keys to numbers. The zero value is empty and ready to use.
type Table struct {
	slots []entry // the number of slots is a power of two
	used  int
}

type entry struct {
	key   uint64
	value uint32 // 1 + the number; 0: empty
}

const firstSlots = 64

// Find returns the number of a key.
func (x *Table) Find(key uint64) (number uint32, known bool) {
	mask := uint64(len(x.slots) - 1)
	if len(x.slots) == 0 {
		return 0, false
	}
	for i := Hash(key) & mask; ; i = (i + 1) & mask {
		e := &x.slots[i]
		if e.value == 0 {
			return 0, false
		}
		if e.key == key {
			return e.value - 1, true
		}
	}
}

// Add assigns a number below 2^32 - 1 to a new key.
func (x *Table) Add(key uint64, number uint32) {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	x.put(entry{key, number + 1})
	x.used++
}

func (x *Table) put(e entry) {
	mask := uint64(len(x.slots) - 1)
	i := Hash(e.key) & mask
	for x.slots[i].value != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = e
}

func (x *Table) grow() {
	old := x.slots
	x.slots = make([]entry, max(firstSlots, 2*len(old)))
	for _, e := range old {
		if e.value != 0 {
			x.put(e)
		}
	}
}

// Cached is a Table that finds recently used keys without hashing them.
type Cached struct {
	Table
	recent [recentKeys]entry // indexed by the lowest bits of the key
}

const recentKeys = 256

// Find returns the number of a key.
func (x *Cached) Find(key uint64) (number uint32, known bool) {
	if e := &x.recent[key%recentKeys]; e.key == key && e.value != 0 {
		return e.value - 1, true
	}
	if number, known = x.Table.Find(key); known {
		x.recent[key%recentKeys] = entry{key, number + 1}
	}
	return number, known
}

// Hash returns the hash of a key.
func Hash(key uint64) uint64 {
	h := key * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
