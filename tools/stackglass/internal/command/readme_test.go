package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeIsTrue runs the command lines that README.md shows and compares
// what they print.
func TestReadmeIsTrue(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "..", "..")) // files are named as they are from there
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, block := range strings.Split(string(text), "```")[1:] {
		rest, ok := strings.CutPrefix(block, "console\n$ bin/stackglass ")
		if !ok {
			continue
		}
		line, want, _ := strings.Cut(rest, "\n")
		got := stackglass(strings.Fields(line)...)
		if got.stdout != want || got.code != 0 {
			t.Errorf("stackglass %s prints\n%s\nREADME.md says\n%s", line, got.stdout, want)
		}
		shown++
	}
	if shown == 0 {
		t.Error("README.md shows no command line")
	}
}
