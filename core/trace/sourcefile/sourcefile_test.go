package sourcefile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

func packed(t *testing.T, name, text string) trace.SourceFile {
	t.Helper()
	f, ok := sourcefile.Pack(name, []byte(text))
	if !ok {
		t.Fatalf("Pack did not accept %s", name)
	}
	return f
}

func TestPackRoundTrip(t *testing.T) {
	long := strings.Repeat("sum += a[i];\n", 10_000)
	for _, text := range []string{"int x;\n", long, "\n\n", "ä"} {
		f := packed(t, "a.c", text)
		if got := sourcefile.Text(f); got != text || f.Name != "a.c" {
			t.Errorf("%s: after compression and decompression, a text of %d bytes differs (it has %d bytes)", f.Name, len(text), len(got))
		}
		if len(f.Packed) > len(text)+1 {
			t.Errorf("Pack compressed %d bytes to %d bytes, want at most one byte more than the text", len(text), len(f.Packed))
		}
	}
	if f := packed(t, "a.c", long); len(f.Packed) > len(long)/20 {
		t.Errorf("Pack compressed %d equal lines to %d bytes, want at most 5 %%", 10_000, len(f.Packed))
	}
	for what, text := range map[string]string{"nothing": "", "no text": "a\x00b", "too much": strings.Repeat("x", sourcefile.MostBytes+1)} {
		if _, ok := sourcefile.Pack("a.c", []byte(text)); ok {
			t.Errorf("Pack accepted %s", what)
		}
	}
}

func TestTextOfDamagedFile(t *testing.T) {
	whole := packed(t, "a.c", strings.Repeat("int x;\n", 100)).Packed
	for i := range whole {
		sourcefile.Text(trace.SourceFile{Packed: whole[:i]})
	}
	if text := sourcefile.Text(trace.SourceFile{Packed: whole[:len(whole)/2]}); text != "" {
		t.Errorf("Text of half a file = %q, want \"\"", text)
	}
}

func TestLine(t *testing.T) {
	files := sourcefile.New([]trace.SourceFile{
		packed(t, "src/a.c", "one\r\n\ttwo  words \nthree"), packed(t, "lib/b.c", "b\n"), packed(t, "old/b.c", "other\n"),
	})
	for _, c := range []struct {
		name string
		line uint32
		want string
	}{
		{"src/a.c", 1, "one"}, {"src/a.c", 2, "two words"}, {"src/a.c", 3, "three"}, {"/home/me/src/a.c", 3, "three"},
		{"a.c", 1, "one"}, {"src/a.c", 4, ""}, {"src/a.c", 0, ""}, {"other/a.c", 1, ""},
		{"lib/b.c", 1, "b"}, {"b.c", 1, ""}, {"", 1, ""}, {"c.c", 1, ""},
	} {
		for range 2 {
			if got := files.Line(c.name, c.line); got != c.want {
				t.Errorf("Line(%s, %d) = %q, want %q", c.name, c.line, got, c.want)
			}
		}
	}
	if got := files.Lines("b.c"); got != nil {
		t.Errorf("Lines(\"b.c\") = %q, want nil, because two files match", got)
	}
	if got := sourcefile.Split("a\n\nb\n"); !slices.Equal(got, []string{"a", "", "b"}) {
		t.Errorf("Split = %q, want three lines", got)
	}
}
