package estimate

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/trace"
)

func TestLineCoresEqualMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fast lineCores
		slow := map[trace.Line]uint64{}
		lines := rapid.Uint64Range(0, rapid.SampledFrom([]uint64{3, 50, 1000}).Draw(t, "lines"))
		for range rapid.IntRange(0, 2000).Draw(t, "steps") {
			line, core := lines.Draw(t, "line"), uint8(rapid.IntRange(0, 63).Draw(t, "core"))
			if rapid.Bool().Draw(t, "add") {
				fast.add(line, core)
				slow[line] |= 1 << core
			} else {
				if core %= 4; rapid.Bool().Draw(t, "empty") {
					for n := range uint8(64) {
						fast.remove(line, n)
					}
					delete(slow, line)
				}
				fast.remove(line, core)
				if slow[line] &^= 1 << core; slow[line] == 0 {
					delete(slow, line)
				}
			}
			if got := fast.coresOf(line); got != slow[line] {
				t.Fatalf("line %d has cores %b, want %b", line, got, slow[line])
			}
		}
		if fast.used != len(slow) {
			t.Fatalf("the table has %d lines, want %d", fast.used, len(slow))
		}
		for line, want := range slow {
			if got := fast.coresOf(line); got != want {
				t.Fatalf("at the end, line %d has cores %b, want %b", line, got, want)
			}
		}
	})
}
