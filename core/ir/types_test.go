package ir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// someType draws the text of a type whose values can be stored in memory.
func someType(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		scalars := []string{"i1", "i8", "i16", "i24", "i32", "i48", "i64", "i65", "i128", "i200", "half", "float", "double", "x86_fp80", "fp128", "PTR"}
		scalar := rapid.SampledFrom(scalars)
		inner := scalar
		if depth > 0 {
			inner = someType(depth - 1)
		}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return "[" + strconv.Itoa(rapid.IntRange(0, 5).Draw(t, "count")) + " x " + inner.Draw(t, "element") + "]"
		case 1:
			of := rapid.SampledFrom([]string{"i1", "i8", "i24", "i32", "i64", "float", "double", "PTR"}).Draw(t, "element")
			return "<" + strconv.Itoa(rapid.IntRange(1, 9).Draw(t, "count")) + " x " + of + ">"
		case 2:
			return "{ " + strings.Join(rapid.SliceOfN(inner, 1, 4).Draw(t, "fields"), ", ") + " }"
		case 3:
			return "<{ " + strings.Join(rapid.SliceOfN(inner, 1, 4).Draw(t, "fields"), ", ") + " }>"
		}
		return scalar.Draw(t, "scalar")
	})
}

// TestSizesMatchLLVM checks that the distance between neighbouring array elements of any type is the
// same as in LLVM.
func TestSizesMatchLLVM(t *testing.T) {
	const many = 500
	for _, c := range toolchains(t) {
		pointer, layout := "ptr", "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
		if c.version == "14" {
			pointer, layout = "i8*", "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
		}
		var list []string
		text := "target datalayout = \"" + layout + "\"\ntarget triple = \"x86_64-pc-linux-gnu\"\n@sizes = global [" + strconv.Itoa(many) + " x i64] ["
		for i := range many {
			of := strings.ReplaceAll(someType(2).Example(i), "PTR", pointer)
			list = append(list, of)
			to := "ptr"
			if c.version == "14" {
				to = of + "*"
			}
			if i > 0 {
				text += ", "
			}
			text += "i64 ptrtoint (" + to + " getelementptr (" + of + ", " + to + " null, i32 1) to i64)"
		}
		file := filepath.Join(t.TempDir(), "sizes.ll")
		if err := os.WriteFile(file, []byte(text+"]\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		assembly, err := exec.Command(c.clang, "-w", "-S", file, "-o", "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		types, n := newTypes(parseLayout(layout), nil), 0
		for line := range strings.Lines(string(assembly)) {
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != ".quad" && f[0] != ".zero" {
				continue
			}
			want := strings.TrimPrefix(f[1], "0+")
			if f[0] == ".zero" {
				want = "0" // the assembler represents an empty array as eight zeros
			}
			of := types.lookUp(list[n])
			if of == nil || !of.sized {
				t.Fatalf("%s has no size", list[n])
			}
			if got := strconv.FormatUint(of.allocBytes(), 10); got != want {
				t.Errorf("the size of %[2]s is %[3]s bytes, want %[4]s, as in LLVM %[1]s", c.version, list[n], got, want)
			}
			n++
		}
		if n != many {
			t.Fatalf("clang reported %d sizes, want %d", n, many)
		}
	}
}

// TestTypes checks that the names of types are the same for typed and opaque pointers, and that the
// sizes of stores do not include padding.
func TestTypes(t *testing.T) {
	types := newTypes(parseLayout("e-i64:64-f80:128"), map[string]string{"%s": "{ i8, double* }", "%none": "opaque", "%ring": "{ i32, %ring }"})
	for _, x := range []struct {
		text, words string
		bytes       uint64
		sized       bool
	}{
		{"i24", "i24", 3, true},
		{"i1", "i1", 1, true},
		{"x86_fp80", "x86_fp80", 10, true},
		{"<3 x float>", "<3 x float>", 12, true},
		{"<4 x i1>", "<4 x i1>", 1, true},
		{"<vscale x 4 x i32>", "<vscale x 4 x i32>", 0, false},
		{"i8*", "ptr", 8, true},
		{"void (i32, ...)**", "ptr", 8, true},
		{"%s addrspace(3)*", "ptr addrspace(3)", 8, true},
		{"ptr addrspace(3)", "ptr addrspace(3)", 8, true},
		{"%s", "%s", 16, true},
		{"%none", "%none", 0, false},
		{"<{ i8, i32* }>", "<{ i8, ptr }>", 9, true},
		{"{}", "{}", 0, true},
		{"[3 x { i16, i8 }]", "[3 x { i16, i8 }]", 12, true},
		{"void ()", "void ()", 0, false},
		{"target(\"spirv.Image\", void, 1)", "target(\"spirv.Image\", void, 1)", 0, false},
		{"[99999999999999999 x i64]", "[99999999999999999 x i64]", 0, false},
	} {
		if end := typeEnd(x.text+" %x", 0); end != len(x.text) {
			t.Errorf("the type %s ends at %d, want %d", x.text, end, len(x.text))
		}
		of := types.lookUp(x.text)
		if of == nil {
			t.Errorf("%s is not a type", x.text)
		} else if of.text != x.words || of.sized != x.sized || of.sized && of.bytes != x.bytes {
			t.Errorf("the type %s was parsed as %q, %d bytes, sized = %v", x.text, of.text, of.bytes, of.sized)
		}
	}
	for _, text := range []string{"", "i0", "i", "i99999999999", "[3 i8]", "[3 x ]", "{ i8,, i8 }", "<{ i8 }", "florp", "%ring", "label x"} {
		if of := types.lookUp(text); of != nil {
			t.Errorf("%q was parsed as the type %s, want an error", text, of.text)
		}
	}
}
