package main

import (
	"bytes"
	"os/exec"
	"slices"
	"testing"
)

// folded gives a program's words as they are, and as they are folded.
func folded(t *testing.T) (whole, folded []uint32) {
	t.Helper()
	file := compiled(t)
	without, err := changeData(file, dropLines)
	if err != nil {
		t.Fatal(err)
	}
	with, err := changeData(file, dropLines, fold)
	if err != nil {
		t.Fatal(err)
	}
	if deflated(t, with) >= deflated(t, without) {
		t.Errorf("packed %d bytes, and %d without folding", deflated(t, with), deflated(t, without))
	}
	return wordsOf(memoryOf(t, without)), wordsOf(memoryOf(t, with))
}

func TestFold(t *testing.T) {
	whole, words := folded(t)
	unfold(words)
	if !slices.Equal(words, whole) {
		t.Error("what was folded does not become the same again")
	}
}

// The script does what its twin does: a program that was folded runs, wherever
// there is something to run it.
func TestScriptUnfolds(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run the script in; the tests of the page do so, too")
	}
	whole, words := folded(t)
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
			t.Errorf("%s: %d bytes that are not the table before it was folded, %v", name, len(got), err)
		}
	}
	words[words[foldingAt+1]+words[foldingAt+3]*3+1]++
	if _, err := run(words); err == nil {
		t.Error("a damaged table is taken for a whole one")
	}
}

// Tables of another layout are refused and not made into something else.
func TestFoldRefuses(t *testing.T) {
	memory := memoryOf(t, compiled(t))
	lines := &lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}
	table := lines.at + lines.word(headRecords)
	for name, change := range map[string]func(memory []byte){
		"no table":                    func(memory []byte) { memory[lines.at]++ },
		"an entry is missing":         func(memory []byte) { memory[table+8*7]++ },
		"a record lies elsewhere":     func(memory []byte) { memory[table+8*7+4] += 8 },
		"more records than there are": func(memory []byte) { memory[lines.at+len(tableMagic)+3]++ },
	} {
		other := bytes.Clone(memory)
		change(other)
		if err := fold(other); err == nil {
			t.Errorf("%s: folded", name)
		}
	}
}
