package arch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesOfManual follows site/docs/extend.md in a copy of the repository: it adds the analysis,
// the question and the view of the page as the text says, compiles them, asks the question of a demo,
// and runs the test that every analysis must pass. The test takes minutes, and runs in make soak.
func TestExamplesOfManual(t *testing.T) {
	if os.Getenv("STACKGLASS_SOAK") == "" {
		t.Skip("compiles most of the project again; set STACKGLASS_SOAK=1 to run it")
	}
	root, copied := rootFolder(t), t.TempDir()
	run := func(dir string, environment []string, name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Env = dir, append(os.Environ(), environment...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run(root, nil, "sh", "-c", `git ls-files -z | xargs -0 cp --parents -t "$0"`, copied)

	text, err := os.ReadFile(filepath.Join(root, "site/docs/extend.md"))
	if err != nil {
		t.Fatal(err)
	}
	// example returns the block of the manual that contains the given text.
	example := func(mark string) string {
		t.Helper()
		for _, found := range regexp.MustCompile("(?s)\n   ```(?:go|html)\n(.*?)\n   ```").FindAllStringSubmatch(string(text), -1) {
			if block := strings.ReplaceAll("\n"+found[1], "\n   ", "\n"); strings.Contains(block, mark) {
				return block + "\n"
			}
		}
		t.Fatalf("site/docs/extend.md: no example contains %q", mark)
		return ""
	}
	write := func(path string, parts ...string) {
		t.Helper()
		path = filepath.Join(copied, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// insert inserts lines behind the first place where the file contains the given text.
	insert := func(path, behind, lines string) {
		t.Helper()
		old, err := os.ReadFile(filepath.Join(copied, path))
		before, after, found := bytes.Cut(old, []byte(behind))
		if err != nil || !found {
			t.Fatalf("%s does not contain %q (%v)", path, behind, err)
		}
		write(path, string(before), behind, lines, string(after))
	}
	const module = "github.com/stackglass/stackglass/"

	write("core/analysis/banks/banks.go", "package banks\n\nimport (\n\t\"errors\"\n\n\t\"", module, "core/profile\"\n\t\"", module, "core/trace\"\n)\n",
		example("func (a *Analysis) Consume"))
	write("core/profile/banks.go", "package profile\n", example("func (b *Banks) code"))
	insert("core/profile/profile.go", "type Profile struct {\n", "\tBanks *Banks\n")
	insert("core/profile/sections.go", "\toptionalForm(\"SAMP\", func(p *Profile) **Sampled { return &p.Sampled }),\n", example(`optionalForm("BANK"`))
	insert("core/analysis/table.go", "import (\n", "\t\""+module+"core/analysis/banks\"\n")
	insert("core/analysis/table.go", "\tPages   // stack distances of pages\n", "\tBanks\n")
	insert("core/analysis/table.go", "\treturn []registration{\n", example("tag: Banks"))
	write("core/ask/banks.go", "package ask\n\nimport (\n\t\"", module, "core/analysis\"\n\t\"", module, "core/profile\"\n\t\"", module, "core/report\"\n)\n",
		example(`Name:  "banks"`))
	write("tools/stackglass/internal/command/help/banks.txt", "Usage: stackglass banks PROFILE\n\nPrints the references by bank.\n")
	write("ui/state/banks.go", "package state\n\nimport \"", module, "core/profile\"\n", example("func missingBanks"))
	insert("ui/state/tabs.go", "\tTabData\n", "\tTabBanks\n")
	insert("ui/state/tabs.go", "{\"Data\", []Tab{TabData", ", TabBanks")
	insert("ui/state/tabs.go", "= [numTabs]struct {\n\tname, slug string\n\tmissing    func(*profile.Profile) string\n\talone      string\n}{\n",
		"\tTabBanks: {\"Banks\", \"banks\", missingBanks, \"The banks of two runs cannot be compared.\"},\n")
	write("ui/banks.vugu", example("func newBanks"))
	insert("ui/view.go", "= map[state.Tab]func(*App) View{\n", "\tstate.TabBanks: newBanks,\n")

	run(copied, nil, "go", "generate", "./ui/")
	run(copied, []string{"GOOS=js", "GOARCH=wasm"}, "go", "build", "./ui", "./wasm/app")
	program := filepath.Join(copied, "stackglass")
	run(copied, nil, "go", "build", "-o", program, "./tools/stackglass")
	run(copied, nil, program, "analyze", "site/demos/matmul-naive.sgt", "--analyses", "default,banks", "-o", "banks.sgp")
	for _, args := range [][]string{
		{"banks", "banks.sgp", "--format", "csv"},
		{"compare", "banks.sgp", "banks.sgp", "--on", "banks", "--format", "csv"},
	} {
		if out := run(copied, nil, program, args...); len(regexp.MustCompile(`(?m)^[0-7],`).FindAllString(out, -1)) != 8 {
			t.Errorf("stackglass %s prints\n%s\nwant a row for each of 8 banks", strings.Join(args, " "), out)
		}
	}
	run(copied, nil, "go", "test", "./core/analysis", "-run", "TestEveryAnalysisInEveryKindOfRun")
}
