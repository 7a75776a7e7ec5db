package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// TestConvertedTracesYieldSameAnswers checks that a converted trace has the same curve as the
// original, for every format and for several parts of a trace.
func TestConvertedTracesYieldSameAnswers(t *testing.T) {
	inFolder(t, map[string]string{"a.lz4": string(tracetest.Packed())})
	for _, part := range []string{"", "--skip 1000 --limit 5000", "--kinds store", "--kinds load --skip 7 --limit 3000"} {
		want := stackglass(append(strings.Fields("curve a.lz4 --format csv"), strings.Fields(part)...)...)
		expectExit(t, want, exitOK, expectedWarnings(strings.Fields(part))...)
		for _, to := range []string{"sgt", "lackey", "csv"} {
			got := stackglass(append(strings.Fields("convert a.lz4 -o b --to "+to), strings.Fields(part)...)...)
			expectExit(t, got, exitOK)
			if again := stackglass("curve", "b", "--format", "csv", "--kinds", "all"); again.stdout != want.stdout || again.code != 0 {
				t.Errorf("%s converted to %s has a different curve: %s", part, to, again)
			}
		}
	}
	expectExit(t, stackglass("convert", "a.lz4", "-o", "whole.sgt"), exitOK)
	for _, part := range []string{"", "--skip 1000 --limit 5000", "--kinds store --limit 99"} {
		want := stackglass(append(strings.Fields("curve a.lz4 --format csv"), strings.Fields(part)...)...)
		expectExit(t, stackglass(append(strings.Fields("convert whole.sgt -o c.sgt"), strings.Fields(part)...)...), exitOK)
		if got := stackglass("curve", "c.sgt", "--format", "csv", "--kinds", "all"); got.stdout != want.stdout {
			t.Errorf("converting a container with the options %q changes the curve: %s", part, got)
		}
	}
}

// TestConvertRoundTrip checks that converting a trace to a container and back restores its original
// text.
func TestConvertRoundTrip(t *testing.T) {
	text := " L 04a3be28,8\n S 04a3be28,8\nI  00401000,3\n M 1ffeffffd0,16\n"
	inFolder(t, map[string]string{"a.lackey": text, "a.din": "0 1000\n1 1008\n2 401000\n", "a.csv": "addr,rw,size,tid,pc\n0x8,r,4,2,0x400\n0x10,w,8,3,0x404\n"})
	for _, to := range []string{"lackey", "din", "csv"} {
		name := "a." + to
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		expectExit(t, stackglass("convert", name, "-o", "b.sgt"), exitOK)
		got := stackglass("convert", "b.sgt", "-o", "-", "--to", to)
		if got.code != 0 || got.stdout != string(want) || got.stderr != "" {
			t.Errorf("%s: converted to a container and back: %s", name, got)
		}
	}
}

// filesLeft lists the files in the current folder.
func filesLeft(t *testing.T) (names string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names += e.Name() + " "
	}
	return strings.TrimSpace(names)
}

// TestConvertLeavesNoPartialFile checks that no file remains after a failed conversion.
func TestConvertLeavesNoPartialFile(t *testing.T) {
	inFolder(t, map[string]string{"bad.din": "0 1000\nwhat\n1 8\n", "good.lz4": string(tracetest.Packed())})
	expectExit(t, stackglass("convert", "bad.din", "-o", "out.sgt"), exitInput, "bad.din:2: label \"what\"", "--skip-bad")
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	expectExit(t, askContext(stopped, "", "convert", "good.lz4", "-o", "out.sgt"), exitInterrupted, "interrupted")
	expectExit(t, stackglass("convert", "good.lz4", "-o", filepath.Join("no", "out.sgt")), exitUsage, "the folder no does not exist")
	if got := filesLeft(t); got != "bad.din good.lz4" {
		t.Errorf("a failed conversion left the files %s", got)
	}
	expectExit(t, stackglass("convert", "bad.din", "-o", "out.sgt", "--skip-bad", "1"), exitOK, "skipped 1 record that could not be read")
}

