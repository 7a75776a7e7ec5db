package loops

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

// plain returns the length in bytes of the plain form of rows.
func plain(all []row, has columns) int {
	var p Plain
	p.Add(batch(all, has))
	return len(p.Form())
}

// TestPlainFormIsComplete checks that ReadPlain and Decode restore the rows from the plain form.
// The plain form is therefore lossless, so its size can be compared with the size of trees.
func TestPlainFormIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		var p Plain
		p.Add(batch(all, has))
		b, err := ReadPlain(p.Form())
		if err != nil {
			t.Fatal(err)
		}
		checkSameRows(t, rowsIn(b), all)
		tree, err := Decode(p.Form())
		if err != nil {
			t.Fatal(err)
		}
		checkSameRows(t, naive(tree), all)
	})
}

// irregular lists programs with data-dependent addresses or trip counts.
var irregular = []struct {
	name string
	run  func(c *code, n uint64)
}{
	{"gather", func(c *code, n uint64) { gather(c, n*n*n/4) }},
	{"sort", func(c *code, n uint64) { sortNumbers(c, n*n) }},
	{"chase", func(c *code, n uint64) { chase(c, n*n*8) }},
	{"sparse", func(c *code, n uint64) { sparse(c, n*n*2) }},
	{"heap", func(c *code, n uint64) { heap(c, n*n) }},
	{"graph", func(c *code, n uint64) { graph(c, n*n) }},
	{"hash", func(c *code, n uint64) { hash(c, n*n*8) }},
}

// sortNumbers sorts n numbers with quicksort.
func sortNumbers(c *code, n uint64) {
	values := make([]uint64, n)
	for i := range values {
		values[i] = mix(uint64(i))
	}
	var sort func(lo, hi int)
	sort = func(lo, hi int) {
		c.block(1)
		if hi-lo < 2 {
			return
		}
		c.load(1, arrayA+8*uint64((lo+hi-1)/2))
		pivot := values[(lo+hi-1)/2]
		i, j := lo-1, hi
		for {
			for i++; ; i++ {
				c.block(2)
				if c.load(2, arrayA+8*uint64(i)); values[i] >= pivot {
					break
				}
			}
			for j--; ; j-- {
				c.block(3)
				if c.load(3, arrayA+8*uint64(j)); values[j] <= pivot {
					break
				}
			}
			c.block(4)
			if i >= j {
				break
			}
			c.store(6, arrayA+8*uint64(i))
			c.store(7, arrayA+8*uint64(j))
			values[i], values[j] = values[j], values[i]
		}
		sort(lo, j+1)
		sort(j+1, hi)
	}
	sort(0, int(n))
}

// chase follows a linked list whose n cells are in random order in memory.
func chase(c *code, n uint64) {
	at := uint64(1)
	for range n {
		c.block(1)
		c.load(1, arrayA+64*(at%n))
		c.load(2, arrayA+64*(at%n)+8)
		at = mix(at)
	}
}

// sparse multiplies a sparse matrix of n rows, with 0 to 15 entries each, by a vector.
func sparse(c *code, n uint64) {
	seed, k := uint64(1), uint64(0)
	for i := range n {
		c.block(1)
		c.load(1, arrayA+4*i)
		c.load(2, arrayA+4*(i+1))
		seed = mix(seed)
		for range seed >> 32 % 16 {
			c.block(2)
			seed = mix(seed)
			c.load(3, arrayB+8*k)
			c.load(4, arrayB+1<<28+4*k)
			c.load(5, arrayC+8*(seed%n))
			k++
		}
		c.block(3)
		c.store(6, arrayC+1<<28+8*i)
	}
}

// heap pushes n numbers onto a binary heap and pops them again.
func heap(c *code, n uint64) {
	var h []uint64
	for i := range n {
		c.block(1)
		h = append(h, mix(i))
		for at := i; at > 0; at = (at - 1) / 2 {
			c.block(2)
			c.load(1, arrayA+8*at)
			c.load(2, arrayA+8*((at-1)/2))
			if h[(at-1)/2] <= h[at] {
				break
			}
			c.store(3, arrayA+8*at)
			c.store(4, arrayA+8*((at-1)/2))
			h[at], h[(at-1)/2] = h[(at-1)/2], h[at]
		}
	}
	for m := n - 1; m > 0; m-- {
		c.block(3)
		c.load(5, arrayA+8*m)
		c.store(6, arrayA)
		h[0] = h[m]
		for at := uint64(0); 2*at+1 < m; {
			c.block(4)
			least := 2*at + 1
			c.load(7, arrayA+8*least)
			if least+1 < m {
				c.load(8, arrayA+8*(least+1))
				if h[least+1] < h[least] {
					least++
				}
			}
			if h[at] <= h[least] {
				break
			}
			c.store(9, arrayA+8*at)
			c.store(10, arrayA+8*least)
			h[at], h[least] = h[least], h[at]
			at = least
		}
	}
}

