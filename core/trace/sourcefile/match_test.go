package sourcefile_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace/sourcefile"
	"pgregory.net/rapid"
)

// TestMatchLines checks that lines are matched even if comments were added, lines were reordered,
// or text was changed.
func TestMatchLines(t *testing.T) {
	before := strings.Split(`#define N 32
double a[N][N];
int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[j][i] = 0;
    report("done");
}`, "\n")
	after := strings.Split(`/* Zeros a matrix.
   Along its rows. */
#define N 32
double a[N][N];
int main(void)
{
    report("done");

    for (int i = 0; i < N; i++)
	for (int j = 0; j < N; j++)
            a[i][j] = 0;
}`, "\n")
	var got []string
	for _, m := range sourcefile.MatchLines(before, after) {
		got = append(got, m.Kept.String()+" "+strconv.Itoa(m.Line+1))
	}
	if want := "same 3, same 4, same 5, same 6, same 9, same 10, changed 11, moved 7, same 12"; strings.Join(got, ", ") != want {
		t.Errorf("matches %s, want %s", strings.Join(got, ", "), want)
	}
}

// The function "longest" uses the definition of the longest common subsequence to compute its
// length.
func longest(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	if a[0] == b[0] {
		return 1 + longest(a[1:], b[1:])
	}
	return max(longest(a[1:], b), longest(a, b[1:]))
}

// TestMatchesAreOneToOne checks that no line is matched twice, that matched lines with equal texts
// are Same or Moved, and that Same lines have the same order in both files. If no line is unique,
// as many lines as possible must be Same.
func TestMatchesAreOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{"", "}", "x = 1;", "x = 2;", "call(x, y);", "call(x, z);", "return x + y + z;"}
		draw := func(name string) (lines []string) {
			return rapid.SliceOfN(rapid.SampledFrom(texts[:rapid.IntRange(1, len(texts)).Draw(t, "texts")]), 0, 9).Draw(t, name)
		}
		a, b := draw("a"), draw("b")
		twice := rapid.Bool().Draw(t, "twice") // each line occurs twice, so no line is unique
		if twice {
			a, b = append(a, a...), append(b, b...)
			a, b = a[:min(len(a), 10)], b[:min(len(b), 10)]
		}
		taken, last, same := map[int]bool{}, -1, 0
		for i, m := range sourcefile.MatchLines(a, b) {
			switch {
			case (m.Line < 0) != (m.Kept == sourcefile.Removed):
				t.Fatalf("line %d of %q has the inconsistent match %v", i, a, m)
			case m.Line < 0:
				continue
			case taken[m.Line]:
				t.Fatalf("line %d of %q is matched twice with lines of %q", m.Line, b, a)
			case (a[i] == b[m.Line]) == (m.Kept == sourcefile.Changed):
				t.Fatalf("line %q is %v, but its match is %q", a[i], m.Kept, b[m.Line])
			}
			if taken[m.Line] = true; m.Kept == sourcefile.Same {
				if m.Line < last {
					t.Fatalf("%q and %q: the matches are not in order: line %d before line %d", a, b, m.Line, last)
				}
				last = m.Line
				same++
			}
		}
		unique := false
		for _, list := range [][]string{a, b} {
			count := map[string]int{}
			for _, text := range list {
				count[text]++
			}
			for _, n := range count {
				unique = unique || n == 1
			}
		}
		if !unique && same != longest(a, b) {
			t.Fatalf("%d lines are Same, want %d, in %q and %q", same, longest(a, b), a, b)
		}
	})
}
