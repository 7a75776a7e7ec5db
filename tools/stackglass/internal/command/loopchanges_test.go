package command

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// rebuiltPrograms lists programs before and after a change. Their arrays begin at multiples of the
// page size, so that they map to the same cache sets in every build.
var rebuiltPrograms = []struct {
	name, change string
	cache        string
	before       string
	replace      []string // pairs of strings: a text in the original program, and its replacement in the changed program
}{
	{"pad", "--pad b=+64", "L1=32KiB,8", `
#define N 128
_Alignas(4096) double a[N][N]; _Alignas(4096) double b[N][N]; _Alignas(4096) double c[N][N];
int main(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double s = c[i][j];
			for (int k = 0; k < N; k++)
				s += a[i][k] * b[k][j];
			c[i][j] = s;
		}
	return 0;
}
`, []string{"double b[N][N]", "double b[N][N + 8]"}},
	{"interchange", "--interchange i,j", "L1=16KiB,4", `
#define N 512
_Alignas(4096) double a[N][N];
int main(void) {
	double s = 0;
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			s += a[i][j];
	return s > 1;
}
`, []string{
		"for (int j = 0; j < N; j++)", "for (int x = 0; x < N; x++)",
		"for (int i = 0; i < N; i++)", "for (int j = 0; j < N; j++)", "x", "i",
	}},
	// The size 200 is not a multiple of the tile size 16.
	{"tile", "--tile i=16,j=16", "L1=8KiB,4", `
#define N 200
_Alignas(4096) double a[N][N]; _Alignas(4096) double b[N][N];
static int least(int x, int y) { return x < y ? x : y; }
int main(void) {
	LOOPS
			b[i][j] = a[j][i];
	return least(0, 1);
}
`, []string{"LOOPS", `for (int ii = 0; ii < N; ii += 16)
		for (int jj = 0; jj < N; jj += 16)
			for (int i = ii; i < least(ii + 16, N); i++)
				for (int j = jj; j < least(jj + 16, N); j++)`}},
	{"tiles of an inner loop", "--tile i=all,j=16", "L1=8KiB,8", `
#define N 200
double a[N][N]; double b[N][N];
static int least(int x, int y) { return x < y ? x : y; }
int main(void) {
	LOOPS
			b[i][j] = a[j][i];
	return least(0, 1);
}
`, []string{"LOOPS", `for (int jj = 0; jj < N; jj += 16)
			for (int i = 0; i < N; i++)
				for (int j = jj; j < least(jj + 16, N); j++)`}},
}

// TestLoopChangesInRecordedPrograms checks that a change to a loop nest has the predicted effect on
// its misses. The test compiles and records the changed program.
func TestLoopChangesInRecordedPrograms(t *testing.T) {
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("clang-19 is not installed")
	}
	for _, p := range rebuiltPrograms {
		t.Run(p.name, func(t *testing.T) {
			after := p.before
			for i := 0; i < len(p.replace); i += 2 {
				after = strings.ReplaceAll(after, p.replace[i], p.replace[i+1])
			}
			before := strings.ReplaceAll(p.before, "LOOPS", "for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)")
			inFolder(t, map[string]string{"before.c": before, "after.c": after})
			for _, name := range []string{"before", "after"} {
				if got := stackglass("cc", "--", "clang-19", "-O1", "-g", name+".c", "-o", name); got.code != exitOK {
					t.Fatalf("%s: exit %d, %s", name, got.code, got.stderr)
				}
				cmd := exec.Command("./" + name)
				cmd.Env = append(os.Environ(), "STACKGLASS_OUT="+name+".sgt")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", name, err, out)
				}
			}
			was, is := simulatedMisses(t, "before.sgt", p.cache), simulatedMisses(t, "after.sgt", p.cache)
			predicted := changesOf(t, append([]string{"loops", "before.sgt", "--format", "json", "--cache", p.cache}, strings.Fields(p.change)...)...)
			if predicted != (tried{was, is}) || is >= was {
				t.Errorf("predicted misses: %d before and %d after the change; simulated: %d before and %d after", predicted.Before, predicted.After, was, is)
			}
			t.Logf("%d misses before the change, %d after the change", predicted.Before, predicted.After)
		})
	}
}

// simulatedMisses returns the simulated misses of a whole trace.
func simulatedMisses(t *testing.T, name, cache string) uint64 {
	t.Helper()
	got := stackglass("simulate", name, "--cache", cache, "--format", "json")
	var answer struct {
		Levels []struct{ Misses uint64 }
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); got.code != exitOK || err != nil || len(answer.Levels) == 0 {
		t.Fatalf("simulate %s: exit %d, %v, %s%s", name, got.code, err, got.stdout, got.stderr)
	}
	return answer.Levels[0].Misses
}

type tried struct {
	Before uint64 `json:"misses_before"`
	After  uint64 `json:"misses_after"`
}

func changesOf(t *testing.T, args ...string) tried {
	t.Helper()
	got := stackglass(args...)
	if got.code != exitOK {
		t.Fatalf("%v: exit %d, %s", args, got.code, got.stderr)
	}
	var answer struct{ Changes []tried }
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(answer.Changes) != 1 {
		t.Fatalf("%v: %v\n%s", args, err, got.stdout)
	}
	return answer.Changes[0]
}
