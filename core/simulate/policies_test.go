package simulate

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestDrCacheSimPolicies repeats the unit tests of drcachesim's replacement policies. The unit
// tests access and invalidate lines of one set. After each step, the unit tests state which way
// will be replaced next. The test reads the steps from DynamoRIO's source file
// cache_replacement_policy_unit_test.cpp, which must be in the dynamorio folder of the external
// data. drcachesim fills the first empty way, so the test sorts the simulator's empty ways in this
// order.
func TestDrCacheSimPolicies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tracetest.DataDir(t), "dynamorio", "cache_replacement_policy_unit_test.cpp"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("skipped: the external data has no folder dynamorio")
	} else if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`\.(access|invalidate)_and_check\(addr_vec\[ADDR_([A-L])\], (\d+)`)
	for name, c := range map[string]struct {
		policy hierarchy.Replacement
		ways   uint64
	}{
		"lru_four_way": {hierarchy.LRU, 4}, "lru_eight_way": {hierarchy.LRU, 8}, "fifo_four_way": {hierarchy.FIFO, 4}, "fifo_eight_way": {hierarchy.FIFO, 8},
		"lfu_four_way": {hierarchy.LFU, 4}, "lfu_eight_way": {hierarchy.LFU, 8}, "srrip_four_way": {hierarchy.SRRIP, 4},
	} {
		_, body, found := strings.Cut(string(text), "unit_test_cache_"+name+"()")
		body, _, ended := strings.Cut(body, "\n}\n")
		if !found || !ended {
			t.Errorf("the file has no test %s", name)
			continue
		}
		tags := newTags(hierarchy.Cache{SizeBytes: c.ways * 8, LineBytes: 8, Replacement: c.policy}, 0)
		ways := make([]trace.Line, c.ways) // for each way of drcachesim, the line's number plus one, or 0 if the way is empty
		next, replaced := 0, 0
		for _, m := range step.FindAllStringSubmatch(body, -1) {
			line := trace.Line(m[2][0] - 'A')
			expected, _ := strconv.Atoi(m[3])
			at := slices.Index(ways, line+1)
			switch {
			case m[1] == "invalidate":
				tags.remove(line)
				ways[at] = 0
				if r, ok := tags.(*ranked); ok { // drcachesim uses the first empty way
					slices.SortFunc(r.empty[:r.left[0]], func(a, b uint32) int { return cmp.Compare(b, a) })
				}
			case at >= 0:
				if !tags.touch(line, false) {
					t.Fatalf("%s: line %d is absent", name, line)
				}
			default:
				victim, _, evicted := tags.insert(line, false)
				if full := ways[next] != 0; full != evicted || full && victim+1 != ways[next] {
					t.Errorf("%s: inserting line %d evicts line %d (evicted = %t), want line %d", name, line, victim, evicted, int(ways[next])-1)
				} else if full {
					replaced++
				}
				ways[next] = line + 1
			}
			next = expected
		}
		if replaced == 0 {
			t.Errorf("%s: no line was replaced", name)
		}
		t.Logf("%s: %d replacements agree", name, replaced)
	}
}
