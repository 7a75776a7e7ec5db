package main

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Code that was folded becomes the same again, and packs better before.
func TestFoldCode(t *testing.T) {
	file := compiled(t)
	folded, err := foldCode(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(folded), len(file)+len(foldedMark); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	if got, want := deflated(t, folded), deflated(t, file); got > want*9/10 {
		t.Errorf("packed %d bytes, and %d without folding", got, want)
	}
	changeCode(folded, true)
	if !bytes.Equal(folded, marked(file)) {
		t.Error("what was folded does not become the same again")
	}
}

// marked is a file as it is unfolded: with the mark.
func marked(file []byte) []byte {
	return append(append(bytes.Clone(file[:headBytes]), foldedMark...), file[headBytes:]...)
}

// The script does what its twin does, however the file comes in pieces, and leaves
// others alone.
func TestScriptUnfoldsCode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run the script in; the tests of the page do so, too")
	}
	file := compiled(t)
	folded, err := foldCode(file)
	if err != nil {
		t.Fatal(err)
	}
	const script = `
global.Go = class { run() {} };
require("./wasm/worker/unfold.js");
const chunks = [];
process.stdin.on("data", (c) => chunks.push(c));
process.stdin.on("end", async () => {
	const file = Uint8Array.from(Buffer.concat(chunks)), size = Number(process.argv[1]);
	const body = new ReadableStream({ start(to) {
		for (let at = 0; at < file.length; at += size) to.enqueue(file.slice(at, at + size));
		to.close();
	} });
	global.fetch = async () => new Response(body);
	WebAssembly.instantiateStreaming = async (response) => process.stdout.write(new Uint8Array(await response.arrayBuffer()));
	await loadProgram("", {});
});`
	run := func(from []byte, size int) []byte {
		cmd := exec.Command(node, "-e", script, strconv.Itoa(size))
		cmd.Stdin = bytes.NewReader(from)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, size := range []int{997, 1 << 16, len(folded)} {
		if got := run(folded, size); !bytes.Equal(got, marked(file)) {
			t.Errorf("in pieces of %d: %d bytes that are not the %d before folding", size, len(got), len(file))
		}
		if got := run(file, size); !bytes.Equal(got, file) {
			t.Errorf("in pieces of %d: a program that is not folded has changed", size)
		}
	}
}

// Files of another form are refused, and not made into something else.
func TestFoldCodeRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body")
		file := append([]byte("\x00asm\x01\x00\x00\x00"), codeSection, byte(len(body)))
		file = append(file, body...)
		folded, err := foldCode(file)
		if err != nil {
			return
		}
		changeCode(folded, true)
		if !bytes.Equal(folded, marked(file)) {
			t.Fatalf("% x has become % x", file, folded)
		}
	})
	if _, err := foldCode([]byte("\x00asm\x01\x00\x00\x00")); err == nil {
		t.Error("a program without code was folded")
	}
}