// TestConvertDamagedTrace checks that the readable part of a damaged trace is converted.
func TestConvertDamagedTrace(t *testing.T) {
	packed := string(tracetest.Packed())
	inFolder(t, map[string]string{"cut.lz4": packed[:len(packed)*2/3], "whole.lz4": packed})
	expectExit(t, stackglass("convert", "cut.lz4", "-o", "out.sgt"), exitInput, "truncated", "the output covers only the readable part of the trace")
	expectExit(t, stackglass("info", "--verify", "out.sgt"), exitOK)
	expectExit(t, stackglass("convert", "whole.lz4", "-o", "whole.sgt"), exitOK)
	whole, err := os.ReadFile("whole.sgt")
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []struct {
		name, content, says string
		check               string
		info                int // exit code of the verb "info", which ignores damage inside a chunk
	}{
		{"short.sgt", string(whole[:len(whole)-30]), "truncated", "short.sgt has 1 fault", exitInput},
		{"killed.sgt", string(whole[:len(whole)*3/4]), "killed.sgt is truncated after", "killed.sgt is truncated after", exitInput},
		{"wrong.sgt", flipBit(string(whole)), "1 chunk with 104544 references cannot be read", "wrong.sgt has 1 fault", exitOK},
	} {
		if err := os.WriteFile(damaged.name, []byte(damaged.content), 0o644); err != nil {
			t.Fatal(err)
		}
		got := stackglass("info", "--verify", damaged.name)
		expectExit(t, got, exitInput, damaged.check)
		if !strings.Contains(got.stdout, "byte ") {
			t.Errorf("info --verify %s prints %s", damaged.name, got.stdout)
		}
		expectExit(t, stackglass("curve", damaged.name, "--format", "csv"), exitInput, damaged.says)
		if got := stackglass("info", damaged.name); got.code != damaged.info {
			t.Errorf("info %s: %s", damaged.name, got)
		} else if cut := strings.Contains(got.stdout, "unknown: the trace is truncated"); cut != (damaged.name == "killed.sgt") {
			t.Errorf("info %s prints %s", damaged.name, got.stdout)
		}
	}
	expectExit(t, stackglass("convert", "wrong.sgt", "-o", "again.sgt", "--strict"), exitInput, "damaged")
	expectExit(t, stackglass("curve", "wrong.sgt", "--strict"), exitInput, "damaged")
}

func TestConvertUsage(t *testing.T) {
	inFolder(t, map[string]string{"a.lz4": string(tracetest.Packed()), "none.csv": "addr\n"})
	for line, words := range map[string]string{
		"convert a.lz4":                         "give its name, for example: stackglass convert a.lz4 -o OUT.sgt",
		"convert a.lz4 -o b --to elf":           "--to elf, want one of sgt, lackey, din, csv, sgl",
		"convert a.lz4 -o a.lz4":                "is the trace itself",
		"convert a.lz4 -o b --kinds x":          "kinds",
		"convert a.lz4 -o b --sample onoff=1/9": "--sample: convert writes all references",
		"convert":                               "for example: stackglass convert app.lackey.lz4",
		"check a b":                             "2 are given: a, b",
	} {
		expectExit(t, stackglass(strings.Fields(line)...), exitUsage, words)
	}
	expectExit(t, stackglass("convert", "none.csv", "-o", "b.sgt"), exitOK, "no reference was written")
	expectExit(t, stackglass("curve", "b.sgt", "--format", "csv"), exitOK, "no references were analysed")
	expectExit(t, stackglass("analyze", "a.lz4", "-o", "a.sgp"), exitOK)
	expectExit(t, stackglass("convert", "a.sgp", "-o", "b.sgt"), exitUsage, "is a profile")
	expectExit(t, stackglass("check", "a.sgp"), exitOK)
	got := stackglass("convert", "a.lz4", "-o", "b.sgt", "--threads", "1")
	expectExit(t, got, exitOK, "the trace has no thread numbers")
}
