package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSpill checks that the answer does not change if a pass spills its stacks to a folder, and
// that no files remain in the folder.
func TestSpill(t *testing.T) {
	var text strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&text, "%d %x\n", i%2, 0x100000+uint64(i)*7919%200_003*64)
	}
	inFolder(t, map[string]string{"a.din": text.String(), "file": ""})
	for _, verb := range []string{"histogram", "curve", "sets", "what-if", "analyze"} {
		line := []string{verb, "a.din", "--format", "csv"}
		switch verb {
		case "analyze":
			line = append(line, "--analyses", "sets,counters")
		case "what-if":
			line = append(line, "--cache", "L1=32KiB,8")
		}
		want := stackglass(line...)
		_ = os.Remove("kept")
		got := stackglass(append(line, "--spill", "kept")...)
		if want.code != exitOK || got.stdout != want.stdout {
			t.Errorf("%s: exit code %d, output %q; with --spill: exit code %d, output %q: %s", verb, want.code, head(want.stdout), got.code, head(got.stdout), got.stderr)
		}
		if left, err := os.ReadDir("kept"); err != nil || len(left) != 0 {
			t.Errorf("%s: the folder contains %v (%v), want no files", verb, left, err)
		}
	}
	expectExit(t, stackglass("histogram", "a.din", "--spill", "file"), exitUsage, "--spill", "file")
	expectExit(t, stackglass("analyze", "a.din", "--spill", "kept", "--analyses", "sites"), exitUsage, "spill", "sites", "locality, sets and counters")
	expectExit(t, stackglass("analyze", "a.din", "--spill", "kept", "--mergeable"), exitUsage, "spill", "want a profile that is not mergeable")
}

func head(s string) string { return s[:min(len(s), 200)] }
