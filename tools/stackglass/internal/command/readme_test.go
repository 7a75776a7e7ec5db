package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site"
)

// TestManualShowsRealOutput checks that the output shown in README.md and in the manual is what the
// command lines print. All console blocks of a page run in order in a separate folder that contains
// the repository's folders and the traces in testdata/manual. With -update, the test writes the
// output into the pages.
func TestManualShowsRealOutput(t *testing.T) {
	repository, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	pages := []string{"README.md"}
	for _, topic := range site.Manual() {
		if strings.HasPrefix(topic.File, "site/docs/") {
			pages = append(pages, topic.File)
		}
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			file := filepath.Join(repository, page)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			manualFolder(t, repository)
			blocks := strings.Split(string(text), "```console\n")
			for i, rest := range blocks[1:] {
				block, after, closed := strings.Cut(rest, "```\n")
				if !closed {
					t.Fatalf("%s: a console block is not closed", page)
				}
				printed := runBlock(t, block)
				shown += strings.Count(block, "\n$ ") + 1
				if *update {
					blocks[i+1] = printed + "```\n" + after
				} else if printed != block {
					t.Errorf("%s shows\n%s\nthe commands print\n%s", page, block, printed)
				}
			}
			if updated := strings.Join(blocks, "```console\n"); *update && updated != string(text) {
				if err := os.WriteFile(file, []byte(updated), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if shown < 20 {
		t.Errorf("found only %d command lines", shown)
	}
}

// manualFolder creates a folder with the files that the manual's commands read, and makes it the
// current folder.
func manualFolder(t *testing.T, repository string) {
	folder := t.TempDir()
	traces, err := filepath.Glob(filepath.Join("testdata", "manual", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces {
		content, err := os.ReadFile(trace)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(trace)), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"core", "site", "tools"} {
		if err := os.Symlink(filepath.Join(repository, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
}

// runBlock runs the commands in a console block, which are prefixed with "$ ", and returns the
// block with their actual output. A command may end in "| head -N". After a command that fails, the
// next command must be "echo $?".
func runBlock(t *testing.T, block string) string {
	var out strings.Builder
	code := 0
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "\\ ")) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if !ok {
			continue
		}
		shown := strings.ReplaceAll(command, "\\ ", "\\\n")
		out.WriteString("$ " + shown + "\n")
		if command == "echo $?" {
			out.WriteString(strconv.Itoa(code) + "\n")
			code = 0
			continue
		}
		line, head, _ := strings.Cut(strings.ReplaceAll(command, "\\ ", " "), " | head -")
		words := shellWords(line)
		if code != 0 || len(words) == 0 || !slices.Contains([]string{"stackglass", "bin/stackglass"}, words[0]) {
			t.Fatalf("%q follows a command with exit code %d, want echo $?", command, code)
		}
		got := stackglass(words[1:]...)
		lines := strings.SplitAfter(got.stdout, "\n")
		if most, err := strconv.Atoi(head); err == nil {
			lines = lines[:min(most, len(lines))]
		}
		out.WriteString(strings.Join(lines, ""))
		if code = got.code; code != 0 {
			out.WriteString(got.stderr)
		}
	}
	if code != 0 {
		t.Errorf("a command of this block failed with code %d:\n%s", code, out.String())
	}
	return out.String()
}

// shellWords splits a command line into words as a shell does, without splitting at blanks within
// quotes.
func shellWords(line string) (list []string) {
	var word bytes.Buffer
	quote, some := byte(0), false
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, some = c, true
		case quote == 0 && c == ' ':
			if word.Len() > 0 || some {
				list = append(list, word.String())
			}
			word.Reset()
			some = false
		default:
			word.WriteByte(c)
		}
	}
	if word.Len() > 0 || some {
		list = append(list, word.String())
	}
	return list
}
