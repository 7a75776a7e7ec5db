package wasmcode

import (
	"bytes"
	"compress/flate"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestFoldCode checks that straightened code is unchanged after it is folded and unfolded, and that
// folded code compresses better than the original.
func TestFoldCode(t *testing.T) {
	original := compileSmall(t)
	file, err := Straighten(original)
	if err != nil {
		t.Fatal(err)
	}
	folded, err := Fold(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(folded), len(file)*3/4; got > want {
		t.Errorf("the folded file has %d bytes, want at most %d", got, want)
	}
	if got, want := deflated(t, folded), deflated(t, original); got > want*9/10 {
		t.Errorf("folded code compresses to %d bytes, want fewer than the %d bytes of the original", got, want)
	}
	if !bytes.Equal(unfold(folded), addMark(file)) {
		t.Error("unfolding does not restore the original")
	}
}

// addMark adds the mark of folded code to a file, because unfolding does not remove this mark.
func addMark(file []byte) []byte {
	return append(append(bytes.Clone(file[:HeadBytes]), foldedMark...), file[HeadBytes:]...)
}

// TestScriptUnfoldsCode checks that unfold.js produces the same result as its reference
// implementation, no matter in which chunks the file arrives. The script must not change other
// files.
func TestScriptUnfoldsCode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: Node is not installed; the tests of the page also run the script")
	}
	file, err := Straighten(compileSmall(t))
	if err != nil {
		t.Fatal(err)
	}
	folded, err := Fold(file)
	if err != nil {
		t.Fatal(err)
	}
	const script = `
global.Go = class { run() {} };
require("../../../wasm/worker/unfold.js");
const chunks = [];
process.stdin.on("data", (c) => chunks.push(c));
process.stdin.on("end", async () => {
	const file = Uint8Array.from(Buffer.concat(chunks)), size = Number(process.argv[1]);
	const body = new ReadableStream({ start(to) {
		for (let at = 0; at < file.length; at += size) to.enqueue(file.slice(at, at + size));
		to.close();
	} });
	global.fetch = async () => new Response(body);
	WebAssembly.compileStreaming = async (response) => process.stdout.write(new Uint8Array(await response.arrayBuffer()));
	await compileProgram("");
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
		if got := run(folded, size); !bytes.Equal(got, addMark(file)) {
			t.Errorf("in chunks of %d bytes: the unfolded program (%d bytes) differs from the original (%d bytes)", size, len(got), len(file))
		}
		if got := run(file, size); !bytes.Equal(got, file) {
			t.Errorf("in chunks of %d bytes: the script changed a program that is not folded", size)
		}
	}
}

// TestFoldCodeRejectsUnknownForm checks that Fold rejects files in an unknown form instead of
// changing them incorrectly.
func TestFoldCodeRejectsUnknownForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body")
		file := append([]byte("\x00asm\x01\x00\x00\x00"), CodeSection, byte(len(body)))
		file = append(file, body...)
		folded, err := Fold(file)
		if err != nil {
			return
		}
		if !bytes.Equal(unfold(folded), addMark(file)) {
			t.Fatalf("% x became % x", file, folded)
		}
	})
	if _, err := Fold([]byte("\x00asm\x01\x00\x00\x00")); err == nil {
		t.Error("Fold accepted a program without code")
	}
}

// compileSmall returns the wasm file of a small program for the browser.
func compileSmall(t *testing.T) []byte {
	return compileProgram(t, "package main\n\nimport \"strings\"\n\nfunc main() { println(strings.Repeat(\"=\", 3)) }\n")
}

// compileProgram compiles a program, and returns the wasm file.
func compileProgram(t *testing.T, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "main.wasm")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, filepath.Join(dir, "main.go"))
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	file, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func deflated(t *testing.T, content []byte) int {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	return out.Len()
}

// TestSignedConstantsRoundTrip writes numbers of every size as wasm constants, and checks that the
// numbers that it reads back are the same.
func TestSignedConstantsRoundTrip(t *testing.T) {
	for _, n := range []int64{0, 1, 63, 64, 127, 128, 8191, 8192, 1<<28 + 5, 1<<31 - 1, -1, -64, -65, -1 << 31} {
		text := AppendSigned(nil, n)
		var got int64
		for i, b := range text {
			got |= int64(b&0x7f) << (7 * i)
		}
		if bits := 7 * len(text); got<<(64-bits)>>(64-bits) != n || (len(text) > 1 && text[len(text)-1] == 0 && text[len(text)-2] < 0xc0) {
			t.Errorf("%d became %x", n, text)
		}
	}
}

// TestPhrases checks that each phrase consists of whole instructions, except for the operands of the
// last one, that no phrase is listed twice, and that random sequences of instructions and phrases are
// restored.
func TestPhrases(t *testing.T) {
	instructions := []string{"\x01", "\x20\x05", "\x42\x80\x80\x01", "\x37\x03\x80\x10", "\x43\x01\x02\x03\x04", "\x44\x01\x02\x03\x04\x05\x06\x07\x08", "\x0e\x02\x00\x01\x02", "\xfc\x0a\x00\x00"}
	seen := map[string]bool{}
	for _, p := range phrases {
		if seen[p] {
			t.Errorf("% x is listed twice", p)
		}
		seen[p] = true
		// Zeros are operands of any instruction.
		r := &functionCode{Reader: &Reader{File: append([]byte(p), make([]byte, mostOperands)...)}}
		r.readInstructions(len(p))
		if int32(r.depth) >= 0 { // otherwise, random code could end before its last instruction
			instructions = append(instructions, p+string(r.File[len(p):r.At]))
		}
	}
	shorter := 0
	rapid.Check(t, func(t *rapid.T) {
		body := []byte{0}
		for _, is := range rapid.SliceOf(rapid.SampledFrom(instructions)).Draw(t, "instructions") {
			body = append(body, is...)
		}
		r := &functionCode{Reader: &Reader{File: body, At: 1}}
		r.readInstructions(len(body))
		for range int32(r.depth) + 1 {
			body = append(body, opEnd)
		}
		short := shrink(body)
		if len(short) < len(body) {
			shorter++
		}
		if got, n := expand(append(short, body...)); !bytes.Equal(got, body) || n != len(short) {
			t.Errorf("% x became % x, of %d bytes, want %d", body, got, n, len(short))
		}
	})
	if shorter == 0 {
		t.Error("no code became shorter")
	}
}
