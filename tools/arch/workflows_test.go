package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestWorkflows checks that GitHub's workflow files are valid YAML, and that all Makefile targets
// and packages that they name exist.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(rootFolder(t), ".github", "*", "*.yml"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	makefile := readFile(t, "Makefile")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var parsed map[string]any
		if err := yaml.Unmarshal(text, &parsed); err != nil || len(parsed) == 0 {
			t.Errorf("%s: %v", file, err)
		}
		for _, m := range regexp.MustCompile(`(?:run:|^\s+) make ([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", file, m[1])
			}
		}
		for _, m := range regexp.MustCompile(` \./((?:core|workers|tools|wasm|ui|site)[a-z/]*)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(rootFolder(t), m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
