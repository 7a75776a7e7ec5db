package command

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestLoopMissesAddUp checks that the misses inside and outside of loops add up to the misses of a
// simulation, in every format and for any number of printed rows.
func TestLoopMissesAddUp(t *testing.T) {
	type row struct {
		Loop             string
		Accesses, Misses uint64
	}
	sum := func(rows []row) (sum row) {
		for _, r := range rows[:len(rows)-1] {
			if !strings.Contains(r.Loop, ".") { // this is an outermost loop
				sum.Accesses, sum.Misses = sum.Accesses+r.Accesses, sum.Misses+r.Misses
			}
		}
		return sum
	}
	for _, file := range []string{"demo:matmul-naive", "demo:array-list", "demo:ring", kernelFolder + "stencil.sgt"} {
		for _, cache := range []string{"L1=1KiB,2", "L1=4KiB,full", "L1=3KiB,8", "L1=32KiB,8"} {
			simulated := levelsOf(t, "simulate "+file+" --cores 0-64 --cache "+cache+" --format csv")[0]
			var answer struct{ Misses []row }
			got := stackglass("loops", file, "--cache", cache, "--format", "json")
			if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(answer.Misses) < 2 {
				t.Fatalf("%v\n%s", err, got)
			}
			total, added := answer.Misses[len(answer.Misses)-1], sum(answer.Misses)
			if n := strconv.FormatUint; n(total.Accesses, 10) != simulated["accesses"] || n(total.Misses, 10) != simulated["misses"] ||
				added.Accesses != total.Accesses || added.Misses != total.Misses || total.Loop != "(total)" {
				t.Errorf("%s, %s: total %+v, sum of all loops %+v, simulation %v: want equal misses", file, cache, total, added, simulated)
			}
			csv := levelsOf(t, "loops "+file+" --cache "+cache+" --format csv --share 20%")
			if last := csv[len(csv)-1]; last["loop"] != "(total)" || last["misses"] != simulated["misses"] {
				t.Errorf("%s, %s: the last row of csv is %v, want the total", file, cache, last)
			}
		}
	}
	text := stackglass(words("loops demo:array-list --cache L1=1KiB,2 --share 50%")...).stdout
	for _, name := range []string{"(other loops) ", "(outside loops) ", "(total) "} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("row %s is missing:\n%s", name, text)
		}
	}
	one := levelsOf(t, "loops demo:array-list --cache L1=1KiB,2 --loop 5.1 --format csv")
	if len(one) != 4 || one[1]["loop"] != "(other loops)" || one[2]["loop"] != "(outside loops)" || one[3]["loop"] != "(total)" {
		t.Errorf("one loop: %v", one)
	}
}