// graph runs a breadth-first search on a random graph of n nodes.
func graph(c *code, n uint64) {
	seen := make([]bool, n)
	queue := []uint64{0}
	seen[0] = true
	for head := 0; head < len(queue); head++ {
		at := queue[head]
		c.block(1)
		c.load(1, arrayA+8*uint64(head))
		c.load(2, arrayB+8*at)
		for e := range 1 + mix(at)%8 {
			c.block(2)
			to := mix(8*at+e) % n
			c.load(3, arrayB+1<<28+64*at+8*e)
			c.load(4, arrayC+to)
			if seen[to] {
				continue
			}
			c.block(3)
			c.store(5, arrayC+to)
			c.store(6, arrayA+8*uint64(len(queue)))
			seen[to] = true
			queue = append(queue, to)
		}
	}
}

// hash looks up n keys in a hash table with a few keys per slot.
func hash(c *code, n uint64) {
	for i := range n {
		c.block(1)
		key := mix(i)
		slot := key % n
		c.load(1, arrayA+8*i)
		c.load(2, arrayB+16*slot)
		for key>>40%4 == 0 {
			c.block(2)
			slot = (slot + 1) % n
			c.load(3, arrayB+16*slot)
			key = mix(key)
		}
		c.block(3)
		c.store(4, arrayB+16*slot+8)
	}
}

// TestEncodingIsNotMuchLongerThanPlainForm checks that a tree's encoding is at most 5 % longer than
// the plain form.
func TestEncodingIsNotMuchLongerThanPlainForm(t *testing.T) {
	for _, k := range irregular {
		for _, blocks := range []bool{true, false} {
			c := code{blocks: blocks}
			k.run(&c, 40)
			tree := fold(t, 0, batch(c.rows, columns{site: true}), func() int { return 1000 })
			checkSameRows(t, unfold(t, tree, 512), c.rows)
			got, most := len(tree.Append(nil)), plain(c.rows, columns{site: true})
			t.Logf("%s, block entries %v: %d rows, %d bytes, %.3f bytes per row, %.2f times the plain form; %+v", k.name, blocks, len(c.rows), got, float64(got)/float64(len(c.rows)), float64(got)/float64(most), tree.Size())
			if 20*got > 21*most {
				t.Errorf("%s, block entries %v: %d bytes, want at most 1.05 times %d", k.name, blocks, got, most)
			}
			if tree.plainTakes(uint64(most) + 1) {
				t.Errorf("%s, block entries %v: the lower bound exceeds the %d bytes of the plain form", k.name, blocks, most)
			}
		}
	}
}

// TestEncodingOfRandomRowsIsNotMuchLongerThanPlainForm is like
// TestEncodingIsNotMuchLongerThanPlainForm, but for random rows and windows.
func TestEncodingOfRandomRowsIsNotMuchLongerThanPlainForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, has := drawRows(t)
		window := rapid.SampledFrom([]int{1, 2, 5, 17, 100, 0}).Draw(t, "window")
		tree := fold(t, window, batch(all, has), func() int { return 1000 })
		got, most := len(tree.Append(nil)), plain(all, has)
		if 20*got > 21*most {
			t.Fatalf("%d rows take %d bytes, want at most 1.05 times %d", len(all), got, most)
		}
		if tree.plainTakes(uint64(most) + 1) {
			t.Fatalf("the lower bound exceeds the %d bytes of the plain form", most)
		}
	})
}

// TestFewRowsAreWrittenInPlainForm checks that a loop is written as rows if the rows need fewer
// bytes, and otherwise as a loop.
func TestFewRowsAreWrittenInPlainForm(t *testing.T) {
	load := Reference{Site: 1, Bytes: 8, Kind: trace.Load}
	for _, c := range []struct {
		trips uint64
		want  string
	}{
		{2, "\x02\x04\x01" + // version 2, with sites, one reference:
			"\x00\x08\x02" + // a load of 8 bytes, site 0 + 1
			"\x02" + // two rows
			"\x00\x01" + // a run of two rows of reference 0
			"\x80\x04\x10"}, // at address 0 + 256, and 8 bytes later
		{9, "\x01\x04\x01\x00\x08\x02" + // the same reference in version 1
			"\x01\x04" + // a node with a new shape:
			"\x04\x00\x00\x10" + // a loop that contains a leaf of the next reference, with a step of 8
			"\x09\x80\x04"}, // 9 iterations, beginning at address 0 + 256
	} {
		n := Nest{Items: []Item{Loop(c.trips, Leaf(load, 256, 8))}}
		tree, err := n.Build()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(tree.Append(nil)); got != c.want {
			t.Errorf("a loop of %d iterations is encoded as % x, want % x", c.trips, got, c.want)
		}
		checkRoundTrip(t, tree)
	}
}
