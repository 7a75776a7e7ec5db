package loops

import (
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// FuzzFold checks that, for any window, all rows can be restored from the tree, and also from the
// encoded trees that a folder with bounded memory outputs. Each pair of input bytes encodes a row:
// one of eight references, the step of the address, and whether the direction of the reference is
// reversed.
func FuzzFold(f *testing.F) {
	f.Add([]byte{3, 1, 9, 1, 9, 1, 9, 1, 10, 2, 9, 1, 9, 1, 10, 2}, uint16(0), uint16(0))
	for _, k := range kernels {
		c := code{blocks: true}
		k.run(&c, 4)
		var form []byte
		for _, r := range c.rows[:min(len(c.rows), 400)] {
			form = append(form, byte(r.Site), byte(r.Addr>>3))
		}
		f.Add(form, uint16(5), uint16(100))
	}
	f.Fuzz(func(t *testing.T, form []byte, window, every uint16) {
		var all []row
		var addrs [8]uint64
		for i := 0; i+1 < len(form) && len(all) < 5000; i += 2 {
			site, way := form[i]&7, uint64(int64(int8(form[i+1])))
			if form[i]&8 != 0 {
				way *= 0x10001
			}
			r := row{Reference: Reference{Site: uint32(site), Bytes: 8, Kind: trace.Kind(form[i] >> 4 & 1)}, Addr: addrs[site] + way}
			addrs[site] = r.Addr
			all = append(all, r)
			for n := form[i] >> 5; n > 0; n-- { // a few more rows of the same reference
				r.Addr += way
				addrs[site] = r.Addr
				all = append(all, r)
			}
		}
		folder := NewFolder(int(window % 300))
		var trees []*Tree
		folder.Give(1, func(t *Tree) error {
			given, err := Decode(t.Append(nil))
			trees = append(trees, given)
			return err
		})
		folder.every = uint64(every) + 1
		if err := folder.Consume(batchOf(all)); err != nil {
			t.Fatal(err)
		}
		whole := Join(append(trees, folder.Finish())...)
		checkSameRows(t, unfold(t, whole, 100), all)
		checkRoundTrip(t, whole)
		if got, most := len(whole.Append(nil)), plain(all, columns{site: true}); 20*got > 21*most {
			t.Fatalf("%d rows take %d bytes, want at most 1.05 times %d", len(all), got, most)
		}
	})
}
