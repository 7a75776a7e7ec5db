package change

import (
	"slices"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// Split replaces an array of structures by one array for each referenced field. Element i of a new
// array contains the field of structure i. The size of a structure is the greatest common divisor
// of all steps. The new arrays are placed after all other arrays.
type Split struct {
	Array trace.Addr // an address in the array of structures
}

// Illegal implements [Change].
func (Split) Illegal() string {
	return "other code needs the fields together, because it passes a pointer to a structure, copies whole structures, or shares structures with a file or another program"
}

// Words implements [Change].
func (c Split) Words(names Names) string {
	return "split the structures of " + names.array(c.Array) + ": use a separate array for each field that this loop uses"
}

// Apply implements [Change].
func (c Split) Apply(n *loops.Nest) error {
	refuse := func(why string) error { return &Error{"splitting structures", why} }
	if why := wrapAroundError(n); why != "" {
		return refuse(why)
	}
	arrays := Arrays(n)
	at := slices.IndexFunc(arrays, func(a Array) bool { return a.has(c.Array) })
	if at < 0 {
		return refuse("no reference accesses the array")
	}
	a := arrays[at]
	if a.Bytes() > most {
		return refuse("the array is too long to be a single array")
	}
	var leaves []*loops.Item
	pitch, widest, wild := uint64(0), uint64(1), false
	used := map[uint64]uint64{} // size of each field in bytes, by offset
	eachLeaf(n.Items, nil, func(leaf *loops.Item, around []*loops.Item) {
		if leaf.Wild {
			for addr := range n.Wild(leaf.Ref) {
				wild = wild || a.has(addr)
			}
			return
		}
		if !inArray(leaf, around, a) {
			return
		}
		leaves = append(leaves, leaf)
		widest = max(widest, uint64(leaf.Ref.Bytes))
		for _, s := range leaf.Steps {
			pitch = gcd(pitch, magnitude(s))
		}
	})
	covered := uint64(0)
	for _, leaf := range leaves {
		if pitch > 0 {
			offset := (leaf.Addr - a.First) % pitch
			used[offset] = max(used[offset], uint64(leaf.Ref.Bytes))
		}
	}
	for _, bytes := range used {
		covered += bytes
	}
	switch {
	case wild:
		return refuse("irregular references access the array, so it is unknown which fields they use")
	case pitch <= widest || covered >= pitch:
		return refuse("the references use all fields of the structures")
	}
	end := arrays[len(arrays)-1].Last
	bases := map[uint64]trace.Addr{} // address of each field's new array, by field offset
	for _, leaf := range leaves {
		offset := (leaf.Addr - a.First) % pitch
		if _, ok := bases[offset]; !ok {
			bases[offset] = end/pageBytes*pageBytes + pageBytes
			end = bases[offset] + (a.Bytes()/pitch+1)*widest
		}
		leaf.Addr = bases[offset] + (leaf.Addr-a.First)/pitch*max(1, uint64(leaf.Ref.Bytes))
		for d, s := range leaf.Steps {
			leaf.Steps[d] = s / int64(pitch) * max(1, int64(leaf.Ref.Bytes))
		}
	}
	return nil
}

// pageBytes is the alignment of new arrays.
const pageBytes = 4096

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
