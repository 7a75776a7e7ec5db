package symbols

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

const program = `int table[100];
static volatile long hidden = 7;

__attribute__((noinline)) int add(int a, int b)
{
	return a +
	       b;
}

int main(void)
{
	table[3] = (int)hidden;
	return add(table[3], -7);
}
`

// compileTestProgram compiles the test program and returns its path. If gcc is not installed,
// the test is skipped.
func compileTestProgram(t *testing.T, options ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("skipped: gcc is not installed")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "add.c"), filepath.Join(dir, "add")
	if err := os.WriteFile(source, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(gcc, append(options, "-o", binary, source)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return binary
}

func function(t *testing.T, f *File, name string) Function {
	t.Helper()
	for _, x := range f.functions {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("function %s is missing", name)
	return Function{}
}

func TestProgram(t *testing.T) {
	for _, options := range [][]string{{"-g", "-O1", "-no-pie"}, {"-g", "-O1", "-pie"}, {"-g", "-gz", "-O1"}, {"-gdwarf-4", "-O1"}} {
		f, err := Open(compileTestProgram(t, options...))
		if err != nil {
			t.Fatal(err)
		}
		add := function(t, f, "add")
		for addr, want := range map[uint64]string{add.Addr: "add", add.Addr + add.Size - 1: "add", function(t, f, "main").Addr: "main"} {
			if got, ok := f.Function(addr); !ok || got.Name != want {
				t.Errorf("%v: address %x is in %+v, want function %s", options, addr, got, want)
			}
		}
		if got, ok := f.Function(0); ok {
			t.Errorf("the function at address 0 is %+v, want none", got)
		}
		if line, ok := f.Opening(add.Addr); !ok || filepath.Base(line.File) != "add.c" || line.Line != 5 {
			t.Errorf("%v: function add begins at %+v, want add.c:5", options, line)
		}
		if line, ok := f.Line(add.Addr); !ok || line.Line != 6 {
			t.Errorf("%v: the first instruction of function add is at %+v, want line 6", options, line)
		}
		if line, ok := f.Opening(1); ok {
			t.Errorf("address 1 begins %+v", line)
		}
		if line, ok := f.Line(1); ok {
			t.Errorf("the line of address 1 is %+v, want none", line)
		}
		if file, low, high := f.Lines(add.Addr, add.Addr+add.Size-1); filepath.Base(file) != "add.c" || low != 5 || high != 8 {
			t.Errorf("%v: function add has lines %d to %d of %s, want 5 to 8", options, low, high, file)
		}
		variables := map[string]Variable{}
		for _, v := range f.Variables() {
			variables[v.Name] = v
		}
		if v := variables["table"]; v.Size != 400 || v.Line.Line != 1 {
			t.Errorf("%v: variable table is %+v, want 400 bytes, line 1", options, v)
		}
		if v := variables["hidden"]; v.Size != 8 || v.Line.Line != 2 {
			t.Errorf("%v: variable hidden is %+v, want 8 bytes, line 2", options, v)
		}
		if dynamic := len(options) < 3 || options[2] != "-no-pie"; f.Dynamic != dynamic || f.Dynamic && f.Low != 0 || !f.Dynamic && f.Low == 0 {
			t.Errorf("%v: Dynamic = %v, lowest address %x; want Dynamic = %v", options, f.Dynamic, f.Low, dynamic)
		}
	}
}

// TestFunctionWithoutSize checks that a function without a size ends with its section.
func TestFunctionWithoutSize(t *testing.T) {
	const assembly = `.section .first,"ax"; .type first,@function; first: nop; ret; .section .second,"ax"; nop; ret`
	source := filepath.Join(t.TempDir(), "first.s")
	if err := os.WriteFile(source, []byte(assembly+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(compileTestProgram(t, source))
	if err != nil {
		t.Fatal(err)
	}
	first := function(t, f, "first")
	for addr, want := range map[uint64]bool{first.Addr: true, first.Addr + 1: true, first.Addr + 2: false} {
		if got, ok := f.Function(addr); ok != want || ok && got.Name != "first" {
			t.Errorf("the function at first+%d is %q, %v; want %v", addr-first.Addr, got.Name, ok, want)
		}
	}
	if got, ok := f.Function(f.High + 0x1000); ok || first.Size != 0 {
		t.Errorf("the function after the end of the file is %+v, want none; size of first: %d, want 0", got, first.Size)
	}
}

func TestLoadBias(t *testing.T) {
	f, err := Open(compileTestProgram(t, "-pie", "-Wl,-z,max-page-size=0x200000,-z,separate-code"))
	if err != nil {
		t.Fatal(err)
	}
	code := f.segments[0]
	for name, c := range map[string]struct {
		base, end, offset, want uint64
		ok                      bool
	}{
		"only the code":     {0x7000_0020_0000, 0x7000_0020_1000, code.offset, 0x7000_0020_0000 - code.addr, true},
		"the whole file":    {0x7000_0000_0000, 0x7000_0080_0000, 0, 0x7000_0000_0000, true},
		"the first segment": {0x7000_0000_0000, 0x7000_0000_1000, 0, 0, false},
		"the last segment":  {0x7000_0040_0000, 0x7000_0040_1000, 0x40_0000, 0, false},
	} {
		if got, ok := f.LoadBias(c.base, c.end, c.offset); got != c.want || ok != c.ok {
			t.Errorf("%s: %x, %v; want %x, %v", name, got, ok, c.want, c.ok)
		}
	}
}

// TestStripped checks that a file without symbols and debugging information can be read.
func TestStripped(t *testing.T) {
	f, err := Open(compileTestProgram(t, "-O1", "-s"))
	if err != nil {
		t.Fatal(err)
	}
	if line, ok := f.Line(0x1200); ok {
		t.Errorf("a line %+v", line)
	}
	for _, x := range f.functions {
		if x.Name == "add" {
			t.Error("function add was found in a stripped file")
		}
	}
}

func TestFileThatIsNotELF(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + ".not"} {
		if _, err := Open(p); err == nil {
			t.Errorf("%s: no error", p)
		}
	}
}

// FuzzOpen checks that, if bytes of a program are changed, reading its symbols does not panic.
func FuzzOpen(f *testing.F) {
	f.Add(uint64(0), []byte{1})
	f.Fuzz(func(t *testing.T, at uint64, change []byte) {
		binary := compileTestProgram(t, "-g", "-O1")
		text, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		copy(text[at%uint64(len(text)):], change)
		if err := os.WriteFile(binary, text, 0o777); err != nil {
			t.Fatal(err)
		}
		if file, err := Open(binary); err == nil {
			file.Function(at)
			file.Line(at)
			file.Lines(at, at+100)
		}
	})
}

// TestHugeSections checks that sections that claim to be huge, including compressed sections, do
// not make the reader allocate that much memory.
func TestHugeSections(t *testing.T) {
	for _, options := range [][]string{{"-g", "-O1"}, {"-g", "-gz", "-O1"}} {
		program := compileTestProgram(t, options...)
		whole, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		headers, count := wordAt(whole, 0x28), int(whole[0x3c])
		for i := range count {
			header := int(headers) + i*64
			packed := int(wordAt(whole, header+24)) + 8 // ch_size
			for _, at := range []int{header + 16, header + 24, header + 32, packed} {
				if at+8 > len(whole) {
					continue
				}
				for _, claim := range []uint64{1 << 60, 1<<64 - 1, 1 << 40} {
					text := slices.Clone(whole)
					binary.LittleEndian.PutUint64(text[at:], claim)
					if err := os.WriteFile(program, text, 0o777); err != nil {
						t.Fatal(err)
					}
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					file, err := Open(program)
					runtime.ReadMemStats(&after)
					if err == nil {
						file.Function(0x1100)
						file.Lines(0x1000, 0x2000)
					}
					if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
						t.Errorf("section %d, byte %d: %d bytes allocated for a file of %d bytes", i, at, n, len(text))
					}
				}
			}
		}
	}
}

// wordAt returns the 64-bit word at an offset in a file.
func wordAt(file []byte, at int) uint64 { return binary.LittleEndian.Uint64(file[at:]) }
