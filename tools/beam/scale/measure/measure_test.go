package measure

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// TestShuffle checks that each round touches every line once, in a different order from the
// previous round.
func TestShuffle(t *testing.T) {
	for lineBits := 1; lineBits <= 12; lineBits++ {
		lines := uint64(1) << lineBits
		same := uint64(0)
		for round := range uint64(20) {
			seen := make([]bool, lines)
			for i := range lines {
				x := shuffle(i, round, lineBits)
				if x >= lines || seen[x] {
					t.Fatalf("2^%d lines, round %d: line %d comes twice, or is none", lineBits, round, x)
				}
				seen[x] = true
				if x == shuffle(i, round+1, lineBits) {
					same++
				}
			}
		}
		if lineBits > 6 && same > 20*lines/8 {
			t.Errorf("2^%d lines: %d of %d places are as in the round before", lineBits, same, 20*lines)
		}
	}
}

// TestParts runs all parts for a chase and a sweep, and checks that the divided pass produces the
// same bytes as the undivided pass.
func TestParts(t *testing.T) {
	folder := t.TempDir()
	for _, p := range Patterns {
		name := filepath.Join(folder, string(p)+".sgt")
		const lineBits = 10
		round := p.References() << lineBits
		do := func(part string, args ...string) Values {
			t.Helper()
			v, err := Part(part, args)
			if err != nil {
				t.Fatalf("%s %v: %v", part, args, err)
			}
			return v
		}
		do("write", string(p), "10", text(Head+3*round), name)
		v := do("analyse", name, text(round), "3", filepath.Join(folder, "s"))
		if v["lines"] != 3<<lineBits || v["references"] != float64(3*round) {
			t.Errorf("%s: three segments have %v", p, v)
		}
		v = do("join", filepath.Join(folder, "s.0"), filepath.Join(folder, "s.1"), filepath.Join(folder, "s.2"))
		if v["lines"] != 1<<lineBits {
			t.Errorf("%s: joined, they have %v lines", p, v["lines"])
		}
		v = do("trace", name, text(round), "2")
		if v["stretches"] != 3 || v["levels"] != 2 || v["footprint"] != 1<<lineBits || v["node.in"] != 4<<lineBits {
			t.Errorf("%s: %v", p, v)
		}
		do("plain", name)
		do("sampled", name, "0.5")
		do("index", name)
		do("read", name)
	}
	if v := layout(1000); v["bytes"] <= 0 {
		t.Errorf("a layout: %v", v)
	}
}

func TestWrong(t *testing.T) {
	if err := Chase.Write(&bytes.Buffer{}, 0, 1); err == nil {
		t.Error("no lines: no error")
	}
	for _, args := range [][]string{{"nothing"}, {"join"}, {"write", "chase"}} {
		if _, err := Part(args[0], args[1:]); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.sgt")
	if _, err := Part("plain", []string{missing}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// BenchmarkJoin joins two neighbours of 2^17 lines each.
func BenchmarkJoin(b *testing.B) {
	for _, p := range Patterns {
		b.Run(string(p), func(b *testing.B) {
			folder := b.TempDir()
			name, segments := filepath.Join(folder, "t.sgt"), filepath.Join(folder, "s")
			round := p.References() << 17
			if _, err := write(p, 17, Head+2*round, name); err != nil {
				b.Fatal(err)
			}
			if _, err := analyse(name, round, 2, segments); err != nil {
				b.Fatal(err)
			}
			v := Values{}
			var list []*profile.Profile
			for _, part := range []string{".0", ".1"} {
				packed, err := os.ReadFile(segments + part)
				if err != nil {
					b.Fatal(err)
				}
				one, err := v.unpack(packed)
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, one)
			}
			for b.Loop() {
				if _, err := v.joined(list); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2<<17), "ns/line")
		})
	}
}
