package ir

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

var update = flag.Bool("update", false, "write the rewriter's output into testdata/golden")

// TestGolden compares the rewritten text and the tables of small modules with golden files.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/golden/*.ll")
	if len(files) == 0 {
		t.Fatal("there are no modules in testdata/golden")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Instrument(src, Options{Source: filepath.Base(file), CompileOptions: "-O1", Instrs: true})
			if err != nil {
				t.Fatal(err)
			}
			checkProgram(t, r.Program)
			base := strings.TrimSuffix(file, ".ll")
			compareGolden(t, base+".rewritten", withoutTables(string(r.Text)))
			compareGolden(t, base+".tables", dump(r.Program))
		})
	}
}

// TestGoldenFilesCompile checks that the compiler that wrote a module accepts the rewritten text as
// valid.
func TestGoldenFilesCompile(t *testing.T) {
	files, _ := filepath.Glob("testdata/golden/*.ll")
	for _, c := range toolchains(t) {
		for _, file := range files {
			src, _ := os.ReadFile(file)
			if strings.Contains(string(src), "*") != (c.version == "14") {
				continue
			}
			r, err := Instrument(src, Options{})
			if err != nil {
				t.Fatal(err)
			}
			rewritten := filepath.Join(t.TempDir(), "rewritten.ll")
			if err := os.WriteFile(rewritten, r.Text, 0o666); err != nil {
				t.Fatal(err)
			}
			command(t, c.opt, "-passes=verify", "-S", rewritten, "-o", os.DevNull)
			command(t, c.clang, "-O2", "-w", "-Xclang", "-disable-llvm-passes", "-c", rewritten, "-o", os.DevNull)
		}
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if got != string(want) {
		g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("%s:%d: got %q, want %q", file, i+1, g[i], w[i])
			}
		}
		t.Fatalf("%s: %d lines, want %d", file, len(g), len(w))
	}
}

// withoutTables removes the bytes of the tables, because the golden files show the tables as text.
func withoutTables(text string) string {
	before, rest, ok := strings.Cut(text, "tables = internal constant [")
	if !ok {
		return text
	}
	bytes, _, _ := strings.Cut(rest, " ")
	_, after, _ := strings.Cut(rest, "\n")
	after = strings.ReplaceAll(after, "["+bytes+" x i8]", "[… x i8]")
	return before + "tables = …\n" + strings.ReplaceAll(after, "tables, i64 "+bytes, "tables, i64 …")
}

// dump prints a program with one item per line.
func dump(p *trace.Program) string {
	var b strings.Builder
	m := p.Modules[0]
	b.WriteString("module " + m.Name + " " + m.Options + "\n")
	for _, x := range m.Missed {
		b.WriteString("missed " + x.What + " ×" + strconv.Itoa(int(x.Count)) + ": " + x.Why + "\n")
	}
	for _, o := range p.Objects {
		b.WriteString("object " + o.Name + " " + strconv.Itoa(int(o.Bytes)) + " " + o.Type + placeText(o.Place) + "\n")
	}
	for i := range p.Functions {
		f := &p.Functions[i]
		b.WriteString("\nfunction " + f.Name + placeText(f.Place))
		if f.Outline {
			b.WriteString(" outline")
		}
		if f.Target != 0 {
			b.WriteString(" target " + strconv.Itoa(int(f.Target)))
		}
		b.WriteString("\n")
		for n := f.First; n < f.First+f.Blocks; n++ {
			dumpBlock(&b, p, n)
		}
	}
	return b.String()
}

func placeText(p trace.Place) string {
	if p == (trace.Place{}) {
		return ""
	}
	return " " + p.File + ":" + strconv.Itoa(int(p.Line)) + ":" + strconv.Itoa(int(p.Column))
}

func dumpBlock(b *strings.Builder, p *trace.Program, n uint32) {
	k := &p.Blocks[n]
	b.WriteString(" block " + strconv.Itoa(int(n)) + " " + k.Label + "." + strconv.Itoa(int(k.Part)))
	for i, name := range []string{"entry", "return", "header", "latch", "landing-pad", "synthetic"} {
		if k.Flags>>i&1 != 0 {
			b.WriteString(" " + name)
		}
	}
	if k.Loop != 0 {
		b.WriteString(" in loop " + strconv.Itoa(int(k.Loop-1)) + " depth " + strconv.Itoa(int(k.Depth)))
	}
	if k.File != "" {
		b.WriteString(" " + k.File + ":" + strconv.Itoa(int(k.FirstLine)) + "-" + strconv.Itoa(int(k.LastLine)))
	}
	if k.Callee != "" {
		b.WriteString(" calls " + k.Callee)
	}
	b.WriteString(" →")
	for _, s := range k.Successors {
		b.WriteString(" " + strconv.Itoa(int(s)))
	}
	b.WriteString("\n")
	for i, in := range k.Instrs {
		b.WriteString("   " + strconv.Itoa(i) + ": " + in.Opcode + " " + in.Type)
		for _, u := range in.Uses {
			b.WriteString(" " + strconv.Itoa(int(u)))
		}
		if in.Site != 0 {
			b.WriteString(" site " + strconv.Itoa(int(in.Site-1)))
		}
		b.WriteString("\n")
	}
	for i := range k.Sites {
		s := &p.Sites[k.FirstSite+i]
		b.WriteString("   site " + strconv.Itoa(int(i)) + ": " + s.Kind.String() + " " + strconv.Itoa(int(s.Bytes)) + " " + s.Type + " " + s.Object)
		for i, name := range []string{"atomic", "volatile", "masked", "stack", "global"} {
			if s.Flags>>i&1 != 0 {
				b.WriteString(" " + name)
			}
		}
		b.WriteString(placeText(s.Place) + "\n")
	}
}
