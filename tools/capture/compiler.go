package capture

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// These are the oldest and newest versions of LLVM that are known to work.
const oldestLLVM, newestLLVM = 14, 19

// compiler is the compiler that a build uses.
type compiler struct {
	path    string
	fortran bool
	// clang is the path of the compiler for IR text and the runtime. It is the compiler itself or,
	// for flang, the clang of the same version.
	clang string
}

// UsageError means that a command line is not supported.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usage(parts ...string) error { return &UsageError{strings.Join(parts, "")} }

// driverName matches the names of clang and flang drivers, such as x86_64-linux-gnu-clang++-19.
var driverName = regexp.MustCompile(`^(?:.*-)?(clang\+\+|clang|flang-new|flang)((?:-\d+(?:\.\d+)*)?)$`)

// findCompiler finds the compiler with the given name.
func findCompiler(name string) (*compiler, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, notFound(name, err)
	}
	family, version := familyOf(path)
	switch family {
	case "":
		return nil, usage(name, " is neither clang nor flang, and only clang and flang can compile a program for tracing; ",
			"use `stackglass cc -- clang` (apt-get install clang), or trace the program without recompiling it, with `stackglass trace`")
	case "flang", "flang-new":
		clang, err := matchingClang(path, version)
		return &compiler{path: path, fortran: true, clang: clang}, err
	}
	return &compiler{path: path, clang: path}, nil
}

func notFound(name string, err error) error {
	if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if driverName.MatchString(filepath.Base(name)) {
		if there := newestNumbered(name); there != "" {
			return usage(name, " is not installed, but ", there, " is; use "+there)
		}
		return usage(name, " is not installed; install it, for example with: apt-get install ", debianPackage(filepath.Base(name)))
	}
	return usage(name, ": there is no such compiler; use clang, for example `stackglass cc -- clang -O2 -o app app.c`")
}

// newestNumbered returns the newest installed compiler whose name is the given name with a version
// number, such as clang-19, or "" if there is none. Debian, for example, installs clang-19 without
// clang.
func newestNumbered(name string) string {
	for version := newestLLVM; version >= oldestLLVM; version-- {
		there := name + "-" + strconv.Itoa(version)
		if _, err := exec.LookPath(there); err == nil {
			return there
		}
	}
	return ""
}

func debianPackage(name string) string {
	name = strings.Replace(name, "clang++", "clang", 1)
	return strings.Replace(name, "flang-new", "flang", 1)
}

// familyOf returns clang, clang++, flang or flang-new and a version suffix such as -19, or "" for
// other programs.
func familyOf(path string) (family, version string) {
	if m := driverName.FindStringSubmatch(filepath.Base(path)); m != nil {
		return m[1], m[2]
	}
	// cc may be a link to clang, or a script that runs clang.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if m := driverName.FindStringSubmatch(filepath.Base(real)); m != nil {
			return m[1], m[2]
		}
	}
	said, _ := exec.Command(path, "--version").Output()
	switch {
	case strings.Contains(string(said), "clang version"):
		return "clang", ""
	case strings.Contains(string(said), "flang"):
		return "flang", ""
	}
	return "", ""
}

// matchingClang returns the path of the clang that has the same version as the given flang.
func matchingClang(flang, version string) (string, error) {
	if path, err := exec.LookPath("clang" + version); err == nil {
		return path, nil
	}
	if real, err := filepath.EvalSymlinks(flang); err == nil {
		path := filepath.Join(filepath.Dir(real), "clang")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", usage("the clang that belongs to ", flang, " is needed to compile the objects, but is not installed; install it with: apt-get install clang", version)
}
