package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site/policy"
)

// foldProgram returns the words of a program's memory before and after folding.
func foldProgram(t *testing.T) (whole, folded []uint32) {
	t.Helper()
	file := buildProgram(t)
	var names bytes.Buffer
	without, err := changeData(file, dropLines, takeNames(&names))
	if err != nil {
		t.Fatal(err)
	}
	with, err := changeData(file, dropLines, takeNames(&names), fold)
	if err != nil {
		t.Fatal(err)
	}
	if deflated(t, with) >= deflated(t, without) {
		t.Errorf("%d compressed bytes with folding, want fewer than the %d without", deflated(t, with), deflated(t, without))
	}
	return wordsOf(memoryOf(t, without)), wordsOf(memoryOf(t, with))
}

func TestFold(t *testing.T) {
	whole, words := foldProgram(t)
	unfold(words)
	if !slices.Equal(words, whole) {
		t.Error("unfolding does not restore the memory")
	}
}

// TestScriptUnfolds checks that unfold.js and its reference implementation in Go restore the same
// memory. The test needs Node.
func TestScriptUnfolds(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: Node is not installed; the tests of the page also run the script")
	}
	whole, words := foldProgram(t)
	const script = `
global.Go = class { run() {} };
require("./wasm/worker/unfold.js");
const chunks = [];
process.stdin.on("data", (c) => chunks.push(c));
process.stdin.on("end", () => {
	const file = Buffer.concat(chunks), memory = new Uint8Array(file.length);
	memory.set(file);
	new Go().run({ exports: { mem: { buffer: memory.buffer } } });
	process.stdout.write(memory);
});`
	run := func(words []uint32) ([]byte, error) {
		memory := make([]byte, 4*len(words))
		writeWords(memory, words)
		cmd := exec.Command(node, "-e", script)
		cmd.Stdin = bytes.NewReader(memory)
		return cmd.Output()
	}
	for name, words := range map[string][]uint32{"folded": words, "whole": whole} {
		if got, err := run(words); err != nil || !slices.Equal(wordsOf(got), whole) {
			t.Errorf("%s memory: the script returned %d bytes that differ from the original memory (error %v)", name, len(got), err)
		}
	}
	words[words[foldedTableAt+1]+words[foldedTableAt+3]*4+1]++
	if _, err := run(words); err == nil {
		t.Error("fold accepted a damaged table")
	}
}

// TestFunctionNamesAreReplaced checks that the list contains the names of all functions in order,
// and that the program contains numbers instead of names. The names of runtime functions must keep
// their prefix.
func TestFunctionNamesAreReplaced(t *testing.T) {
	file := buildProgram(t)
	var list bytes.Buffer
	numbered, err := changeData(file, dropLines, takeNames(&list))
	if err != nil {
		t.Fatal(err)
	}
	before, after := tableOf(t, file), tableOf(t, numbered)
	names := strings.Split(strings.TrimSuffix(list.String(), "\n"), "\n")
	if want := before.word(headFunctions); len(names) != want {
		t.Fatalf("%d names are listed, want %d", len(names), want)
	}
	for i, want := range names {
		if got := before.nameOf(i); got != want {
			t.Fatalf("function %d is listed as %q, want %q", i, want, got)
		}
		got, number := after.nameOf(i), fmt.Sprintf("go.%d", i)
		if strings.HasPrefix(want, "runtime.") {
			number = fmt.Sprintf("runtime.%d", i)
		}
		if got != number {
			t.Fatalf("%s was renamed to %q, want %q", want, got, number)
		}
	}
	if !slices.Contains(names, "main.main") || !slices.Contains(names, "runtime.gopanic") {
		t.Errorf("main.main or runtime.gopanic is missing among %d names", len(names))
	}
}

// nameOf returns the name of function i.
func (t *lineTable) nameOf(i int) string {
	records := t.at + t.word(headRecords)
	name := t.number(records + t.number(records+8*i+4) + 4*wordName)
	text, _, _ := bytes.Cut(t.memory[t.at+t.word(headNames)+name:], []byte{0})
	return string(text)
}

// TestLinkNames checks that linkNames stores the name of the file with the function names in the
// program if there is space for the name.
func TestLinkNames(t *testing.T) {
	b := &build{out: t.TempDir(), log: io.Discard}
	memory := make([]byte, 4096)
	if err := b.linkNames(memory, "app.wasm", []byte("main.main\n")); err != nil {
		t.Fatal(err)
	}
	link, _, _ := bytes.Cut(memory[namesLinkAt:], []byte{0})
	if content, err := os.ReadFile(filepath.Join(b.out, policy.Hashed, string(link))); err != nil || string(content) != "main.main\n" {
		t.Errorf("%s contains %q, %v", link, content, err)
	}
	if err := b.linkNames(memory, "app.wasm", nil); err == nil {
		t.Error("linkNames overwrote an existing file name")
	}
}

// TestFoldRejectsUnknownLayout checks that fold rejects a table with a different layout instead of
// corrupting the table.
func TestFoldRejectsUnknownLayout(t *testing.T) {
	memory := memoryOf(t, buildProgram(t))
	lines := &lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}
	table := lines.at + lines.word(headRecords)
	for name, change := range map[string]func(memory []byte){
		"no table":                      func(memory []byte) { memory[lines.at]++ },
		"a missing entry":               func(memory []byte) { memory[table+8*7]++ },
		"a record at a wrong address":   func(memory []byte) { memory[table+8*7+4] += 8 },
		"too large a number of records": func(memory []byte) { memory[lines.at+len(tableMagic)+3]++ },
	} {
		other := bytes.Clone(memory)
		change(other)
		if err := fold(other); err == nil {
			t.Errorf("%s: folded", name)
		}
	}
}
