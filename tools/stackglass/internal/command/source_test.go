package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// TestRecordedSource checks that a trace contains the text of the program's source files and own
// headers, but not of system headers. The text must be preserved if the trace is converted to
// another format.
func TestRecordedSource(t *testing.T) {
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("clang-19 is not installed")
	}
	const sum = "static inline long sum(const long *a, long n)\n{\n\tlong s = 0;\n\tfor (long i = 0; i < n; i++)\n\t\ts +=   a[i];\n\treturn s;\n}\n"
	const program = "#include <stdlib.h>\n#include \"sum.h\"\nint main(void)\n{\n\tlong *a = calloc(4096, sizeof *a);\n\ta[7] = 35;\n\tlong s = sum(a, 4096) + sum(a, 4096);\n\treturn s != 70;\n}\n"
	for _, c := range []struct {
		name    string
		options []string
		want    bool
	}{{"recorded", nil, true}, {"refused", []string{"--no-embed-source"}, false}} {
		t.Run(c.name, func(t *testing.T) {
			inFolder(t, map[string]string{"main.c": program, "sum.h": sum})
			args := append(append([]string{"cc"}, c.options...), "--", "clang-19", "-O1", "-g", "main.c", "-o", "prog")
			if got := stackglass(args...); got.code != exitOK {
				t.Fatal(got)
			}
			run := exec.Command("./prog")
			run.Env = append(os.Environ(), "STACKGLASS_QUIET=1")
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, name := range []string{"main.c", "sum.h"} {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range []string{"analyze prog.sgt -o prog.sgp", "analyze prog.sgt --mergeable -o part.sgp", "fold prog.sgt -o prog.sgl", "convert prog.sgt -o again.sgt", "analyze prog.sgl -o folded.sgp", "unfold prog.sgl -o unfolded.sgt"} {
				if got := stackglass(strings.Fields(args)...); got.code != exitOK {
					t.Errorf("%s: %s", args, got)
				}
			}
			for _, file := range []string{"prog.sgt", "prog.sgp", "part.sgp", "again.sgt", "unfolded.sgt", "folded.sgp", "prog.sgl"} {
				got := stackglass("sites", file, "--format", "json")
				if got.code != exitOK {
					t.Errorf("%s: %s", file, got)
				}
				if has := strings.Contains(got.stdout, `"s += a[i];"`) && strings.Contains(got.stdout, `"a[7] = 35;"`); has != c.want {
					t.Errorf("%s: sites have source text: %t, want %t; %s", file, has, c.want, got.stdout)
				}
			}
			content, err := os.ReadFile("prog.sgp")
			if err != nil {
				t.Fatal(err)
			}
			p, err := profile.Decode(content)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range p.Sources {
				names = append(names, f.Name)
			}
			if slices.Sort(names); c.want != slices.Equal(names, []string{"./sum.h", "main.c"}) {
				t.Errorf("source files in the profile: %q, want ./sum.h and main.c only if the text was embedded", names)
			}
		})
	}
}

// TestRecordedSourceElsewhere checks the recorded source text if the compiler does not run in the
// source folder. The debug information then contains the path of the source file relative to the
// common parent folder.
func TestRecordedSourceElsewhere(t *testing.T) {
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip("clang-19 is not installed")
	}
	inFolder(t, map[string]string{"main.c": "int a[64];\nint main(void)\n{\n\treturn a[7];\n}\n"})
	source, err := filepath.Abs("main.c")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(source), "prog")
	if err := os.Mkdir("build", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir("build")
	if got := stackglass("cc", "--", "clang-19", "-O1", "-g", source, "-o", program); got.code != exitOK {
		t.Fatal(got)
	}
	run := exec.Command(program)
	run.Env = append(os.Environ(), "STACKGLASS_QUIET=1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := stackglass("sites", "prog.sgt", "--format", "json"); !strings.Contains(got.stdout, `"return a[7];"`) {
		t.Errorf("the answer does not contain the source line: %s", got)
	}
}
