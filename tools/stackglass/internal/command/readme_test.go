package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualIsTrue runs the command lines that README.md and the manual show, and compares what they print.
func TestManualIsTrue(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "..", "..")) // files are named as they are from there
	pages, err := filepath.Glob("site/docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages of the manual: %v", err)
	}
	shown := 0
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "```")[1:] {
			rest, ok := strings.CutPrefix(block, "console\n$ bin/stackglass ")
			if !ok {
				continue
			}
			line, want, _ := strings.Cut(rest, "\n")
			got := stackglass(strings.Fields(line)...)
			if got.stdout != want || got.code != 0 {
				t.Errorf("stackglass %s prints\n%s\n%s says\n%s", line, got.stdout, page, want)
			}
			shown++
		}
	}
	if shown < 4 {
		t.Errorf("only %d command lines are shown", shown)
	}
}
