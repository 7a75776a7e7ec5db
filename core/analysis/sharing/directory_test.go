package sharing

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/trace"
)

// A directory agrees with a map, even for lines that are accessed immediately after a part of the
// table has grown.
func TestDirectoryEqualsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d directory
		d.reset(int(rapid.Uint16().Draw(t, "expected")))
		want := map[trace.Line]uint64{}
		step := rapid.Uint64().Draw(t, "step")>>8 | 1
		again := rapid.Uint64Range(2, 100).Draw(t, "again")
		for i := range uint64(20_000) {
			line := i * step
			if i%2 == 1 {
				line = (i - i%again) * step
			}
			e := d.entry(line)
			if e.holders != want[line] {
				t.Fatalf("after touch %d, line %d has the holders %b, want %b", i, line, e.holders, want[line])
			}
			e.holders = i + 1
			want[line] = i + 1
		}
		for line, holders := range want {
			if e := d.entry(line); e.holders != holders {
				t.Fatalf("line %d has the holders %b, want %b", line, e.holders, holders)
			}
		}
		if d.lines != len(want) {
			t.Fatalf("the directory has %d lines, want %d", d.lines, len(want))
		}
	})
}
