package capture

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

//go:embed runtime/*.c runtime/*.h
var sources embed.FS

// Sources returns the runtime's source files, which other C programs can use to write containers.
// The files are in the runtime folder.
func Sources() fs.FS { return sources }

// Header returns the text of stackglass.h, whose macros programs use to mark regions.
func Header() []byte {
	text, err := sources.ReadFile("runtime/stackglass.h")
	must(err)
	return text
}

// must panics if there is an error. Such errors occur only if this program was built incorrectly.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Runtime contains the paths of the compiled runtime's files.
type Runtime struct {
	Folder  string // the folder with the source files of the runtime
	Include string // folder that contains stackglass.h
	Program string // object to link into each program
	Library string // object to link into each shared library
	Calls   string // additional object to link into each shared library that uses a C library
	Exports string // for the linker: list of the symbols that shared libraries need from the program
	Preload string // shared library for an untraced program that loads traced libraries
}

func runtimeIn(folder string) *Runtime {
	return &Runtime{
		Folder:  folder,
		Include: filepath.Join(folder, "include"),
		Program: filepath.Join(folder, "program.o"),
		Library: filepath.Join(folder, "library.o"),
		Calls:   filepath.Join(folder, "calls.o"),
		Exports: filepath.Join(folder, "exports.list"),
		Preload: filepath.Join(folder, "preload.so"),
	}
}

// CompileError means that C code that is part of stackglass does not compile.
type CompileError struct {
	Compiler string
	Code     string // the name of the C code that does not compile
	Output   string
}

func (e *CompileError) Error() string {
	said, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	return e.Compiler + " cannot compile " + e.Code + ": " + said +
		"; install the C library's development files (apt-get install libc6-dev)"
}

// BuildRuntime returns the runtime, compiled with the given clang. BuildRuntime compiles the
// runtime unless the user's cache contains it.
func BuildRuntime(clang string) (*Runtime, error) {
	key, err := runtimeKey(clang)
	if err != nil {
		return nil, err
	}
	folder, err := Cached(key, func(work string) error { return makeRuntime(clang, work) })
	return runtimeIn(folder), err
}

// Cached returns the folder with the given name in the user's cache. If the folder does not exist,
// Cached calls the given function to fill a temporary folder, and then renames this folder.
// Concurrent processes of a build therefore never see an incomplete folder.
func Cached(name string, make func(work string) error) (folder string, err error) {
	for _, cache := range caches() {
		folder = filepath.Join(cache, name)
		if _, err := os.Stat(folder); err == nil {
			return folder, nil
		}
		if err = makeFolder(folder, make); err == nil {
			return folder, nil
		}
		if errors.As(err, new(*CompileError)) {
			break
		}
	}
	return "", err
}

func makeFolder(folder string, make func(work string) error) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(folder), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := make(work); err != nil {
		return err
	}
	if err := os.Rename(work, folder); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}

// runtimeKey returns the folder name of the compiled runtime: a hash of the compiler, the options
// and the sources.
func runtimeKey(clang string) (string, error) {
	file, err := os.Stat(clang)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, clang, file.Size(), file.ModTime().UnixNano(), compileOptions, wrapped)
	must(eachSource(func(name string, text []byte) error {
		fmt.Fprintln(sum, name, len(text))
		_, err := sum.Write(text)
		return err
	}))
	sum.Write(ownTables())
	return hex.EncodeToString(sum.Sum(nil))[:24], nil
}

// caches returns the folders in which compiled files may be cached, in order of preference.
func caches() (list []string) {
	if user, err := os.UserCacheDir(); err == nil {
		list = append(list, filepath.Join(user, "stackglass", "capture"))
	}
	shared := filepath.Join(os.TempDir(), "stackglass-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(shared, 0o700); err == nil || isPrivateFolder(shared) {
		list = append(list, shared)
	}
	return list
}

// isPrivateFolder reports whether only this user can write to the folder.
func isPrivateFolder(folder string) bool {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	return IsOwn(info)
}

func eachSource(do func(name string, text []byte) error) error {
	return fs.WalkDir(sources, "runtime", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		return do(filepath.Base(name), text)
	})
}

// makeRuntime compiles the runtime in the folder "work".
func makeRuntime(clang, work string) error {
	if err := writeSources(work); err != nil {
		return err
	}
	made := runtimeIn(work)
	for _, step := range [][]string{
		slices.Concat(compileOptions, []string{"-c", "program.c", "-o", made.Program}),
		slices.Concat(compileOptions, []string{"-c", "library.c", "-o", made.Library}),
		slices.Concat(compileOptions, []string{"-c", "calls.c", "-o", made.Calls}),
		{"-shared", made.Program, wrapOption(), "-lpthread", "-o", made.Preload},
	} {
		if err := compileC(clang, work, step); err != nil {
			return err
		}
	}
	return nil
}

func writeSources(folder string) error {
	tables := "static const uint8_t sg_own_tables[] = {" + byteList(ownTables()) + "};\n"
	err := errors.Join(
		os.WriteFile(filepath.Join(folder, "tables.h"), []byte(tables), 0o600),
		os.WriteFile(filepath.Join(folder, "exports.list"), []byte("{ __sg_*; };\n"), 0o600),
		os.Mkdir(filepath.Join(folder, "include"), 0o700))
	if err != nil {
		return err
	}
	return eachSource(func(name string, text []byte) error {
		if name == "stackglass.h" {
			name = filepath.Join("include", name)
		}
		return os.WriteFile(filepath.Join(folder, name), text, 0o600)
	})
}

func byteList(b []byte) string {
	var list strings.Builder
	for _, v := range b {
		list.WriteString(strconv.Itoa(int(v)))
		list.WriteByte(',')
	}
	return list.String()
}

var compileOptions = []string{"-std=gnu11", "-O2", "-fPIC", "-fno-exceptions", "-w", "-x", "c"}

func compileC(clang, folder string, args []string) error {
	cmd := exec.Command(clang, args...)
	cmd.Dir = folder
	if said, err := cmd.CombinedOutput(); err != nil {
		return &CompileError{Compiler: clang, Code: "the runtime", Output: string(said)}
	}
	return nil
}

// ownKinds lists the kinds of the events that the runtime generates, in the order of sg_own in
// runtime/runtime.h. The trace contains one block with one site for each of these kinds.
var ownKinds = [...]trace.Kind{trace.ThreadStart, trace.ThreadEnd, trace.RegionBegin, trace.RegionEnd}

// ownTables returns the body of the MODL frame that describes the blocks of the runtime's events.
func ownTables() []byte {
	p := &trace.Program{Modules: []trace.Module{{Name: "stackglass runtime"}}}
	for i, kind := range ownKinds {
		p.Blocks = append(p.Blocks, trace.Block{
			Function: trace.NoFunction, Flags: trace.Synthetic, FirstSite: uint32(i), Sites: 1,
		})
		p.Sites = append(p.Sites, trace.Site{Kind: kind, Block: uint32(i)})
	}
	return sgt.AppendModule(nil, p)
}
