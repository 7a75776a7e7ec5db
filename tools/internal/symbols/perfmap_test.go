package symbols

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGeneratedNames(t *testing.T) {
	for text, want := range map[string]struct {
		name string
		at   Line
	}{
		"JS:*mul /home/me/my dir/a.js:2:14":      {"mul", Line{"/home/me/my dir/a.js", 2, 14}},
		"JS:^get size file:///home/me/a.mjs:7:3": {"get size", Line{"/home/me/a.mjs", 7, 3}},
		"JS:~ node:internal/validators:161:40":   {"(anonymous)", Line{"node:internal/validators", 161, 40}},
		"JS:foo :1:14":                           {"foo", Line{}},
		"JS:*mul":                                {"JS:*mul", Line{}},
		"Builtin:LoadIC":                         {"Builtin:LoadIC", Line{}},
		"long T.work(int[], java.lang.Object)":   {"long T.work(int[], java.lang.Object)", Line{}},
		"py::A.mul:/home/me/a.py":                {"A.mul", Line{File: "/home/me/a.py"}},
		"py::<module>:<string>":                  {"<module>", Line{File: "<string>"}},
	} {
		if name, at := parseName(text); name != want.name || at != want.at {
			t.Errorf("%s: %q at %+v, want %q at %+v", text, name, at, want.name, want.at)
		}
	}
}

func TestPerfMap(t *testing.T) {
	f := ReadPerfMap(strings.NewReader(`
0x7f00 0x10 int A.get(int)
8000 20 JS:*mul /a.js:2:14
not a line
9000 0 empty
ffffffffffffffff 2 too large
xyz 10 no address
a000 10`))
	if n := len(f.functions); n != 2 {
		t.Errorf("%d functions %+v, want 2", n, f.functions)
	}
	for addr, want := range map[uint64]string{0x7eff: "", 0x7f00: "int A.get(int)", 0x7f0f: "int A.get(int)", 0x7f10: "", 0x8000: "mul", 0x801f: "mul", 0x8020: ""} {
		if got, _ := f.Function(addr); got.Name != want {
			t.Errorf("the function at %x is %q, want %q", addr, got.Name, want)
		}
	}
	opening, _ := f.Opening(0x8000)
	first, _ := f.Line(0x8000)
	inside, _ := f.Line(0x8010)
	if opening != (Line{"/a.js", 2, 14}) || first != (Line{File: "/a.js"}) || inside != first {
		t.Errorf("mul is at %+v, its instructions are at %+v and %+v; want line 2 of /a.js only for the function", opening, first, inside)
	}
	if file, low, high := f.Lines(0x8000, 0x801f); file != "/a.js" || low != 2 || high != 2 {
		t.Errorf("the lines of mul are %d to %d of %s, want line 2 of /a.js", low, high, file)
	}
	if at, ok := f.Line(0x8020); ok {
		t.Errorf("the line after mul is %+v, want none", at)
	}
}

// TestLastEntryCounts checks that each address belongs to the last function that contains it.
func TestLastEntryCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const addresses = 40
		var text strings.Builder
		want := [addresses]string{}
		for i := range rapid.IntRange(0, 20).Draw(t, "entries") {
			addr := rapid.IntRange(0, addresses-1).Draw(t, "address")
			size := rapid.IntRange(0, addresses-addr).Draw(t, "size")
			name := fmt.Sprintf("f%d", i)
			fmt.Fprintf(&text, "%x %x %s\n", addr, size, name)
			for a := addr; a < addr+size; a++ {
				want[a] = name
			}
		}
		f := ReadPerfMap(strings.NewReader(text.String()))
		for a, name := range want {
			if got, _ := f.Function(uint64(a)); got.Name != name {
				t.Fatalf("the function at %x is %q, want %q, in\n%s", a, got.Name, name, text.String())
			}
		}
	})
}
