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
)

//go:embed runtime/*.c runtime/*.h
var sources embed.FS

// Header is stackglass.h, which marks parts of a program.
func Header() []byte {
	text, err := sources.ReadFile("runtime/stackglass.h")
	must(err)
	return text
}

// must is for errors that only a broken build of this program can have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Runtime is the compiled runtime: files in a folder.
type Runtime struct {
	Folder  string // has its source
	Include string // folder that has stackglass.h
	Program string // object that goes into each program
	Library string // object that goes into each shared library
	Calls   string // and into each that has a C library
	Exports string // what shared libraries need of the program, for a linker
	Preload string // shared library for a program that is not traced itself, but loads libraries that are
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

// CompileError tells that the runtime does not compile.
type CompileError struct {
	Clang  string
	Output string // what it said
}

func (e *CompileError) Error() string {
	said, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	return e.Clang + " cannot compile the runtime: " + said +
		"; install a C library for development (apt-get install libc6-dev)"
}

// BuildRuntime gives the runtime as that clang compiles it, from the user's cache
// if it is there already.
func BuildRuntime(clang string) (*Runtime, error) {
	key, err := runtimeKey(clang)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, cache := range caches() {
		folder := filepath.Join(cache, key)
		if _, err := os.Stat(filepath.Join(folder, "program.o")); err == nil {
			return runtimeIn(folder), nil
		}
		failed = makeRuntime(clang, folder)
		if failed == nil {
			return runtimeIn(folder), nil
		}
		if errors.As(failed, new(*CompileError)) {
			break
		}
	}
	return nil, failed
}

// runtimeKey is different whenever the compiled runtime would be.
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

// caches are folders to keep the runtime in, the best first.
func caches() (list []string) {
	if user, err := os.UserCacheDir(); err == nil {
		list = append(list, filepath.Join(user, "stackglass", "capture"))
	}
	shared := filepath.Join(os.TempDir(), "stackglass-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(shared, 0o700); err == nil || isOurs(shared) {
		list = append(list, shared)
	}
	return list
}

// isOurs tells whether nobody else may have put something in the folder.
func isOurs(folder string) bool {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	return isOwn(info)
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

// makeRuntime compiles it beside the folder and renames it, so that of many
// processes of a build each finds all or nothing.
func makeRuntime(clang, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(folder), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
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
	if err := os.Rename(work, folder); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}

func writeSources(folder string) error {
	tables := "static const uint8_t sg_own_tables[] = {" + byteList(ownTables()) + "};\n"
	if err := os.WriteFile(filepath.Join(folder, "tables.h"), []byte(tables), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "exports.list"), []byte("{ __sg_*; };\n"), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, "include"), 0o700); err != nil {
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
		return &CompileError{Clang: clang, Output: string(said)}
	}
	return nil
}
