// Package qemu records the memory references of programs that were not compiled for tracing. The
// package uses QEMU's user-mode emulation.
//
// QEMU translates a program's instructions block by block and can call a plugin at each block and
// each reference. The plugin is written in C (in the plugin folder). The plugin writes a .sgt
// container, with the same code that the runtime of instrumented programs uses. When the plugin is
// first needed, it is compiled with any installed compiler, and stored in the user's cache folder.
//
// The recording contains the accesses as the emulator makes them. A 16-byte access is recorded as
// two accesses of 8 bytes. A repeated instruction (rep movs) is recorded as one access per element,
// with a block entry for each restart. The loads and stores of an instruction are recorded
// separately, even if the instruction is atomic. QEMU 7 does not support AVX-512, so programs that
// require AVX-512 crash. Accesses by the kernel and by child processes are not recorded.
//
// Package arrange converts the recording to a trace, and adds the names of functions and variables.
package qemu

import (
	"context"
	"crypto/sha256"
	"debug/elf"
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

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/tools/capture"
)

//go:embed plugin/*.c plugin/*.h
var sources embed.FS

// emulators lists the tested QEMU programs by machine. 32-bit machines are missing, because they
// would need a different header in the trace.
var emulators = map[elf.Machine]string{
	elf.EM_X86_64:  "qemu-x86_64",
	elf.EM_AARCH64: "qemu-aarch64",
	elf.EM_RISCV:   "qemu-riscv64",
}

// Emulator returns the path and the name of the QEMU program that emulates a machine. The name is
// "" if the machine is not supported.
func Emulator(m elf.Machine) (path, name string, err error) {
	if name = emulators[m]; name == "" {
		return "", "", fmt.Errorf("programs for %v cannot be traced; want a program for x86-64, AArch64 or 64-bit RISC-V", m)
	}
	path, err = exec.LookPath(name)
	return path, name, err
}

// ErrNoCompiler means that no C compiler is installed.
var ErrNoCompiler = errors.New(
	"QEMU's plugin must be compiled once, but no C compiler is installed; install a compiler (apt-get install gcc libc6-dev)")

// compilers lists the C compilers to try, in this order.
var compilers = []string{"cc", "gcc", "clang"}

// runtimeParts lists the sources of the runtime that the plugin contains.
var runtimeParts = []string{"encode.c", "file.c", "pack.c", "say.c", "system.c"}

// Plugin returns the path of the plugin for the given QEMU program. Plugin compiles the plugin
// unless the user's cache contains it. The error may be [ErrNoCompiler] or a
// [capture.CompileError].
func Plugin(ctx context.Context, emulator string) (string, error) {
	version, err := interfaceVersion(ctx, emulator)
	if err != nil {
		return "", err
	}
	files, err := allSources()
	if err != nil {
		return "", err
	}
	folder, err := capture.Cached("qemu-"+key(files, version), func(work string) error { return build(ctx, work, files, version) })
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, plugin), nil
}

// plugin is the name of the plugin's file.
const plugin = "plugin.so"

// interfaceVersion returns the version of the plugin interface that the plugin must declare. All
// versions agree in the part of the interface that the plugin uses, but QEMU 9 rejects plugins of
// version 1, and QEMU 8 rejects plugins of version 2.
func interfaceVersion(ctx context.Context, emulator string) (int, error) {
	said, err := exec.CommandContext(ctx, emulator, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", emulator, err)
	}
	_, after, _ := strings.Cut(string(said), " version ")
	major, _, _ := strings.Cut(after, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0, fmt.Errorf("%s --version printed %q, want a version of QEMU", emulator, strings.TrimSpace(string(said)))
	}
	if n >= 9 {
		return 2, nil
	}
	return 1, nil
}

// source is a source file of the plugin. Its path is relative to the folder that contains the
// folders runtime and qemu.
type source struct {
	path string
	text []byte
}

func allSources() (all []source, err error) {
	for _, from := range []struct {
		files  fs.FS
		folder string
		prefix string
	}{{sources, "plugin", "qemu"}, {capture.Sources(), "runtime", ""}} {
		err = fs.WalkDir(from.files, from.folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(from.files, path)
			all = append(all, source{filepath.Join(from.prefix, path), text})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// key returns a hash of the plugin's sources and compiler options.
func key(files []source, version int) string {
	sum := sha256.New()
	fmt.Fprintln(sum, version, options)
	for _, f := range files {
		fmt.Fprintln(sum, f.path, len(f.text))
		sum.Write(f.text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

var options = []string{"-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"}

// build writes the sources to the folder "work", and compiles the plugin in that folder.
func build(ctx context.Context, work string, files []source, version int) error {
	compiler := findCompiler()
	if compiler == "" {
		return ErrNoCompiler
	}
	args := slices.Concat(options, []string{"-DQEMU_PLUGIN_VERSION=" + strconv.Itoa(version), "-o", plugin})
	for _, f := range files {
		path := filepath.Join(work, f.path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, f.text, 0o666)); err != nil {
			return err
		}
		if isCompiled(f.path) {
			args = append(args, f.path)
		}
	}
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = work
	if said, err := cmd.CombinedOutput(); err != nil {
		return &capture.CompileError{Compiler: compiler, Code: "QEMU's plugin", Output: string(said)}
	}
	return nil
}

// isCompiled reports whether a source file is passed to the compiler. Headers, and parts of the
// runtime that the plugin does not need, are not passed to the compiler.
func isCompiled(path string) bool {
	folder, name := filepath.Split(path)
	return filepath.Ext(name) == ".c" && (folder != "runtime"+string(filepath.Separator) || slices.Contains(runtimeParts, name))
}

func findCompiler() string {
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Command returns the command that runs a program, with the given name as argument 0, and records
// the run to a file of at most mostBytes bytes; 0 means no limit. The program has the environment of
// this process.
func Command(emulator, plugin, recording string, mostBytes uint64, e trace.Extent, name, program string, args []string) *exec.Cmd {
	ours := []string{"LD_PRELOAD=" + plugin, "STACKGLASS_TRACE=" + recording, "STACKGLASS_TRACE_BYTES=" + strconv.FormatUint(mostBytes, 10),
		"STACKGLASS_TRACE_AFTER=" + strconv.FormatUint(e.After, 10), "STACKGLASS_TRACE_FOR=" + strconv.FormatUint(e.For, 10)}
	line := []string{"-plugin", plugin, "-0", name}
	env := os.Environ()
	for _, setting := range ours {
		name, _, _ := strings.Cut(setting, "=")
		// The program inherits QEMU's environment, except for these changes.
		if value, there := os.LookupEnv(name); there {
			line = append(line, "-E", name+"="+value)
		} else {
			line = append(line, "-U", name)
		}
	}
	cmd := exec.Command(emulator, append(append(line, "--", program), args...)...)
	cmd.Env = append(env, ours...)
	return cmd
}
