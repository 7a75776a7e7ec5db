package main

import (
	"bytes"
	"compress/flate"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// buildProgram builds a small program for the browser.
func buildProgram(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	source := "package main\n\nimport \"strings\"\n\nfunc main() { println(strings.Repeat(\"=\", 3)) }\n"
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

// TestDropLines checks that dropLines removes all files and lines from the function table, and
// changes nothing else.
func TestDropLines(t *testing.T) {
	file := buildProgram(t)
	dropped, err := changeData(file, dropLines)
	if err != nil {
		t.Fatal(err)
	}
	if deflated(t, dropped) >= deflated(t, file) {
		t.Errorf("the changed program has %d compressed bytes, want fewer than the original %d", deflated(t, dropped), deflated(t, file))
	}
	before, after := tableOf(t, file), tableOf(t, dropped)
	functions, records := before.word(headFunctions), before.at+before.word(headRecords)
	if functions < 500 {
		t.Fatalf("only %d functions", functions)
	}
	var lines int
	for i := range functions {
		record := records + before.number(records+8*i+4)
		offsets := []int{recordStack}
		for n := range before.number(record + recordOthers) {
			if !traceTables[n] {
				offsets = append(offsets, recordOffsets+4*n)
			}
		}
		base, _ := before.dataBase()
		data := record + recordOffsets + 4*before.number(record+recordOthers)
		for n := range int(before.memory[record+recordData]) {
			got, want := after.number(data+4*n), before.number(data+4*n)
			if got != want && !(traceData[n] && got == noData) {
				t.Fatalf("function %d: data %d is at offset %x, want %x", i, n, got, want)
			}
			// The garbage collector's data contains at least the 8-byte header of a bitmap.
			if n < 3 && want != noData && !bytes.Equal(after.memory[base+want:][:8], before.memory[base+want:][:8]) {
				t.Fatalf("function %d: data %d contains %x, want %x", i, n, after.memory[base+want:][:8], before.memory[base+want:][:8])
			}
		}
		for _, offset := range offsets {
			if got, want := after.tableAt(record+offset), before.tableAt(record+offset); !bytes.Equal(got, want) {
				t.Fatalf("function %d: table contains %x, want %x", i, got, want)
			}
		}
		if len(before.tableAt(record+recordLines)) > 0 {
			lines++
		}
		for _, gone := range []int{recordFiles, recordLines, recordUnit, recordStart} {
			if after.number(record+gone) != 0 {
				t.Errorf("function %d still has tables of files and lines", i)
			}
		}
	}
	if lines < functions/2 {
		t.Errorf("only %d of %d functions originally had a table of lines", lines, functions)
	}
}

func tableOf(t *testing.T, file []byte) *lineTable {
	t.Helper()
	memory := memoryOf(t, file)
	return &lineTable{memory: memory, at: bytes.Index(memory, tableMagic)}
}

// tableAt returns the table whose offset is stored at an address.
func (t *lineTable) tableAt(at int) []byte {
	offset := t.number(at)
	if offset == 0 {
		return nil
	}
	tables := t.memory[t.at+t.word(headTables) : t.at+t.word(headRecords)]
	return tables[offset:tableEnd(tables, offset)]
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

// TestDropLinesRejectsUnknownFormat checks that files in other formats are rejected, whatever they
// contain.
func TestDropLinesRejectsUnknownFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "body")
		if rapid.Bool().Draw(t, "with a table") {
			body = append(append([]byte{0, 0x41, 0, 0x0b, byte(len(tableMagic) + 40)}, tableMagic...), body...)
			body = append([]byte{11, byte(len(body)), 1}, body...)
		}
		if out, err := changeData(append([]byte("\x00asm\x01\x00\x00\x00"), body...), dropLines, fold); err == nil {
			t.Fatalf("a file that is not a program was changed to %x", out)
		}
	})
}

func memoryOf(t *testing.T, file []byte) []byte {
	t.Helper()
	_, segments, err := dataSegments(file)
	if err != nil {
		t.Fatal(err)
	}
	return initialMemory(file, segments)
}

// TestChangeData checks that changeData, without any changes, stores the same data in fewer
// segments, and that the other sections of the file stay the same.
func TestChangeData(t *testing.T) {
	file := buildProgram(t)
	same, err := changeData(file)
	if err != nil {
		t.Fatal(err)
	}
	was, before, _ := dataSegments(file)
	is, after, err := dataSegments(same)
	if err != nil || len(after) > 20 || len(before) < 20 {
		t.Fatalf("%d segments, %d before, %v", len(after), len(before), err)
	}
	if !bytes.Equal(same[:is.Start], file[:was.Start]) || !bytes.Equal(same[is.End:], file[was.End:]) {
		t.Error("bytes outside the data section changed")
	}
	if got, want := initialMemory(same, after), bytes.TrimRight(initialMemory(file, before), "\x00"); !bytes.Equal(got, want) {
		t.Errorf("%d bytes of data differ from the original %d bytes", len(got), len(want))
	}
}

func TestNonzeroSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memory []byte
		for range rapid.IntRange(0, 5).Draw(t, "spans") {
			memory = append(memory, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "bytes")...)
			memory = append(memory, make([]byte, rapid.SampledFrom([]int{1, gapBytes - 1, gapBytes, 3 * gapBytes}).Draw(t, "zeros"))...)
		}
		again, end := make([]byte, len(memory)), -gapBytes
		for _, p := range nonzeroSpans(memory) {
			if p.Start-end < gapBytes || memory[p.Start] == 0 || memory[p.End-1] == 0 {
				t.Fatalf("the span from %d to %d is too close to the span that ends at %d, or begins or ends with zeros", p.Start, p.End, end)
			}
			copy(again[p.Start:], memory[p.Start:p.End])
			end = p.End
		}
		if !bytes.Equal(again, memory) {
			t.Fatal("the spans do not contain all of the memory")
		}
	})
}
