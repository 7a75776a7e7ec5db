package ir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompilerWeights checks that the weights that compilers write for an expected branch direction
// are read in both notations.
func TestCompilerWeights(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: in short mode, no module is compiled")
	}
	const source = "int g(int);\nint f(int a) { if (__builtin_expect(a == 3, 0)) return g(a) + 1; return a * 2; }\n"
	for _, c := range toolchains(t) {
		dir := t.TempDir()
		file, text := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.ll")
		if err := os.WriteFile(file, []byte(source), 0o666); err != nil {
			t.Fatal(err)
		}
		command(t, c.clang, "-O1", "-S", "-emit-llvm", file, "-o", text)
		src, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		m := read(t, string(src))
		found := 0
		for b, w := range m.Weights {
			if len(w) == 2 && (w[0] >= 100*w[1] || w[1] >= 100*w[0]) && len(m.Program.Blocks[b].Successors) == 2 {
				found++
			}
		}
		if found != 1 || !strings.Contains(m.Compiler, "clang version "+c.version) || m.Triple == "" {
			t.Errorf("LLVM %s: weights %v of %s for %s, want one branch with a strongly preferred direction", c.version, m.Weights, m.Compiler, m.Triple)
		}
	}
}
