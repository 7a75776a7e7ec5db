package state

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
)

// TestPoliciesCanBeSimulated checks that the page offers all replacement policies and prefetchers of
// the simulator, that the simulator accepts every choice, and that links restore every choice.
func TestPoliciesCanBeSimulated(t *testing.T) {
	odd := hierarchy.Prefetch{Kind: hierarchy.Stride, Degree: 3, Distance: 5, Drop: 20, Reads: true, Chained: true}
	seen := map[string]bool{}
	for _, c := range []hierarchy.Cache{
		{Name: "L1", SizeBytes: 32 << 10, Ways: 8, LineBytes: 64},
		{Name: "L1", SizeBytes: 48 << 10, Ways: 12, LineBytes: 64, Prefetch: odd},
		{Name: "L1", SizeBytes: 3 << 10, LineBytes: 128, Replacement: hierarchy.DRRIP},
	} {
		policies, prefetchers := Policies(c), Prefetchers(c)
		for _, own := range []string{c.Replacement.String(), c.Prefetch.String()} {
			if !slices.ContainsFunc(slices.Concat(policies, prefetchers), func(o Choice) bool { return o.Name == own }) {
				t.Errorf("the lists for %v do not contain %s", c, own)
			}
		}
		for _, policy := range policies {
			for _, prefetcher := range prefetchers {
				seen[policy.Name], seen[prefetcher.Name] = true, true
				levels := WithPolicy(WithPolicy([]hierarchy.Cache{c}, 0, policy.Name), 0, prefetcher.Name)
				if got := levels[0]; got.Replacement.String() != policy.Name || got.Prefetch.String() != prefetcher.Name {
					t.Fatalf("%s and %s chosen: %v", policy.Name, prefetcher.Name, got)
				}
				if _, err := simulate.New(hierarchy.Hierarchy{Levels: levels}, simulate.Options{}); err != nil {
					t.Error(err)
				}
				s := Screen{Open: "a", Levels: levels}
				if got := ParseScreen(s.Hash()); !reflect.DeepEqual(got, s) {
					t.Errorf("%s restores %v, want %v", s.Hash(), got.Levels, levels)
				}
				if plain := policy.Name == "lru" && prefetcher.Name == "none"; LRUOnly(levels) != plain {
					t.Errorf("LRUOnly(%v) = %v", levels, !plain)
				}
			}
		}
	}
	for _, name := range slices.Concat(hierarchy.Replacements(), hierarchy.PrefetchKinds()) {
		if needsSubBlocks := name == "load-forward" || name == "sub-block"; seen[name] == needsSubBlocks {
			t.Errorf("%s is offered: %v", name, seen[name])
		}
	}
	if got := WithPolicy([]hierarchy.Cache{{Name: "L1", SizeBytes: 64, LineBytes: 64}}, 0, "nonsense"); !LRUOnly(got) {
		t.Errorf("after an unknown choice, the levels are %v", got)
	}
}

// TestSimulatedTables checks the page's tables, the sentence and the progress for a simulation.
func TestSimulatedTables(t *testing.T) {
	against := report.Table{Key: "against", Columns: report.Columns("name=level", "in", "number", "a=A", "b=B", "difference", "change")}
	for _, row := range []struct {
		name, number string
		a, b         uint64
	}{{"L1", "hits", 5, 7}, {"L1", "misses", 40, 30}, {"memory", "fetched_bytes", 0, 2560}} {
		a, b := report.Count(row.a), report.Count(row.b)
		against.Add(report.TextOf(row.name), report.TextOf("both"), report.TextOf(row.number), a, b, report.Difference(a, b), report.Change(a, b))
	}
	reply := &answers.Reply{Tables: []report.Table{against}, Bytes: []byte("{}")}
	made := SimulatedTable(reply, "against")
	if got := made.Row(0); made.Rows != 2 || got[0] != "L1" || got[1] != "misses" || got[2] != "40" || got[3] != "30" || !strings.Contains(got[4], "10") {
		t.Errorf("%d rows, the first: %q", made.Rows, got)
	}
	if string(made.JSON()) != "{}" {
		t.Errorf("JSON = %s, want the document of the reply", made.JSON())
	}
	sentence := strings.NewReplacer("\u202f", " ", "\u00a0", " ").Replace(SimulationSentence(reply))
	if want := "L1: 30 misses instead of 40 (−25 %); memory: 2 560 fetched bytes instead of 0."; sentence != want {
		t.Errorf("sentence = %q, want %q", sentence, want)
	}
	if against.Rows[2][2].Plain() != "fetched_bytes" {
		t.Error("the table of the reply was changed")
	}
	if SimulatedTable(reply, "prefetch") != nil || SimulationSentence(&answers.Reply{}) != "" || SimulationProgress(reply) != 0 || SimulationProgress(nil) != 0 {
		t.Error("a reply without a table has no text")
	}
	progress := report.Table{Key: "progress", Columns: report.Columns("references", "of")}
	progress.Add(report.Count(30), report.Count(120))
	if got := SimulationProgress(&answers.Reply{Tables: []report.Table{progress}}); got != 0.25 {
		t.Errorf("progress = %v, want 0.25", got)
	}
}
